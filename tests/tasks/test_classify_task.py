"""The classification task: what a batch is, what is learned from it, and what is measured."""

from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import torch
from PIL import Image

from manyheads.data.augment.augment import Augmentation
from manyheads.data.batching.batches import ImageBatch
from manyheads.data.images import pixels as module
from manyheads.data.images.image_set import ImageSet, Preprocessing, read_folder
from manyheads.data.images.pixels import Pixels, predict_all_logits, predict_logits
from manyheads.errors import DataError
from manyheads.fit.training_images import training_preprocessing
from manyheads.models.vit import Vit, VitConfig
from manyheads.tasks.classify.distil import Distil, Teacher
from manyheads.tasks.classify.task import ClassifyTask, ClassifyTrainConfig, scores
from manyheads.tasks.reconstruct.task import ReconstructTrainConfig
from manyheads.train.loop import fit
from tests.made import CLASSES, Silent, half, write_halves

PREPROCESSING = Preprocessing(height=4, width=6, mode="L")


def images(count: int = 12) -> ImageSet:
    return ImageSet(
        labels=np.arange(count) % 2,
        classes=list(CLASSES),
        names=[f"half {index}" for index in range(count)],
        read=lambda index: half(index % 2, index),
    )


def task(
    config: ClassifyTrainConfig | None = None, augmentation: Augmentation | None = None
) -> ClassifyTask:
    return ClassifyTask(
        images(),
        images(),
        PREPROCESSING,
        augmentation or Augmentation(),
        config or ClassifyTrainConfig(batch_size=5),
        seed=1,
    )


def model() -> Vit:
    torch.manual_seed(0)
    return Vit(
        VitConfig(
            height=4, width=6, channels=1, patch=2, dim=8, layers=1, heads=2, ffn_dim=16, classes=2
        )
    )


def test_a_batch() -> None:
    """Normalised pixels and the numbers of the classes; units count images."""
    (batch,) = task().load(0, [np.array([3, 0])])
    expected = torch.from_numpy(np.asarray(half(1, 3)).copy())
    assert torch.equal(batch.images[0, 0], (expected.float() / 255 - 0.5) / 0.5)
    assert batch.images.shape == (2, 1, 4, 6)
    assert batch.labels.tolist() == [1, 0]
    assert batch.units == 2


def test_the_plan_shuffles_all_images() -> None:
    """Five, five, and the two that remain; another order in the next epoch."""
    plan = task().plan(0)
    assert [len(batch) for batch in plan] == [5, 5, 2]
    assert sorted(np.concatenate(plan)) == list(range(12))
    assert np.concatenate(plan).tolist() != np.concatenate(task().plan(1)).tolist()


def test_augmentation_belongs_to_training() -> None:
    """Images move from epoch to epoch in training, never in validation."""
    made = task(augmentation=Augmentation(shift=1, flip=True))
    everything = [np.arange(12)]
    (first,), (second,) = made.load(0, everything), made.load(1, everything)
    assert not torch.equal(first.images, second.images)
    net = model().eval()
    assert made.evaluate(net) == made.evaluate(net) == task().evaluate(net)


def framed(index: int) -> Image.Image:
    """White in the middle half of its sides, black around it."""
    pixels = np.zeros((16, 24), dtype=np.uint8)
    pixels[4:12, 6:18] = 255
    return Image.fromarray(pixels)


def test_a_random_crop_is_cut_from_the_whole_image() -> None:
    """Not from the middle that validation sees; and from a larger image where that is asked."""
    middle = replace(PREPROCESSING, crop=0.5)
    augmentation = Augmentation(resized_crop=0.9, oversize=2.0)
    assert training_preprocessing(middle, augmentation) == replace(
        middle, height=8, width=12, crop=1.0
    )
    assert training_preprocessing(middle, Augmentation(flip=True)) == middle
    seen = replace(images(), read=framed)
    made = ClassifyTask(seen, seen, middle, augmentation, ClassifyTrainConfig(), seed=1)
    (batch,) = made.load(0, [np.arange(12)])
    assert batch.images.shape == (12, 1, 4, 6)
    assert batch.images.amin(dim=(1, 2, 3)).max() < -0.9  # each has some of the black frame
    assert Pixels(seen, middle)[np.arange(12)].min() > 200


def test_images_are_opened_once_where_memory_allows() -> None:
    """And again and again where it does not; what comes out is the same."""
    opened: list[int] = []

    def read(index: int) -> object:
        opened.append(index)
        return half(index % 2, index)

    watched = ImageSet(
        labels=np.zeros(3, dtype=int),
        classes=["any"],
        names=["a", "b", "c"],
        read=read,  # type: ignore[arg-type]
    )
    remembered = Pixels(watched, PREPROCESSING)
    chosen = np.array([2, 0])
    first, second = remembered[chosen], remembered[chosen]
    assert opened == [2, 0]
    assert torch.equal(first, second)


def test_a_set_too_large_for_memory_is_read_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same result."""
    remembered = Pixels(images(), PREPROCESSING)[np.array([4, 7])]
    monkeypatch.setattr(module, "IN_MEMORY", 0)
    assert torch.equal(Pixels(images(), PREPROCESSING)[np.array([4, 7])], remembered)


def test_the_loss_and_its_logs() -> None:
    """Cross-entropy and percentages of right ones are sums over the images."""
    made, net = task(), model().eval()
    torch.nn.init.normal_(net.head.weight)
    (batch,) = made.load(0, [np.arange(12)])
    loss = made.loss(net, batch)
    log_probabilities = net(batch.images).log_softmax(-1)
    by_hand = -sum(log_probabilities[i, label].item() for i, label in enumerate(batch.labels))
    assert loss.sum.item() == pytest.approx(by_hand, rel=1e-5)
    assert loss.weight == 12
    right = (log_probabilities.argmax(-1) == batch.labels).sum().item()
    assert loss.logs == {"accuracy": 100.0 * right}


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
@pytest.mark.parametrize("balanced", [None, "balanced"])
def test_a_teachers_share_of_the_loss(share: float, balanced: Literal["balanced"] | None) -> None:
    """The labels get the rest; both are means of the same weight, also where classes have some."""
    teacher = model()
    torch.nn.init.normal_(teacher.head.weight, std=2.0)
    net = model().eval()
    torch.nn.init.normal_(net.head.weight)
    three = replace(images(3), labels=np.array([0, 1, 0]))
    made = ClassifyTask(
        *(three, three, PREPROCESSING, Augmentation(), ClassifyTrainConfig(class_weights=balanced)),
        seed=1,
        distil=Distil(teacher="teacher", weight=share, temperature=2.0),
        teacher=Teacher(teacher, PREPROCESSING, PREPROCESSING, CLASSES, CLASSES),
    )
    (batch,) = made.load(0, [np.array([1, 2])])
    loss = made.loss(net, batch)
    ours, theirs = (each(batch.images) for each in (net, teacher))
    # Balanced: 3 images, 2 classes; 3 / (2 * 2) for each of two images, 3 / (2 * 1) for the other.
    weights = torch.tensor([1.5, 0.75] if balanced else [1.0, 1.0])
    log_probability = ours.log_softmax(1)[torch.arange(2), batch.labels]
    labels = -(weights * log_probability).sum() / weights.sum()
    soft, wanted = (ours / 2).log_softmax(1), (theirs / 2).log_softmax(1)
    distance = 4 * (wanted.exp() * (wanted - soft)).sum(dim=1).mean()
    assert distance > 0.01
    expected = (1 - share) * labels + share * distance
    assert loss.weight == weights.sum()
    assert loss.sum.item() / loss.weight == pytest.approx(expected.item(), rel=1e-5)


class TwoHeads(torch.nn.Module):
    """Says of every image what its two heads say of any."""

    def __init__(self) -> None:
        super().__init__()
        self.heads = torch.nn.Parameter(torch.tensor([[2.0, 0.0], [0.0, 1.0]]))

    def forward(self, images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        first, second = (head.expand(len(images), 2) for head in self.heads)
        return first, second


def test_one_head_learns_from_the_labels_and_one_from_the_teacher() -> None:
    """V15: as in DeiT, equation 3; without a teacher, the mean of both learns from the labels."""
    teacher = model()
    with torch.no_grad():
        teacher.head.bias.copy_(torch.tensor([0.0, 9.0]))  # "right", whatever it sees
    sets = (images(), images(), PREPROCESSING, Augmentation(), ClassifyTrainConfig())
    taught = ClassifyTask(
        *sets,
        seed=1,
        distil=Distil(teacher="teacher", hard=True),
        teacher=Teacher(teacher, PREPROCESSING, PREPROCESSING, CLASSES, CLASSES),
    )
    (batch,) = taught.load(0, [np.array([0])])  # "left"
    log = np.log1p
    # -log softmax of 2 beside 0, and of 1 beside 0: log(1 + e^-2) and log(1 + e^-1).
    assert taught.loss(TwoHeads(), batch).sum.item() == pytest.approx(
        (log(np.exp(-2)) + log(np.exp(-1))) / 2
    )
    # The mean is 1 beside 1/2.
    alone = ClassifyTask(*sets, seed=1).loss(TwoHeads(), batch)
    assert alone.sum.item() == pytest.approx(log(np.exp(-0.5)))


def test_score_by_hand() -> None:
    """A model that always says "left" is right half of the time; its loss is the mean -log p."""
    net = model().eval()
    with torch.no_grad():
        net.head.bias.copy_(torch.tensor([np.log(4.0), 0.0]))  # p = 4/5, 1/5 whatever it sees
    found = scores(predict_all_logits(net, Pixels(images(), PREPROCESSING)), images())
    assert found["accuracy"] == 50.0
    assert found["loss"] == pytest.approx(-(np.log(0.8) + np.log(0.2)) / 2, rel=1e-5)


class Watching(torch.nn.Module):
    """Remembers what it was shown."""

    def __init__(self) -> None:
        super().__init__()
        self.bias = torch.nn.Parameter(torch.zeros(2))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        self.seen = images
        return images.mean((2, 3))[:, :2] + self.bias


def test_channels_last_is_how_images_lie_in_memory() -> None:
    """What the task's settings say of the model's weights, its images follow."""
    assert ReconstructTrainConfig().memory_format == torch.contiguous_format  # every task says it
    batch = ImageBatch(torch.randn(4, 3, 4, 6), torch.zeros(4, dtype=torch.long), np.arange(4))
    for channels_last, expected in (
        (False, torch.contiguous_format),
        (True, torch.channels_last),
    ):
        config, net = ClassifyTrainConfig(channels_last=channels_last), Watching()
        task(config).loss(net, batch)
        assert config.memory_format == expected
        assert net.seen.is_contiguous(memory_format=expected)
        assert torch.equal(net.seen, batch.images)


def test_many_images_are_classified_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """How many at a time does not matter."""
    net = model().eval()
    torch.nn.init.normal_(net.head.weight)
    pixels = Pixels(images(), PREPROCESSING)[np.arange(12)]
    at_once, scored = predict_logits(net, PREPROCESSING, pixels), task().evaluate(net)
    monkeypatch.setattr(module, "ROWS", 5)
    torch.testing.assert_close(predict_logits(net, PREPROCESSING, pixels), at_once)
    assert task().evaluate(net) == pytest.approx(scored)


def test_overfits_one_batch(tmp_path: Path) -> None:
    """Twelve images, all right."""
    config = ClassifyTrainConfig(
        steps=60,
        batch_size=12,
        learning_rate=2e-2,
        warmup=5,
        validate_every=60,
        log_every=60,
        save_every=60,
    )
    made, net = task(config), model()
    fit(
        net,
        made,
        config,
        tmp_path,
        seed=1,
        environment={},
        save_best=lambda model: None,
        observer=Silent(),
    )
    found = made.evaluate(net.eval())
    assert found["accuracy"] == 100.0
    assert found["loss"] < 0.1


def test_an_unreadable_image_stops_training_by_name(tmp_path: Path) -> None:
    """In the first epoch that comes to it."""
    write_halves(tmp_path, count=4)
    bad = tmp_path / "halves" / "left" / "000.png"
    bad.write_bytes(bad.read_bytes()[:40])
    found = read_folder(tmp_path / "halves")
    made = ClassifyTask(found, found, PREPROCESSING, Augmentation(), ClassifyTrainConfig(), seed=1)
    with pytest.raises(DataError, match=f"{bad} cannot be read as an image"):
        list(made.load(0, made.plan(0)))


def test_a_batch_is_named_by_its_images() -> None:
    """As the message about a loss that is not a number does."""
    (batch,) = task().load(0, [np.array([7, 2])])
    assert task().describe(batch) == "half 7, half 2"

"""Damage in labelled images: each kind is made, and found where it is."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from manyheads.data.checks.image_checks import ISSUE_TYPES, ImageFinding, findings, look
from manyheads.data.checks.image_fingerprints import digest, perceptual, similar
from manyheads.data.checks.issue_types import SEVERITIES
from manyheads.data.images.image_set import ImageSet, Preprocessing, read_folder, read_unlabelled

MODEL = Preprocessing(height=32, width=32)


def photo(seed: int, *, size: tuple[int, int] = (48, 40)) -> Image.Image:
    """Something with large shapes, as photographs have, and some noise."""
    random = np.random.default_rng(seed)
    coarse = Image.fromarray(random.integers(0, 256, (5, 6, 3)).astype(np.uint8))
    values = np.asarray(coarse.resize(size, Image.Resampling.BICUBIC)).astype(int)
    noisy = values + random.integers(-6, 7, values.shape)
    return Image.fromarray(np.clip(noisy, 0, 255).astype(np.uint8))


def write(root: Path, **images: Image.Image) -> None:
    """Write images by name: cat__1 is 1.png in the folder cat."""
    for name, image in images.items():
        folder, _, stem = name.partition("__")
        (root / folder).mkdir(parents=True, exist_ok=True)
        image.save(root / folder / f"{stem}.png", save_all=False)


def fine(root: Path, count: int = 12, first: int = 0) -> None:
    for number in range(count):
        write(root, **{f"cat__{number}": photo(first + 2 * number)})
        write(root, **{f"dog__{number}": photo(first + 2 * number + 1)})


def found(images: ImageSet, **held_out: ImageSet) -> dict[str, ImageFinding]:
    others = {split: look(each) for split, each in held_out.items()}
    return {each.kind: each for each in findings(look(images, MODEL), others)}


def test_nothing_to_complain_of(tmp_path: Path) -> None:
    """Different images of two classes: not one finding."""
    fine(tmp_path / "train")
    fine(tmp_path / "test", 4, first=1000)
    assert found(read_folder(tmp_path / "train"), test=read_folder(tmp_path / "test")) == {}


def test_unreadable_files_are_named_with_the_reason(tmp_path: Path) -> None:
    """Empty, cut off, no image; the others are still compared."""
    fine(tmp_path)
    names = [tmp_path / "cat" / f"{number}.png" for number in range(3)]
    names[0].write_bytes(b"")
    names[1].write_bytes(names[1].read_bytes()[:200])
    names[2].write_text("hello")
    finding = found(read_folder(tmp_path))["unreadable"]
    assert (finding.severity, finding.count) == ("error", 3)
    assert finding.examples[0] == f"{names[0]} (it is empty (0 bytes))"
    assert finding.examples[2] == f"{names[2]} (not an image, or damaged)"


def test_duplicates(tmp_path: Path) -> None:
    """The same pixels in another format; smaller and recompressed; under another label."""
    fine(tmp_path)
    photo(0).save(tmp_path / "cat" / "copy.bmp")
    photo(2).resize((36, 30)).save(tmp_path / "cat" / "near.jpg", quality=80)
    write(tmp_path, dog__other=photo(4))
    result = found(read_folder(tmp_path))
    assert set(result) == {"duplicate", "near-duplicate", "conflicting-labels"}
    assert result["duplicate"].count == 2
    cat = tmp_path / "cat"
    assert f"{cat / 'copy.bmp'} = {cat / '0.png'}" in result["duplicate"].examples
    assert result["near-duplicate"].examples == (f"{cat / 'near.jpg'} ~ {cat / '1.png'}",)
    assert "(dog)" in result["conflicting-labels"].examples[0]


def test_overlaps(tmp_path: Path) -> None:
    """Exact ones are errors, similar ones are to be looked at."""
    fine(tmp_path / "train")
    fine(tmp_path / "test", 3, first=1000)
    write(tmp_path / "test", cat__seen=photo(0), fox__near=photo(3).resize((40, 33)))
    result = found(read_folder(tmp_path / "train"), test=read_folder(tmp_path / "test"))
    assert set(result) == {"test-overlap", "test-near-overlap", "unknown-class"}
    assert result["test-overlap"].examples == (
        f"{tmp_path / 'train/cat/0.png'} = {tmp_path / 'test/cat/seen.png'}",
    )
    assert result["test-near-overlap"].severity == "warning"
    assert result["unknown-class"].examples == ("fox (test)",)


def test_odd_images(tmp_path: Path) -> None:
    """One pixel, thin, of one colour, moving, small for the model."""
    fine(tmp_path)
    write(
        tmp_path,
        cat__pixel=Image.new("RGB", (1, 1)),
        cat__thin=photo(900, size=(200, 30)),
        cat__blank=Image.new("RGB", (40, 40), "red"),
        cat__small=photo(901, size=(12, 12)),
    )
    frames = [photo(number) for number in (800, 801)]
    frames[0].save(tmp_path / "cat" / "moving.gif", save_all=True, append_images=frames[1:])
    result = found(read_folder(tmp_path))
    assert set(result) == {"tiny", "long", "blank", "small", "animated"}
    for kind, name in (("tiny", "pixel"), ("long", "thin"), ("blank", "blank"), ("small", "small")):
        assert result[kind].examples == (str(tmp_path / "cat" / f"{name}.png"),)


def test_what_the_model_cannot_read(tmp_path: Path) -> None:
    """Another number of channels than the recipe declares: as training would say."""
    fine(tmp_path)
    np.save(tmp_path / "cat" / "bands.npy", np.zeros((40, 48, 5), dtype=np.uint8))
    finding = found(read_folder(tmp_path))["unreadable"]
    assert finding.examples[0].startswith(f"{tmp_path / 'cat' / 'bands.npy'} (it has 5 channels")
    assert "unreadable" not in {each.kind for each in findings(look(read_folder(tmp_path)))}


def test_without_labels(tmp_path: Path) -> None:
    """Copies and odd images are found; of classes nothing is said."""
    fine(tmp_path)
    photo(0).save(tmp_path / "dog" / "copy.bmp")
    assert set(found(read_unlabelled(tmp_path))) == {"duplicate"}


def test_a_class_without_images(tmp_path: Path) -> None:
    """Is the rarest of all."""
    fine(tmp_path)
    (tmp_path / "fox").mkdir()
    assert found(read_folder(tmp_path))["rare-class"].examples == ("fox (0)",)


def labelled(**counts: int) -> ImageSet:
    """As many different images of each class."""
    classes = sorted(counts)
    labels = np.repeat(np.arange(len(classes)), [counts[name] for name in classes])
    return ImageSet(
        labels=labels,
        classes=classes,
        names=[f"image {index}" for index in range(len(labels))],
        read=photo,
    )


def test_classes(tmp_path: Path) -> None:
    """Rare and frequent ones; names that are one name."""
    result = found(labelled(tabby=120, tabyb=3, Dog=15, dog=20, room1=12, room2=12))
    assert set(result) == {"rare-class", "imbalance", "label-typo"}
    assert result["rare-class"].examples == ("tabyb (3)",)
    assert result["imbalance"].examples == ("tabby (120) against tabyb (3)",)
    assert set(result["label-typo"].examples) == {
        "tabyb (3) and tabby (120)",
        "Dog (15) and dog (20)",
    }
    assert "one-class" in found(labelled(cat=12))
    short = found(labelled(dog=60, dgo=1, cat=60, bat=1))["label-typo"]
    assert short.examples == ("dgo (1) and dog (60)",)


def test_several_labels() -> None:
    """Counts go by class; an image without any is worth a note."""
    images = labelled(a=12, b=12)
    several = ImageSet(
        labels=np.eye(3, dtype=np.float32)[[0] * 12 + [1] * 11 + [2]][:, :2],
        classes=["a", "b"],
        names=images.names,
        read=photo,
    )
    result = found(several)
    assert set(result) == {"no-label"}
    assert result["no-label"].examples == ("image 23",)


def test_every_kind_has_a_remedy() -> None:
    """A finding without one would only be a complaint."""
    for kind in ISSUE_TYPES.values():
        assert kind.remedy.endswith(".")
        assert kind.severity in SEVERITIES
        assert "{" not in kind.what


# --- Fingerprints -------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [0, 3, 7])
def test_similar_finds_all_pairs(limit: int) -> None:
    """Chunks are a shortcut: as comparing each with each."""
    random = np.random.default_rng(0)
    bits = random.integers(0, 256, (60, 16)).astype(np.uint8)
    for place in range(0, 60, 3):  # neighbours that differ in a few bits
        bits[place + 1] = bits[place]
        for bit in random.choice(128, random.integers(0, 10), replace=False):
            bits[place + 1, bit // 8] ^= 1 << (bit % 8)
    unlike = np.bitwise_count(bits[:, None] ^ bits[None]).sum(axis=2)
    expected = [(i, j) for i in range(60) for j in range(i + 1, 60) if unlike[i, j] <= limit]
    assert list(similar(bits, limit)) == expected


def test_fingerprints() -> None:
    """Pixels decide about equality, shapes about likeness."""
    one = photo(1)
    assert digest(one) == digest(one.copy()) != digest(photo(2))
    assert digest(one) != digest(one.convert("RGBA"))
    near = perceptual(one.resize((30, 25)))
    assert np.bitwise_count(near ^ perceptual(one)).sum() <= 4
    assert np.bitwise_count(perceptual(photo(2)) ^ perceptual(one)).sum() > 30
    assert perceptual(np.asarray(one)).shape == (16,)
    rows = np.array([0, 80, 40, 120, 80, 160, 120, 200, 160], np.uint8)  # brighter, darker, ...
    waves = np.broadcast_to(rows[:, None, None], (9, 9, 3))  # each than the row above it
    across, down = np.unpackbits(perceptual(waves)).reshape(2, 8, 8)
    assert not across.any()
    assert down.tolist() == [[1] * 8, [0] * 8] * 4

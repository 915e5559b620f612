"""Whole files and folders of other libraries' classifiers become model folders."""

import json
import pickle
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file
from torch import Tensor

from manyheads.convert.classifiers import Library, from_images
from manyheads.errors import FolderError, ManyheadsError, UsageError
from manyheads.measure.stored_model import evaluate
from manyheads.predict.load import load
from manyheads.project.folder import ModelFolder
from manyheads.project.model_facts import describe
from manyheads.tasks.classify.predictor import Classifier
from tests.models.test_golden_images import Golden
from tests.models.test_golden_images import load as golden


def classifier(path: Path, **arguments: Any) -> Classifier:
    found = load(path, **arguments)
    assert isinstance(found, Classifier)
    return found


def write(tensors: dict[str, Tensor], path: Path) -> Path:
    """Write tensors in the format that the file's name tells."""
    if path.suffix == ".npz":
        arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
        np.savez(path, **arrays)  # type: ignore[arg-type]
    elif path.suffix == ".safetensors":
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, path)
    else:
        torch.save(tensors, path)
    return path


def write_hf(of: Golden, folder: Path, **config: Any) -> Path:
    folder.mkdir()
    write(of.tensors, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(of.settings | config))
    return folder


def vit_tiny(size: tuple[int, int] = (32, 32), patch: int = 16) -> dict[str, Tensor]:
    """Random tensors by timm's names, as wide as the name vit_tiny says."""
    generator = torch.Generator().manual_seed(0)
    dim, tokens = 192, (size[0] // patch) * (size[1] // patch) + 1
    shapes = {
        "cls_token": (1, 1, dim),
        "pos_embed": (1, tokens, dim),
        "patch_embed.proj.weight": (dim, 3, patch, patch),
        "patch_embed.proj.bias": (dim,),
        "blocks.0.attn.qkv.weight": (3 * dim, dim),
        "blocks.0.attn.qkv.bias": (3 * dim,),
    }
    linears = {
        "blocks.0.norm1": (dim,),
        "blocks.0.norm2": (dim,),
        "norm": (dim,),
        "blocks.0.attn.proj": (dim, dim),
        "blocks.0.mlp.fc1": (2 * dim, dim),
        "blocks.0.mlp.fc2": (dim, 2 * dim),
        "head": (5, dim),
    }
    for name, shape in linears.items():
        shapes |= {f"{name}.weight": shape, f"{name}.bias": shape[:1]}
    return {name: 0.1 * torch.randn(shape, generator=generator) for name, shape in shapes.items()}


CASES: list[tuple[Library, str, str, str | None]] = [
    ("timm", "timm-resnet-basic", "weights.safetensors", "resnet18"),
    ("timm", "timm-resnet-bottleneck", "weights.pth", "resnet50.a1_in1k"),
    ("timm", "timm-vgg-batch-norm-large", "weights.pt", "vgg16_bn"),
    ("torchvision", "torchvision-vgg-batch-norm-small", "weights.bin", "vgg11_bn"),
    ("google", "google-vit", "weights.npz", None),
]


@pytest.mark.parametrize(("library", "name", "file", "arch"), CASES, ids=[c[1] for c in CASES])
def test_a_file_becomes_a_folder(
    library: Library, name: str, file: str, arch: str | None, tmp_path: Path
) -> None:
    """Its model gives the source's logits for the source's images, and classifies images."""
    reference = golden(name)
    source = write(reference.tensors, tmp_path / file)
    made = from_images(library, str(source), tmp_path / "out", architecture=arch)
    ours = classifier(tmp_path / "out")
    with torch.inference_mode():
        logits = ours.model(reference.images)
    assert (logits - reference.logits).abs().max() <= 1e-4 * reference.logits.abs().max()
    assert made.classes == 5
    assert sum(p.numel() for p in ours.model.parameters()) == made.parameters
    image = Image.new("RGB", (40, 30), "red")
    assert len(ours.classify([image], top=5)[0]) == 5
    assert ours.labels == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize("name", ["hf-resnet-basic", "hf-bit", "hf-resnet-bottleneck"])
def test_a_hugging_face_folder(name: str, tmp_path: Path) -> None:
    reference = golden(name)
    source = write_hf(reference, tmp_path / "theirs")
    from_images("hf", str(source), tmp_path / "out")
    if name == "hf-bit":  # the number of groups is the configuration's
        assert classifier(tmp_path / "out").model.config.norm_groups == 4  # type: ignore[union-attr]
    with torch.inference_mode():
        logits = classifier(tmp_path / "out").model(reference.images)
    assert (logits - reference.logits).abs().max() <= 1e-4 * reference.logits.abs().max()


def test_labels_and_preprocessing_of_a_hugging_face_folder(tmp_path: Path) -> None:
    names = {str(number): name for number, name in enumerate(["a", "b", "c", "d", "e"])}
    source = write_hf(golden("hf-vit-resized"), tmp_path / "theirs", id2label=names)
    processor = {
        "size": {"shortest_edge": 10},
        "crop_size": {"height": 8, "width": 8},
        "do_center_crop": True,
        "resample": 3,
        "image_mean": [0.1, 0.2, 0.3],
        "image_std": [0.4, 0.5, 0.6],
    }
    (source / "preprocessor_config.json").write_text(json.dumps(processor))
    (source / "README.md").write_text("---\nlicense: mit\n---\n# A model\n")
    made = from_images("hf", str(source), tmp_path / "out")
    assert made.remarks == []
    ours = classifier(tmp_path / "out")
    assert ours.labels == ["a", "b", "c", "d", "e"]
    image = ours.preprocessing
    assert (image.mean, image.std) == ((0.1, 0.2, 0.3), (0.4, 0.5, 0.6))
    assert (image.interpolation, image.resize_mode, image.crop) == ("bicubic", "crop", 0.8)
    assert (image.height, image.width) == (8, 8)
    card = (tmp_path / "out" / "README.md").read_text()
    assert "| converted from | theirs (hf) |" in card
    assert "| licence | mit |" in card
    assert describe(str(tmp_path / "out"))["trained"]["origin"] == "theirs"


def test_without_a_processor_it_is_said_what_is_assumed(tmp_path: Path) -> None:
    source = write_hf(golden("hf-vit-resized"), tmp_path / "theirs")
    made = from_images("hf", str(source), tmp_path / "out")
    assert "does not say how images are prepared" in made.remarks[0]
    assert classifier(tmp_path / "out").preprocessing.resize_mode == "stretch"


def test_a_timm_folder_tells_its_architecture(tmp_path: Path) -> None:
    """As on the hub: config.json has the name and how images are prepared."""
    folder = tmp_path / "theirs"
    folder.mkdir()
    write(vit_tiny(), folder / "model.safetensors")
    about = {
        "architecture": "vit_tiny_patch16_224",
        "pretrained_cfg": {
            "input_size": [3, 32, 32],
            "mean": [0.5, 0.5, 0.5],
            "std": [0.25, 0.25, 0.25],
            "interpolation": "bilinear",
            "crop_pct": 0.8,
            "crop_mode": "squash",
            "label_names": ["a", "b", "c", "d", "e"],
        },
    }
    (folder / "config.json").write_text(json.dumps(about))
    made = from_images("timm", str(folder), tmp_path / "out")
    assert made.remarks == []
    assert made.size == (32, 32)
    ours = classifier(tmp_path / "out")
    image = ours.preprocessing
    assert (image.std, image.crop, image.resize_mode) == ((0.25, 0.25, 0.25), 0.8, "stretch")
    assert ours.labels[0] == "a"
    assert ours.model.config.heads == 3  # type: ignore[union-attr]
    assert ModelFolder(tmp_path / "out").recipe.origin.architecture == (  # type: ignore[union-attr]
        "vit_tiny_patch16_224"
    )


@pytest.mark.parametrize(
    ("about", "message"),
    [
        ({"model_args": {"act_layer": "hard_swish"}}, "act_layer = 'hard_swish'"),
        ({"model_args": {"mlp_layer": "glu"}}, "mlp_layer = 'glu'"),
        ({"global_pool": "map"}, "global_pool 'map'"),
        ({"architecture": "vit_large_patch14_xp_224"}, "word 'xp'"),
        ({"architecture": 3}, "does not tell its architecture"),
        ({"pretrained_cfg": {"crop_pct": -1}}, r"Images cannot be prepared.*crop_pct = -1"),
        ({"pretrained_cfg": {"crop_mode": "border"}}, r"crop_mode = 'border'"),
        ({"pretrained_cfg": {"interpolation": "random"}}, r"interpolation = 'random'"),
        ({"pretrained_cfg": {"mean": [0.5, float("nan"), 0.5]}}, r"mean = .*finite"),
    ],
)
def test_a_timm_folder_that_ours_cannot_be(
    about: dict[str, Any], message: str, tmp_path: Path
) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    write(vit_tiny(), folder / "model.safetensors")
    told = {"architecture": "vit_tiny_patch16_224"} | about
    (folder / "config.json").write_text(json.dumps(told))
    with pytest.raises(UsageError, match=message):
        from_images("timm", str(folder), tmp_path / "out")


# --- Image sizes --------------------------------------------------------------------------------


def test_another_size_is_another_table(tmp_path: Path) -> None:
    """At conversion or when loading, positions are interpolated: it is the same model."""
    source = write(vit_tiny((64, 64)), tmp_path / "weights.safetensors")
    arch = "vit_tiny_patch16_224"
    from_images("timm", str(source), tmp_path / "own", architecture=arch)
    made = from_images(
        "timm", str(source), tmp_path / "other", architecture=arch, image_size=(96, 32)
    )
    assert made.size == (96, 32)
    images = torch.randn(2, 3, 96, 32)
    stored = classifier(tmp_path / "other")
    asked = classifier(tmp_path / "own", image_size=(96, 32))
    for each in (stored, asked):
        assert (each.preprocessing.height, each.preprocessing.width) == (96, 32)
        assert each.pixels(Image.new("RGB", (9, 9))).shape == (3, 96, 32)
    with torch.inference_mode():
        torch.testing.assert_close(stored.model(images), asked.model(images))
        # So does the model itself, when it meets such images.
        own = classifier(tmp_path / "own").model
        torch.testing.assert_close(own(images), asked.model(images))


def test_a_size_that_the_weights_already_have(tmp_path: Path) -> None:
    """16 x 64 pixels, 1 x 4 patches: not the square that four positions suggest."""
    source = write(vit_tiny((16, 64)), tmp_path / "weights.safetensors")
    made = from_images(
        "timm",
        str(source),
        tmp_path / "out",
        architecture="vit_tiny_patch16_224",
        image_size=(16, 64),
    )
    assert made.size == (16, 64)
    table = classifier(tmp_path / "out").model.state_dict()["positions.table"]
    assert torch.equal(table, vit_tiny((16, 64))["pos_embed"][0])


def test_a_size_that_cannot_be_cut(tmp_path: Path) -> None:
    source = write(vit_tiny(), tmp_path / "weights.safetensors")
    with pytest.raises(UsageError, match="33 x 33 pixels"):
        from_images(
            "timm",
            str(source),
            tmp_path / "out",
            architecture="vit_tiny_patch16_224",
            image_size=(33, 33),
        )
    assert not (tmp_path / "out").exists()


def test_only_images_have_a_size() -> None:
    with pytest.raises(UsageError, match=r"date-en-ko .* no image_size"):
        load("date-en-ko", image_size=(8, 8))


# --- Mistakes -----------------------------------------------------------------------------------


def convert(path: Path, arch: str | None = "resnet18", library: Library = "timm") -> None:
    from_images(library, str(path), path.parent / "out", architecture=arch)


@pytest.mark.parametrize("file", ["w.safetensors", "w.pth", "w.npz"])
@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_a_truncated_file_is_named(file: str, share: float, tmp_path: Path) -> None:
    path = write(golden("timm-resnet-basic").tensors, tmp_path / file)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(FolderError, match=file.replace(".", r"\.")):
        convert(path)
    assert [each.name for each in tmp_path.iterdir()] == [file]


class Evil:
    """What a pickle may do."""

    def __reduce__(self) -> Any:
        return (print, ("pwned",))


@pytest.mark.parametrize("file", ["w.pth", "w.bin"])
def test_code_is_not_run(file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.save({"conv1.weight": torch.ones(1), "evil": Evil()}, tmp_path / file)
    with pytest.raises(FolderError, match="could run code"):
        convert(tmp_path / file)
    (tmp_path / file).write_bytes(pickle.dumps(Evil()))
    with pytest.raises(FolderError):
        convert(tmp_path / file)
    np.savez(tmp_path / "w.npz", a=np.array([Evil()], dtype=object))
    with pytest.raises(FolderError, match="cannot be read"):
        convert(tmp_path / "w.npz")
    assert "pwned" not in capsys.readouterr().out


def test_not_a_file_of_weights(tmp_path: Path) -> None:
    (tmp_path / "image.png").write_bytes(b"\x89PNG")
    with pytest.raises(UsageError, match=r"\.safetensors, .*npz"):
        convert(tmp_path / "image.png")
    with pytest.raises(UsageError, match="no file or folder"):
        convert(tmp_path / "nowhere.safetensors")
    torch.save([torch.ones(1)], tmp_path / "list.pt")
    with pytest.raises(FolderError, match="no named tensors"):
        convert(tmp_path / "list.pt")


def test_tensors_of_another_architecture(tmp_path: Path) -> None:
    """What is missing is named, with what is there."""
    path = write(vit_tiny(), tmp_path / "w.safetensors")
    with pytest.raises(UsageError, match=r"no tensor 'conv1\.weight'.*it has .*attn"):
        convert(path, "resnet18")
    with pytest.raises(UsageError, match="embed_dim 384, but its tensors have 192"):
        convert(path, "vit_small_patch16_224")
    with pytest.raises(UsageError, match="patch_size 32, but its tensors have 16"):
        convert(path, "vit_tiny_patch32_224")
    write(vit_tiny() | {"blocks.0.attn.q_norm.weight": torch.ones(192)}, path)
    with pytest.raises(UsageError, match=r"no place for: blocks\.0\.attn\.q_norm\.weight"):
        convert(path, "vit_tiny_patch16_224")


def test_tensors_that_do_not_go_together(tmp_path: Path) -> None:
    tensors = vit_tiny() | {"blocks.0.mlp.fc2.weight": torch.ones(192, 7)}
    path = write(tensors, tmp_path / "w.safetensors")
    with pytest.raises(
        FolderError, match=r"do not go together.*:\n- encoder\.blocks\.0\.feedforward"
    ):
        convert(path, "vit_tiny_patch16_224")


def test_a_name_is_needed(tmp_path: Path) -> None:
    path = write(vit_tiny(), tmp_path / "w.safetensors")
    with pytest.raises(UsageError, match=r"`architecture` .* vit_base_patch16_224"):
        convert(path, None)
    with pytest.raises(UsageError, match=r"`architecture` .* vit_b_16"):
        convert(path, None, "torchvision")
    with pytest.raises(UsageError, match=r"config\.json that tells its model_type"):
        convert(path, None, "hf")


def test_google_has_its_own_names(tmp_path: Path) -> None:
    path = write(vit_tiny(), tmp_path / "w.npz")
    with pytest.raises(UsageError, match="embedding/kernel"):
        convert(path, None, "google")


def test_a_kind_that_is_not_converted(tmp_path: Path) -> None:
    source = write_hf(golden("hf-bit"), tmp_path / "theirs", model_type="bert")
    with pytest.raises(UsageError, match=r"model_type 'bert'.*Understood are .*resnet"):
        from_images("hf", str(source), tmp_path / "out")
    (source / "model.safetensors").unlink()
    with pytest.raises(FolderError, match=r"has no weights: looked for model\.safetensors"):
        from_images("hf", str(source), tmp_path / "out")


def test_its_training_data_are_not_here(tmp_path: Path) -> None:
    source = write(golden("timm-resnet-basic").tensors, tmp_path / "w.safetensors")
    convert(source)
    with pytest.raises(ManyheadsError, match="not here"):
        evaluate(classifier(tmp_path / "out"))


def test_a_folder_in_use_is_left_alone(tmp_path: Path) -> None:
    source = write(golden("timm-resnet-basic").tensors, tmp_path / "w.safetensors")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("mine")
    with pytest.raises(UsageError, match="is there already"):
        convert(source)


def test_wrapped_weights(tmp_path: Path) -> None:
    """As training scripts store them: under a key, and under the name of the wrapper."""
    reference = golden("timm-resnet-basic")
    tensors = {f"module.{name}": tensor for name, tensor in reference.tensors.items()}
    torch.save({"epoch": 3, "state_dict": tensors}, tmp_path / "w.pth")
    convert(tmp_path / "w.pth")
    with torch.inference_mode():
        logits = classifier(tmp_path / "out").model(reference.images)
    assert (logits - reference.logits).abs().max() <= 1e-4 * reference.logits.abs().max()


def test_hugging_faces_answer_at_another_size(tmp_path: Path) -> None:
    """A size chosen when a folder is loaded: positions as the source interpolates them."""
    reference = golden("hf-vit-resized")
    from_images("hf", str(write_hf(reference, tmp_path / "theirs")), tmp_path / "out")
    size = (reference.images.shape[2], reference.images.shape[3])
    ours = classifier(tmp_path / "out", image_size=size)
    assert (ours.preprocessing.height, ours.preprocessing.width) == size
    with torch.inference_mode():
        logits = ours.model(reference.images)
    assert (logits - reference.logits).abs().max() <= 1e-4 * reference.logits.abs().max()


# --- What a folder says of images ---------------------------------------------------------------


def write_processor(folder: Path, **processor: Any) -> Path:
    (folder / "preprocessor_config.json").write_text(json.dumps(processor))
    return folder


def test_the_size_is_the_processors(tmp_path: Path) -> None:
    """A ResNet's tensors and config.json do not tell a size; 448 once became 224."""
    source = write_hf(golden("hf-resnet-basic"), tmp_path / "theirs")
    made = from_images("hf", str(write_processor(source, size=448)), tmp_path / "out")
    assert made.size == (448, 448)
    image = classifier(tmp_path / "out").preprocessing
    assert (image.height, image.crop, image.resize_mode) == (448, 1.0, "stretch")


def test_a_processor_of_another_size_than_the_model(tmp_path: Path) -> None:
    """Their ViT refuses such images, so it is asked which size is meant."""
    source = write_hf(golden("hf-vit-resized"), tmp_path / "theirs")
    write_processor(source, size=16)
    with pytest.raises(UsageError, match=r"16 x 16 pixels .*for 8 x 8 .*choose one"):
        from_images("hf", str(source), tmp_path / "out")
    made = from_images("hf", str(source), tmp_path / "out", image_size=(16, 16))
    assert made.size == (16, 16)


def test_a_processor_inside_another_file(tmp_path: Path) -> None:
    """As Hugging Face looks for it: in processor_config.json first."""
    source = write_hf(golden("hf-vit-resized"), tmp_path / "theirs")
    write_processor(source, size=8, resample=2)
    nested = {"image_processor": {"size": 8, "resample": 0}}
    (source / "processor_config.json").write_text(json.dumps(nested))
    from_images("hf", str(source), tmp_path / "out")
    assert classifier(tmp_path / "out").preprocessing.interpolation == "nearest"


def test_several_classes_an_image(tmp_path: Path) -> None:
    """With problem_type multi_label_classification their pipeline takes a sigmoid; so does ours."""
    problem = "multi_label_classification"
    source = write_hf(golden("hf-vit-resized"), tmp_path / "theirs", problem_type=problem)
    from_images("hf", str(source), tmp_path / "out")
    assert classifier(tmp_path / "out").multi_label
    source = write_hf(golden("hf-vit-resized"), tmp_path / "other", problem_type="regression")
    with pytest.raises(UsageError, match="regression"):
        from_images("hf", str(source), tmp_path / "no")


def test_the_first_form_of_timms_config(tmp_path: Path) -> None:
    """Without pretrained_cfg, what belongs in it is the whole file."""
    (tmp_path / "theirs").mkdir()
    write(vit_tiny(), tmp_path / "theirs" / "model.safetensors")
    about = {"architecture": "vit_tiny_patch16_224", "input_size": [3, 32, 32], "crop_pct": 0.8}
    about |= {"interpolation": "bilinear", "mean": [0.1] * 3, "labels": ["a", "b", "c", "d", "e"]}
    (tmp_path / "theirs" / "config.json").write_text(json.dumps(about))
    assert from_images("timm", str(tmp_path / "theirs"), tmp_path / "out").remarks == []
    ours = classifier(tmp_path / "out")
    assert (ours.preprocessing.mean, ours.preprocessing.crop) == ((0.1, 0.1, 0.1), 0.8)
    assert ours.labels[0] == "a"


@pytest.mark.parametrize(("library", "key"), [("timm", "architecture"), ("hf", "model_type")])
def test_another_architecture_than_the_folder_says(
    library: Library, key: str, tmp_path: Path
) -> None:
    """Weights of resnetaa50 fit resnet50, and every answer would be wrong."""
    (tmp_path / "theirs").mkdir()
    write(golden("timm-resnet-basic").tensors, tmp_path / "theirs" / "model.safetensors")
    (tmp_path / "theirs" / "config.json").write_text(json.dumps({key: "resnetaa50.d_in12k"}))
    with pytest.raises(UsageError, match=r"'resnetaa50\.d_in12k', but .*'resnet50'"):
        from_images(library, str(tmp_path / "theirs"), tmp_path / "out", architecture="resnet50")
    with pytest.raises(UsageError, match="converted") as raised:
        from_images(library, str(tmp_path / "theirs"), tmp_path / "out")
    assert "did you mean" not in str(raised.value)


# --- Malformed files, and tensors that hold no weights ------------------------------------------

MALFORMED = {
    "empty": b"",
    "list": b"[]",
    "cut": b'{"a',
    "utf-16": b"\xff\xfe{",
    "deep": b"[" * 5000,
    "tables": b'{"a":' * 500 + b"1" + b"}" * 500,
    "half a pair": b'{"id2label": {"0": "\\ud800"}}',
    "long number": b'{"image_size": ' + b"9" * 5000 + b"}",
}


@pytest.mark.parametrize("content", MALFORMED.values(), ids=MALFORMED)
@pytest.mark.parametrize("name", ["config.json", "preprocessor_config.json"])
def test_malformed_files_are_named(name: str, content: bytes, tmp_path: Path) -> None:
    source = write_hf(golden("hf-vit-resized"), tmp_path / "theirs")
    (source / name).write_bytes(content)
    with pytest.raises(FolderError, match=name.replace(".", r"\.")):
        from_images("hf", str(source), tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["theirs"]


STRANGE: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    1.5,
    10**30,
    float("nan"),
    "x",
    [],
    [None],
    {"a": 1},
    [[1, 2]],
)


READ = {
    "hf-vit-resized": (
        *("hidden_act", "image_size", "layer_norm_eps", "num_attention_heads"),
        *("model_type", "id2label", "problem_type"),
    ),
    "hf-bit": ("num_groups", "layer_type"),
}


@pytest.mark.parametrize(("name", "key"), [(name, key) for name in READ for key in READ[name]])
def test_no_value_of_a_configuration_ends_in_a_traceback(
    name: str, key: str, tmp_path: Path
) -> None:
    """Every kind of value: converted, or refused with nothing left behind."""
    reference = golden(name)
    source = write_hf(reference, tmp_path / "theirs")
    for value in STRANGE:
        (source / "config.json").write_text(json.dumps(reference.settings | {key: value}))
        with suppress(ManyheadsError):
            from_images("hf", str(source), tmp_path / "out")
            assert ModelFolder(tmp_path / "out").labels()
            shutil.rmtree(tmp_path / "out")
        assert [path.name for path in tmp_path.iterdir()] == ["theirs"]


@pytest.mark.parametrize("key", ["pretrained_cfg", "model_args"])
@pytest.mark.parametrize("value", [[1], "x", 3, {"img_size": "x"}, {"input_size": [3, -1, 5]}])
def test_tables_of_timm_that_are_none(key: str, value: Any, tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    write(vit_tiny(), tmp_path / "theirs" / "model.safetensors")
    about = {"architecture": "vit_tiny_patch16_224", "pretrained_cfg": {"input_size": [3, 32, 32]}}
    (tmp_path / "theirs" / "config.json").write_text(json.dumps(about | {key: value}))
    if (key, value) == ("pretrained_cfg", {"img_size": "x"}):
        return  # which timm does not read either
    with pytest.raises(ManyheadsError):
        from_images("timm", str(tmp_path / "theirs"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


HEAD = torch.randn(5, 192)
NO_WEIGHTS = {
    "int8": (HEAD.to(torch.int8), "holds int8; weights are float32"),
    "complex": (HEAD.to(torch.complex64), "holds complex64"),
    "bool": (HEAD > 0, "holds bool"),
    "float8": (HEAD.to(torch.float8_e4m3fn), "holds float8_e4m3fn"),
    "sparse": (HEAD.to_sparse(), "holds sparse_coo float32"),
    "empty": (HEAD[:0], "it is empty"),
    "nan": (torch.where(HEAD[0, 0] == HEAD, torch.nan, HEAD), "1 of 960 numbers are not finite"),
    "inf": (torch.full_like(HEAD, torch.inf), "960 of 960 numbers are not finite"),
    "scalar": (torch.ones(()), "do not go together"),
    "flat": (HEAD.flatten(), "do not go together"),
}


@pytest.mark.parametrize(("tensor", "message"), NO_WEIGHTS.values(), ids=NO_WEIGHTS)
def test_tensors_that_hold_no_weights(tensor: Tensor, message: str, tmp_path: Path) -> None:
    """Read as weights, they would answer something else."""
    path = write(vit_tiny() | {"head.weight": tensor}, tmp_path / "w.pth")
    with pytest.raises(ManyheadsError, match=message):
        convert(path, "vit_tiny_patch16_224")
    assert [path.name for path in tmp_path.iterdir()] == ["w.pth"]


def test_no_shape_ends_in_a_traceback(tmp_path: Path) -> None:
    """Each tensor in turn without axes, with one more, or with one row less."""
    whole = vit_tiny()
    for name, tensor in whole.items():
        for other in (torch.ones(()), tensor[None], tensor[:-1]):
            path = write(whole | {name: other}, tmp_path / "w.pth")
            try:
                convert(path, "vit_tiny_patch16_224")
            except ManyheadsError:
                assert not (tmp_path / "out").exists()
            else:  # a class less
                shutil.rmtree(tmp_path / "out")


def test_tensors_that_share_memory(tmp_path: Path) -> None:
    """Views of one storage, overlapping or expanded, are written each for itself."""
    whole = vit_tiny()
    memory = torch.randn(192 * 400)
    whole["blocks.0.attn.proj.weight"] = memory[: 192 * 192].view(192, 192)
    whole["blocks.0.mlp.fc1.weight"] = memory[100 : 100 + 384 * 192].view(384, 192)
    whole["norm.weight"] = torch.ones(1).expand(192)
    whole["norm.bias"] = whole["blocks.0.norm1.bias"]
    convert(write(whole, tmp_path / "w.pth"), "vit_tiny_patch16_224")
    state = classifier(tmp_path / "out").model.state_dict()
    assert torch.equal(state["encoder.norm.bias"], whole["blocks.0.norm1.bias"])
    theirs = whole["blocks.0.mlp.fc1.weight"]
    assert torch.equal(state["encoder.blocks.0.feedforward.expand.weight"], theirs)


def test_double_precision_becomes_single(tmp_path: Path) -> None:
    doubled = {name: tensor.double() for name, tensor in vit_tiny().items()}
    convert(write(doubled, tmp_path / "w.pth"), "vit_tiny_patch16_224")
    stored = load_file(tmp_path / "out" / "model.safetensors")
    assert {tensor.dtype for tensor in stored.values()} == {torch.float32}


def test_a_state_dict_that_contains_itself(tmp_path: Path) -> None:
    """It once was searched without end."""
    state: dict[str, Any] = {"epoch": 3}
    state["model"] = state
    torch.save(state, tmp_path / "w.pth")
    with pytest.raises(FolderError, match="no named tensors"):
        convert(tmp_path / "w.pth")


@pytest.mark.parametrize("size", [(1 << 15, 32), (10**9, 10**9)])
def test_a_size_that_no_image_has(size: tuple[int, int], tmp_path: Path) -> None:
    source = write(golden("timm-resnet-basic").tensors, tmp_path / "w.safetensors")
    with pytest.raises(UsageError, match=r"up to 16,384 a side"):
        from_images("timm", str(source), tmp_path / "out", architecture="resnet18", image_size=size)

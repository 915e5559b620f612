"""Models by their names on the hub: fetched once, refused before their weights, and what fails.

The hub is `tests/hub.py`, on this machine; models have random weights.
"""

import json
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import requires
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

import manyheads
from manyheads.convert.marian_folder import from_marian
from manyheads.errors import (
    DataError,
    FolderError,
    ManyheadsError,
    MissingExtraError,
    NotFoundError,
    UsageError,
)
from manyheads.predict.load import load
from manyheads.project.folder import ModelFolder
from manyheads.project.hub_name import fetched_models, read_hub_name
from manyheads.project.model_facts import describe
from manyheads.project.paths import find_model
from manyheads.web.served import ServedOptions
from manyheads.web.settings import Limits
from tests import opus
from tests.convert import test_convert_image_text as image_text
from tests.hub import COMMIT, Hub, serving
from tests.hub_tokenizers import write_clip, write_siglip, write_xlm
from tests.models import test_golden_encoders, test_golden_image_text, test_golden_images
from tests.models.test_marian import TRAINED
from tests.models.test_marian import load as load_marian

NAME = "hf:Helsinki-NLP/opus-mt-en-de"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with serving() as found:
        monkeypatch.setenv("HF_ENDPOINT", found.address)
        monkeypatch.setenv("MANYHEADS_CACHE", str(tmp_path / "cache"))
        monkeypatch.delenv("HF_TOKEN", raising=False)
        yield found


@pytest.fixture
def marian(hub: Hub, tmp_path: Path) -> Path:
    """A repository as OPUS-MT's are, with more in it than is needed."""
    folder = tmp_path / "theirs"
    opus.write_random(folder, max_length=64)
    for name in ("pytorch_model.bin", "tf_model.h5", "onnx/model.onnx", "onnx/config.json"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(b"not needed")
    hub.repositories["Helsinki-NLP/opus-mt-en-de"] = folder
    return folder


def kept(tmp_path: Path) -> list[str]:
    """What is in the cache."""
    found = (tmp_path / "cache").rglob("*")
    return sorted(path.name for path in found if path.is_file())


# --- The whole way ------------------------------------------------------------------------------


def test_a_translator_by_its_name(
    hub: Hub, marian: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fetched is what the converter needs, weights last; then it is used offline."""
    monkeypatch.setenv("HF_TOKEN", "hf_of_a_user")
    translate = manyheads.load(NAME)
    from_marian(str(marian), tmp_path / "local")
    texts = opus.ENGLISH[:3]
    assert translate(texts) == load(tmp_path / "local")(texts)
    needed = {"README.md", "config.json", "generation_config.json", "tokenizer_config.json"}
    needed |= {"source.spm", "target.spm", "vocab.json", "model.safetensors"}
    assert (hub.asked[0], hub.asked[-1]) == ("config.json", "model.safetensors")
    assert (set(hub.asked), len(hub.asked)) == (needed, len(needed))
    # Large files come from elsewhere, which is told no secret.
    assert hub.tokens == {"api": "Bearer hf_of_a_user"} | {
        "files": "Bearer hf_of_a_user",
        "large": None,
    }
    folder = ModelFolder(find_model(NAME))
    assert folder.name == NAME
    assert fetched_models() == [NAME]
    card = (folder.path / "README.md").read_text()
    assert f"manyheads translate --model {NAME}" in card
    assert f"| commit | {COMMIT} |\n| licence | cc-by-4.0 |" in card
    assert describe(NAME)["trained"]["revision"] == COMMIT
    assert not list((tmp_path / "cache").rglob("*download*/**/*.safetensors"))
    asked = list(hub.asked)
    hub.repositories.clear()
    assert manyheads.load(NAME)(texts) == translate(texts)
    assert hub.asked == asked


def test_a_revision(hub: Hub, marian: Path, tmp_path: Path) -> None:
    """A model of its own; where there are no safetensors, torch's file without code is read."""
    opus.write_random(tmp_path / "old", pickled=True, max_length=64)
    hub.repositories["Helsinki-NLP/opus-mt-en-de@refs/pr/3"] = tmp_path / "old"
    shutil.rmtree(marian)  # not served
    del hub.repositories["Helsinki-NLP/opus-mt-en-de"]
    path = find_model(f"{NAME}@refs/pr/3")
    assert hub.asked[-1] == "pytorch_model.bin"
    assert ModelFolder(path).name == f"{NAME}@refs/pr/3"
    assert path.parent.name == "Helsinki-NLP"
    with pytest.raises(NotFoundError, match=r"There is no hf:\S+@main on the hub"):
        find_model(f"{NAME}@main")


def test_two_who_ask_at_once_fetch_once(hub: Hub, marian: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(find_model, [NAME, NAME])
    assert first == second
    assert hub.asked.count("model.safetensors") == 1


def test_convert_takes_the_name_too(hub: Hub, marian: Path, tmp_path: Path) -> None:
    """With its own options, and into a folder of the user's."""
    from_marian(NAME, tmp_path / "ours", prefix=">>kor<<")
    recipe: Any = ModelFolder(tmp_path / "ours").recipe
    assert recipe.converted.origin == "Helsinki-NLP/opus-mt-en-de"
    assert (recipe.converted.prefix, recipe.converted.revision) == (">>kor<<", COMMIT)
    assert kept(tmp_path) == []


# --- Twenty repositories ------------------------------------------------------------------------


def of_image(name: str, **about: Any) -> Callable[[Path], Callable[[Path], tuple[Tensor, Tensor]]]:
    """A classifier or an encoder whose answer its library recorded."""

    def write(folder: Path) -> Callable[[Path], tuple[Tensor, Tensor]]:
        folder.mkdir()
        encodes = name in test_golden_encoders.NAMES
        golden: Any = (test_golden_encoders if encodes else test_golden_images).load(name)
        told = golden.settings
        if about:  # of timm, as small as the recorded one
            vit = {"embed_dim": 8, "patch_size": 4} if golden.kind == "timm vit" else {}
            told = {"model_args": told | vit, **about}
        (folder / "config.json").write_text(json.dumps(told))
        if "dinov2" in name:  # of Hugging Face; its images may be of any size
            size = golden.images.shape[2]
            processor = {"size": {"shortest_edge": size}, "crop_size": size, "do_center_crop": True}
            values = {"resample": 3, "image_mean": [0.5] * 3, "image_std": [0.5] * 3}
            (folder / "preprocessor_config.json").write_text(json.dumps(processor | values))
        save_file(golden.tensors, folder / "model.safetensors")
        expected = golden.answer if encodes else golden.logits
        return lambda path: (ModelFolder(path).model()(golden.images), expected)

    return write


def of_texts(
    name: str, tokenizer: Callable[[Path], int]
) -> Callable[[Path], Callable[[Path], tuple[Tensor, Tensor]]]:
    """A matcher or captioner with more rows in its vocabulary than the recorded one."""

    def write(folder: Path) -> Callable[[Path], tuple[Tensor, Tensor]]:
        image_text.write(name, folder, tokenizer)
        images = test_golden_image_text.load(name).images
        tokens = torch.tensor([[3, 4, 5]] * len(images))
        bare = image_text.bare(folder)

        def answers(path: Path) -> tuple[Tensor, Tensor]:
            ours: Any = ModelFolder(path).model()
            if hasattr(ours, "decoder"):
                return ours(images, tokens), bare(images, tokens)
            return ours.encode_images(images), bare.encode_images(images)

        return answers

    return write


def letters(folder: Path) -> Callable[[Path], tuple[Any, Any]]:
    golden = load_marian(TRAINED)
    opus.write_letters(folder, golden.config, golden.weights)
    texts = json.loads(golden.about["texts"])
    return lambda path: (load(path)(texts["texts"]), texts["translations"])


def hard(pickled: bool) -> Callable[[Path], Callable[[Path], tuple[Any, Any]]]:
    recorded = Path(__file__).parents[1] / "golden" / "hf-marian-hard.json"
    texts = json.loads(recorded.read_text(encoding="utf-8"))

    def write(folder: Path) -> Callable[[Path], tuple[Any, Any]]:
        opus.write_random(folder, pickled=pickled, max_length=64)
        return lambda path: (load(path)(texts["texts"]), texts["translations"])

    return write


CONVERTED: dict[str, Callable[[Path], Callable[[Path], tuple[Any, Any]]]] = {
    "Helsinki-NLP/letters": letters,
    "Helsinki-NLP/random": hard(pickled=False),
    "Helsinki-NLP/pickled": hard(pickled=True),
    "google/vit": of_image("hf-vit-encoder"),
    "facebook/deit": of_image("hf-deit-one-head"),
    "facebook/dinov2": of_image("hf-dinov2"),
    "facebook/dinov2-registers": of_image("hf-dinov2-registers"),
    "openai/clip-vision": of_image("hf-clip-projection"),
    "openai/clip-classifier": of_image("hf-clip-classifier"),
    "google/siglip-vision": of_image("hf-siglip"),
    "microsoft/resnet": of_image("hf-resnet-basic"),
    "google/bit": of_image("hf-bit"),
    "openai/clip": of_texts("hf-clip", write_clip),
    "google/siglip": of_texts("hf-siglip", write_siglip),
    "microsoft/trocr": of_texts("hf-trocr", write_xlm),
    "timm/clip": of_image("timm-clip", architecture="vit_base_patch16_clip_quickgelu_224.openai"),
    "timm/resnet18": of_image("timm-resnet-basic", architecture="resnet18.a1_in1k"),
    "timm/dinov2": of_image("timm-dinov2", architecture="vit_small_patch14_dinov2.lvd142m"),
}


@pytest.mark.parametrize("name", CONVERTED)
def test_answers_as_its_own_library(hub: Hub, tmp_path: Path, name: str) -> None:
    if name == "openai/clip":
        pytest.importorskip("tokenizers")
    folder = tmp_path / "theirs"
    hub.repositories[name] = folder
    answers = CONVERTED[name](folder)
    path = find_model(f"hf:{name}")
    with torch.inference_mode():
        ours, theirs = answers(path)
    if isinstance(theirs, list):
        assert ours == theirs
    else:
        assert (ours - theirs).abs().max() <= 1e-4 * theirs.abs().max()
    assert [each for each in hub.asked if each.startswith(("model.", "pytorch_"))] == hub.asked[-1:]


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "google-bert/bert": ({"model_type": "bert"}, r"model_type 'bert' is none .*marian.*vit"),
    "Salesforce/blip": ({"model_type": "blip"}, r"model_type 'blip' is none .*Understood are"),
    "google-t5/t5": ({"model_type": "t5"}, "model_type 't5' is none"),
    "Helsinki-NLP/pre-norm": (
        {"model_type": "marian", "normalize_before": True},
        "normalize_before = True",
    ),
    "someone/own-code": ({"model_type": "vit", "auto_map": {"AutoModel": "a.B"}}, "auto_map"),
    "someone/quantized": (
        {"model_type": "dinov2", "quantization_config": {"bits": 4}},
        "quantization_config",
    ),
    "timm/eva02": ({"architecture": "eva02_base_patch14_224"}, "'eva02_base_patch14_224'"),
    "timm/gelu": (
        {"architecture": "resnet50", "model_args": {"act_layer": "gelu"}},
        "act_layer = 'gelu'",
    ),
    "timm/border": (
        {"architecture": "resnet18", "pretrained_cfg": {"crop_mode": "border"}},
        "crop_mode = 'border'",
    ),
    "microsoft/trocr-swin": (
        {
            "model_type": "vision-encoder-decoder",
            "encoder": {"model_type": "swin"},
            "decoder": {"model_type": "gpt2"},
        },
        "encoder 'swin'",
    ),
    "someone/nothing": ({}, "model_type None"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_before_its_weights(hub: Hub, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    about, message = REFUSED[name]
    (folder / "config.json").write_text(json.dumps(about))
    (folder / "model.safetensors").write_bytes(b"never asked for")
    hub.repositories[name] = folder
    with pytest.raises(UsageError, match=message):
        find_model(f"hf:{name}")
    assert hub.asked == ["config.json"]
    assert kept(tmp_path) == []


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"tokenizer_config.json": b"{}", "spiece.model": None}, FolderError, "no tokenizer"),
        ({"preprocessor_config.json": b'{"do_resize": false}'}, UsageError, "do_resize = False"),
        ({"model.safetensors": None}, FolderError, "has no weights: looked for model.safe"),
        ({"config.json": None}, UsageError, r"has no config\.json"),
        ({"config.json": b"{"}, FolderError, r"config\.json cannot be read"),
    ],
)
def test_small_files_are_read_first(
    hub: Hub,
    tmp_path: Path,
    change: dict[str, bytes | None],
    error: type[ManyheadsError],
    message: str,
) -> None:
    folder = image_text.write("hf-siglip", tmp_path / "theirs", write_siglip)
    for name, content in change.items():
        if content is None:
            (folder / name).unlink()
        else:
            (folder / name).write_bytes(content)
    hub.repositories["google/siglip"] = folder
    with pytest.raises(error, match=message):
        find_model("hf:google/siglip")
    assert "model.safetensors" not in hub.asked
    assert kept(tmp_path) == []


# --- What fails ---------------------------------------------------------------------------------


def test_an_interrupted_download_goes_on(
    hub: Hub, marian: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the same run if it can; else what came stays, and the next run asks for the rest."""
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 1000)  # of 10 MB
    hub.cut = {"model.safetensors": 3000}
    with pytest.raises(DataError, match=r"503 .*goes on where it stopped"):
        find_model(NAME)
    assert hub.ranges == ["bytes=3000-"]
    (part,) = (tmp_path / "cache").rglob(".model.safetensors.part")
    assert part.stat().st_size == 3000
    assert not read_hub_name(NAME).under().exists()
    before = len(hub.asked)
    hub.cut, hub.ranges = {}, []
    find_model(NAME)
    assert hub.asked[before:] == ["model.safetensors"]
    assert hub.ranges == ["bytes=3000-"]
    assert not part.exists()


def test_the_progress_of_large_files(
    hub: Hub, marian: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On stderr, by name; small ones come without a word."""
    size = (marian / "model.safetensors").stat().st_size
    monkeypatch.setattr("manyheads.convert.hub_files.LARGE", size)
    find_model(NAME)
    out, err = capsys.readouterr()
    assert out == ""
    assert "model.safetensors" in err
    assert "vocab.json" not in err


@pytest.mark.parametrize("name", ["model.safetensors", "vocab.json"])
def test_a_wrong_hash_is_refused(hub: Hub, marian: Path, tmp_path: Path, name: str) -> None:
    """Nothing of the file is kept, so that trying again may help."""
    hub.damaged = name
    with pytest.raises(DataError, match=rf"{name} of hf:\S+ is not the file .* expected [0-9a-f]"):
        find_model(NAME)
    assert name not in kept(tmp_path)
    hub.damaged = ""
    assert find_model(NAME).is_dir()


def test_a_gated_model(hub: Hub, marian: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a token, with one that has not accepted the terms, with one that has."""
    hub.gated = "hf_accepted"
    for token in (None, "hf_other"):
        if token:
            monkeypatch.setenv("HF_TOKEN", token)
        with pytest.raises(UsageError, match=r"is gated: .*Accept them at http.*set HF_TOKEN"):
            find_model(NAME)
    monkeypatch.setenv("HF_TOKEN", "hf_accepted")
    assert find_model(NAME).is_dir()


def test_the_hub_is_down(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MANYHEADS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")  # nobody listens there
    with pytest.raises(DataError, match=r"could not be fetched from http.*Check the network"):
        find_model(NAME)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(DataError, match="HF_HUB_OFFLINE is set"):
        find_model(NAME)
    assert kept(tmp_path) == []


@pytest.mark.parametrize(
    "about",
    [
        b"<html>Log in to this network</html>",
        b"[]",
        json.dumps({"id": "a/b", "sha": COMMIT, "siblings": "all"}).encode(),
        json.dumps(
            {"id": "a/b", "sha": COMMIT, "siblings": [{"rfilename": "config.json"}]}
        ).encode(),
        b'{"id": ' + b"[" * 100_000,
    ],
)
def test_what_answers_is_no_hub(hub: Hub, marian: Path, about: bytes) -> None:
    hub.about = about
    with pytest.raises(DataError, match="could not be fetched from http"):
        find_model(NAME)


def test_no_such_model(hub: Hub, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"no hf:a/b on the hub, or it is private"):
        find_model("hf:a/b")
    assert kept(tmp_path) == []


@pytest.mark.parametrize("name", ["hf:", "hf:model", "hf:a/b/c", "hf:../x", "hf:a/b@", "hf:a/b@.."])
def test_names_that_are_none(name: str) -> None:
    with pytest.raises(UsageError, match="write hf:USER/MODEL, or"):
        manyheads.load(name)


def test_a_commit_is_no_path(hub: Hub, marian: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hub that is not the hub could name one that leads out of the cache."""
    monkeypatch.setattr("tests.hub.COMMIT", "../../elsewhere")
    with pytest.raises(DataError, match="says no commit"):
        find_model(NAME)


def test_the_hub_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'manyheads\[hub\]'"):
        find_model(NAME)


def test_the_extra_is_one_package() -> None:
    """Without the libraries of data sets, which have an extra of their own."""
    needed = [line for line in requires("manyheads") or () if "extra ==" in line]
    by_extra = {
        extra: [line.partition(";")[0].strip() for line in needed if f"'{extra}'" in line]
        for extra in ("hub", "datasets")
    }
    assert [re.split("[<>=]", line)[0] for line in by_extra["hub"]] == ["huggingface-hub"]
    assert [re.split("[<>=]", line)[0] for line in by_extra["datasets"]] == ["datasets"]


def test_a_server_never_fetches(hub: Hub, marian: Path) -> None:
    options = ServedOptions((NAME,))
    with pytest.raises(NotFoundError, match=rf"Fetch it first: `manyheads fetch {NAME}`"):
        options.make(Limits())
    assert (hub.asked, hub.tokens) == ([], {})
    find_model(NAME)
    assert [*options.make(Limits()).models] == [NAME]

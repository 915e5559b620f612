"""A captioner's folder, whole: called, asked, measured, damaged, interrupted and resumed."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jsonschema import validate
from PIL import Image

import manyheads
from manyheads.asks.caption_request import CaptionAnswer, CaptionRequest
from manyheads.asks.decode_config import DecodeConfig
from manyheads.data.tokenizers.tokenizer import Tokenizer, TokenizerConfig
from manyheads.errors import DataError, FolderError, NotFoundError, RecipeError, UsageError
from manyheads.files import sha256
from manyheads.fit.run_training import train
from manyheads.project.base_recipe import read_recipe
from manyheads.tasks.caption.predictor import Captioner
from tests import squares
from tests.made import Silent, run
from tests.train.toy import Unplugged

FEW = ("train.steps=12", "train.validate_every=12", "train.save_every=5", "train.warmup=2")


@pytest.fixture(scope="module")
def captioner() -> Captioner:
    """Look, don't touch."""
    found = manyheads.load(squares.trained("caption"))
    assert isinstance(found, Captioner)
    return found


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A copy to damage."""
    return shutil.copytree(squares.trained("caption"), tmp_path / "own")


# --- Called -------------------------------------------------------------------------------------


def test_an_image_in_any_form(captioner: Captioner, tmp_path: Path) -> None:
    """A path, a Pillow image, an array; one or several; the first language unless one is named."""
    image = squares.square(4, 9)
    image.save(tmp_path / "a.png")
    english, korean = squares.texts(4)["en"], squares.texts(4)["ko"]
    for given in (tmp_path / "a.png", str(tmp_path / "a.png"), image, np.asarray(image)):
        assert captioner(given) in english
        assert captioner(given, "ko") in korean
    several = captioner([image, squares.square(0, 9)], "ko")
    assert several == [*korean, *squares.texts(0)["ko"]]
    assert captioner([]) == []
    assert captioner.caption([]) == []


def test_every_caption_is_known(captioner: Captioner) -> None:
    """The images of the validation split, in both languages, whatever the search."""
    images = [squares.square(number, 1) for number in range(12)]
    for language in ("en", "ko"):
        for options in (None, DecodeConfig(beams=1), DecodeConfig(beams=5, length_penalty=0.0)):
            found = captioner.caption(images, language, options=options)
            for number, (best, *_) in enumerate(found):
                assert best.text in squares.texts(number)[language]
                assert best.finished


def test_unknown_languages_are_refused(captioner: Captioner) -> None:
    with pytest.raises(UsageError, match=r"`language` is 'kr'\. caption writes en, ko"):
        captioner(squares.square(0), "kr")
    with pytest.raises(UsageError, match="writes en, ko"):
        captioner.answer(CaptionRequest(images=(), language="fr"))


def test_what_is_no_image_is_refused(captioner: Captioner) -> None:
    with pytest.raises(NotFoundError, match=r"none\.png"):
        captioner("none.png")
    with pytest.raises(UsageError, match=r"the path of a file, a Pillow image .*, or an array"):
        captioner(3)  # type: ignore[call-overload]


@pytest.mark.parametrize("size", [(1, 1), (30_000, 1), (1, 30_000), (30_000, 2)])
def test_images_of_any_shape(captioner: Captioner, size: tuple[int, int]) -> None:
    """One pixel, and one that is 30,000 wide: the middle of it is read."""
    assert isinstance(captioner(Image.new("RGB", size, (200, 0, 0))), str)


def test_another_image_size() -> None:
    """Positions are interpolated; the images are read at that size."""
    larger = manyheads.load(squares.trained("caption"), image_size=16)
    assert isinstance(larger, Captioner)
    assert larger.pixels(squares.square(0)).shape == (3, 16, 16)
    assert isinstance(larger(squares.square(0)), str)


# --- Asked --------------------------------------------------------------------------------------


def answered(captioner: Captioner, **request: Any) -> list[dict[str, Any]]:
    """Answer; check each answer against the schema, also after JSON."""
    answers: list[CaptionAnswer] = captioner.answer(CaptionRequest(**request))
    sent = [json.loads(json.dumps(each.to_json())) for each in answers]
    for each, received in zip(answers, sent, strict=True):
        validate(received, CaptionAnswer.model_json_schema())
        assert CaptionAnswer.model_validate_json(json.dumps(received)) == each
    return sent


def test_one_answer_for_each_image(captioner: Captioner, tmp_path: Path) -> None:
    """In order; what cannot be read is told in its place."""
    paths = squares.write_files(tmp_path / "images")
    bad = tmp_path / "bad.png"
    bad.write_bytes(b"x")
    images = [paths[0], bad, tmp_path / "none.png", paths[1]]
    first, unreadable, missing, last = answered(captioner, images=images, language="ko")
    assert first.keys() == {"path", "text", "language", "n_best"}
    assert (first["path"], first["language"]) == (str(paths[0]), "ko")
    assert first["text"] == first["n_best"][0]["text"] == squares.texts(0)["ko"][0]
    assert last["text"] == squares.texts(1)["ko"][0]
    assert unreadable.keys() == missing.keys() == {"path", "error"}
    assert "bad.png" in unreadable["error"]
    assert "none.png" in missing["error"]
    assert answered(captioner, images=[]) == []
    assert answered(captioner, images=[bad])[0].keys() == {"path", "error"}


def test_n_best_and_probabilities(captioner: Captioner, tmp_path: Path) -> None:
    """The best first; each token with its characters."""
    (path,) = squares.write_files(tmp_path, 1)
    (found,) = answered(captioner, images=[path], n_best=3, probabilities=True)
    assert len(found["n_best"]) == 3
    assert {found["n_best"][0]["text"], found["n_best"][1]["text"]} <= {*squares.texts(0)["en"]}
    scores = [each["score"] for each in found["n_best"]]
    assert scores == sorted(scores, reverse=True)
    best = found["n_best"][0]
    assert best["tokens"][0].keys() == {"token", "probability", "begin", "end"}
    read = "".join(best["text"][each["begin"] : each["end"]] for each in best["tokens"])
    assert read.replace(" ", "") == best["text"].replace(" ", "")


def test_samples_differ_by_seed(captioner: Captioner, tmp_path: Path) -> None:
    (path,) = squares.write_files(tmp_path, 1)
    ask: dict[str, Any] = {"images": [path], "sample": True, "temperature": 9.0}
    first, again, other = (answered(captioner, **ask, seed=seed) for seed in (1, 1, 2))
    assert first == again != other


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_best": 0}, "`n_best` = 0"),
        ({"beams": 2, "sample": True}, "sampling has no beams"),
        ({"languge": "ko"}, "'languge': did you mean 'language'"),
        ({"seed": -1}, "`seed` = -1"),
    ],
)
def test_mistakes_name_the_parameter(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        CaptionRequest(images=(), **wrong)


# --- Measured -----------------------------------------------------------------------------------


def test_a_measurement_by_language(own: Path) -> None:
    """The means first, then each language; logged in the folder, with the first mistakes."""
    line = manyheads.evaluate(own)
    assert line["all"].keys() == {
        *("exact", "chrf"),
        *("exact_en", "exact_ko", "chrf_en", "chrf_ko"),
    }
    assert (line["metric"], line["value"]) == ("exact", 100.0)
    assert (line["images"], line["wrong"], line["examples"]) == (12, 0, [])
    logged = json.loads((own / "evaluations.jsonl").read_text().splitlines()[-1])
    assert logged["all"] == line["all"]
    card = (own / "README.md").read_text()
    assert "manyheads caption --model" in card
    assert "in: en, ko" in card


def test_the_test_split_is_measured_once(own: Path) -> None:
    """It needs `final`, also by another name; other rows of the same file do not."""
    with pytest.raises(UsageError, match="is a test split"):
        manyheads.evaluate(own, split="test")
    file = squares.root() / "squares.parquet"
    with pytest.raises(UsageError, match="is a test split"):
        manyheads.evaluate(own, data=f"{file}[split=test]")
    assert manyheads.evaluate(own, data=f"{file}[split=train]")["final"] is False
    assert manyheads.evaluate(own, split="test", final=True)["final"] is True


def test_wrong_captions_are_told(own: Path) -> None:
    """With a search of one token nothing can be right."""
    recipe = own / "recipe.toml"
    captioner = manyheads.load(own)
    assert isinstance(captioner, Captioner)
    captioner.decode = DecodeConfig(max_length=1)
    line = manyheads.evaluate(captioner)
    assert line["value"] == 0.0
    assert line["wrong"] == 24
    assert len(line["examples"]) == 10
    assert line["examples"][0].keys() == {"image", "language", "output", "captions"}
    assert re.match(r"squares\.parquet, row \d+$", line["examples"][0]["image"])
    assert recipe.exists()


@pytest.mark.parametrize("form", ["folder", "captions.json"])
def test_other_data_need_no_columns(captioner: Captioner, tmp_path: Path, form: str) -> None:
    """The recipe names columns of its table; texts beside images, and COCO's, have none."""
    folder = tmp_path / "folder"
    for number, path in enumerate(squares.write_files(folder)):
        path.with_suffix(".txt").write_text("\n".join(squares.texts(number)["en"]))
    coco = {
        "images": [{"id": number, "file_name": f"folder/{number}.png"} for number in range(4)],
        "annotations": [
            {"image_id": number, "caption": text}
            for number in range(4)
            for text in squares.texts(number)["en"]
        ],
    }
    (tmp_path / "captions.json").write_text(json.dumps(coco))
    line = manyheads.evaluate(captioner, data=str(tmp_path / form))
    assert (line["images"], line["wrong"]) == (4, 0)
    (folder / "0.ko.txt").write_text(squares.texts(0)["ko"][0], encoding="utf-8")
    (folder / "1.fr.txt").write_text("rouge", encoding="utf-8")
    with pytest.raises(DataError, match=r"1\.fr\.txt.*the language is 'fr'.*en, ko"):
        manyheads.evaluate(captioner, data=str(folder))
    matcher = manyheads.load(squares.trained("match"))
    among = f"{squares.root() / 'squares.parquet'}[split=train]"
    found = manyheads.evaluate(matcher, data=str(tmp_path / "captions.json"), among=among)
    assert (found["images"], found["value"]) == (4, 100.0)


def test_what_only_others_are_measured_by_is_refused(captioner: Captioner) -> None:
    with pytest.raises(UsageError, match="does not translate: other metrics"):
        manyheads.evaluate(captioner, metrics=["bleu"])
    with pytest.raises(UsageError, match="does not match images and texts"):
        manyheads.evaluate(captioner, among="x.parquet")
    with pytest.raises(UsageError, match="does not classify images: leave out `mirrored`"):
        manyheads.evaluate(captioner, mirrored=True)


# --- Damaged ------------------------------------------------------------------------------------


def other_tokenizer(own: Path, languages: list[str], size: int) -> None:
    """Put another model's vocabulary into a folder, hash and all."""
    lines = [f"word{n} another{n}" for n in range(200)]
    made = Tokenizer.train(lines, TokenizerConfig(size=size), languages)
    (own / "tokenizer.model").write_bytes(made.model)
    manifest = json.loads((own / "manyheads.json").read_text())
    manifest["sha256"]["tokenizer.model"] = sha256(own / "tokenizer.model")
    (own / "manyheads.json").write_text(json.dumps(manifest))


def test_another_models_vocabulary_is_refused(own: Path) -> None:
    """By its hash; by its size; and by its languages, which it does not have."""
    size = len(manyheads.load(own).tokenizer)  # type: ignore[attr-defined]
    shutil.copy(squares.trained("match") / "tokenizer.model", own)
    with pytest.raises(FolderError, match=r"tokenizer\.model is not the file that was written"):
        manyheads.load(own)
    other_tokenizer(own, ["en", "ko"], size + 40)
    with pytest.raises(FolderError, match=r"tokenizer\.model has \d+ tokens, the model \d+"):
        manyheads.load(own)
    other_tokenizer(own, [], size)
    with pytest.raises(FolderError, match="no token of a language"):
        manyheads.load(own)


@pytest.mark.parametrize("name", ["tokenizer.model", "preprocessing.json", "model.safetensors"])
def test_a_missing_file_is_named(own: Path, name: str) -> None:
    (own / name).unlink()
    with pytest.raises(FolderError, match=f"{name} is missing"):
        manyheads.load(own)


# --- Trained ------------------------------------------------------------------------------------


def test_a_resumed_run_is_the_same(tmp_path: Path) -> None:
    """Stopped in the middle of an epoch: captions, augmentation and dropout go on as they would."""
    settings = (
        *(*FEW, "train.batch_size=5", "train.captions=2", "augment.shift=1"),
        *("model.dropout=0.1", "train.precision=bf16"),
    )
    recipe = squares.recipe("caption")
    run(recipe, tmp_path / "whole", *settings)
    for step in (4, 8):
        with pytest.raises(manyheads.errors.InterruptedRunError):
            train(
                read_recipe(recipe, settings),
                out=tmp_path / "cut",
                resume=step > 4,
                observer=Unplugged(step),
            )
    run(recipe, tmp_path / "cut", *settings, resume=True)
    for name in ("recipe.toml", "model.safetensors"):
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["model.encoder=mlp", "model.image="], "MlpConfig has no features for parts of an image"),
        (["model.encoder=vit-x", "model.image="], "There is no preset 'vit-x'"),
        (
            ["model.encoder=bert-base", "model.image="],
            "model.encoder is 'bert-base'.*image models: vit-ti, ",
        ),
        (["model.image=3"], "model.image = 3: it must be a table"),
        (["model.image.dims=3"], "'model.image.dims': did you mean 'dim'"),
        (["model.image.height=9"], "model.image.height is 9, but the data make it 8"),
        (["model.image.patch=3"], "8 x 8 pixels"),
        (["model.preset=vit-ti"], "'vit-ti' does not fit the task 'caption'.*captioner-tiny"),
        (["augment.mixup=0.2"], "mixup and cutmix mix classes, and there are none"),
        (["evaluate.metrics=[]"], "metrics is empty"),
        (["data.texts.x1=name"], "data.texts.x1"),
    ],
)
def test_what_cannot_be_trained_is_refused(changes: list[str], message: str) -> None:
    with pytest.raises((RecipeError, UsageError), match=message):
        read_recipe(squares.recipe("caption"), changes)


@pytest.mark.parametrize(
    ("encoder", "image"),
    [
        ("cct-7/3x2", "stem = 4\ndim = 8\nlayers = 1\nheads = 2\nffn_dim = 16"),
        ("swin-t", "patch = 2\ndim = 8\nlayers = [1, 1]\nheads = [1, 2]\nwindow = [2, 2]"),
        ("resnet-20", "stem_width = 4\ndepths = [1]\nwidths = [4]\noutputs = [4]"),
    ],
)
def test_any_encoder_by_name(encoder: str, image: str, tmp_path: Path) -> None:
    """From the recipe to the model that is stored, loaded and called."""
    text = squares.recipe("caption").read_text()
    before, _, after = text.partition("[model.image]\n")
    rest = after[after.index("[train]") :]
    named = before.replace('"captioner-vit-ti"', f'"captioner-vit-ti"\nencoder = "{encoder}"')
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(f"{named}[model.image]\n{image}\n\n{rest}")
    run(recipe, tmp_path / "out", "train.steps=2", "train.validate_every=2", "train.warmup=1")
    assert isinstance(manyheads.load(tmp_path / "out")(squares.square(0)), str)


class Heard(Silent):
    """Keeps what is said."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, message: str) -> None:
        self.said.append(message)


def test_long_captions_are_left_out_and_counted(tmp_path: Path) -> None:
    heard = Heard()
    settings = (*FEW, "train.steps=1", "train.max_length=7", "train.warmup=1")
    recipe = read_recipe(squares.recipe("caption"), settings)
    train(recipe, out=tmp_path / "out", observer=heard)
    assert any("captions, longer than train.max_length = 7 tokens" in each for each in heard.said)
    assert any("12 images, 36 captions in en, ko" in each for each in heard.said)
    shorter = read_recipe(squares.recipe("caption"), (*settings, "train.max_length=1"))
    with pytest.raises(manyheads.errors.DataError, match="no caption has at most 1 tokens"):
        train(shorter, out=tmp_path / "none", observer=heard)

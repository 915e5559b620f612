"""What a translator is made of: its vocabularies, and a corpus in memory or on disk."""

import os
import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from safetensors.torch import load_file

from manyheads import load
from manyheads.data.text import corpus as streamed
from manyheads.data.tokenizers import token_store
from manyheads.data.tokenizers.tokenizer import Tokenizer, TokenizerConfig
from manyheads.errors import FolderError, InterruptedRunError, RecipeError, UsageError
from manyheads.files import sha256
from manyheads.fit.run_training import train
from manyheads.predict.task_pipeline import Prepared, pipeline_of
from manyheads.project.base_recipe import Recipe, read_recipe
from manyheads.project.folder import CACHE, ModelFolder, write_manifest
from manyheads.tasks.translate.predictor import Translator
from tests import language
from tests.made import TRANSLATE, Silent, run, write_lines, write_numbers, write_recipe

SHORT = ("train.steps=6", "train.save_every=2", "train.validate_every=6")
SEPARATE = "tokenizer.shared=false"


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    """A recipe with its data."""
    write_numbers(tmp_path, train=40, other=4)
    return write_recipe(tmp_path / "numbers.toml", TRANSLATE, tmp_path)


@pytest.fixture
def little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is held of a corpus: some ten pairs."""
    monkeypatch.setattr(streamed, "IN_MEMORY", 300)


class Stopped(Silent):
    """Presses Ctrl-C at the third step, and remembers what was said."""

    def __init__(self) -> None:
        self.said = ""

    def say(self, message: str) -> None:
        self.said += f"{message}\n"

    def progress(self, step: int, steps: int, line: dict[str, float]) -> None:
        if step == 3:
            os.kill(os.getpid(), signal.SIGINT)


def prepare(recipe: Recipe, out: Path, say: Callable[[str], None]) -> Prepared:
    return pipeline_of(recipe).prepare(recipe, out, say)


def weights(folder: Path) -> str:
    return sha256(folder / "model.safetensors")


# --- Learned positions --------------------------------------------------------------------------

LEARNED = ("model.positions=learned", "model.max_length=4")
ENCODER = "model.preset=tagger-encoder"


@pytest.mark.parametrize(
    ("task", "changes"),
    [
        ("translate", LEARNED),
        ("translate", (*LEARNED, "train.max_length=4")),  # what is validated is still longer
        ("generate", LEARNED),
        ("fill", LEARNED),
        ("tag", (*LEARNED, ENCODER, "model.hidden_size=")),
    ],
)
def test_texts_longer_than_the_positions(
    task: str, changes: tuple[str, ...], tmp_path: Path
) -> None:
    """Refused before training, not in its middle; the longest may have all positions."""
    path = language.recipe(task)
    with pytest.raises(RecipeError, match=r"has (\d+) tokens, .* model.max_length = 4") as caught:
        prepare(read_recipe(path, changes), tmp_path, Silent().say)
    most = re.search(r"has (\d+) tokens", str(caught.value))
    assert most
    enough = read_recipe(path, (*changes, f"model.max_length={most[1]}"))
    prepare(enough, tmp_path, Silent().say)
    fewer = read_recipe(path, (*changes, f"model.max_length={int(most[1]) - 1}"))
    with pytest.raises(RecipeError, match=f"has {most[1]} tokens"):
        prepare(fewer, tmp_path, Silent().say)


# --- Separate vocabularies ----------------------------------------------------------------------


def test_separate_vocabularies(recipe: Path, tmp_path: Path) -> None:
    """A file for each side, hashed; each learned from its side, and a size for each."""
    out = tmp_path / "out"
    run(recipe, out, *SHORT, SEPARATE)
    folder = ModelFolder(out)
    assert {"source.model", "target.model"} < folder.manifest["sha256"].keys()
    assert not (out / "tokenizer.model").exists()
    source, target = folder.tokenizers()
    assert len(source.encode(["seven"])[0]) < len(target.encode(["seven"])[0])
    assert len(source.encode(["sieben"])[0]) > len(target.encode(["sieben"])[0])
    stored = load_file(out / "model.safetensors")
    assert stored["embedding.weight"].shape == (len(source), 16)
    assert stored["target_embedding.weight"].shape == (len(target), 16)  # tied to the output layer
    assert "output.weight" not in stored


@pytest.mark.parametrize("name", ["source.model", "target.model"])
def test_a_vocabulary_of_another_model(recipe: Path, tmp_path: Path, name: str) -> None:
    """With its hash put right: named, with both sizes."""
    out = tmp_path / "out"
    run(recipe, out, *SHORT, SEPARATE)
    other = Tokenizer.train(["quite another text"] * 9, TokenizerConfig(size=400))
    (out / name).write_bytes(other.model)
    write_manifest(out, read_recipe(out / "recipe.toml"))
    with pytest.raises(FolderError, match=rf"{name} has {len(other)} tokens, the model \d+"):
        ModelFolder(out).tokenizers()
    (out / name).write_bytes(b"hello")
    write_manifest(out, read_recipe(out / "recipe.toml"))
    with pytest.raises(
        FolderError, match=rf"{name} \(5 bytes\) is not a valid sentencepiece model"
    ):
        ModelFolder(out).tokenizers()


def test_the_sizes_come_from_the_data(recipe: Path, tmp_path: Path) -> None:
    """As with one vocabulary, a recipe that says otherwise is refused."""
    with pytest.raises(RecipeError, match=r"target_vocabulary is 99, but the data make it \d+"):
        run(recipe, tmp_path / "out", *SHORT, SEPARATE, "model.target_vocabulary=99")


def test_characters_never_seen_go_in_and_come_out(tmp_path: Path) -> None:
    """An emoji and hangul are no tokens of either vocabulary: they are read and written in bytes.

    Learned by heart: the target says 🙂 and 안녕, spelled in bytes because only one character in
    hundreds is one of them, and a source nobody has seen is translated, too.
    """
    pairs = [("hello", "안녕"), ("smile", "🙂")]
    plain = [("sun sun sun sun", "mond mond mond mond"), ("two words", "zwei worte")]
    for split, chosen in (("train", pairs + plain * 30), ("valid", pairs)):
        for side, code in enumerate(("en", "de")):
            path = tmp_path / "numbers" / f"{split}.{code}"
            write_lines(path, [pair[side] for pair in chosen])
    changes = ("tokenizer.size=290", "tokenizer.character_coverage=0.99", SEPARATE)
    larger = ("model.dim=32", "model.dropout=0.0", "train.steps=150", "train.validate_every=150")
    recipe = write_recipe(tmp_path / "bytes.toml", TRANSLATE, tmp_path)
    run(recipe, tmp_path / "out", *changes, *larger)
    translator = load(tmp_path / "out")
    assert isinstance(translator, Translator)
    target = translator.tokenizers.target
    assert [target.piece(t) for t in target.encode(["🙂"])[0]][1:] == [
        f"<0x{byte:02X}>" for byte in "🙂".encode()
    ]
    assert translator(["hello", "smile"]) == ["안녕", "🙂"]
    assert all(isinstance(text, str) for text in translator(["🙂", "안녕", "ありがとう"]))


# --- A corpus that is not held in memory --------------------------------------------------------


def test_disk_or_memory_gives_the_same_model(
    recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bit by bit, with the same vocabulary; nothing but the model is left."""
    held, left = tmp_path / "held", tmp_path / "left"
    run(recipe, held, *SHORT)
    left.mkdir()
    for name in ("recipe.toml", "tokenizer.model"):
        (left / name).write_bytes((held / name).read_bytes())
    monkeypatch.setattr(streamed, "IN_MEMORY", 300)
    run(recipe, left, *SHORT, resume=True)
    assert weights(held) == weights(left)
    assert {path.name for path in left.iterdir()} == {path.name for path in held.iterdir()}


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize("options", [(), ("tokenizer.sampling=0.1", SEPARATE)])
def test_a_large_corpus_is_encoded_once(
    recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    """An interrupted run finds its token ids, and ends as if it had not been interrupted."""
    straight, resumed = tmp_path / "straight", tmp_path / "resumed"
    run(recipe, straight, *SHORT, *options)
    observer = Stopped()
    with pytest.raises(InterruptedRunError):
        train(read_recipe(recipe, [*SHORT, *options]), out=resumed, resume=False, observer=observer)
    assert "from a sample of 11 pairs" in observer.said
    assert f"encoding {tmp_path / 'numbers' / 'train'}.{{en,de}} into" in observer.said
    assert (resumed / CACHE).is_dir()
    monkeypatch.setattr(token_store, "_encode", None)  # not called again
    run(recipe, resumed, *SHORT, *options, resume=True)
    assert weights(straight) == weights(resumed)
    assert not (resumed / CACHE).exists()


@pytest.mark.usefixtures("little_memory")
def test_a_run_killed_while_it_was_encoding(recipe: Path, tmp_path: Path) -> None:
    """Nothing of value is in its folder yet: the same command starts again."""
    out = tmp_path / "out"
    (out / CACHE / ".manyheads-1.part").mkdir(parents=True)
    run(recipe, out, *SHORT)
    assert not (out / CACHE).exists()
    with pytest.raises(UsageError, match="is not empty"):
        run(recipe, out, *SHORT)


# --- Subword sampling ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_subword_sampling_changes_training_only(recipe: Path, tmp_path: Path, kind: str) -> None:
    """Other weights than without, the same again, and one translation for one text."""
    options = (*SHORT, f"tokenizer.kind={kind}")
    for name, sampling in (("none", 0.0), ("one", 0.2), ("two", 0.2)):
        run(recipe, tmp_path / name, *options, f"tokenizer.sampling={sampling}")
    assert weights(tmp_path / "one") == weights(tmp_path / "two") != weights(tmp_path / "none")
    translator = load(tmp_path / "one")
    assert isinstance(translator, Translator)
    assert len(set(translator(["seven one two"] * 5))) == 1

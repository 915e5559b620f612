"""Language models and taggers as folders: trained from a recipe, loaded, used, measured, shown."""

import shutil
from pathlib import Path

import pytest
import torch

import manyheads
from manyheads.data import split_register as splits
from manyheads.data.text.corpus import read_sentences
from manyheads.errors import FolderError, RecipeError, UsageError
from manyheads.lens.panels import Table
from manyheads.measure.stored_model import evaluate
from manyheads.project.base_recipe import read_recipe
from manyheads.project.model_facts import describe
from manyheads.tasks.fill.predictor import MaskFiller
from manyheads.tasks.generate.predictor import Generator
from manyheads.tasks.tag.predictor import WordSpacer
from manyheads.tokenwise.look_at_tokens import explain_tokens, shapes_of_tokens
from tests import language
from tests.made import read_jsonl, run


@pytest.fixture(scope="module")
def generator() -> Generator:
    found = manyheads.load(language.trained("generate"))
    assert isinstance(found, Generator)
    return found


@pytest.fixture(scope="module")
def filler() -> MaskFiller:
    found = manyheads.load(language.trained("fill"))
    assert isinstance(found, MaskFiller)
    return found


@pytest.fixture(scope="module")
def spacer() -> WordSpacer:
    found = manyheads.load(language.trained("tag"))
    assert isinstance(found, WordSpacer)
    return found


# --- Using --------------------------------------------------------------------------------------


def test_a_generator(generator: Generator) -> None:
    """A prompt in, the prompt and more out; in order, empty ones too."""
    text = generator("eins")
    assert text.startswith("eins")
    assert generator(["eins", "", "eins"]) == [text, generator(""), text]
    assert generator([]) == []


def test_scores_of_a_text(generator: Generator) -> None:
    """Log-probabilities of its tokens and the end: as the search that wrote it says."""
    (best,) = generator.complete([""])[0]
    (scores,) = generator.score([best.text])
    assert best.finished
    assert sum(p for _, p in scores) == pytest.approx(best.log_probability, abs=1e-4)
    assert scores[-1].piece == "</s>"
    likely, unlikely = (sum(p for _, p in row) for row in generator.score(["acht", "one two"]))
    assert likely > unlikely
    assert generator.score([]) == []


def test_a_filler(filler: MaskFiller) -> None:
    """Every blank filled; proposals with probabilities that sum to at most 1."""
    assert "<mask>" not in filler("eins <mask>")
    assert filler("eins <mask>").startswith("eins ")
    (blank,) = filler.fill("eins <mask> drei", top=3)
    assert blank[0].text == filler("eins <mask> drei")
    assert 0 < sum(each.probability for each in blank) <= 1 + 1e-6


def test_a_spacer(spacer: WordSpacer) -> None:
    """The characters stay, the spaces are its own; those that are there are not looked at."""
    texts = ["einszwei", "e i n s z w e i", "", "unbekannt?"]
    found = spacer(texts)
    assert [text.replace(" ", "") for text in found] == ["einszwei", "einszwei", "", "unbekannt?"]
    assert found[0] == found[1] == spacer("eins zwei") == "eins zwei"
    assert len(spacer.tag(["eins zwei"])[0]) == 8


# --- Measuring and describing -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("task", "metrics"),
    [
        ("generate", ["perplexity", "loss", "accuracy"]),
        ("fill", ["perplexity", "loss", "accuracy"]),
        ("tag", ["f1", "exact", "accuracy", "loss"]),
    ],
)
def test_a_folder_of_each_task(task: str, metrics: list[str], tmp_path: Path) -> None:
    """What training logged is what evaluating the stored model finds; the card and info say so."""
    folder = shutil.copytree(language.trained(task), tmp_path / task)
    logged = read_jsonl(folder / "metrics.jsonl")[-1]
    line = evaluate(manyheads.load(folder))
    assert list(line["all"]) == metrics
    for name in metrics:
        assert line["all"][name]["value"] == pytest.approx(logged[f"val_{name}"], rel=1e-5)
    assert line["lines"] == 8
    assert read_jsonl(folder / "evaluations.jsonl")[-1] == line
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert f"manyheads {task} --model {task}" in card
    assert metrics[0] in card
    assert describe(str(folder))["task"] == task


def test_a_test_split_needs_final(tmp_path: Path) -> None:
    """By its name in the recipe, or as a file."""
    folder = shutil.copytree(language.trained("generate"), tmp_path / "generate")
    predictor = manyheads.load(folder)
    with pytest.raises(UsageError, match="`final=True`"):
        evaluate(predictor, split="test")
    with pytest.raises(UsageError, match="`final=True`"):
        evaluate(predictor, data=str(language.root() / "numbers" / "test.de"))
    assert evaluate(predictor, split="test", final=True)["final"]
    assert not evaluate(predictor, data=str(language.root() / "numbers" / "train.de"))["final"]


def test_a_vocabulary_of_another_model_is_found(tmp_path: Path) -> None:
    """A tagger's characters belong to its weights."""
    folder = shutil.copytree(language.trained("tag"), tmp_path / "tag")
    (folder / "characters.json").write_text('"ab"', encoding="utf-8")
    with pytest.raises(FolderError, match=r"characters\.json is not the file"):
        manyheads.load(folder)


# --- Looking ------------------------------------------------------------------------------------


def test_what_a_generator_looks_at(generator: Generator) -> None:
    """Every token and those before it; the probabilities are those of its score."""
    answer, view = explain_tokens(generator, "eins zwei")
    assert answer == generator("eins zwei")
    assert view.source[0] == "<s>"
    (found,) = view.maps
    assert found.row_spans is not None
    assert found.row_spans[0] is None
    assert "".join("eins zwei"[b:e] for b, e in filter(None, found.row_spans)) == "einszwei"
    for row, weights in enumerate(found.mean):
        assert sum(weights[row + 1 :]) == 0
    scores = [p for _, p in generator.score(["eins zwei"])[0]]
    expected = torch.tensor(scores[:-1]).exp().tolist()
    assert view.probabilities[:-1] == pytest.approx(expected, abs=1e-4)


def test_what_is_all_but_impossible_costs_what_it_costs(generator: Generator) -> None:
    """Probabilities of a page have six decimals; a loss is not that of such a zero."""
    parameters = [p for p in generator.model.parameters() if p.ndim > 1]
    for each in parameters:  # of a model that is sure
        each.data *= 1.8
    _, view = explain_tokens(generator, "acht one eins")
    scores = [p for _, p in generator.score(["acht one eins"])[0]][:-1]
    for each in parameters:
        each.data /= 1.8
    (table,) = [found.panel for found in view.figures if found.group == "loss"]
    assert isinstance(table, Table)
    assert min(view.probabilities[:-1]) == 0
    shown = [row[2] for row in table.rows[:-1]]
    assert shown == pytest.approx([-p for p in scores], abs=1e-2)


def test_what_a_filler_looks_at(filler: MaskFiller) -> None:
    """The blank is shown as it was written."""
    answer, view = explain_tokens(filler, "eins <mask>")
    assert answer == filler("eins <mask>")
    assert "<mask>" in view.source
    assert [5, 11] in (view.maps[0].row_spans or [])
    assert len(view.source) == len(view.output) == len(view.maps[0].rows)


def test_what_a_recurrent_tagger_keeps(spacer: WordSpacer) -> None:
    """T2: the gates of a GRU at every character, in both directions; no attention."""
    answer, view = explain_tokens(spacer, "eins zwei")
    assert answer == spacer("eins zwei")
    assert view.maps == []
    assert view.overlays == []
    assert [found.kind for found in view.gates] == ["encoder forward", "encoder backward"]
    assert view.gates[0].tokens == view.source == list("einszwei")
    assert [tag for tag in view.output if tag == "space"] == ["space"] * answer.count(" ")
    assert shapes_of_tokens(spacer, "eins zwei")


def test_a_plain_rnn_shows_what_counted(tmp_path: Path) -> None:
    """Neither attention nor gates, so that gradients are integrated without being asked for."""
    run(language.recipe("tag"), tmp_path / "rnn", "model.preset=tagger-rnn", "train.steps=2")
    spacer = manyheads.load(tmp_path / "rnn")
    assert isinstance(spacer, WordSpacer)
    _, view = explain_tokens(spacer, "eins zwei")
    assert (view.maps, view.gates) == ([], [])
    (overlay,) = view.overlays
    assert (overlay.name, overlay.rows) == ("integrated gradients", view.output)
    assert overlay.columns == list("einszwei")
    assert shapes_of_tokens(spacer, "eins zwei")
    with pytest.raises(UsageError, match="empty"):
        shapes_of_tokens(spacer, " ")


# --- Recipes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("task", "change", "message"),
    [
        ("generate", "model.preset=bert-tiny", r"'bert-tiny' does not fit the task"),
        ("generate", "model.preset=transformer-tiny", r"does not fit the task"),
        ("fill", "model.preset=gpt-tiny", r"does not fit the task"),
        ("tag", "model.preset=vit-ti", r"does not fit the task"),
        ("fill", "train.masked=1.5", r"train\.masked = 1\.5"),
        ("tag", "data.column=0", r"data\.column = 0"),
        ("tag", "model.hidden_size=7", r"hidden_size is 7"),
        ("generate", "train.early_stop={metric='val_perplexity'}", r"measures val_loss"),
        ("generate", "start.encoder=x", r"no key 'start'"),
    ],
)
def test_mistakes_in_a_recipe(task: str, change: str, message: str) -> None:
    """Found before any data are read."""
    with pytest.raises(RecipeError, match=message):
        read_recipe(language.recipe(task), [change])


def test_a_translator_is_no_language_model() -> None:
    """The other way round, too."""
    with pytest.raises(RecipeError, match="does not fit the task"):
        read_recipe(language.recipe("translate"), ["model.preset=gpt-tiny"])


def test_a_table_needs_a_column(tmp_path: Path) -> None:
    """And a text file none."""
    table = language.root() / "numbers.tsv"
    with pytest.raises(RecipeError, match=r"numbers\.tsv.*data\.column=1"):
        run(language.recipe("tag"), tmp_path / "out", f"data.train={table}")


def test_a_test_split_is_not_learned_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A registered split is known by its content: not trained, validated, or read for words."""
    digest = read_sentences(language.root() / "numbers" / "valid.de").hashes[0]
    monkeypatch.setattr(splits, "_register", lambda: {digest: splits.Split("held out", test=True)})
    for task in ("generate", "tag"):
        with pytest.raises(UsageError, match=r"valid\.de is the test split held out"):
            run(language.recipe(task), tmp_path / task)
    changes = ["data.valid=numbers/train.de", 'data.vocabulary=["numbers/valid.de"]']
    with pytest.raises(UsageError, match=r"valid\.de is the test split held out"):
        run(language.recipe("fill"), tmp_path / "fill", *changes)


def test_a_resumed_language_model_is_the_same(tmp_path: Path) -> None:
    """Hidden tokens included: 20 steps, or 10 and 10 more."""
    recipe = language.recipe("fill")
    changes = ["train.steps=20", "train.schedule=constant", "train.validate_every=10"]
    run(recipe, tmp_path / "whole", *changes)
    with pytest.MonkeyPatch.context() as patch:
        from manyheads.train import loop

        stops = iter([False] * 9 + [True])
        patch.setattr(loop, "stop_signals", lambda: _Stops(stops))
        with pytest.raises(manyheads.errors.InterruptedRunError):
            run(recipe, tmp_path / "parts", *changes)
    run(recipe, tmp_path / "parts", *changes, resume=True)
    whole, parts = (
        (tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "parts")
    )
    assert whole == parts


class _Stops:
    """Ctrl-C at a certain step."""

    def __init__(self, stops: object) -> None:
        self.stops = stops

    def __enter__(self) -> object:
        return lambda: next(self.stops)  # type: ignore[call-overload]

    def __exit__(self, *error: object) -> None: ...

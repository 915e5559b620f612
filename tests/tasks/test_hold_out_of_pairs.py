"""data.hold_out of parallel text, train.validate_first, and a converted model that is continued."""

import json
from pathlib import Path
from typing import Any

import pytest

from manyheads.convert.marian_folder import from_marian
from manyheads.data.synthetic.dates import generate
from manyheads.data.text.exclusion import normalised
from manyheads.errors import RecipeError
from manyheads.fit.observer import SilentObserver
from manyheads.fit.run_training import train
from manyheads.measure.stored_model import evaluate
from manyheads.own_data.continued import open_base
from manyheads.predict.load import load
from manyheads.project.base_recipe import Recipe, read_recipe
from manyheads.project.folder import ModelFolder
from manyheads.project.paths import find_model
from manyheads.recipe_data.pair_splits import corpus_split, training_corpus
from manyheads.tasks.translate.recipe import TranslateRecipe
from tests import opus

SMALL = """
task = "translate"
[tokenizer]
size = 500
[model]
preset = "transformer-tiny"
dim = 16
heads = 2
ffn_dim = 16
encoder_layers = 1
decoder_layers = 1
[train]
steps = 2
validate_every = 2
max_tokens = 500
[evaluate]
metrics = ["chrf"]
[data]
train = "pairs.tsv"
source = "en"
target = "ko"
"""


def recipe(tmp_path: Path, *changes: str) -> Recipe:
    pairs = zip(opus.ENGLISH, opus.KOREAN, strict=True)
    lines = [
        f"{one}\t{other}\n{one.upper()} !\t{other} {n}\n" for n, (one, other) in enumerate(pairs)
    ]
    (tmp_path / "pairs.tsv").write_text("".join(lines), encoding="utf-8")
    (tmp_path / "own.toml").write_text(SMALL, encoding="utf-8")
    return read_recipe(tmp_path / "own.toml", [f"data.root={tmp_path}", *changes])


def test_pairs_are_held_out_by_their_source(tmp_path: Path) -> None:
    """The run folder lists them; the stored model is measured on the same."""
    held = recipe(tmp_path, "data.hold_out=5")
    assert isinstance(held, TranslateRecipe)
    corpus, valid = training_corpus(held.data), corpus_split("valid", held.data)
    sources = [{normalised(source) for source, _ in each.pairs()} for each in (corpus, valid)]
    assert not sources[0] & sources[1]
    assert len(list(corpus.pairs())) + len(valid) == 2 * len(opus.ENGLISH)
    line = train(held, out=tmp_path / "run")
    listed = (tmp_path / "run" / "held_out.tsv").read_text(encoding="utf-8").splitlines()
    assert [tuple(each.split("\t")[1:]) for each in listed] == list(valid.pairs())
    every = (tmp_path / "pairs.tsv").read_text(encoding="utf-8").splitlines()
    assert [every[int(each.partition("\t")[0]) - 1] for each in listed] == [
        each.partition("\t")[2] for each in listed
    ]
    assert evaluate(tmp_path / "run")["value"] == line["value"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ((), "no validation pairs"),
        (("data.hold_out=5", "data.valid=pairs.tsv"), "leave it out"),
        (("data.train=dates:train", "data.hold_out=5"), "generated"),
    ],
)
def test_one_source_of_validation_pairs(
    tmp_path: Path, changes: tuple[str, ...], message: str
) -> None:
    """A file, or a number."""
    with pytest.raises(RecipeError, match=message):
        recipe(tmp_path, *changes)


def test_weights_that_never_got_better_are_those_of_the_start(tmp_path: Path) -> None:
    """With a learning rate that ruins the model, what it began with is kept, and said."""
    pairs = [f"{pair.source}\t{pair.target}\n" for pair in generate("valid", size=40)]
    (tmp_path / "dates.tsv").write_text("".join(pairs), encoding="utf-8")
    text = f'task = "translate"\n[data]\nroot = "{tmp_path}"\n'
    text += 'train = "dates.tsv"\nhold_out = 10\n'
    text += 'source = "en"\ntarget = "ko"\n[evaluate]\nmetrics = ["exact"]\n[train]\nsteps = 2\n'
    text += "learning_rate = 10\nwarmup = 0\nvalidate_every = 2\nvalidate_first = true\n"
    text += 'early_stop = { metric = "val_exact", patience = 5 }\n'
    (tmp_path / "own.toml").write_text(text + open_base("date-en-ko").tables())
    said: list[str] = []

    class Heard(SilentObserver):
        def say(self, message: str) -> None:
            said.append(message)

    train(read_recipe(tmp_path / "own.toml"), out=tmp_path / "run", observer=Heard())
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    logged = [json.loads(text) for text in lines]
    scores = {each["step"]: each["val_exact"] for each in logged if "val_exact" in each}
    assert scores[0] > 90 > scores[2]
    assert any(line.startswith("val_exact") and "no step was better" in line for line in said)
    names = str(tmp_path / "run"), "date-en-ko"
    ours, theirs = (ModelFolder(find_model(name)).model() for name in names)
    for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert one.equal(other)


def test_a_converted_marian_is_continued(tmp_path: Path) -> None:
    """With its own vocabulary, prefix and search; the run answers, and is resumed."""
    opus.write_random(tmp_path / "theirs")
    from_marian(
        str(tmp_path / "theirs"),
        tmp_path / "ours",
        source_language="en",
        target_language="ko",
        prefix=">>kor<<",
    )
    base = read_recipe(tmp_path / "ours" / "recipe.toml", stored=True)
    assert isinstance(base, TranslateRecipe)
    assert base.converted is not None
    pairs = zip(opus.ENGLISH, opus.KOREAN, strict=True)
    table = "".join(f"{one}\t{other}\n" for one, other in pairs)
    (tmp_path / "pairs.tsv").write_text(table, encoding="utf-8")
    text = f'task = "translate"\n[data]\nroot = "{tmp_path}"\ntrain = "pairs.tsv"\nhold_out = 3\n'
    text += 'source = "en"\ntarget = "ko"\n[train]\nsteps = 4\nsave_every = 2\nvalidate_every = 4\n'
    text += "learning_rate = 1e-2\nvalidate_first = true\n"
    (tmp_path / "own.toml").write_text(text + open_base(str(tmp_path / "ours")).tables())
    begun = read_recipe(tmp_path / "own.toml")

    class Stops:
        """Fails at step 2, as a bar whose terminal has gone."""

        def say(self, message: str) -> None:
            pass

        def progress(self, step: int, steps: int, line: dict[str, float]) -> None:
            if step == 2:
                raise KeyboardInterrupt

        def validated(self, step: int, metrics: dict[str, float]) -> None:
            pass

    with pytest.raises(BaseException):  # noqa: B017, PT011 - how it ends depends on the thread
        train(begun, out=tmp_path / "run", observer=Stops())
    assert not (tmp_path / "run" / "evaluations.jsonl").exists()
    train(begun, out=tmp_path / "run", resume=True)
    train(begun, out=tmp_path / "whole")
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("run", "whole")]
    assert weights[0] == weights[1] != (tmp_path / "ours" / "model.safetensors").read_bytes()
    models: list[Any] = [load(tmp_path / name) for name in ("ours", "run")]
    ids = [each.tokenizers.source.encode(["The cat"]) for each in models]
    assert ids[0] == ids[1]
    assert isinstance(models[1]("The cat sits."), str)

"""The choice of the attention to read alignments from: made in training, kept with the model."""

import json
import shutil
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
import torch

from manyheads.data.text.corpus import Corpus
from manyheads.data.text.word_links import Link
from manyheads.errors import FolderError, UsageError
from manyheads.lens.measures.alignment_head import AlignmentHead, layers, read
from manyheads.measure.stored_model import evaluate
from manyheads.nn.recording.trace import record
from manyheads.predict.load import load
from manyheads.project.alignment import stored
from manyheads.project.folder import ModelFolder
from manyheads.tasks.translate.predictor import Translator
from manyheads.tasks.translate.word_alignment import choose_reader, known_links
from tests.made import TRANSLATE, read_jsonl, run, write_lines, write_recipe


@cache
def _made() -> TemporaryDirectory[str]:
    return TemporaryDirectory(prefix="manyheads-tests-")


@cache
def trained() -> Path:
    """A model that has hardly learned to copy two numbers in the other order."""
    root = Path(_made().name)
    random = np.random.default_rng(0)
    for split, count in (("train", 120), ("valid", 25), ("test", 25)):
        pairs = [random.choice(np.arange(10, 100), 2, replace=False) for _ in range(count)]
        write_lines(root / "numbers" / f"{split}.en", [f"{one} {two}" for one, two in pairs])
        write_lines(root / "numbers" / f"{split}.de", [f"{two} {one}" for one, two in pairs])
    run(write_recipe(root / "copy.toml", TRANSLATE, root), root / "model")
    return root / "model"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return shutil.copytree(trained(), tmp_path / "model")


def manifest(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "manyheads.json").read_text(encoding="utf-8"))
    return found


def write_choice(folder: Path, **changes: Any) -> None:
    document = manifest(folder)
    entry = document["alignment"] | changes
    (folder / "manyheads.json").write_text(json.dumps(document | {"alignment": entry}))


def translator(folder: Path) -> Translator:
    found = load(folder)
    assert isinstance(found, Translator)
    return found


def test_training_ends_with_a_choice(folder: Path) -> None:
    """By numbers of the validation data that are the same on both sides; 2 heads, so 6 ways."""
    entry = manifest(folder)["alignment"]
    assert entry.keys() == {
        *("layer", "head", "step", "error", "references", "usual", "ways", "data"),
    }
    assert (entry["references"], entry["ways"], entry["data"]) == (50, 6, "numbers/valid")
    assert 0 <= entry["error"] <= entry["usual"] <= 100
    found = stored(ModelFolder(folder))
    assert found is not None
    assert found.reader == AlignmentHead(
        layer=entry["layer"] - 1,
        head=entry["head"] and entry["head"] - 1,
        late=entry["step"] == "read",
    )
    assert found.error == pytest.approx(entry["error"] / 100, abs=1e-4)
    assert f"{entry['error']:.1f}%" in found.why
    (line,) = (line for line in read_jsonl(folder / "evaluations.jsonl"))
    assert line["alignment"] is None or line["alignment"]["reader"] == str(found.reader)


def test_translations_are_aligned_by_the_choice(folder: Path) -> None:
    """Whatever it is: each token names the source token that this head reads most."""
    for step in ("written", "read"):
        write_choice(folder, layer=1, head=2, step=step)
        model = translator(folder)
        ((found,),) = model.translate(["12 34"], align=True)
        (ids,) = model.tokenizers.source.encode(["12 34"])
        with record() as trace, torch.inference_mode():
            model.model(torch.tensor([[*ids, 2]]), torch.tensor([[1, *found.tokens]]))
        reader = AlignmentHead(layer=0, head=1, late=step == "read")
        weights = read(layers(trace), reader)[0, : len(found.tokens), : len(ids)]
        assert found.details is not None
        shares = [each.share for each in found.details]
        torch.testing.assert_close(torch.tensor(shares), weights.max(dim=1).values)


def test_a_folder_without_a_choice_is_as_good_as_ever(folder: Path) -> None:
    document = manifest(folder)
    del document["alignment"]
    (folder / "manyheads.json").write_text(json.dumps(document))
    model = translator(folder)
    assert model.alignment is None
    ((found,),) = model.translate(["12 34"], align=True)
    assert all(each.source for each in found.details or [])
    line = evaluate(model, split="test", final=True, alignment=True)
    assert "alignment" not in manifest(folder)  # nothing is chosen on a test split
    if line["alignment"] is not None:
        assert line["alignment"]["reader"].startswith("decoder layer 1, mean of the heads")
    evaluate(model, alignment=True)
    assert manifest(folder)["alignment"]["references"] == 50
    assert model.alignment is not None


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"layer": 0}, r"alignment\.layer: .*greater than or equal to 1"),
        ({"step": "both"}, r"alignment\.step: "),
        ({"error": "much"}, r"alignment\.error: .*Remove the entry"),
    ],
)
def test_a_damaged_choice_is_named(folder: Path, changes: dict[str, Any], told: str) -> None:
    write_choice(folder, **changes)
    with pytest.raises(FolderError, match=told):
        load(folder)


def test_a_choice_of_another_model_is_refused(folder: Path) -> None:
    write_choice(folder, layer=7)
    model = translator(folder)
    assert model(["12 34"])
    with pytest.raises(UsageError, match=r"decoder layer 7.*1 \(2 heads\)"):
        model.translate(["12 34"], align=True)


def test_too_few_words_choose_nothing(folder: Path) -> None:
    corpus = Corpus(["12 34"] * 14, ["34 12"] * 14, "few")
    model = translator(folder)
    assert choose_reader(model, corpus, "few") is None  # 28 numbers
    more = Corpus(["12 34"] * 15, ["34 12"] * 15, "more")
    entry = choose_reader(model, more, "more")
    assert entry is not None
    assert (entry.references, entry.data) == (30, "more")
    none = Corpus(["one"] * 50, ["eins"] * 50, "none")
    assert choose_reader(model, none, "none") is None


def test_what_a_corpus_knows_holds_for_its_own_translations() -> None:
    """Another output may say other words at these places."""
    link = Link((0, 4), ((5, 8),))
    corpus = Corpus(["nine one"] * 2, ["eins neun"] * 2, "x", links=[[link], [link]])
    assert known_links(corpus, ["eins neun", "neun"]) == [[link], ()]
    plain = Corpus(["12 is 12", "room 7"], ["", ""], "x")
    assert known_links(plain, ["12", "Zimmer 7"]) == [[], [Link((7, 8), ((5, 6),))]]

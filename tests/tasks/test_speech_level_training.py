"""A translator into Korean whose sources begin with a speech level, from recipe to answer."""

from pathlib import Path

import pytest

from manyheads.asks.translate_request import TranslateRequest
from manyheads.convert.marian_folder import to_marian
from manyheads.errors import RecipeError, UsageError
from manyheads.fit.run_training import train
from manyheads.predict.load import load
from manyheads.tasks.translate.predictor import Translator
from tests.tasks.test_hold_out_of_pairs import recipe

TAGS = (
    'tokenizer.symbols=["<polite>", "<formal>", "<plain>"]',
    "tokenizer.tag=<polite>",
    "augment.polite=0.5",
    "augment.levels=true",
    "data.hold_out=5",
)


def test_levels_from_training_to_answers(tmp_path: Path) -> None:
    """The stored model begins each text with its tag, or with the one that is asked for."""
    train(recipe(tmp_path, *TAGS), out=tmp_path / "run")
    model = load(tmp_path / "run")
    assert isinstance(model, Translator)
    first, *_ = model.tokenizers.source.pieces("The lake is frozen.")
    assert first.text == "<polite>"
    answers = {
        tag: model.answer(TranslateRequest(texts=("The lake is frozen.",), tag=tag))[0]
        for tag in (None, "polite", "plain")
    }
    assert answers[None] == answers["polite"]
    written = TranslateRequest(texts=("<plain> The lake is frozen.",))
    (of_text,) = model.answer(written)
    assert of_text.n_best[0].score == answers["plain"].n_best[0].score
    with pytest.raises(UsageError, match="has no tag 'rude'"):
        model.answer(TranslateRequest(texts=("Hello.",), tag="rude"))
    with pytest.raises(UsageError, match="begin with a tag"):
        to_marian(str(tmp_path / "run"), tmp_path / "marian")


@pytest.mark.parametrize("given", [(), TAGS[:1]])
def test_levels_that_could_not_be_read_are_refused(tmp_path: Path, given: tuple[str, ...]) -> None:
    """Sources would begin with a tag in pieces, or at use with none."""
    with pytest.raises(RecipeError, match=r"name all of them in tokenizer\.symbols"):
        recipe(tmp_path, "augment.levels=true", "data.hold_out=5", *given)


def test_a_model_without_tags_refuses_one() -> None:
    """Instead of leaving it out."""
    with pytest.raises(UsageError, match="reads no tags: leave `tag` out"):
        load("en-de").answer(TranslateRequest(texts=("Hello.",), tag="formal"))

"""Advice from a table of measured runs; none where the table has nothing to say."""

from dataclasses import replace
from pathlib import Path

import pytest

from manyheads.app import advise as module
from manyheads.app.advise import Facts, Machine, Row, advise, look, measured, recommend
from manyheads.app.paths import shipped
from manyheads.data.digits import read_digits
from manyheads.errors import DataError
from tests.made import write_halves

LAPTOP = Machine(2, 8.0, None)
DIGITS = measured()[0]
ROW = replace(
    DIGITS,
    recipe="cifar10-vit-tiny",
    data="made",
    images=10_000,
    side=32,
    accuracy=80,
    low=79,
    high=82,
)
CNN = replace(ROW, family="cnn", accuracy=85, low=84, high=86)
FACTS = Facts(
    images=8000,
    classes=8,
    per_class=1000,
    rarest=900,
    most=1100,
    side=40,
    grey=False,
    multi_label=False,
    unreadable=0,
)


def test_every_row_is_a_shipped_recipe_with_a_figure() -> None:
    """Rows stand for runs of ours: nothing in the table without its recipe and its protocol."""
    for row in measured():
        assert row.recipe in shipped("recipes")
        assert row.low <= row.accuracy <= row.high <= 100
        assert row.protocol
        assert row.hardware


def test_digits_are_like_digits() -> None:
    """The table's own data, from a look at the pictures."""
    facts = look(read_digits())
    assert (facts.images, facts.classes, facts.side, facts.grey) == (1797, 10, 8, True)
    advice = recommend("digits", facts, LAPTOP, measured())
    assert advice.recipe == "digits"
    assert advice.expected is not None
    low, high = advice.expected
    assert low < 98.55 < high <= 100
    assert "98.55%" in " ".join(advice.reasons)
    assert advice.command.startswith("manyheads train digits data.train=digits data.hold_out=179")


def test_use_a_cnn() -> None:
    """The best of what was measured on data like these, whatever it is."""
    advice = recommend("photos", FACTS, LAPTOP, [DIGITS, ROW, CNN])
    assert (advice.family, len(advice.rows)) == ("cnn", 2)
    assert any("Use a CNN" in reason for reason in advice.reasons)
    assert advice.expected == (68.0, 93.0)  # twice, and half, the error


def test_a_gpu_is_only_counted_on_where_there_is_one() -> None:
    """A row measured on a GPU does not speak for a laptop."""
    fast = replace(CNN, gpu=True, accuracy=95, low=95, high=95)
    assert recommend("photos", FACTS, LAPTOP, [ROW, fast]).rows == [ROW]
    server = Machine(16, 128.0, "some GPU")
    assert fast in recommend("photos", FACTS, server, [ROW, fast]).rows


@pytest.mark.parametrize(
    "facts",
    [
        FACTS._replace(side=224),
        FACTS._replace(per_class=20.0),
        FACTS._replace(classes=1000),
        FACTS._replace(multi_label=True),
    ],
)
def test_nothing_near(facts: Facts) -> None:
    """Said, and no figure given; with few pictures a rule of thumb is called one."""
    advice = recommend("photos", facts, LAPTOP, [DIGITS, ROW])
    assert (advice.expected, advice.rows) == (None, [])
    assert any("nothing near these data" in reason for reason in advice.reasons)
    thumb = any("Use a CNN, or start from a trained model" in each for each in advice.reasons)
    assert thumb == (facts.per_class < 1000)


def test_a_run_that_was_stopped_promises_nothing() -> None:
    """What it reached is a lower limit."""
    advice = recommend("photos", FACTS, LAPTOP, [replace(ROW, finished=False)])
    assert advice.expected is None
    assert any("expect more" in reason for reason in advice.reasons)


def test_unequal_classes_are_weighed() -> None:
    """In the command, with the reason."""
    advice = recommend("photos", FACTS._replace(rarest=5, most=3000), LAPTOP, [ROW])
    assert "train.class_weights=balanced" in advice.command
    assert any("The rarest class has 5" in reason for reason in advice.reasons)


def test_pictures_in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted and looked at; a few that cannot be read are mentioned, all of them refused."""
    write_halves(tmp_path)
    bad = sorted((tmp_path / "halves").rglob("*.png"))
    bad[0].write_bytes(b"")
    advice = advise(str(tmp_path / "halves"))
    assert (advice.facts.images, advice.facts.unreadable, advice.facts.side) == (40, 1, 4)
    assert any("cannot be read" in reason for reason in advice.reasons)
    for path in bad:
        path.write_bytes(b"")
    with pytest.raises(DataError, match="none of 40 pictures"):
        advise(str(tmp_path / "halves"))
    assert module.this_machine().cores >= 1


def test_rows_have_a_size_by_class() -> None:
    """Pictures a class."""
    assert Row(**{**DIGITS.__dict__}).per_class == pytest.approx(143.7)

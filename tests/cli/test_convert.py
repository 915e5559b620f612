"""manyheads convert, as its users call it."""

from pathlib import Path

from tests import opus
from tests.cli.conftest import Call
from tests.made import trained


def test_there_and_back(call: Call, tmp_path: Path) -> None:
    """Each command says what it made; the converted model is used like any other."""
    opus.write_random(tmp_path / "opus")
    code, out, err = call("convert", "marian", "opus", "ours", "--prefix", ">>kor<<")
    assert (code, err) == (0, "")
    assert out.startswith("ours: eng to kor, 12,076 parameters\n")
    assert "manyheads translate --model ours" in out
    code, out, err = call("translate", "--model", "ours", "The cat sits on the mat.")
    assert (code, err) == (0, "")
    assert len(out.splitlines()) == 1
    assert call("convert", "to-marian", "ours", "back").code == 0
    assert (tmp_path / "back" / "vocab.json").exists()


def test_what_differs_is_said_on_stderr(call: Call) -> None:
    code, out, err = call("convert", "to-marian", str(trained("translator")), "published")
    assert code == 0
    assert out.startswith("published: en to de, ")
    assert "manyheads: Ours ends an output at 2 * source + 16 tokens" in err


def test_mistakes(call: Call) -> None:
    """A message and 2, no traceback."""
    code, out, err = call("convert", "marian", "nowhere", "ours")
    assert (code, out) == (2, "")
    assert "There is no folder 'nowhere'" in err
    assert call("convert", "maryan", "a", "b").code == 2

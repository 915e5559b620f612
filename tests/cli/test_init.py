"""manyheads init and advise on files of texts."""

import json
import shlex
from pathlib import Path

import pytest

from manyheads.fit import pace
from tests.cli.conftest import Call
from tests.own_data.test_tables import sentences, table


def test_init_says_what_to_do_next(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A path with spaces; the command that is printed last is that of the recipe."""
    monkeypatch.setattr(pace, "BUDGET", 0.05)
    folder = tmp_path / "my data"
    folder.mkdir()
    (folder / "my pairs.tsv").write_text(table(sentences(60)), encoding="utf-8")
    wanted = ("--out", "my data/first", "--minutes", "1", "--for", "cpu")
    code, out, err = call("init", "my data/my pairs.tsv", *wanted)
    assert (code, err) == (0, "")
    assert shlex.split(out.splitlines()[-1]) == ["manyheads", "train", "my data/first.toml"]
    assert "`" not in out
    again = call("init", "my data/my pairs.tsv", *wanted)
    assert again.code == 2
    assert "--force" in again.err
    advised = json.loads(call("advise", "my data/my pairs.tsv", "--json").out)
    assert advised["command"] == "manyheads init 'my data/my pairs.tsv'"
    assert not (tmp_path / "mine").exists()


def test_nothing_there(call: Call) -> None:
    """The call was wrong."""
    code, out, err = call("init", "nothing.tsv")
    assert (code, out) == (2, "")
    assert "nothing.tsv" in err

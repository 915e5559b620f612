"""What `compare` and the reports of `evaluate` print."""

import json
from pathlib import Path

from tests.cli.conftest import Call
from tests.made import numbers, write_lines

SOURCE, TARGET = numbers(8, seed=1)


def test_compare(call: Call, own_translator: Path, tmp_path: Path) -> None:
    """Both systems, each metric with its signature, intervals, two p-values, a verdict."""
    write_lines(tmp_path / "perfect.de", TARGET)
    words = ("compare", own_translator, "perfect.de", "--metric", "exact", "--samples", "100")
    code, out, err = call(*words)
    assert (code, err) == (0, "")
    assert out.startswith(f"A  {own_translator}\nB  perfect.de\n")
    assert "8 pairs, 100 samples" in out
    assert "tok:13a" in out
    assert "B       100.00   95%: 100.00 to 100.00" in out
    assert "(paired bootstrap)" in out
    assert out.count("B is better") + out.count("no clear difference") == 2
    found = json.loads(call(*words, "--json").out)
    assert found["all"]["exact"]["b"] == {"value": 100, "low": 100, "high": 100}


def test_compare_wrong_calls(call: Call, own_translator: Path) -> None:
    """A metric, a system or a number of samples that there is not: 2, and what there is."""
    found = call("compare", own_translator, own_translator, "--metric", "blue")
    assert (found.code, found.out) == (2, "")
    assert "did you mean 'bleu'" in found.err
    assert call("compare", own_translator, "nowhere").code == 2
    assert call("compare", own_translator, own_translator, "--samples", "3").code == 2
    assert call("compare", own_translator).code == 2


def test_evaluate_reports(call: Call, own_translator: Path, tmp_path: Path) -> None:
    """Bins, speed and outputs in the order of the options' help."""
    options = ("--metric", "chrf", "--by-length", "--timing", "--outputs", "out")
    code, out, err = call("evaluate", "--model", own_translator, *options)
    assert (code, err) == (0, "manyheads: wrote out/index.html, outputs.jsonl and answers.txt\n")
    lines = out.splitlines()
    assert lines[3].split() == ["words", "in", "pairs", "bleu", "chrf"]
    assert lines[4].split()[:2] == ["1-5", "8"]
    assert "together: " in out
    assert "8 alone: median " in out
    assert len((tmp_path / "out" / "answers.txt").read_text(encoding="utf-8").splitlines()) == 8


def test_evaluate_a_shipped_model(call: Call, tmp_path: Path) -> None:
    """Says on stderr that its folder was left alone."""
    write_lines(tmp_path / "mine.tsv", ["November 20\t11월 20일"])
    code, out, err = call("evaluate", "--model", "date-en-ko", "--data", "mine.tsv")
    assert code == 0
    assert "exact      100.00" in out
    assert (
        err == "manyheads: date-en-ko came with the package: nothing was written to its folder.\n"
    )


def test_evaluate_says_what_is_wrong(call: Call, own_translator: Path, tmp_path: Path) -> None:
    """On stderr, with the data it was seen on and what to do."""
    write_lines(tmp_path / "mine.tsv", [f"{n} cats\tкошки и собаки {n}" for n in range(100)])
    err = call("evaluate", "--model", own_translator, "--data", "mine.tsv").err
    assert "manyheads: mine.tsv: " in err
    assert "another script" in err
    assert "check-data" in err

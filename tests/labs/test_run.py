"""Runs that stop and go on, results that can be trusted, and the pages that are committed."""

import json
import tomllib
from dataclasses import asdict, replace
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch

from manyheads.errors import FolderError, NotFoundError, UsageError
from manyheads.labs.bench import Bench, Measured
from manyheads.labs.catalogue import CATALOGUE, find
from manyheads.labs.findings import Scale, interval, leader, more, verdict
from manyheads.labs.result_figures import findings
from manyheads.labs.result_page import cell, page
from manyheads.labs.run_experiment import RESULT, read, run_lab
from manyheads.lens.panels import Curve, Interval, Lines, number
from manyheads.strict_json import dumps

DOCS = Path(__file__).parents[2] / "docs" / "lab"


class Size(NamedTuple):
    steps: int


SIZES: dict[Scale, Size] = {"full": Size(9), "quick": Size(3), "smoke": Size(1)}


class InterruptionError(Exception):
    """As Ctrl-C is."""


def work(bench: Bench, *, stop: bool, done: list[int]) -> list[Measured]:
    bench.choose(SIZES)

    def measure(seed: int) -> Measured:
        if stop and seed == 2:
            raise InterruptionError
        done.append(seed)
        return {"value": seed / 3}

    return bench.each_seed("trial", measure)


def test_an_interrupted_run_goes_on(tmp_path: Path) -> None:
    """What was measured is not measured again, and comes out the same."""
    notebook, done = tmp_path / "n.jsonl", list[int]()
    with pytest.raises(InterruptionError):
        work(Bench(seeds=(1, 2, 3), notebook=notebook), stop=True, done=done)
    assert done == [1]
    bench = Bench(seeds=(1, 2, 3), notebook=notebook)
    assert work(bench, stop=False, done=done) == [{"value": s / 3} for s in (1, 2, 3)]
    assert done == [1, 2, 3]
    assert [trial.name for trial in bench.trials] == [f"trial, seed {s}" for s in (1, 2, 3)]
    more = Bench(seeds=(1, 2, 3, 4), notebook=notebook)  # more seeds: the old ones stay
    work(more, stop=False, done=done)
    assert done == [1, 2, 3, 4]


def test_other_sizes_begin_anew(tmp_path: Path) -> None:
    """A quick run's trials never end up in a full result."""
    notebook, done = tmp_path / "n.jsonl", list[int]()
    work(Bench(scale="quick", notebook=notebook), stop=False, done=done)
    work(Bench(scale="full", notebook=notebook), stop=False, done=done)
    assert done == [1, 1]


def test_a_line_that_was_cut_off_is_measured_again(tmp_path: Path) -> None:
    """A kill in the middle of writing."""
    notebook, done = tmp_path / "n.jsonl", list[int]()
    work(Bench(seeds=(1, 2), notebook=notebook), stop=False, done=done)
    notebook.write_text(notebook.read_text()[:-5])
    work(Bench(seeds=(1, 2), notebook=notebook), stop=False, done=done)
    assert done == [1, 2, 2]


def test_interval() -> None:
    """By hand: 1, 2, 3 have mean 2 and deviation 1; t of 2 degrees of freedom is 4.303."""
    found = interval([1.0, 2.0, 3.0])
    assert found.mean == 2
    assert found.low == pytest.approx(2 - 4.303 / 3**0.5, abs=1e-3)
    assert found.high == pytest.approx(2 + 4.303 / 3**0.5, abs=1e-3)
    assert interval([5.0]) == Interval(5.0)


@pytest.mark.parametrize(("seeds", "quantile"), [(12, 2.201), (31, 2.042), (121, 1.980)])
def test_interval_of_many_seeds(seeds: int, quantile: float) -> None:
    """Quantiles of Student's t from a printed table."""
    values = [1.0, -1.0] * (seeds // 2) + [0.0] * (seeds % 2)
    deviation = (2 * (seeds // 2) / (seeds - 1)) ** 0.5
    assert interval(values).high == pytest.approx(quantile * deviation / seeds**0.5, rel=0.005)


def test_verdict() -> None:
    """In pairs: a difference that every seed shows counts, however far seeds lie apart."""
    assert verdict([1.0, 11.0, 21.0], [0.0, 10.1, 19.9]) == 1
    assert verdict([0.0, 10.1, 19.9], [1.0, 11.0, 21.0]) == -1
    assert verdict([1.0, 9.0, 5.0], [2.0, 3.0, 6.0]) == 0
    assert verdict([1.0], [0.5]) == 1  # one seed: the sign has to do


def test_words_for_verdicts() -> None:
    assert more([2.0, 3.0], [1.0, 2.0]) == "more"
    assert more([1.0, 2.0], [2.0, 3.0]) == "less"
    assert more([1.0, 9.0], [2.0, 3.0]) == "not surely more"
    assert leader({"a": [5.0, 6.0], "b": [1.0, 2.0], "c": [4.0, 5.0]}) == "a"
    assert leader({"a": [5.0, 9.0], "b": [6.0, 6.0]}) == "a (not surely more than b)"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.12345, "0.123"),
        (1234567, "1,234,567"),
        (42.0, "42"),
        (1e-7, "1.00e-07"),
        (99.96, "100"),
        (-2.5, "-2.5"),
        (0, "0"),
        (123.456, "123"),
    ],
)
def test_number(value: float, text: str) -> None:
    assert number(value) == text


def test_cells() -> None:
    """What was not measured is empty; a bar would end the cell."""
    assert [cell(None), cell("a|b"), cell(Interval(2, 1, 3)), cell(0.5)] == [
        "",
        "a\\|b",
        "2 ± 1",
        "0.5",
    ]


def test_a_curve_has_the_bounds_of_its_intervals() -> None:
    curve = Curve.of("c", [1, 2], [Interval(5), Interval(6, 5, 7)])
    assert (curve.y, curve.low, curve.high) == ([5, 6], [None, 5], [None, 7])


def test_tables_and_panels_by_hand() -> None:
    """A path ends at a number; where it comes to the trials of all seeds, at their interval."""
    data = {
        "guessing": "50",
        "apart": {"RNN": {8: [{"parameters": 7, "accuracy": 40.0, "gradient at first": 2.0}]}},
        "together": {"RNN": {1: [{"parameters": 7, "accuracy": 60.0, "gradient at first": 3.0}]}},
    }
    found = findings("recall", None, "So.", data)
    assert found.tables[0].columns == ["model", "parameters", "8"]
    assert found.tables[2].rows == [["RNN", 7, Interval(3.0)]]
    panel = found.panels[0]
    assert isinstance(panel, Lines)
    assert panel.title == "One distance learned alone (50% by guessing)"
    assert panel.curves == [Curve("RNN", [8.0], [40.0], [None], [None])]
    assert (panel.log_x, panel.log_y) == (True, False)


def test_figures_are_described_with_known_words() -> None:
    """A misspelt entry would be left out in silence."""
    text = (files("manyheads.labs") / "figures.toml").read_text(encoding="utf-8")
    described = tomllib.loads(text)
    assert described.keys() == CATALOGUE.keys()
    both = {"title", "data", "each", "measure"}
    tables = both | {"corner", "columns", "header", "parameters"}
    panels = both | {"kind", "x", "y", "curves", "log_x", "log_y", "numbered", "scale", "signed"}
    for lab in described.values():
        assert lab.keys() == {"tables", "panels"}
        assert {key for each in lab["tables"] for key in each} <= tables
        assert {key for each in lab["panels"] for key in each} <= panels
        assert {each["kind"] for each in lab["panels"]} <= {"lines", "bars", "heat"}


def test_a_damaged_result(tmp_path: Path) -> None:
    """Says what is wrong with it, and what to do."""
    run_lab("patches", tmp_path, scale="smoke")
    path = tmp_path / "patches.json"
    path.write_text(path.read_text().replace('"minutes"', '"hours"'))
    with pytest.raises(FolderError, match=r"minutes.*manyheads lab patches"):
        read(path)


def test_wrong_calls(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"'postions'.*'positions'"):
        find("postions")
    with pytest.raises(UsageError, match="seeds is 0"):
        run_lab("patches", tmp_path, scale="smoke", seeds=0)


def test_seeds_are_used(tmp_path: Path) -> None:
    """Two seeds give intervals, and the page says so."""
    result = run_lab("scale", tmp_path, scale="smoke", seeds=2)
    assert result.seeds == [1, 2]
    assert any(isinstance(c, Interval) and c.low is not None for c in result.tables[0].rows[0])
    assert "half of a 95% interval" in (tmp_path / "scale.md").read_text()


def test_the_schema_is_the_committed_one() -> None:
    """`python scripts/labs.py` writes it; readers of results rely on it."""
    assert json.loads((DOCS / "schema.json").read_text()) == RESULT.json_schema()


def test_the_index_lists_every_experiment() -> None:
    """With its question, in docs/lab/README.md."""
    text = (DOCS / "README.md").read_text(encoding="utf-8")
    for name, about in CATALOGUE.items():
        assert f"`{name}`" in text
        assert about.question in text


def differences(found: Any, kept: Any, path: str = "result", scale: float = 0.0) -> list[str]:
    """Where two parsed JSON documents differ by more than rounding; what is no number is equal.

    Some numbers are computed anew, not read from trials (the table of sinusoids and what overlaps
    in it), and their last digits are the processor's. A number may differ by a millionth of itself,
    in a list of nothing but numbers (a curve, a row of a map) by a millionth of the largest there,
    and a zero by a millionth.
    """
    if type(found) is not type(kept):
        return [f"{path}: {found!r}, not {kept!r}"]
    if isinstance(kept, dict):
        if found.keys() != kept.keys():
            return [f"{path}: {sorted(found)}, not {sorted(kept)}"]
        return [
            line for key in kept for line in differences(found[key], kept[key], f"{path}.{key}")
        ]
    if isinstance(kept, list):
        if len(found) != len(kept):
            return [f"{path}: {len(found)} entries, not {len(kept)}"]
        size = max(map(abs, kept), default=0.0) if all(type(x) is float for x in kept) else 0.0
        return [
            line
            for place, pair in enumerate(zip(found, kept, strict=True))
            for line in differences(*pair, f"{path}[{place}]", size)
        ]
    if isinstance(kept, float):
        same = abs(found - kept) <= 1e-6 * (max(scale, abs(kept)) or 1.0)
        return [] if same else [f"{path}: {found!r}, not {kept!r}"]
    return [] if found == kept else [f"{path}: {found!r}, not {kept!r}"]


def test_differences() -> None:
    """Rounding is none; another digit, type, key or length is."""
    kept: dict[str, Any] = {"a": [1.0, 0.0, -100.0], "b": [{"mean": 1e-7}, "x", 3, None, 0.0]}
    near = {"a": [1.0, 9e-5, -100.0], "b": [{"mean": 1e-7 + 1e-14}, "x", 3, None, -1e-17]}
    assert differences(near, kept) == []
    assert differences({**kept, "a": [1.0, 2e-4, -100.0]}, kept) == ["result.a[1]: 0.0002, not 0.0"]
    for place, other in enumerate([{"mean": 1.00001e-7}, "y", 3.0, 0, 1e-5]):
        row = [*kept["b"][:place], other, *kept["b"][place + 1 :]]
        (line,) = differences({**kept, "b": row}, kept)
        assert line.startswith(f"result.b[{place}]")
    assert len(differences({"a": kept["a"]}, kept)) == 1
    assert len(differences({**kept, "a": [1.0]}, kept)) == 1


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_committed_result_is_what_its_trials_say(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full run; its sentence, tables and figure are those of today's code, nothing measured."""
    kept, lab = read(DOCS / f"{name}.json"), find(name)
    assert (kept.scale, kept.method, kept.limits) == ("full", lab.method, lab.limits)
    head = dumps({"size": kept.size, "torch": torch.__version__})
    notebook = tmp_path / "trials.jsonl"
    notebook.write_text(
        "\n".join([head, *(json.dumps(asdict(trial)) for trial in kept.trials), ""])
    )
    # Those that ask for their data before they measure.
    for needed in {"resolution": ["cifar"], "heads": ["dates"]}.get(name, []):
        monkeypatch.setattr(f"manyheads.labs.experiments.{name}_lab.{needed}", lambda *_: None)
    bench = Bench(seeds=tuple(kept.seeds), notebook=notebook)
    found = lab.run(bench)
    assert bench.trials == kept.trials
    assert found.conclusion == kept.conclusion
    anew = replace(kept, tables=found.tables, panels=found.panels)
    assert differences(*(json.loads(RESULT.dump_json(each)) for each in (anew, kept))) == []
    text = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    assert text == page(kept)

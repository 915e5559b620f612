"""Results as JSON, as Markdown tables, and inside docs/results.md."""

import json
from dataclasses import asdict
from pathlib import Path

from benchmarks.protocol import CaseResult, Result, Row

RESULTS = Path(__file__).parent / "results"
DOCUMENT = Path(__file__).parents[1] / "docs" / "results.md"
HEADING = "## Speed"


def store(result: Result) -> Path:
    """Write a result to benchmarks/results/NAME.json."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{result.name}.json"
    path.write_text(json.dumps(asdict(result), indent=1) + "\n", encoding="utf-8")
    return path


def load(name: str) -> Result | None:
    """Read a stored result; None where there is none."""
    path = RESULTS / f"{name}.json"
    if not path.exists():
        return None
    content = json.loads(path.read_text(encoding="utf-8"))
    content["cases"] = [
        CaseResult(**case | {"rows": [Row(**row) for row in case["rows"]]})
        for case in content["cases"]
    ]
    return Result(**content)


def markdown(result: Result) -> str:
    """Render one result: where and how it was measured, and a table."""
    variants = list(dict.fromkeys(row.variant for case in result.cases for row in case.rows))
    with_ratios = any(case.ratios for case in result.cases)
    with_bars = any(case.bar for case in result.cases)
    header = ["work", "", *(variant or "figure" for variant in variants)]
    header += [f"{result.cases[0].rows[0].name} / this"] * with_ratios + ["bar"] * with_bars
    lines = [_row(header), _row(["---"] * len(header))]
    for case in result.cases:
        for place, name in enumerate(dict.fromkeys(row.name for row in case.rows)):
            own = {row.variant: row for row in case.rows if row.name == name}
            cells = [f"{case.title} ({case.unit})" if place == 0 else "", name]
            cells += [_cell(own.get(variant)) for variant in variants]
            cells += [_ratio(case, name)] * with_ratios
            cells += [case.bar if place == 0 else ""] * with_bars
            lines.append(_row(cells))
    return f"### {result.title}\n\n{_caption(result)}\n\n" + "\n".join(lines)


def write_document(results: list[Result]) -> None:
    """Put tables between their markers in docs/results.md; markers that are missing are added."""
    text = DOCUMENT.read_text(encoding="utf-8") if DOCUMENT.exists() else "# Results\n"
    for result in results:
        opening, closing = f"<!-- benchmarks:{result.name} -->", "<!-- end -->"
        if opening not in text:
            text = _with_block(text, f"{opening}\n{closing}")
        before, _, rest = text.partition(opening)
        _, _, after = rest.partition(closing)
        text = f"{before}{opening}\n{markdown(result)}\n{closing}{after}"
    DOCUMENT.parent.mkdir(exist_ok=True)
    DOCUMENT.write_text(text, encoding="utf-8")


def _with_block(text: str, block: str) -> str:
    """Append a block to the section on speed, which is added where it is missing."""
    if HEADING not in text:
        text = f"{text.rstrip()}\n\n{HEADING}\n"
    before, _, section = text.partition(HEADING)
    own, heading, later = section.partition("\n## ")
    return f"{before}{HEADING}{own.rstrip()}\n\n{block}\n{heading}{later}"


def _caption(result: Result) -> str:
    about = result.machine
    packages = ("torch", "timm", "transformers")
    versions = [f"{name} {about[name]}" for name in packages if name in about]
    caption = (
        f"`make bench ARGS={result.name}` on {about['date']}: {about['cpu']}, "
        f"{about['cores']} cores, {about['threads']} threads; {', '.join(versions)}. "
        f"Median (quartiles) of {result.rounds} round{'s' if result.rounds > 1 else ''}"
    )
    if any(row.share for case in result.cases for row in case.rows):
        peak = f"fp32 {result.peak['fp32']:.0f}, bf16 {result.peak['bf16']:.0f} GFLOP/s"
        caption += f" · share of the GEMM peak ({peak})"
    if result.busy:
        caption += f". **Disturbed: other processes took up to {result.others:.0%} of the machine**"
    return caption + "."


def _cell(row: Row | None) -> str:
    if row is None:
        return ""
    share = "" if row.share is None else f" · {row.share:.0%}"
    return _figures(row.low, row.median, row.high) + share


def _ratio(case: CaseResult, name: str) -> str:
    if name not in case.ratios:
        return ""
    return _figures(*case.ratios[name])


def _figures(low: float, median: float, high: float) -> str:
    spread = "" if low == high else f" ({_figure(low)}-{_figure(high)})"
    return f"{_figure(median)}{spread}"


def _figure(value: float) -> str:
    """Write three significant digits, without an exponent."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"

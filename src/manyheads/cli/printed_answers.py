"""How answers look on a terminal."""

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manyheads.cli.flags import with_flags
from manyheads.cli.terminal import ReaderGoneError, console, visible
from manyheads.errors import OutputError
from manyheads.strict_json import dumps

if TYPE_CHECKING:
    from manyheads.lens.panels import Table

COLOURS = {"error": "red", "warning": "yellow", "note": "cyan"}  # of severities
WIDEST = 12  # classes of a confusion matrix that a terminal has room for
Row = tuple[str, int | None, str, str, str]  # severity, count, lines, what it is, more about it


def print_json(value: Any) -> None:
    """Print one JSON document on one line."""
    # Lone surrogates, as in names that are not UTF-8, as JSON's own escapes.
    print(dumps(value).encode("utf-8", "backslashreplace").decode(), flush=True)


def print_evaluation(line: Mapping[str, Any], folder: Path, *, as_json: bool) -> None:
    """Print a logged evaluation."""
    if as_json:
        print_json({"model": str(folder), **line})
        return
    print(f"{folder}: {_measured(line)}")
    width = max(10, *map(len, line["all"]))
    for name, score in line["all"].items():
        low, high = line.get("intervals", {}).get(name, (None, None))
        between = "" if low is None else f" 95% within {low:.2f}-{high:.2f}"
        print(f"  {name:<{width}} {score['value']:6.2f}{between}   ({score['signature']})")
    for name, value in sorted((line.get("groups") or {}).items(), key=lambda entry: entry[1]):
        print(f"  {value:6.2f}   {name}")
    if "classes" in line:
        _print_classes(line)
    if "by_length" in line:
        _print_bins(line["by_length"], list(line["all"]))
    if "unusual" in line:
        print(f"  unlike the training data: {line['unusual']:.2f}% of the texts")
    if "timing" in line:
        _print_timing(line["timing"])
    if "alignment" in line:
        _print_alignment(line["alignment"])
    for remark in line.get("remarks", []):
        warn(f"{line['data']}: {remark}")


def _measured(line: Mapping[str, Any]) -> str:
    """Name the data of an evaluation, and how many of them were measured."""
    counts = [f"{line[what]:,} {what}" for what in ("pairs", "images", "lines") if what in line]
    return ", ".join([line["data"], *counts])


def print_runs(
    lines: Sequence[Mapping[str, Any]], folders: Sequence[Path], *, as_json: bool
) -> None:
    """Print the scores of runs with different seeds, with their means and standard deviations."""
    from statistics import mean, stdev

    from manyheads.lens.panels import Table

    values = {name: [line["all"][name]["value"] for line in lines] for name in lines[0]["all"]}
    means = {name: mean(each) for name, each in values.items()}
    spreads = {name: stdev(each) for name, each in values.items()}
    if as_json:
        runs = [{"model": str(at), **line} for at, line in zip(folders, lines, strict=True)]
        print_json({"runs": runs, "mean": means, "standard_deviation": spreads})
        return
    rows: list[list[Any]] = [
        [str(at), *(f"{values[name][n]:.2f}" for name in values)] for n, at in enumerate(folders)
    ]
    for what, each in (("mean", means), ("standard deviation", spreads)):
        rows.append([what, *(f"{each[name]:.2f}" for name in values)])
    print_tables([Table(f"{_measured(lines[0])}, {len(lines)} seeds", ["run", *values], rows)])


def _print_classes(line: Mapping[str, Any]) -> None:
    """Print the classes, the worst first, and what is mistaken for what."""
    width = max(map(len, line["classes"]))
    print(f"  {'class':<{width}} {'images':>9} {'precision':>10} {'recall':>7} {'F1':>7}")
    for name, each in sorted(line["classes"].items(), key=lambda entry: entry[1]["f1"]):
        print(
            f"  {name:<{width}} {each['images']:>9,} {each['precision']:>10.2f} "
            f"{each['recall']:>7.2f} {each['f1']:>7.2f}"
        )
    for each in line.get("confused", []):
        print(f"  {each['count']:,} of {each['is']} taken for {each['said']}")
    if len(line["classes"]) <= WIDEST and "confusion" in line:
        print(f"  {'is / said':<{width}} " + " ".join(f"{n[:7]:>7}" for n in line["classes"]))
        for name, row in zip(line["classes"], line["confusion"], strict=True):
            print(f"  {name:<{width}} " + " ".join(f"{count:>7,}" for count in row))
    if line.get("left_out"):
        warn(f"{line['data']}: {line['left_out']:,} images could not be read and were left out.")


def _print_bins(table: Mapping[str, Any], metrics: list[str]) -> None:
    print(f"  {table['unit'] + ' in':<12} {'pairs':>7}" + "".join(f"{n:>13}" for n in metrics))
    for each in table["bins"]:
        name = f"{each['first']}-{each['last']}" if each["last"] else f"{each['first']} or more"
        values = "".join(f"{each[metric]:13.2f}" for metric in metrics)
        print(f"  {name:<12} {each['pairs']:>7,}{values}")


def _print_timing(timing: Mapping[str, Any]) -> None:
    print(
        f"  together: {timing['sentences_per_second']:,.0f} sentences/s, "
        f"{timing['tokens_per_second']:,.0f} tokens/s out"
    )
    print(
        f"  {timing['alone']} alone: median {timing['median_milliseconds']:.0f} ms, "
        f"95% within {timing['p95_milliseconds']:.0f} ms "
        f"({timing['device']}, threads: {timing['threads']})"
    )


def print_tables(tables: "Sequence[Table]") -> None:
    """Print tables of numbers, names on the left."""
    from rich import box
    from rich.table import Table as Drawn

    from manyheads.lens.panels import written

    # Names and numbers are never cut off: in a narrow window they take several lines, in a file or
    # a pipe as much room as they need.
    paper = console(sys.stdout)
    if not paper.is_terminal:
        paper.width = 200
    for table in tables:
        # Not as the table's own title, which would be broken to the width of the numbers.
        paper.print(visible(table.title), style="italic")
        drawn = Drawn(box=box.SIMPLE_HEAD)
        for number, column in enumerate(table.columns):
            drawn.add_column(
                visible(column), justify="right" if number else "left", overflow="fold"
            )
        for row in table.rows:
            drawn.add_row(*(visible(written(cell)) for cell in row))
        paper.print(drawn)


def _print_alignment(alignment: Mapping[str, Any] | None) -> None:
    if alignment is None:
        print("  alignment: no word of the translations has a known origin")
        return
    parts = ", ".join(
        f"{100 - alignment[name]['error']:.2f}% of {alignment[name]['of']:,} {name}"
        for name in ("words", "numbers")
        if name in alignment
    )
    print(f"  alignment: {parts} of known origin, by {alignment['reader']}")


def print_findings(
    heading: str, rows: Sequence[Row], *, none: str = "nothing to complain of"
) -> None:
    """Print a table of findings; its count and lines only if there are any."""
    from rich.table import Table
    from rich.text import Text

    if not rows:
        print(f"{heading}, {none}")
        return
    counts = Counter(severity for severity, *_ in rows)
    counted = [
        f"{counts[name]} {name}{'s' * (counts[name] > 1)}" for name in COLOURS if counts[name]
    ]
    print(f"{heading}, {', '.join(counted)}")
    table = Table(box=None, show_header=True, header_style="bold", pad_edge=False)
    table.add_column("")
    with_counts = any(count is not None for _, count, *_ in rows)
    if with_counts:
        table.add_column("count", justify="right")
    with_lines = any(lines for _, _, lines, _, _ in rows)
    if with_lines:
        table.add_column("lines", max_width=20)
    table.add_column("what, and what to do")
    for severity, count, lines, what, more in rows:
        words = Text(visible(f"{what}\n"), style="bold")
        words.append(visible(with_flags(more)), style="not bold")
        number = [f"{count or 0:,}"] if with_counts else []
        where = [lines] if with_lines else []
        table.add_row(Text(severity, style=COLOURS[severity]), *number, *where, words)
    console(sys.stdout).print(table)


def warn(message: str) -> None:
    """Print a remark on stderr, if there is anybody to read it."""
    with suppress(ReaderGoneError, OutputError):
        print(f"manyheads: {visible(with_flags(message))}", file=sys.stderr)


def warn_of(about: int | str, notes: Sequence[str] | None) -> None:
    """Print the notes on an answer on stderr, behind the number of its text or another name."""
    name = f"text {about}" if isinstance(about, int) else about
    for note in notes or ():
        warn(f"{name}: {note}")

"""Bulk translation: one process with one thread, two processes, two Ray actors; and kills.

    make bench ARGS="bulk_translation"                      # 200,000 lines; takes about an hour
    make bench ARGS="bulk_translation --lines 3000 --force"

The lines are those of a file (Multi30k's training part in MANYHEADS_DATA) over and over again. A
sentence that occurs several times is translated once, in all ways alike, so the report tells how
many different ones there are. Every way is the command `manyheads translate`, timed from its start
to its end; the files that they write are compared line by line. Then the command with two processes
is killed (`kill -9`) at random times, given again each time, and its file compared too. Between the
kills the ledger may lose the blocks that were being translated, one a worker, and nothing else.
"""

import argparse
import os
import random
import statistics
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.protocol import BUSY, BusyMachineError, machine, others_while_idle
from manyheads.errors import DataError, ManyheadsError
from manyheads.strict_json import dumps

MODEL = "multi30k-en-de"
WAYS = {
    "one process": ("--threads", "1"),
    "2 processes": ("--workers", "2"),
    "2 Ray actors": ("--ray", "local", "--workers", "2"),
}
KILLED = "2 processes"


class DifferentOutputError(ManyheadsError):
    """Two ways of translating a file gave different lines."""


def corpus(source: Path, lines: int, out: Path) -> int:
    """Write so many lines, those of a file over and over; return how many differ."""
    found = source.read_text(encoding="utf-8").split("\n")[:-1]
    if not found:
        raise DataError(f"{source} has no lines.")
    chosen = (found * (lines // len(found) + 1))[:lines]
    out.write_text("".join(f"{line}\n" for line in chosen), encoding="utf-8")
    return len(set(chosen))


def command(model: str, source: Path, out: Path, way: str) -> list[str]:
    """Write the command that translates a file."""
    words = ["translate", "--model", model, "--file", str(source), "--out", str(out), *WAYS[way]]
    return [sys.executable, "-m", "manyheads", *words]


def environment() -> dict[str, str]:
    """One thread for each process, also where a library starts its own."""
    return os.environ | {"OMP_NUM_THREADS": "1"}


def timed(given: list[str]) -> tuple[float, float]:
    """Run a command to its end; return its seconds, and those of processors."""
    begun, before = time.monotonic(), sum(os.times()[2:4])
    subprocess.run(given, check=True, env=environment(), stderr=subprocess.DEVNULL)
    return time.monotonic() - begun, sum(os.times()[2:4]) - before


def compare(one: Path, other: Path) -> None:
    """Compare two files line by line.

    Raises:
        DifferentOutputError: they are not equal.
    """
    first, second = (path.read_text(encoding="utf-8").split("\n") for path in (one, other))
    different = [
        n for n, pair in enumerate(zip(first, second, strict=False), 1) if len({*pair}) > 1
    ]
    if len(first) != len(second) or different:
        raise DifferentOutputError(
            f"{one.name} has {len(first):,} lines, {other.name} {len(second):,}, of which "
            f"{len(different):,} differ; the first is line {min(different, default=0)}."
        )


def killed(given: list[str], out: Path, kills: int, seconds: float, seed: int) -> list[int]:
    """Kill a command again and again, then let it end; return the blocks kept after each kill.

    It is killed within `seconds` of the first block that it finishes after each start.
    """
    times = random.Random(seed)
    parts = out.with_name(f"{out.name}.parts")
    kept: list[int] = []
    for _ in range(kills):
        with subprocess.Popen(given, env=environment(), stderr=subprocess.DEVNULL) as running:
            before = kept[-1] if kept else 0
            while running.poll() is None and _blocks(parts) <= before:
                time.sleep(0.02)
            time.sleep(times.uniform(0, seconds))
            running.kill()
        if out.exists():
            raise DataError("The command ended before it was killed: give more --lines.")
        kept.append(_blocks(parts))
        if kept[-1] < before:
            raise DifferentOutputError(f"The ledger lost blocks: {before}, then {kept[-1]}.")
    timed(given)
    return kept


def _blocks(parts: Path) -> int:
    """Count the blocks that a ledger has kept; one that is being written does not count."""
    return sum(1 for path in parts.glob("*.json") if not path.name.startswith("."))


def main(given: list[str] | None = None) -> int:
    arguments = _parse(given)
    others = others_while_idle()
    if others > BUSY and not arguments.force:
        raise BusyMachineError(
            f"Other processes take {others:.0%} of the machine. Wait, or add --force."
        )
    ways = [way for way in WAYS if "Ray" not in way or find_spec("ray") is not None]
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    processors: dict[str, list[float]] = {way: [] for way in ways}
    with TemporaryDirectory(dir=arguments.folder) as name:
        folder = Path(name)
        source = folder / "source.txt"
        different = corpus(arguments.source, arguments.lines, source)
        outs = {way: folder / f"{way.replace(' ', '-')}.txt" for way in ways}
        for turn in range(arguments.rounds):
            for way in ways if turn % 2 == 0 else reversed(ways):
                wall, processor = timed(command(arguments.model, source, outs[way], way))
                seconds[way].append(wall)
                processors[way].append(processor)
                print(f"{way}: {wall:.1f} s", file=sys.stderr, flush=True)
        for way in ways[1:]:
            compare(outs["one process"], outs[way])
        again = folder / "killed.txt"
        span = statistics.median(seconds[KILLED]) / (arguments.kills + 1)
        kept = killed(
            command(arguments.model, source, again, KILLED),
            again,
            arguments.kills,
            span,
            arguments.seed,
        )
        compare(outs["one process"], again)
    _report(arguments, different, seconds, processors, kept, others)
    return 0


def _report(
    arguments: argparse.Namespace,
    different: int,
    seconds: dict[str, list[float]],
    processors: dict[str, list[float]],
    kept: list[int],
    others: float,
) -> None:
    middle = {way: statistics.median(each) for way, each in seconds.items()}
    print(f"{arguments.lines:,} lines, {different:,} of them different; {arguments.model}")
    print("| way | seconds | of processors | lines/s | against one process |")
    print("|---|---|---|---|---|")
    for way, value in middle.items():
        ratio = middle["one process"] / value
        # Ray's processes are not children that this one waits for.
        taken = "?" if "Ray" in way else f"{statistics.median(processors[way]):.1f}"
        rate = arguments.lines / value
        print(f"| {way} | {value:.1f} | {taken} | {rate:,.0f} | {ratio:.2f}x |")
    if "2 Ray actors" in middle:
        more = middle["2 Ray actors"] - middle[KILLED]
        print(f"Ray: {more:+.1f} s, {more / middle[KILLED]:+.0%} against {KILLED}")
    print(f"all outputs equal; killed {len(kept)} times, blocks kept after each: {kept}; equal")
    line = {
        "lines": arguments.lines,
        "different": different,
        "model": arguments.model,
        "seconds": seconds,
        "processor_seconds": processors,
        "kept": kept,
        "machine": machine(),
        "ray": _version("ray"),
        "others": round(others, 3),
    }
    print(dumps(line))


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _parse(given: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks bulk_translation")
    data = Path(os.environ.get("MANYHEADS_DATA", "."))
    parser.add_argument("--lines", type=int, default=200_000)
    parser.add_argument("--source", type=Path, default=data / "multi30k" / "train.en")
    parser.add_argument("--model", default=MODEL)
    parser.add_argument("--rounds", type=int, default=1, help="turns each way takes")
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1, help="of the times of the kills")
    parser.add_argument("--folder", type=Path, default=None, help="for temporary files")
    parser.add_argument("--force", action="store_true", help="measure on a busy machine too")
    return parser.parse_args(given)


if __name__ == "__main__":
    sys.exit(main())

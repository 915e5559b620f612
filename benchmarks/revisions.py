"""`python -m benchmarks.revisions OLD [NAME ...]`: the same benchmarks in two checkouts, in turns.

OLD is another checkout of this repository with an environment of its own, such as
`git worktree add ../old REV && make -C ../old .venv/.installed`. Each checkout runs its own code
and benchmarks in its own process; only our contenders run, so that peers need not be installed. The
ratio is the time of this checkout divided by that of the old one, within a round.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

NAMES = (
    "vit_training",
    "vit_inference",
    "translation_training",
    "translation_decoding",
    "recording",
    "parts",
    "startup",
)
OURS = ("manyheads", "recorder closed", "no recorder in the code", "recorder open")


class Checkout:
    """A process that runs one benchmark of a checkout, one case at a time."""

    def __init__(self, root: Path, name: str) -> None:
        self.root = root
        python = root / ".venv" / "bin" / "python"
        if not python.exists():
            sys.exit(f"There is no environment in {root}: run `make .venv/.installed` there.")
        self.process = subprocess.Popen(
            [str(python), str(Path(__file__).resolve()), "--serve", name],
            cwd=root,
            env={**os.environ, "PYTHONPATH": str(root)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )

    def ask(self, request: int | str) -> Any:
        """Go to the "next" case, which answers with its title and contenders; or time one."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps(request), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"The benchmark in {self.root} ended: see above.")
        return json.loads(line)


def main() -> None:
    """Print a row per contender: its median ratio, with the quartiles."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.revisions")
    parser.add_argument("old", type=Path)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(NAMES)}")
    parser.add_argument("--rounds", type=int, default=11)
    arguments = parser.parse_args()
    print("| benchmark | case | contender | now, s | now / old | quartiles |")
    print("|---|---|---|---|---|---|", flush=True)
    for name in arguments.names or NAMES:
        roots = (Path(__file__).resolve().parents[1], arguments.old.resolve())
        new, old = (Checkout(root, name) for root in roots)
        while True:
            case, other = new.ask("next"), old.ask("next")
            if case is None or other is None:
                break
            for index, contender in case["contenders"]:
                times = list(_rounds(new, old, index, arguments.rounds))
                ratios = [now / before for now, before in times]
                low, median, high = statistics.quantiles(ratios, n=4, method="inclusive")
                now = statistics.median(each for each, _ in times)
                row = [name, case["title"], contender, f"{now:.4g}", f"{median:.3f}"]
                print(f"| {' | '.join(row)} | {low:.3f} to {high:.3f} |", flush=True)


def _rounds(new: Checkout, old: Checkout, index: int, rounds: int) -> Iterator[tuple[float, float]]:
    """Take turns, each time the other one first; the first two rounds are a warm-up."""
    for turn in range(rounds + 2):
        if turn % 2:
            before = old.ask(index)
            now = new.ask(index)
        else:
            now = new.ask(index)
            before = old.ask(index)
        if turn > 1:
            yield now, before


def serve(name: str) -> None:
    """Run one benchmark of the checkout in the working directory, as the other side asks."""
    import torch
    from torch import nn

    from manyheads.memory import keep_freed_memory

    keep_freed_memory()  # as the command line does
    peers: Any = import_module("benchmarks.peers")
    for peer in ("timm_vit", "hf_vit", "torchvision_vit", "vit_pytorch", "hf_marian"):
        setattr(peers, peer, lambda *_, **__: nn.Linear(1, 1))
    engine: Any = import_module("benchmarks.ctranslate")
    engine.ctranslate2 = lambda *_, **__: None
    torch.manual_seed(0)
    cases = iter(import_module(f"benchmarks.{name}").cases())
    case: Any = None
    for line in sys.stdin:
        request = json.loads(line)
        if request == "next":
            case = next(cases, None)
            answer: Any = case and {
                "title": case.title,
                "contenders": [
                    (index, f"{each.name} {each.variant}".strip())
                    for index, each in enumerate(case.contenders)
                    if each.name in OURS
                ],
            }
        else:
            start = time.perf_counter()
            case.contenders[request].work()
            answer = time.perf_counter() - start
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(sys.argv[2])
    else:
        main()

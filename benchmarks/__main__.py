"""`python -m benchmarks [NAME ...]`: measure, store, rewrite the tables in docs/results.md."""

import argparse
import sys
from dataclasses import replace
from importlib import import_module

from benchmarks import report
from benchmarks.protocol import QUICK, Settings, run
from manyheads.errors import ManyheadsError, UsageError, nearest

BENCHMARKS = (
    "vit_training",
    "vit_inference",
    "translation_training",
    "translation_decoding",
    "translation_engines",
    "recording",
    "parts",
    "startup",
)
# Not of rounds with contenders: each has a `main` with options of its own.
PROGRAMS = ("bulk_translation", "scale_model")


def main() -> int:
    try:
        if sys.argv[1:2] and sys.argv[1] in PROGRAMS:
            return import_module(f"benchmarks.{sys.argv[1]}").main(sys.argv[2:])
        _run(_parse())
    except ManyheadsError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


def _run(arguments: argparse.Namespace) -> None:
    for name in arguments.names:
        if name not in BENCHMARKS:
            raise UsageError(
                f"There is no benchmark {name!r}{nearest(name, BENCHMARKS)}"
                f"Benchmarks: {', '.join((*BENCHMARKS, *PROGRAMS))}."
            )
    names = arguments.names or BENCHMARKS
    if not arguments.tables:
        base = QUICK if arguments.quick else Settings(rounds=arguments.rounds)
        settings = replace(base, force=arguments.force, threads=arguments.threads)
        for name in names:
            module = import_module(f"benchmarks.{name}")
            result = run(name, module.TITLE, module.cases(), settings, _say)
            print(f"\n{report.markdown(result)}\n", flush=True)
            if not arguments.quick:  # one round is no result
                _say(f"{name}: stored as {report.store(result)}")
    if not arguments.quick:
        report.write_document([found for name in names if (found := report.load(name))])


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure side by side with other libraries.",
        epilog=f"By themselves, with options of their own: {', '.join(PROGRAMS)}.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHMARKS)}")
    parser.add_argument("--quick", action="store_true", help="one round; nothing is stored")
    parser.add_argument("--rounds", type=int, default=11, help="turns each contender takes")
    parser.add_argument("--force", action="store_true", help="measure on a busy machine too")
    parser.add_argument("--threads", type=int, default=0, help="0 = as many as torch takes")
    parser.add_argument("--tables", action="store_true", help="only rewrite the stored tables")
    return parser.parse_args()


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())

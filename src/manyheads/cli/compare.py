"""manyheads compare."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from manyheads.asks.evaluate_request import EvaluateRequest
from manyheads.asks.load_options import LoadOptions
from manyheads.cli.options import Final, Metrics, Remote, Split


def run(
    load: LoadOptions,
    systems: list[str],
    data: str | None = None,
    remote: Remote = False,
    split: Split = "valid",
    final: Final = False,
    metrics: Metrics = None,
    samples: int = 1000,
    seed: int = 12345,
    page: Path | None = None,
    json: bool = False,
) -> None:
    """Compare models of one task on the same data, with significance tests."""
    from manyheads.cli.printed_answers import print_json, warn
    from manyheads.cli.terminal import waiting
    from manyheads.comparison import compare, comparison_page
    from manyheads.errors import UsageError
    from manyheads.files import write_text
    from manyheads.project.paths import checked_name, make_room

    if page is not None:
        checked_name(page, {".html": "a page"})
        make_room(page, *(file for name in systems if (file := Path(name)).is_file()))
    if len(systems) < 2:
        raise UsageError("There is nothing to compare with: name two systems or more.")
    with waiting(f"comparing {' and '.join(systems)}"):
        comparison = compare(
            *systems,
            data=data,
            remote=remote,
            split=split,
            final=final,
            metrics=EvaluateRequest(metrics=metrics or ()).text_metrics,
            samples=samples,
            seed=seed,
            **load.model_dump(exclude={"image_size"}),
        )
    if page is not None:
        write_text(page, comparison_page(comparison))
        warn(f"wrote {page}")
    if json:
        print_json(comparison)
    else:
        _print(comparison)


def _print(comparison: Mapping[str, Any]) -> None:
    names = [
        chr(ord("A") + n) if n < 26 else f"#{n + 1}" for n in range(len(comparison["systems"]))
    ]
    for name, system in zip(names, comparison["systems"], strict=True):
        print(f"{name}  {system}")
    counts = [
        f"{comparison[what]:,} {what}" for what in ("pairs", "examples") if what in comparison
    ]
    print(", ".join([comparison["data"], *counts, f"{comparison['samples']:,} samples"]))
    for name, scores in comparison["all"].items():
        print(f"{name}   ({scores['signature']})")
        for label, score in zip(names, scores["scores"], strict=True):
            _print_interval(label, score, "")
        for label, pair in zip(names[1:], scores["pairs"], strict=False):
            _print_interval(f"{label} - A", pair["difference"], "+")
            better = {"a": "A", "b": label}.get(pair["better"])
            print(
                f"  p = {pair['p_bootstrap']:.3f} (paired bootstrap), "
                f"{pair['p_randomisation']:.3f} (approximate randomisation): "
                + (f"{better} is better" if better else "no clear difference")
            )
    if not any(scores["pairs"] for scores in comparison["all"].values()):
        print("no test: this task has no scores of single examples")


def _print_interval(label: str, score: Mapping[str, float], sign: str) -> None:
    between = (
        f"   95%: {score['low']:{sign}.2f} to {score['high']:{sign}.2f}" if "low" in score else ""
    )
    print(f"  {label:<5} {score['value']:{sign}8.2f}{between}")

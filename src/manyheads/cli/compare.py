"""manyheads compare."""

from collections.abc import Mapping
from typing import Any

from manyheads.asks.evaluate_request import EvaluateRequest
from manyheads.asks.load_options import LoadOptions
from manyheads.cli.options import Final, Metrics, Remote, Split


def run(
    load: LoadOptions,
    a: str,
    b: str,
    data: str | None = None,
    remote: Remote = False,
    split: Split = "valid",
    final: Final = False,
    metrics: Metrics = None,
    samples: int = 1000,
    seed: int = 12345,
    json: bool = False,
) -> None:
    """Compare two translators on the same sentences, with significance tests."""
    from manyheads.cli.show import print_json
    from manyheads.comparison import compare

    comparison = compare(
        a,
        b,
        data=data,
        remote=remote,
        split=split,
        final=final,
        metrics=EvaluateRequest(metrics=metrics or ()).text_metrics,
        samples=samples,
        seed=seed,
        **load.model_dump(exclude={"image_size"}),
    )
    if json:
        print_json(comparison)
    else:
        _print(comparison)


def _print(comparison: Mapping[str, Any]) -> None:
    print(f"A  {comparison['a']}\nB  {comparison['b']}")
    print(f"{comparison['data']}, {comparison['pairs']:,} pairs, {comparison['samples']:,} samples")
    for name, scores in comparison["all"].items():
        print(f"{name}   ({scores['signature']})")
        for what in ("a", "b", "difference"):
            value, low, high = (scores[what][part] for part in ("value", "low", "high"))
            label, sign = ("B - A", "+") if what == "difference" else (what.upper(), "")
            print(f"  {label:<5} {value:{sign}8.2f}   95%: {low:{sign}.2f} to {high:{sign}.2f}")
        print(
            f"  p = {scores['p_bootstrap']:.3f} (paired bootstrap), "
            f"{scores['p_randomisation']:.3f} (approximate randomisation): "
            + (
                f"{scores['better'].upper()} is better"
                if scores["better"]
                else "no clear difference"
            )
        )

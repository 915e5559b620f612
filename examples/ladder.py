"""From the RNN to the Transformer on one corpus: equal parameters, equal data, equal training.

    python examples/ladder.py                          # English to Korean, one seed
    python examples/ladder.py --recipe enko-ko-en --seeds 1 2 3

Each model is trained in a folder of its own under runs/ladder, which a second call finds again (and
goes on with, where it was cut off). Prints a Markdown table: the metrics of the recipe on its
validation data, mean over seeds, and the first of them by sentence length.
"""

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

# Sized to the same budget with a vocabulary of 8,000: see models/presets.py.
# Muon is for Transformer blocks, so the Transformer is trained both ways.
MODELS = {
    "RNN": ("seq2seq-rnn", 768, False),
    "LSTM": ("seq2seq-lstm", 352, False),
    "LSTM + attention": ("seq2seq-lstm-attention", 320, False),
    "Transformer": ("transformer-tiny", 512, False),
    "Transformer, Muon": ("transformer-tiny", 512, True),
}
# At the recipes' rate, 3e-3, these two diverge or learn nothing.
RATE = {"RNN": 5e-4, "Transformer": 1e-3}


def main() -> None:
    """Train what is not trained yet, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--recipe", default="enko-en-ko")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--out", type=Path, default=Path("runs/ladder"))
    arguments = parser.parse_args()
    try:
        _print_ladder(arguments)
    except subprocess.CalledProcessError as error:  # which has said why
        sys.exit(error.returncode)


def _print_ladder(arguments: argparse.Namespace) -> None:
    found = {
        name: [_measured(arguments, name, seed) for seed in arguments.seeds] for name in MODELS
    }
    print(_table(found))


def _table(found: dict[str, list[dict[str, Any]]]) -> str:
    """Lay what `manyheads evaluate --by-length --json` said of every model and seed in a table."""
    first = next(iter(found.values()))[0]
    metrics, bins = list(first["all"]), first["by_length"]["bins"]
    unit = first["by_length"]["unit"]
    names = [f"{metrics[0]}, {_range(each)} {unit}" for each in bins]
    lines = [["model", *metrics, *names], ["---"] + ["---:"] * (len(metrics) + len(bins))]
    for model, seeds in found.items():
        values = [[seed["all"][metric]["value"] for seed in seeds] for metric in metrics]
        values += [
            [seed["by_length"]["bins"][number][metrics[0]] for seed in seeds]
            for number in range(len(bins))
        ]
        lines.append([model, *map(_cell, values)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _range(part: dict[str, Any]) -> str:
    return f"{part['first']}-{part['last']}" if part["last"] else f"over {part['first'] - 1}"


def _measured(arguments: argparse.Namespace, name: str, seed: int) -> dict[str, Any]:
    preset, hidden, muon = MODELS[name]
    out = arguments.out / f"{Path(arguments.recipe).stem}-{preset}{'-muon' if muon else ''}-{seed}"
    width = [f"model.ffn_dim={hidden}"]
    if preset.startswith("seq2seq"):  # a recipe for a Transformer may set what these have not
        width = ["model.ffn_dim=", f"model.hidden_size={hidden}"]
    rate = [f"train.learning_rate={RATE[name]}"] if name in RATE else []
    _manyheads(
        "train",
        arguments.recipe,
        f"model.preset={preset}",
        *width,
        f"train.steps={arguments.steps}",
        f"train.warmup={arguments.steps // 5}",
        f"train.validate_every={arguments.steps}",
        f"train.muon={str(muon).lower()}",
        f"seed={seed}",
        *rate,
        "--out",
        str(out),
        "--resume",
    )
    line: dict[str, Any] = json.loads(
        _manyheads("evaluate", "--model", str(out), "--by-length", "--json")
    )
    return line


def _manyheads(*call: str) -> str:
    command = [sys.executable, "-m", "manyheads", *call]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout


def _cell(values: list[float]) -> str:
    mean = f"{statistics.mean(values):.1f}"
    return f"{mean} ± {statistics.stdev(values):.1f}" if len(values) > 1 else mean


if __name__ == "__main__":
    main()

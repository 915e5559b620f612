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
RATE = {"seq2seq-rnn": 5e-4}  # a plain RNN diverges at the rate of the others


def main() -> None:
    """Train what is not trained yet, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--recipe", default="enko-en-ko")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--out", type=Path, default=Path("runs/ladder"))
    arguments = parser.parse_args()
    found = {
        name: [_measured(arguments, *model, seed) for seed in arguments.seeds]
        for name, model in MODELS.items()
    }
    metrics = list(next(iter(found.values()))[0]["metrics"])
    bins = [part["length"] for part in next(iter(found.values()))[0]["by_length"]]
    print("| model | " + " | ".join([*metrics, *(f"{metrics[0]}, {name}" for name in bins)]) + " |")
    print("|---" * (1 + len(metrics) + len(bins)) + "|")
    for name, lines in found.items():
        cells = [_cell([line["metrics"][metric] for line in lines]) for metric in metrics]
        cells += [
            _cell([line["by_length"][n][metrics[0]] for line in lines]) for n in range(len(bins))
        ]
        print(f"| {name} | " + " | ".join(cells) + " |")


def _measured(
    arguments: argparse.Namespace, preset: str, hidden: int, muon: bool, seed: int
) -> dict[str, Any]:
    out = arguments.out / f"{arguments.recipe}-{preset}{'-muon' if muon else ''}-{seed}"
    rate = [f"train.learning_rate={RATE[preset]}"] if preset in RATE else []
    _manyheads(
        "train",
        arguments.recipe,
        f"model.preset={preset}",
        f"model.hidden={hidden}",
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
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def _cell(values: list[float]) -> str:
    mean = f"{statistics.mean(values):.1f}"
    return f"{mean} ± {statistics.stdev(values):.1f}" if len(values) > 1 else mean


if __name__ == "__main__":
    main()

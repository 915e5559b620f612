"""Time and memory by sentence length: the Transformer beside recurrent networks of its size.

    python -m benchmarks.sentence_length

For each model and length: updates on batches of the same number of tokens, and greedy decoding of
a batch of 8 sentences with translations of the same length, with random weights. A run is a process
of its own, Linux only: its peak is VmHWM of /proc/self/status above what it had before the work.
Seconds are the best of five; give it an idle machine.
"""

import argparse
import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any

import torch

from benchmarks.corpus_memory import begin_anew, peak

VOCABULARY = 8000
# Sized to the same budget, as in examples/ladder.py.
MODELS = {
    "LSTM": ("seq2seq-lstm", 352),
    "LSTM + attention": ("seq2seq-lstm-attention", 320),
    "Transformer": ("transformer-tiny", 512),
}
LENGTHS = (8, 16, 32, 64, 128, 256, 512)
TOKENS = 2048  # of a training batch and side
SENTENCES = 8  # that are decoded at once
RUNS = 5


def measure(preset: str, hidden: int, length: int, work: str) -> tuple[float, float]:
    """Return milliseconds a sentence, and the memory that the work takes in MiB."""
    from manyheads.models.presets import PRESETS, build

    torch.manual_seed(0)
    base: Any = PRESETS[preset]
    config = replace(base, vocabulary=VOCABULARY, ffn_dim=hidden)
    model = build(config)
    sentences, run = (_training if work == "training" else _decoding)(model, config, length)
    begin_anew()
    before = peak()
    seconds = []
    for _ in range(RUNS):
        begin = perf_counter()
        run()
        seconds.append(perf_counter() - begin)
    return min(seconds) / sentences * 1e3, (peak() - before) / 2**20


def _training(model: Any, config: Any, length: int) -> tuple[int, Callable[[], object]]:
    from manyheads.train.losses import projected_cross_entropy
    from manyheads.train.optim import optimizer
    from manyheads.train.train_config import TrainConfig

    model.train()
    update = optimizer(model, TrainConfig())
    count = max(TOKENS // length, 1)
    source, target = _sentences(config, count, length), _sentences(config, count, length + 1)
    scored = torch.ones(count, length, dtype=torch.bool)
    loss = partial(
        projected_cross_entropy, targets=target[:, 1:].flatten(), smoothing=0.1, r_drop=0.0
    )

    def run() -> None:
        update.zero_grad()
        model(source, target[:, :-1], scored, loss).backward()
        update.step()

    return count, run


def _decoding(model: Any, config: Any, length: int) -> tuple[int, Callable[[], object]]:
    from manyheads.decode.constraints import MinLength
    from manyheads.decode.greedy import greedy_search

    model.eval()
    source = _sentences(config, SENTENCES, length)
    rules = [MinLength(length, end=config.end)]
    ends = {"start": config.start, "end": config.end}
    return SENTENCES, lambda: greedy_search(
        model, source, [length] * SENTENCES, rules=rules, **ends
    )


def _sentences(config: Any, count: int, length: int) -> torch.Tensor:
    first = max(config.pad, config.start, config.end) + 1
    return torch.randint(first, VOCABULARY, (count, length))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sentence_length")
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS)
    arguments = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    for work in ("training", "greedy decoding"):
        print(f"\n{work}: milliseconds a sentence, MiB of a batch\n")
        print("| tokens | " + " | ".join(MODELS) + " |\n|---:" + "|---:" * len(MODELS) + "|")
        for length in arguments.lengths:
            cells = []
            for preset, hidden in MODELS.values():
                with ProcessPoolExecutor(1, mp_context=context) as process:
                    found = process.submit(measure, preset, hidden, length, work).result()
                cells.append(f"{found[0]:,.1f} ms, {found[1]:,.0f} MiB")
            print(f"| {length} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()

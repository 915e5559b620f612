"""Where the effect of one changed word lies, by layer of the encoder: 30 pairs fixed beforehand.

    python -m benchmarks.minimal_pairs

The pairs and the rules are in benchmarks/everyday. For each pair the share of the effect at the
states of the changed word, as `look --instead` computes it, and what failed.
"""

import argparse
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from manyheads import Translator, load
from manyheads.generation.token_details import spans
from manyheads.lens.cause.patching import Run, depth, linked, patch_states, share
from manyheads.nn.recording.trace import Trace, record
from manyheads.tasks.translate.cause import _run
from manyheads.tasks.translate.reference import teacher_forcing

PAIRS = Path(__file__).parent / "everyday" / "minimal_pairs.tsv"
MODELS = ("en-de", "multi30k-en-de")
ENOUGH = 0.5  # of the effect, after the last layer


class Compared(NamedTuple):
    """Two sentences up to the first token where their translations differ."""

    text: str
    answers: tuple[str, str]
    translations: tuple[str, str]
    source: Tensor  # ids
    lengths: tuple[int, int]  # of both sources, in tokens
    tokens: list[int]  # the counterpart of each token in the other sentence
    run: Run
    trace: Trace  # of the other sentence
    own: float
    end: float


def compared(translator: Translator, text: str, other: str) -> Compared | None:
    """Score both as `look --instead` does; None if they are translated alike."""
    (best, *_), (rival, *_) = translator.translate([text, other], details=True)
    one, target = teacher_forcing(translator, text, best.tokens)
    two, target_of_other = teacher_forcing(translator, other, rival.tokens)
    both = list(zip(target[0].tolist(), target_of_other[0].tolist(), strict=False))
    place = next((n for n, (a, b) in enumerate(both) if a != b), None)
    if place is None:
        return None
    run, run_other = (_run(translator, each, target[:, :place], both[place]) for each in (one, two))
    with torch.no_grad():
        own = float(run(1)[0])
        with record(states=True) as trace:
            end = float(run_other(1)[0])
    first, second = (translator.tokenizers.target.piece(token) for token in both[place])
    tokens = linked(one[0].tolist(), two[0].tolist())
    texts, lengths = (best.text, rival.text), (one.shape[1], two.shape[1])
    return Compared(text, (first, second), texts, one, lengths, tokens, run, trace, own, end)


def word_shares(translator: Translator, pair: Compared, word: str) -> tuple[list[float], str]:
    """Return the share at the word's states after each layer, the input first.

    Also the token outside the word with the largest share after the last layer.
    """
    begin, end = next(re.finditer(rf"\b{word}\b", pair.text)).span()
    places = [*spans(translator.tokenizers.source, pair.text), None]
    inside = [
        n for n, span in enumerate(places) if span is not None and begin < span[1] and span[0] < end
    ]
    others = [n for n in range(len(places)) if n not in inside]
    groups = [inside, *([n] for n in others)]
    links = [(group, [pair.tokens[n] for n in group]) for group in groups]
    layers = depth(pair.trace, "encoder")
    found = patch_states(pair.run, pair.trace, "encoder", layers, links)
    shares = share(found, pair.own, pair.end)
    largest = int(shares[-1, 1:].argmax())
    name = translator.tokenizers.source.piece(int(pair.source[0, others[largest]]))
    return shares[:, 0].tolist(), f"{name} {shares[-1, 1 + largest]:.2f}"


def quartiles(values: Sequence[float]) -> str:
    """Write the median, and the quartiles in brackets."""
    low, middle, high = torch.tensor(values).quantile(torch.tensor([0.25, 0.5, 0.75])).tolist()
    return f"{middle:.2f} ({low:.2f}-{high:.2f})"


def measure(name: str) -> None:
    """Print the table of one model, a line for each pair, and what failed."""
    translator = load(name, Translator)
    rows, failures, longer = [], [], 0
    for line in PAIRS.read_text(encoding="utf-8").splitlines()[1:]:
        file, _, sentence, word, instead = line.split("\t")
        title = f"{word} -> {instead}: {sentence}"
        pair = compared(translator, sentence, re.sub(rf"\b{word}\b", instead, sentence))
        if pair is None:
            failures.append(f"{title} | translated alike")
            continue
        shares, elsewhere = word_shares(translator, pair, word)
        rows.append((file, shares))
        longer += pair.lengths[0] != pair.lengths[1]
        answers = f"{pair.answers[0]} / {pair.answers[1]} | tokens {pair.lengths}"
        print("  ", *(f"{each:6.2f}" for each in shares), f" {title} | {answers}")
        if shares[-1] < ENOUGH:
            both = " / ".join(pair.translations)
            failures.append(f"{title} | {shares[-1]:.2f}, largest elsewhere: {elsewhere} | {both}")
    print(
        f"{name}: {len(rows)} pairs with an effect, {longer} of other lengths, "
        f"{len(failures)} failures"
    )
    for title, some in (
        ("all", rows),
        ("Multi30k", [row for row in rows if row[0].startswith("multi30k")]),
        ("Tatoeba", [row for row in rows if row[0].startswith("tatoeba")]),
    ):
        columns = zip(*(shares for _, shares in some), strict=True)
        print(f"| {name}, {title} |", " | ".join(quartiles(each) for each in columns), "|")
    print(*(f"- {each}" for each in failures), sep="\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", default=MODELS)
    given = parser.parse_args()
    torch.set_num_threads(1)
    for name in given.models:
        begin = time.process_time()
        measure(name)
        print(f"{time.process_time() - begin:.0f} CPU-seconds\n", flush=True)


if __name__ == "__main__":
    main()

"""Attribution patching against exact patching: the order of heads and of states.

    python -m benchmarks.attribution_patching

For 50 sentences of Multi30k's validation file, drawn by seed, the other input is (a) the same
sentence with one word of four letters or more replaced by another from that file, drawn until the
number of tokens is the same and the translation differs; (b) another sentence with as many tokens.
A token's counterpart is that at its index. The score is that of `look --instead`.

Spearman's rank correlation is computed within each sentence, over the heads of a kind (each at all
tokens) or over the tokens of a layer; the table has its median and quartiles over sentences, and in
how many percent of them both name the same head or token as the largest in absolute value; of that
with the largest exact effect the estimate divided by the effect ("size", likewise); and the median
exact effect divided by the largest ("rest", the median over sentences).
Left out is what has no effect by construction: the decoder's input and the self-attention of its
first layer, which read only what is written; the last decoder layer's states, of which only that of
the last token is read; the encoder's input, where in (a) only the changed word differs.
Correlations over fewer than three numbers are left out too.
"""

import argparse
import math
import re
import time
from collections.abc import Iterator
from random import Random
from typing import NamedTuple

import torch
from torch import Tensor

from benchmarks.minimal_pairs import MODELS, Compared, compared, quartiles
from manyheads import Translator, load
from manyheads.lens.cause.patching import attribute, depth, head_sites, patch_heads, patch_states
from manyheads.nn.editing.seam import STATE
from manyheads.nn.recording.trace import LayerId
from manyheads.project.paths import data_root

SENTENCES, TRIES, SEED = 50, 20, 0
STEPS = 10  # of the integrated form
WORD = r"\b[a-z]{4,}\b"


def one_word(translator: Translator, lines: list[str], random: Random) -> Iterator[Compared]:
    """Compare sentences with themselves, one word changed."""
    words = sorted({word for line in lines for word in re.findall(WORD, line)})
    for line in lines:
        places = [*re.finditer(WORD, line)]
        for _ in range(TRIES if places else 0):
            begin, end = random.choice(places).span()
            pair = _equally_long(translator, line, line[:begin] + random.choice(words) + line[end:])
            if pair is not None:
                yield pair
                break


def another_sentence(
    translator: Translator, lines: list[str], random: Random
) -> Iterator[Compared]:
    """Compare sentences with others of the same number of tokens."""
    lengths = [len(each) for each in translator.tokenizers.source.encode(lines)]
    for n, line in enumerate(lines):
        same = [m for m, length in enumerate(lengths) if length == lengths[n] and m != n]
        pair = _equally_long(translator, line, lines[random.choice(same)]) if same else None
        if pair is not None:
            yield pair


def _equally_long(translator: Translator, text: str, other: str) -> Compared | None:
    one, two = map(len, translator.tokenizers.source.encode([text, other]))
    return compared(translator, text, other) if one == two else None


def effects(pair: Compared, steps: int) -> Iterator[tuple[str, Tensor, Tensor]]:
    """Give exact and estimated effects by kind of site; of heads a kind comes in several parts."""
    skipped = LayerId("decoder", 0, "self head")
    heads = [site for site in head_sites(pair.trace) if site != skipped]
    last = {stack: depth(pair.trace, stack) for stack in ("encoder", "decoder")}
    states = [LayerId("encoder", n, STATE) for n in range(last["encoder"])]
    states += [LayerId("decoder", n, STATE) for n in range(last["decoder"] - 1)]
    found = attribute(pair.run, pair.trace, [*heads, *states], {}, steps=steps)
    for site in heads:
        exact = patch_heads(pair.run, pair.trace, site) - pair.own
        yield f"{site.stack} {site.kind}s", exact, found[site].sum(dim=-1)
    for stack, layers in last.items():
        count = found[LayerId(stack, 0, STATE)].shape[-1]
        links = [([n], [n]) for n in range(count)]
        exact = patch_states(pair.run, pair.trace, stack, layers, links) - pair.own
        for site in states:
            if site.stack == stack:
                name = f"{stack} states, layer {site.layer + 1} of {layers}"
                yield name, exact[site.layer + 1], found[site]


class Agreement(NamedTuple):
    """Estimates against exact effects of one kind of site in one sentence."""

    order: float  # Spearman's correlation
    same: bool  # both have the same largest
    size: float  # estimate / effect, of the largest effect
    rest: float  # median effect / largest effect


def agreements(pair: Compared, steps: int) -> dict[str, Agreement]:
    """Compare by kind of site."""
    kinds: dict[str, list[tuple[Tensor, Tensor]]] = {}
    for kind, exact, estimated in effects(pair, steps):
        for name in ["all heads", kind] if kind.endswith("heads") else [kind]:
            kinds.setdefault(name, []).append((exact, estimated))
    together = {}
    for kind, parts in kinds.items():
        exact, estimated = (torch.cat(each) for each in zip(*parts, strict=True))
        if len(exact) >= 3:
            largest = int(exact.abs().argmax())
            together[kind] = Agreement(
                spearman(exact, estimated),
                largest == int(estimated.abs().argmax()),
                float(estimated[largest] / exact[largest]),
                float(exact.abs().median() / exact[largest].abs()),
            )
    return together


def spearman(one: Tensor, other: Tensor) -> float:
    """Correlate the ranks of two rows; equal numbers share their mean rank.

    Examples:
        >>> spearman(torch.tensor([1.0, 5, 3]), torch.tensor([0.0, 2, 1]))
        1.0
    """
    rows = torch.stack((one, other)).double()
    below = (rows[:, :, None] > rows[:, None]).sum(dim=2)
    equal = (rows[:, :, None] == rows[:, None]).sum(dim=2)
    return round(float(torch.corrcoef(below + equal / 2)[0, 1]), 9)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", default=MODELS)
    given = parser.parse_args()
    torch.set_num_threads(1)
    text = (data_root(None) / "multi30k" / "val.en").read_text(encoding="utf-8").splitlines()
    lines = Random(SEED).sample(text, len(text))
    for name in given.models:
        translator = load(name, Translator)
        for make in (one_word, another_sentence):
            begin = time.process_time()
            found: dict[tuple[str, int], list[Agreement]] = {}
            pairs = make(translator, lines, Random(SEED))
            for _, pair in zip(range(SENTENCES), pairs, strict=False):
                for steps in (1, STEPS):
                    for kind, each in agreements(pair, steps).items():
                        found.setdefault((kind, steps), []).append(each)
            print(f"{name}, {make.__name__}, {time.process_time() - begin:.0f} CPU-seconds")
            titles = [
                f"{each}, {n} steps" for n in (1, STEPS) for each in ("order", "same", "size")
            ]
            print("|", " | ".join(("site", "sentences", *titles, "rest")), "|")
            for kind in dict.fromkeys(kind for kind, _ in found):
                cells = []
                for steps in (1, STEPS):
                    rows = [each for each in found[kind, steps] if not math.isnan(each.order)]
                    same = 100 * sum(each.same for each in rows) / len(rows)
                    cells += [quartiles([each.order for each in rows]), f"{same:.0f}%"]
                    cells.append(quartiles([each.size for each in rows]))
                rest = torch.tensor([each.rest for each in rows]).median()
                print(
                    "|", " | ".join((kind, str(len(rows)), *cells, f"{rest:.1e}")), "|", flush=True
                )


if __name__ == "__main__":
    main()

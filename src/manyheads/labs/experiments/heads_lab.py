"""T9, E9: three forms of multi-head attention, their cost, and the benefit of heads."""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache, partial

import torch

from manyheads.asks.evaluate_request import EvaluateConfig
from manyheads.data.synthetic.dates import generate
from manyheads.data.text.corpus import Corpus
from manyheads.data.tokenizers.tokenizer import PairTokenizerConfig, Tokenizer, Tokenizers
from manyheads.labs.bench import Bench, Measured, Outcome, Size
from manyheads.labs.findings import Trials, over, verdict
from manyheads.labs.lab_training import fresh, learn, parameters, training
from manyheads.labs.symbols import FIRST, accuracy, encoder, learn_labels, looking_back, translator
from manyheads.labs.timing import best_of
from manyheads.lens.panels import number
from manyheads.nn.attention.attention import MultiHeadAttention
from manyheads.nn.attention.per_head import PerHeadAttention
from manyheads.streams import stream
from manyheads.tasks.translate.recipe import TranslateTrainConfig
from manyheads.tasks.translate.task import TranslateTask

FULL, PAPER, PACKED = "a: every head of full width", "b: one projection a head", "c: packed"
ByHeads = Mapping[int, Trials]


def forms(width: int, heads: int) -> dict[str, torch.nn.Module]:
    """Build the three forms; b has c's weights."""
    packed = MultiHeadAttention(width, heads)
    return {
        FULL: MultiHeadAttention(width, heads, attention_dim=heads * width),
        PAPER: PerHeadAttention.of(packed),
        PACKED: packed,
    }


def products(width: int, inner: int, tokens: int) -> int:
    """Multiply-adds of one pass: four projections, scores, weighted sums."""
    return 4 * 2 * tokens * width * inner + 2 * 2 * tokens * tokens * inner


def cost(width: int, heads: int, tokens: int, rounds: int) -> Measured:
    """Count and time the three forms, and compare b with c."""
    torch.manual_seed(stream(1, "init"))
    built = forms(width, heads)
    x = torch.randn(1, tokens, width)
    full, paper, packed = built.values()
    with torch.inference_mode():
        single = MultiHeadAttention(width, 1).eval()
        work = {FULL: partial(full, x), PAPER: partial(paper, x, x), PACKED: partial(packed, x)}
        seconds = best_of(rounds, work | {"one head": partial(single, x)})
        exact = packed.double()
        double = PerHeadAttention.of(packed).double()  # type: ignore[arg-type]
        difference = (exact(x.double()) - double(x.double(), x.double())).abs().max().item()
    return {
        "difference": difference,
        "one head": seconds["one head"],
        **{
            name: {
                "parameters": parameters(module),
                "products": products(width, heads * width if name == FULL else width, tokens),
                "seconds": seconds[name],
            }
            for name, module in built.items()
        },
    }


def relations(heads: int, size: Size, seed: int) -> Measured:
    """Train one layer to output the symbols at several earlier positions at once."""
    draw = partial(looking_back, [size.length], symbols=size.symbols, back=size.back, seed=seed)
    train, valid = draw(count=size.train, name="train"), draw(count=200, name="valid")
    one_layer = encoder(FIRST + size.symbols, size.symbols ** len(size.back), size.dim, layers=1)
    model = fresh(replace(one_layer, heads=heads), seed)
    learn_labels(model, train, valid, 3e-3, seed=seed, steps=size.steps, max_tokens=size.max_tokens)
    return {"accuracy": accuracy(model, valid), "parameters": parameters(model)}


@lru_cache(maxsize=2)
def dates(train: int, valid: int) -> tuple[Corpus, Corpus, Tokenizer]:
    """Generate training and validation pairs with different days, and learn a shared vocabulary."""
    corpora = []
    for split, size in (("train", train), ("valid", valid)):
        pairs = generate(split, size=size)
        sides = [p.source for p in pairs], [p.target for p in pairs]
        corpora.append(Corpus(*sides, f"dates:{split}"))
    lines = corpora[0].source + corpora[0].target
    return corpora[0], corpora[1], Tokenizer.train(lines, PairTokenizerConfig(size=600))


def translation(heads: int, size: Size, seed: int) -> Measured:
    """Train a small Transformer to translate dates."""
    config = training(TranslateTrainConfig, size.date_steps, 2e-3, max_tokens=500)
    train, valid, tokenizer = dates(size.date_pairs, size.date_valid)
    both, evaluation = Tokenizers(tokenizer, tokenizer), EvaluateConfig(metrics=("exact",))
    task = TranslateTask(train, valid, both, config, evaluation, seed=seed)
    learned = learn(fresh(translator(len(tokenizer), size.dim, heads=heads), seed), task)
    return {"exact": learned.last("exact"), "loss": learned.loss}


def conclude(counted: Measured, related: ByHeads, translated: ByHeads, size: Size) -> str:
    """Conclude on the extra cost of form a, and whether heads help."""
    times = counted[FULL]["parameters"] / counted[PACKED]["parameters"]
    slower = [number(counted[form]["seconds"] / counted["one head"]) for form in (PAPER, PACKED)]

    def summary(measured: ByHeads, what: str) -> str:
        mean = {n: over(each, what).mean for n, each in measured.items()}
        best = max(mean, key=lambda n: mean[n])
        better = [n for n in measured if verdict(measured[n], measured[1], what) > 0]
        others = ", ".join(map(str, better)) or "no other number"
        ceiling = ", so that more heads could show nothing" if mean[best] == 100 else ""
        return (
            f"{number(mean[1])}% with one head, and surely more with {others} (at the most "
            f"{number(mean[best])}%, with {best}{ceiling})"
        )

    same = "equal" if counted["difference"] < 1e-9 else "not equal"
    return (
        f"The drawing's form (a) has {number(times)} times the weights, the paper's (b) and the "
        f"packed one (c) are {same} (largest difference {number(counted['difference'])}) and "
        f"take {slower[0]} and {slower[1]} times the time of one head of full width; of "
        f"{len(size.back)} relations at once, one layer gets right {summary(related, 'accuracy')}; "
        f"dates come out right: {summary(translated, 'exact')}."
    )


def run(bench: Bench, size: Size) -> Outcome:
    """Count, then train with each number of heads."""
    # Missing packages are reported before minutes have passed.
    dates(size.date_pairs, size.date_valid)
    counted = bench.trial("forms", partial(cost, size.width, 8, size.tokens, size.rounds))
    related = bench.seeded("relations, {} heads", size.heads, relations, size)
    translated = bench.seeded("dates, {} heads", size.heads, translation, size)
    packed = counted[PACKED]["seconds"]
    return conclude(counted, related, translated, size), {
        "relations": len(size.back),
        "forms": {
            name: counted[name]
            | {"ms": 1000 * counted[name]["seconds"], "times c": counted[name]["seconds"] / packed}
            for name in (FULL, PAPER, PACKED)
        },
        "by_heads": {
            n: {"width": size.dim // n, "relations": related[n], "dates": translated[n]}
            for n in size.heads
        },
    }

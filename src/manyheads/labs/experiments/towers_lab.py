"""M2: softmax or sigmoid over the pairs of a batch, and how large a batch."""

from functools import partial
from operator import itemgetter
from typing import Any

from manyheads.data.tokenizers.tokenizer import Tokenizer, TokenizerConfig
from manyheads.labs.bench import Bench, Measured, Outcome, Size
from manyheads.labs.emoji import MOVED, named, preprocessing, small_encoder, text_widths
from manyheads.labs.findings import BySize, mean, verdict
from manyheads.labs.lab_training import fresh, learn, training
from manyheads.models.matcher import MatcherConfig
from manyheads.tasks.match.task import MatchTask, MatchTrainConfig
from manyheads.train.contrastive import Contrast

LOSSES: tuple[Contrast, ...] = ("softmax", "sigmoid")


def train(
    loss: Contrast, size: Size, root: str | None, batch: int, rate: float, seed: int
) -> Measured:
    """Train one matcher on English names."""
    learned, held = named(root, size.valid, size.images, ("en",))
    tokenizer = Tokenizer.train(learned.texts, TokenizerConfig(size=size.pieces))
    steps = size.epochs * -(-len(learned) // batch)
    how = training(MatchTrainConfig, steps, rate, batch_size=batch, loss=loss, weight_decay=0.05)
    task = MatchTask(learned, held, tokenizer, preprocessing(size.side), MOVED, how, seed=seed)
    image, bias = small_encoder(size.side, size.dim, size.layers), {"sigmoid": -10.0}.get(loss)
    sizes = dict[str, Any](embedding=size.dim, vocabulary=len(tokenizer), layers=size.layers)
    config = MatcherConfig(image=image, score_bias=bias, **sizes, **text_widths(size.dim))
    run = learn(fresh(config, seed), task)
    return {
        "first": run.last("text_to_image_1"),
        "ten": run.last("text_to_image_10"),
        "steps": steps,
        "rate": rate,
    }


def conclude(measured: BySize, size: Size) -> str:
    """Compare the losses at each size of batch, and the sizes."""
    words = {1: "finds more", -1: "finds less", 0: "does not surely find more"}
    parts = []
    for batch in size.batches:
        soft, sigm = (measured[loss][batch] for loss in LOSSES)
        parts.append(
            f"with batches of {batch} softmax {words[verdict(soft, sigm, 'ten')]} than sigmoid "
            f"({mean(soft, 'ten')}% against {mean(sigm, 'ten')}% of the texts find their emoji "
            "among the first ten)"
        )
    small, large = min(size.batches), max(size.batches)
    grown = [
        f"{loss} {words[verdict(measured[loss][large], measured[loss][small], 'ten')]}"
        for loss in LOSSES
    ]
    return (
        f"After {size.epochs} passes, " + "; ".join(parts) + f". From batches of {small} to "
        f"{large}, with as many images seen: {' and '.join(grown)}."
    )


def run(bench: Bench, size: Size) -> Outcome:
    """Train every arm with each seed."""

    def tuned(loss: Contrast, batch: int) -> list[Measured]:
        names = {batch: f"{loss}, batches of {batch}"}
        measure = partial(train, loss, size, bench.root)
        return bench.tuned(names, size.rates, measure, itemgetter("ten"))[batch]

    measured: BySize = {loss: {n: tuned(loss, n) for n in size.batches} for loss in LOSSES}
    return conclude(measured, size), {"measured": measured}

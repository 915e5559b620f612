"""M2: one captioner for five languages, or one for each?"""

from collections.abc import Sequence
from functools import partial
from statistics import fmean
from typing import NamedTuple

from manyheads.data.tokenizers.tokenizer import Tokenizer, TokenizerConfig
from manyheads.labs.bench import Bench, Measured
from manyheads.labs.catalogue import read_sizes
from manyheads.labs.emoji import LANGUAGES, MOVED, named, preprocessing, small_encoder
from manyheads.labs.findings import Findings, over, values, verdict
from manyheads.labs.lab_training import fresh, learn, training
from manyheads.lens.panels import Bars, Cell, Table
from manyheads.models.captioner import CaptionerConfig
from manyheads.tasks.caption.task import CaptionEvaluateConfig, CaptionTask, CaptionTrainConfig


class Size(NamedTuple):
    """The sizes of training."""

    steps: int
    rates: tuple[float, ...]  # learning rates that each arm chooses from
    images: int = 2797
    valid: int = 150
    side: int = 32  # pixels
    dim: int = 96
    layers: int = 2  # of the encoder and of the decoder
    batch_size: int = 64
    pieces: int = 400  # of a vocabulary, per language


SIZES = read_sizes("tongues", Size)

ALONE, TOGETHER, SHARED = "one each", "all at once", "all, one name an image"
ARMS = (ALONE, TOGETHER, SHARED)


def train(
    arm: str, language: str, rate: float, size: Size, root: str | None, seed: int
) -> Measured:
    """Train one captioner; `language` is what it writes, or "" for all."""
    languages = [language] if language else list(LANGUAGES)
    learned, held = named(root, size.valid, size.images, languages)
    vocabulary = TokenizerConfig(size=256 + 1800 + size.pieces * len(languages))
    tokenizer = Tokenizer.train(learned.texts, vocabulary, languages)
    how = training(
        CaptionTrainConfig,
        size.steps,
        rate,
        batch_size=size.batch_size,
        weight_decay=0.05,
        label_smoothing=0.1,
        captions=1 if arm == SHARED else None,
    )
    task = CaptionTask(
        learned,
        held,
        tokenizer,
        preprocessing(size.side),
        MOVED,
        how,
        CaptionEvaluateConfig(metrics=("chrf", "exact")),
        seed=seed,
    )
    config = CaptionerConfig(
        image=small_encoder(size.side, size.dim, size.layers),
        vocabulary=len(tokenizer),
        dim=size.dim,
        heads=max(size.dim // 32, 1),
        ffn_dim=2 * size.dim,
        decoder_layers=size.layers,
        dropout=0.1,
    )
    run = learn(fresh(config, seed), task)
    scores = {
        each: {
            name: run.last(f"{name}_{each}" if len(languages) > 1 else name)
            for name in ("chrf", "exact")
        }
        for each in languages
    }
    return {"scores": scores, "loss": run.loss}


def tried(
    bench: Bench, arm: str, languages: Sequence[str], size: Size
) -> dict[str, list[Measured]]:
    """Choose the arm's learning rate with the first seed, then train with all of them.

    The rate is chosen for the first of `languages`, "" being all five at once.
    """
    first, *others = languages

    def measure(language: str, rate: float, seed: int) -> Measured:
        return train(arm, language, rate, size, bench.root, seed)

    def chrf(trial: Measured) -> float:
        return sum(each["chrf"] for each in trial["scores"].values())

    name = f"{arm}, {first or 'five languages'}"
    best, found = bench.tuned(name, size.rates, partial(measure, first), chrf)
    return {first: found} | {
        language: bench.each_seed(
            f"{arm}, {language}, rate {best:g}", partial(measure, language, best)
        )
        for language in others
    }


def conclude(found: dict[str, dict[str, list[Measured]]]) -> str:
    """Say which languages gain and which lose."""

    def told(arm: str) -> str:
        words: dict[int, list[str]] = {1: [], -1: [], 0: []}
        for language in LANGUAGES:
            own, other = (
                values(found[each][language], "scores", language, "chrf") for each in (arm, ALONE)
            )
            words[verdict(own, other)].append(language)
        heads = {1: "better in", -1: "worse in", 0: "neither surely better nor surely worse in"}
        return "; ".join(f"{heads[k]} {', '.join(each)}" for k, each in words.items() if each)

    def average(arm: str) -> str:
        each = [fmean(values(found[arm][code], "scores", code, "chrf")) for code in LANGUAGES]
        return f"{fmean(each):.1f}"

    return (
        "One captioner for five languages that learns all five names of an image in every update "
        f"is {told(TOGETHER)}, compared with five captioners of as many updates each (mean chrF "
        f"{average(TOGETHER)} against {average(ALONE)}); with one name an image, a fifth of the "
        f"targets in each language, it is {told(SHARED)} (mean chrF {average(SHARED)})."
    )


def run(bench: Bench) -> Findings:
    """Train every arm with each seed."""
    size = bench.choose(SIZES)
    found = {ALONE: tried(bench, ALONE, LANGUAGES, size)}
    for arm in (TOGETHER, SHARED):
        found[arm] = dict.fromkeys(LANGUAGES, tried(bench, arm, [""], size)[""])

    def rows(metric: str) -> list[list[Cell]]:
        return [
            [arm, *(over(found[arm][each], "scores", each, metric) for each in LANGUAGES)]
            for arm in ARMS
        ]

    header = ["", *LANGUAGES]
    return Findings(
        conclude(found),
        [
            Table("chrF of the names of held-out emoji", header, rows("chrf")),
            Table("Exact names, %", header, rows("exact")),
        ],
        [
            Bars(
                f"chrF, {arm}",
                "chrF",
                list(LANGUAGES),
                [over(found[arm][each], "scores", each, "chrf") for each in LANGUAGES],
            )
            for arm in ARMS
        ],
    )

"""M2: one captioner for five languages, or one for each?"""

from collections.abc import Sequence
from functools import partial
from statistics import fmean

from manyheads.data.tokenizers.tokenizer import Tokenizer, TokenizerConfig
from manyheads.labs.bench import Bench, Measured, Outcome, Size
from manyheads.labs.emoji import LANGUAGES, MOVED, named, preprocessing, small_encoder, text_widths
from manyheads.labs.findings import over, values, verdict
from manyheads.labs.lab_training import fresh, learn, training
from manyheads.models.captioner import CaptionerConfig
from manyheads.tasks.caption.task import CaptionEvaluateConfig, CaptionTask, CaptionTrainConfig

ALONE, TOGETHER, SHARED = "one each", "all at once", "all, one name an image"
ARMS = (ALONE, TOGETHER, SHARED)


def train(arm: str, size: Size, root: str | None, code: str, rate: float, seed: int) -> Measured:
    """Train one captioner; `code` is the language that it writes, or "" for all."""
    languages = [code] if code else list(LANGUAGES)
    learned, held = named(root, size.valid, size.images, languages)
    vocabulary = TokenizerConfig(size=256 + 1800 + size.pieces * len(languages))
    tokenizer = Tokenizer.train(learned.texts, vocabulary, languages)
    usual = {"batch_size": size.batch_size, "weight_decay": 0.05, "label_smoothing": 0.1}
    captions = 1 if arm == SHARED else None
    how = training(CaptionTrainConfig, size.steps, rate, captions=captions, **usual)
    seen, metrics = preprocessing(size.side), CaptionEvaluateConfig(metrics=("chrf", "exact"))
    task = CaptionTask(learned, held, tokenizer, seen, MOVED, how, metrics, seed=seed)
    config = CaptionerConfig(
        image=small_encoder(size.side, size.dim, size.layers),
        vocabulary=len(tokenizer),
        decoder_layers=size.layers,
        **text_widths(size.dim),
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


def conclude(trials: dict[str, dict[str, list[Measured]]]) -> str:
    """Say which languages gain and which lose."""

    def told(arm: str) -> str:
        words: dict[int, list[str]] = {1: [], -1: [], 0: []}
        for code in LANGUAGES:
            sign = verdict(trials[arm][code], trials[ALONE][code], "scores", code, "chrf")
            words[sign].append(code)
        heads = {1: "better in", -1: "worse in", 0: "neither surely better nor surely worse in"}
        return "; ".join(f"{heads[k]} {', '.join(each)}" for k, each in words.items() if each)

    def average(arm: str) -> str:
        each = [fmean(values(trials[arm][code], "scores", code, "chrf")) for code in LANGUAGES]
        return f"{fmean(each):.1f}"

    return (
        "One captioner for five languages that learns all five names of an image in every update "
        f"is {told(TOGETHER)}, compared with five captioners of as many updates each (mean chrF "
        f"{average(TOGETHER)} against {average(ALONE)}); with one name an image, a fifth of the "
        f"targets in each language, it is {told(SHARED)} (mean chrF {average(SHARED)})."
    )


def run(bench: Bench, size: Size) -> Outcome:
    """Train every arm with each seed; the language "" is all five at once."""

    def tuned(arm: str, languages: Sequence[str]) -> dict[str, list[Measured]]:
        names = {code: f"{arm}, {code or 'five languages'}" for code in languages}
        return bench.tuned(names, size.rates, partial(train, arm, size, bench.root), chrf)

    def chrf(trial: Measured) -> float:
        return sum(scores["chrf"] for scores in trial["scores"].values())

    trials = {ALONE: tuned(ALONE, LANGUAGES)}
    for arm in (TOGETHER, SHARED):
        trials[arm] = dict.fromkeys(LANGUAGES, tuned(arm, [""])[""])
    return conclude(trials), {
        metric: {
            arm: {code: over(trials[arm][code], "scores", code, metric) for code in LANGUAGES}
            for arm in ARMS
        }
        for metric in ("chrf", "exact")
    }

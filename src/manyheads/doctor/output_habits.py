"""Check of a model's outputs: copies, loops, one sentence for all, too short or too long."""

from collections.abc import Sequence
from typing import NamedTuple

from manyheads.asks.decode_config import DecodeConfig
from manyheads.doctor.finding import SHOWN, Finding, Findings, cut, finding, rounded
from manyheads.doctor.learned import gentler
from manyheads.doctor.run_batches import Behaviour, Examined
from manyheads.generation.output_monitor import PAIRS, SIGNS, OutputMonitor, marked, signs
from manyheads.project.base_recipe import Recipe

# Characters of the outputs against those of the references. BLEU's brevity penalty (Papineni et al.
# 2002, section 2.2.2) takes 16% at 0.85. Shipped translators: 0.93 to 1.00.
SHORT, LONG = 0.85, 1.15
FEW = 8  # sources, of which one output for all is no chance
LOOPING = 20.0  # percent of drawn continuations; text drawn from a language hardly ever loops


class Outputs(NamedTuple):
    """Sources with the model's outputs and the references."""

    sources: Sequence[str]
    outputs: Sequence[str]
    references: Sequence[str]


def written(seen: Behaviour) -> Examined:
    """Let the model write, if it writes, and examine the outputs."""
    write, run = seen.samples.write, seen.run
    return write(seen.model, run.history.last_step, run.finished) if write else Examined([])


def one_sentence(written: Outputs, recipe: Recipe, step: int) -> Findings:
    """Find outputs that are all the same sentence."""
    if len(set(written.outputs)) <= 1 and len(set(written.references)) >= FEW:
        shown = f"{len(written.outputs)} times: {cut(written.outputs[0])!r}"
        yield finding("same-output", shown, settings=gentler(recipe), step=step)


def habits(written: Outputs, recipe: Recipe, step: int) -> Findings:
    """Find signs of trouble that the outputs have more often than the references."""
    watch = OutputMonitor(written.sources, written.references)
    which = marked(*written)
    settings: dict[str, dict[str, object]] = {
        "repeated": {"decode.no_repeat_ngram": 4, **_longer(recipe)},
        "empty": {"decode.min_length": 1},
        "same": _longer(recipe),
    }
    for name, what in watch.found(signs(*written)).items():
        if name != "length_ratio":
            yield Finding(
                kind=name.replace("_", "-"),
                severity="warning",
                what=f"{what[0].upper()}{what[1:]}.",
                evidence=_shown(written, which[name]),
                remedy=SIGNS[name].advice,
                settings=settings.get(name, {}),
                step=step,
            )


def length(written: Outputs, decode: DecodeConfig, step: int, *, finished: bool) -> Findings:
    """Find outputs that are too short or too long on average."""
    if len(written.sources) < PAIRS:
        return
    ratio = signs(*written).length_ratio
    if SHORT <= ratio <= LONG:
        return
    gaps = [len(o) - len(r) for o, r in zip(written.outputs, written.references, strict=True)]
    worst = sorted(range(len(gaps)), key=lambda n: gaps[n], reverse=ratio > 1)
    penalty = rounded(decode.length_penalty + (0.4 if ratio < 1 else -0.4))
    beams = {} if decode.beams > 1 else {"decode.beams": 4}
    yield finding(
        "length",
        *_shown(written, worst),
        severity="warning" if finished else "note",
        settings=beams | {"decode.length_penalty": penalty},
        step=step,
        long="short" if ratio < 1 else "long",
        ratio=ratio,
        early="" if finished else "This is normal early in training. ",
    )


def looping(written: Outputs, recipe: Recipe, step: int) -> Findings:
    """Find continuations that repeat themselves."""
    which = marked(*written)["repeated"]
    share = 100 * len(which) / max(1, len(written.outputs))
    usual = signs(written.sources, written.references, written.references).repeated
    if share - usual > LOOPING and len(written.outputs) >= FEW:
        shown = (repr(cut(written.outputs[n])) for n in which[:SHOWN])
        yield finding(
            "repeated:drawn", *shown, settings=_longer(recipe), step=step, share=share, usual=usual
        )


def _longer(recipe: Recipe) -> dict[str, object]:
    return {"train.steps": 2 * recipe.train.steps}


def _shown(written: Outputs, which: Sequence[int]) -> tuple[str, ...]:
    return tuple(
        f"{cut(written.sources[n], 45)!r} → {cut(written.outputs[n], 60)!r}"
        f" (reference {cut(written.references[n], 45)!r})"
        for n in which[:SHOWN]
    )

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


def one_sentence(found: Outputs, recipe: Recipe, step: int) -> Findings:
    """Find outputs that are all the same sentence."""
    if len(set(found.outputs)) <= 1 and len(set(found.references)) >= FEW:
        yield finding(
            "same-output",
            f"{len(found.outputs)} times: {cut(found.outputs[0])!r}",
            settings=gentler(recipe),
            step=step,
        )


def habits(found: Outputs, recipe: Recipe, step: int) -> Findings:
    """Find signs of trouble that the outputs have more often than the references."""
    watch = OutputMonitor(found.sources, found.references)
    which = marked(*found)
    settings: dict[str, dict[str, object]] = {
        "repeated": {"decode.no_repeat_ngram": 4, **_longer(recipe)},
        "empty": {"decode.min_length": 1},
        "same": _longer(recipe),
    }
    for name, what in watch.found(signs(*found)).items():
        if name != "length_ratio":
            yield Finding(
                kind=name.replace("_", "-"),
                severity="warning",
                what=f"{what[0].upper()}{what[1:]}.",
                evidence=_shown(found, which[name]),
                remedy=SIGNS[name].advice,
                settings=settings.get(name, {}),
                step=step,
            )


def length(found: Outputs, decode: DecodeConfig, step: int, *, finished: bool) -> Findings:
    """Find outputs that are too short or too long on average."""
    if len(found.sources) < PAIRS:
        return
    ratio = signs(*found).length_ratio
    if SHORT <= ratio <= LONG:
        return
    gaps = [len(o) - len(r) for o, r in zip(found.outputs, found.references, strict=True)]
    worst = sorted(range(len(gaps)), key=lambda n: gaps[n], reverse=ratio > 1)
    penalty = rounded(decode.length_penalty + (0.4 if ratio < 1 else -0.4))
    beams = {} if decode.beams > 1 else {"decode.beams": 4}
    yield finding(
        "length",
        *_shown(found, worst),
        severity="warning" if finished else "note",
        settings=beams | {"decode.length_penalty": penalty},
        step=step,
        long="short" if ratio < 1 else "long",
        ratio=ratio,
        early="" if finished else "This is normal early in training. ",
    )


def looping(found: Outputs, recipe: Recipe, step: int) -> Findings:
    """Find continuations that repeat themselves."""
    which = marked(*found)["repeated"]
    share = 100 * len(which) / max(1, len(found.outputs))
    usual = signs(found.sources, found.references, found.references).repeated
    if share - usual > LOOPING and len(found.outputs) >= FEW:
        yield finding(
            "repeated:drawn",
            *(repr(cut(found.outputs[n])) for n in which[:SHOWN]),
            settings=_longer(recipe),
            step=step,
            share=share,
            usual=usual,
        )


def _longer(recipe: Recipe) -> dict[str, object]:
    return {"train.steps": 2 * recipe.train.steps}


def _shown(found: Outputs, which: Sequence[int]) -> tuple[str, ...]:
    return tuple(
        f"{cut(found.sources[n], 45)!r} → {cut(found.outputs[n], 60)!r}"
        f" (reference {cut(found.references[n], 45)!r})"
        for n in which[:SHOWN]
    )

"""What a run's model writes: copies, loops, one sentence for all, too short or too long."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import nn

from manyheads.app.doctor.finding import SHOWN, Finding, cut, rounded
from manyheads.app.doctor.learning import gentler
from manyheads.app.doctor.samples import PairSamples
from manyheads.app.recipe import Recipe, TranslateRecipe
from manyheads.data.monolingual import Sentences
from manyheads.data.tokenizer import TextTokenizer
from manyheads.decode.sample import Sampling
from manyheads.models.causal_lm import CausalLanguageModel
from manyheads.tasks.decoding import translate
from manyheads.tasks.language import complete
from manyheads.tasks.watch import PAIRS, SIGNS, Watch, marked, signs

# Characters of the outputs against those of the references. BLEU's brevity penalty (Papineni et al.
# 2002, section 2.2.2) takes 16% at 0.85. Shipped translators: 0.93 to 1.00.
SHORT, LONG = 0.85, 1.15
FEW = 8  # sources, of which one output for all is no chance
PROMPTS, WORDS, TOKENS = 40, 3, 48  # texts that a language model goes on with
LOOPING = 20.0  # percent of drawn continuations; text drawn from a language hardly ever loops


class Outputs(NamedTuple):
    """Sources with what a model makes of them, and what it should."""

    sources: Sequence[str]
    outputs: Sequence[str]
    references: Sequence[str]


def translations(model: nn.Module, samples: PairSamples, recipe: TranslateRecipe) -> Outputs:
    """Translate the sample of the validation data, as the recipe searches."""
    few = samples.few[1]
    found = translate(model, samples.tokenizers, few.source, recipe.decode)
    return Outputs(few.source, [best[0].text for best in found], few.target)


def continuations(
    model: CausalLanguageModel, tokenizer: TextTokenizer, lines: Sentences
) -> Outputs:
    """Let a language model go on with the first words of validation texts, drawing each token.

    Searching for the likeliest text loops even in good models (Holtzman et al. 2020).
    """
    chosen = list(lines.lines)[:PROMPTS]
    prompts = [" ".join(line.split()[:WORDS]) for line in chosen]
    with torch.inference_mode():
        found = complete(model, tokenizer, prompts, tokens=TOKENS, sampling=Sampling())
    return Outputs(prompts, [best[0].text for best in found], chosen)


def one_sentence(found: Outputs, recipe: Recipe, step: int) -> list[Finding]:
    """Say if everything becomes the same sentence."""
    if len(set(found.outputs)) > 1 or len(set(found.references)) < FEW:
        return []
    return [
        Finding(
            kind="same-output",
            severity="error",
            what="Collapse: every source becomes the same sentence.",
            evidence=(f"{len(found.outputs)} times: {cut(found.outputs[0])!r}",),
            remedy="Train longer, learn more slowly, and warm up for longer; if the sides of the "
            "data do not belong together, `manyheads check-data` shows it.",
            settings=gentler(recipe),
            step=step,
        )
    ]


def habits(found: Outputs, recipe: TranslateRecipe, step: int) -> list[Finding]:
    """Say what is wrong with the outputs beyond what the references have of it."""
    watch = Watch(found.sources, found.references)
    said = watch.found(signs(*found))
    which = marked(*found)
    settings: dict[str, dict[str, object]] = {
        "repeated": {"decode.no_repeat_ngram": 4, **_longer(recipe)},
        "copied": {},
        "empty": {"decode.min_length": 1},
        "same": _longer(recipe),
    }
    return [
        Finding(
            kind=name.replace("_", "-"),
            severity="warning",
            what=f"{what[0].upper()}{what[1:]}.",
            evidence=_shown(found, which[name]),
            remedy=SIGNS[name].advice,
            settings=settings.get(name, {}),
            step=step,
        )
        for name, what in said.items()
        if name != "length_ratio"
    ]


def length(found: Outputs, recipe: TranslateRecipe, step: int, *, finished: bool) -> list[Finding]:
    """Say if the outputs are too short or too long on the whole."""
    if len(found.sources) < PAIRS:
        return []
    ratio = signs(*found).length_ratio
    if SHORT <= ratio <= LONG:
        return []
    gaps = [len(o) - len(r) for o, r in zip(found.outputs, found.references, strict=True)]
    worst = sorted(range(len(gaps)), key=lambda n: gaps[n], reverse=ratio > 1)[:SHOWN]
    penalty = recipe.decode.length_penalty
    beams = {} if recipe.decode.beams > 1 else {"decode.beams": 4}
    return [
        Finding(
            kind="length",
            severity="warning" if finished else "note",
            what=f"The outputs are too {'short' if ratio < 1 else 'long'}: {ratio:.2f} times as "
            "many characters as the references.",
            evidence=_shown(found, worst),
            remedy=("" if finished else "Early in training that passes. ")
            + "Let the search prefer the right length, and look for pairs that do not belong "
            "together with `manyheads check-data`.",
            settings=beams
            | {"decode.length_penalty": rounded(penalty + (0.4 if ratio < 1 else -0.4))},
            step=step,
        )
    ]


def looping(found: Outputs, recipe: Recipe, step: int) -> list[Finding]:
    """Say if what a language model writes goes round in circles."""
    which = marked(*found)["repeated"]
    share = 100 * len(which) / max(1, len(found.outputs))
    usual = signs(found.sources, found.references, found.references).repeated
    if share - usual <= LOOPING or len(found.outputs) < FEW:
        return []
    return [
        Finding(
            kind="repeated",
            severity="warning",
            what=f"{share:.0f}% of drawn continuations repeat a phrase over and over "
            f"({usual:.0f}% of the validation texts).",
            evidence=tuple(repr(cut(found.outputs[n])) for n in which[:SHOWN]),
            remedy="Train longer; if the training text is short or repeats itself, find more.",
            settings=_longer(recipe),
            step=step,
        )
    ]


def _longer(recipe: Recipe) -> dict[str, object]:
    return {"train.steps": 2 * recipe.train.steps}


def _shown(found: Outputs, which: Sequence[int]) -> tuple[str, ...]:
    return tuple(
        f"{cut(found.sources[n], 45)!r} → {cut(found.outputs[n], 60)!r}"
        + (f" (reference {cut(found.references[n], 45)!r})")
        for n in which[:SHOWN]
    )

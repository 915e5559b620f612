"""T16: the loss of a sentence is the mean of -log p over its tokens, the end included."""

import math
from functools import partial

from manyheads.labs.bench import Bench, Measured, Outcome, Size
from manyheads.labs.shipped_models import translator
from manyheads.lens.measures.token_losses import losses
from manyheads.lens.panels import number
from manyheads.tasks.translate.reference import score_reference

# The lecture's table: the probability of each correct token.
TOKENS = ("Je", "suis", "un", "étudiant", "</s>")
PROBABILITIES = (0.8, 0.6, 0.7, 0.5, 0.9)


def of_lecture() -> Measured:
    """The example of the lecture."""
    return {"tokens": list(TOKENS), "probabilities": list(PROBABILITIES), "uniform": None}


def of_sentence(model: str, source: str, reference: str) -> Measured:
    """Return the probabilities of a shipped model for a reference (teacher forcing)."""
    return score_reference(translator(model), source, reference)._asdict()


def conclude(measured: dict[str, Measured]) -> str:
    """Conclude with the means, and the token with the largest loss."""
    parts = []
    for name, each in measured.items():
        values = losses(each["probabilities"])
        mean, worst = sum(values) / len(values), max(range(len(values)), key=values.__getitem__)
        share = values[worst] / sum(values) if sum(values) else 0.0
        known = "" if each["uniform"] is None else f"; guessing: {number(each['uniform'])} nats"
        parts.append(
            f"{name}: {mean:.3f} nats (perplexity {math.exp(mean):.2f}{known}), {share:.0%} from "
            f"{each['tokens'][worst]!r}"
        )
    return f"The mean of -log p is {'; '.join(parts)}."


def run(bench: Bench, size: Size) -> Outcome:
    """Compute the lecture's table, and the same for sentences of shipped models."""
    measured = {"the lecture's sentence": bench.trial("lecture", of_lecture)}
    for model, source, reference in size.sentences:
        name = f"{source} → {reference}"
        measured[name] = bench.trial(name, partial(of_sentence, model, source, reference))
    rows, panels = {}, {}
    for name, each in measured.items():
        values = losses(each["probabilities"])
        scored = zip(each["tokens"], each["probabilities"], values, strict=True)
        rows[name] = [
            *([token, f"{p:.3f}", f"{value:.3f}"] for token, p, value in scored),
            ["mean", None, f"{sum(values) / len(values):.3f}"],
        ]
        # Of these characters, matplotlib's default font has all.
        if all(character < "\u2e80" for character in "".join(each["tokens"])):
            panels[name] = list(zip(each["tokens"], values, strict=True))
    return conclude(measured), {"rows": rows, "losses": panels}

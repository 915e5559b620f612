"""The settings under which our search and that of Hugging Face must find the same tokens."""

import itertools
from dataclasses import dataclass

import torch
from torch import Tensor

from manyheads.decode.beam import beam_search
from manyheads.decode.constraints import ForcedEnd, Renormalise, Rule, SuppressTokens
from manyheads.decode.greedy import greedy_search
from manyheads.models.transformer import Transformer

LIMIT = 9  # tokens, the end included: less than some outputs want


@dataclass(frozen=True)
class Setting:
    """How to search, in words that both sides know."""

    beams: int = 1
    length_penalty: float = 1.0
    early_stopping: bool = False
    banned: bool = True  # the padding
    renormalise: bool = False
    forced_end: bool = True
    max_length: int = LIMIT

    def __str__(self) -> str:
        """Name the setting in a report."""
        parts = [f"beams {self.beams}"]
        if self.beams > 1:
            parts += [f"length penalty {self.length_penalty}"]
            parts += ["early stopping"] * self.early_stopping
        parts += ["padding banned"] * self.banned + ["renormalised"] * self.renormalise
        return ", ".join(parts + ["forced end"] * self.forced_end)


RULES = [
    {"banned": banned, "renormalise": renormalise, "forced_end": forced}
    for banned, renormalise in ((False, False), (True, False), (True, True))
    for forced in (False, True)
]
# Every rule with either search; every way to rank and stop without rules, and with all of them.
SETTINGS = [
    *(Setting(beams=beams, **rules) for beams in (1, 4) for rules in RULES),
    *(
        Setting(beams=4, length_penalty=penalty, early_stopping=early, **rules)
        for penalty, early in itertools.product((0.6, 1.0, 1.4), (False, True))
        for rules in (RULES[0], RULES[-1])
        if (penalty, early) != (1.0, False)
    ),
]


def search(model: Transformer, source: Tensor, setting: Setting) -> list[list[int]]:
    """Return the best output of each sentence, without start and end."""
    limits = [setting.max_length] * len(source)
    start, end = model.config.start, model.config.end
    rules: list[Rule] = []
    if setting.banned:
        rules.append(SuppressTokens([model.config.pad]))
    if setting.forced_end:
        rules.append(ForcedEnd(limits, end=end))
    if setting.renormalise:
        rules.append(Renormalise())
    with torch.inference_mode():
        if setting.beams == 1:
            found = greedy_search(model, source, limits, start=start, end=end, rules=rules)
            return [hypothesis.tokens for hypothesis in found]
        best = beam_search(
            model,
            source,
            limits,
            beams=setting.beams,
            start=start,
            end=end,
            length_penalty=setting.length_penalty,
            early_stopping=setting.early_stopping,
            rules=rules,
        )
        return [hypotheses[0].tokens for hypotheses in best]

"""What the heads of a run's attention do: nothing, or the same as their neighbours."""

import torch
from torch import nn

from manyheads.app.doctor.finding import SHOWN, Finding
from manyheads.app.doctor.samples import Samples
from manyheads.app.recipe import Recipe
from manyheads.lens.idle_heads import Head, HeadWatch, Twins
from manyheads.nn.trace import record

EXAMPLES = 16

# Of the largest entropy: the head reads the mean of everything. Shipped models: at most 0.90.
UNIFORM = 0.99
# Of the attention: whatever comes in, the head reads the same place. Shipped: at most 0.72.
ONE_TOKEN = 0.95
SILENT = 0.01  # of what the median head of the layer can write. Shipped: at least 0.40
# Mean total variation of two maps. Copies have 0; the closest heads of shipped models 0.30.
ALIKE = 0.02
# Of all heads: so many idle ones are a waste; single ones are common in trained models (Michel et
# al. 2019 remove 20% to 40% without loss) and are not worth a word.
MANY = 0.25


def watch(model: nn.Module, samples: Samples) -> HeadWatch:
    """Let the heads read a few validation examples, one by one, so that nothing is padded."""
    found, task = HeadWatch(), samples.valid
    alone = [batch[i : i + 1] for batch in task.plan(0) for i in range(len(batch))][:EXAMPLES]
    with torch.inference_mode():
        for batch in task.load(0, alone):
            with record() as trace:
                task.loss(model, batch)
            found.add(trace)
    return found


def idle(heads: list[Head], recipe: Recipe) -> list[Finding]:
    """Say which heads do nothing that depends on what they read."""
    silent = [head for head in heads if head.writes <= SILENT]
    resting = [head for head in heads if head not in silent and _rest(head)]
    found = []
    if silent:
        found.append(
            Finding(
                kind="dead-heads",
                severity="warning",
                what=f"{_count(silent, heads)} dead: what they write is nothing.",
                evidence=_shown(
                    [
                        f"{head}: can write {100 * head.writes:.2g}% of what the median head of "
                        "its layer can"
                        for head in silent
                    ]
                ),
                remedy="They were never trained, or cut out. Train longer, start anew, or do "
                "with fewer.",
                settings=_fewer(recipe, len(silent) / len(heads)),
            )
        )
    if len(resting) >= MANY * len(heads):
        found.append(
            Finding(
                kind="idle-heads",
                severity="warning" if len(resting) > len(heads) / 2 else "note",
                what=f"{_count(resting, heads)} idle: they read the same whatever comes in.",
                evidence=_shown([f"{head}: {_rest(head)}" for head in resting]),
                remedy="Heads that have not found anything to read: train longer, with a longer "
                "warm-up, or do with fewer.",
                settings=_fewer(recipe, len(resting) / len(heads)),
            )
        )
    return found


def duplicates(heads: list[Head], twins: list[Twins], recipe: Recipe) -> list[Finding]:
    """Say which heads of one attention read the same; those that rest are alike anyway."""
    idle = {(head.site, head.number) for head in heads if judged(head)}
    alike = [
        each
        for each in twins
        if each.distance <= ALIKE and not {(each.site, number) for number in each.numbers} & idle
    ]
    if not alike:
        return []
    doubled = {(each.site, each.numbers[1]) for each in alike}
    return [
        Finding(
            kind="duplicate-heads",
            severity="warning" if len(doubled) >= MANY * len(heads) else "note",
            what=f"{len(doubled)} of {len(heads)} heads read the same as another of their layer.",
            evidence=_shown(
                [f"{each}: their maps differ by {100 * each.distance:.2g}%" for each in alike]
            ),
            remedy="They cost time and add little. Weights that began equal stay equal: were they "
            "copied? Else do with fewer heads.",
            settings=_fewer(recipe, len(doubled) / len(heads)),
        )
    ]


def judged(head: Head) -> str:
    """Say why a head does nothing that depends on what it reads; "" if it does something."""
    if head.writes <= SILENT:
        return f"writes nothing: {100 * head.writes:.2g}% of what the median head of its layer can"
    return _rest(head)


def _rest(head: Head) -> str:
    if head.entropy >= UNIFORM:
        return f"uniform, {100 * head.entropy:.1f}% of the largest entropy"
    if head.favourite >= ONE_TOKEN:
        return f"{100 * head.favourite:.0f}% of its attention on {head.place}"
    return ""


def _count(some: list[Head], heads: list[Head]) -> str:
    return f"{len(some)} of {len(heads)} heads {'is' if len(some) == 1 else 'are'}"


def _shown(lines: list[str]) -> tuple[str, ...]:
    more = len(lines) - SHOWN
    return (*lines[:SHOWN], *([f"and {more} more"] if more > 0 else []))


def _fewer(recipe: Recipe, share: float) -> dict[str, object]:
    """Suggest the number of heads nearest to what is used, if that is far from what there is."""
    config = recipe.config()
    heads, dim = getattr(config, "heads", None), getattr(config, "dim", None)
    if share < MANY or not isinstance(heads, int) or not isinstance(dim, int):
        return {}
    fitting = [n for n in range(1, heads) if dim % n == 0 and n >= heads * (1 - share)]
    return {"model.heads": fitting[0]} if fitting else {}

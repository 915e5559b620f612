"""What the heads of a run's attention do: nothing, or the same as their neighbours."""

import torch

from manyheads.doctor.finding import SHOWN, Findings, finding
from manyheads.doctor.run_batches import Behaviour, Examined
from manyheads.lens.measures.idle_heads import (
    ALIKE,
    SILENT,
    DuplicateHeads,
    Head,
    HeadStatistics,
    judged,
    resting,
    written_share,
)
from manyheads.nn.recording.trace import record
from manyheads.project.base_recipe import Recipe

EXAMPLES = 16
# Of all heads: so many idle ones are a waste; single ones are common in trained models (Michel et
# al. 2019 remove 20% to 40% without loss) and are not worth a word.
MANY = 0.25


def at_work(seen: Behaviour) -> Examined:
    """Let the heads read a few validation examples, one by one, so that nothing is padded."""
    watch, task, recipe = HeadStatistics(), seen.samples.valid, seen.run.recipe
    alone = [batch[i : i + 1] for batch in task.plan(0) for i in range(len(batch))][:EXAMPLES]
    with torch.inference_mode():
        for batch in task.load(0, alone):
            with record() as trace:
                task.loss(seen.model, batch)
            watch.add(trace)
    if not (every := watch.heads(seen.model)):
        return Examined([])
    findings = [*idle(every, recipe), *duplicates(every, list(watch.duplicates()), recipe)]
    attentions = len({head.layer_id for head in every})
    looked_at = f"heads: {len(every)} in {attentions} attentions, on {EXAMPLES} validation examples"
    return Examined(findings, [looked_at])


def idle(heads: list[Head], recipe: Recipe) -> Findings:
    """Find heads whose output is nothing, or does not depend on the input."""
    silent = [head for head in heads if head.writes <= SILENT]
    idle_heads = [head for head in heads if head not in silent and resting(head)]
    if silent:
        shown = _shown([f"{head}: can write {written_share(head)}" for head in silent])
        settings, count = _fewer(recipe, len(silent) / len(heads)), _count(silent, heads)
        yield finding("dead-heads", *shown, settings=settings, count=count)
    if len(idle_heads) >= MANY * len(heads):
        yield finding(
            "idle-heads",
            *_shown([f"{head}: {resting(head)}" for head in idle_heads]),
            severity="warning" if len(idle_heads) > len(heads) / 2 else "note",
            settings=_fewer(recipe, len(idle_heads) / len(heads)),
            count=_count(idle_heads, heads),
        )


def duplicates(heads: list[Head], pairs: list[DuplicateHeads], recipe: Recipe) -> Findings:
    """Find heads of one attention with the same maps; those of idle heads are alike anyway."""
    idle = {(head.layer_id, head.number) for head in heads if judged(head)}
    near = [each for each in pairs if each.distance <= ALIKE]
    alike = [each for each in near if not {(each.layer_id, n) for n in each.numbers} & idle]
    doubled = {(each.layer_id, each.numbers[1]) for each in alike}
    if doubled:
        yield finding(
            "duplicate-heads",
            *_shown([f"{each}: their maps differ by {100 * each.distance:.2g}%" for each in alike]),
            severity="warning" if len(doubled) >= MANY * len(heads) else "note",
            settings=_fewer(recipe, len(doubled) / len(heads)),
            doubled=len(doubled),
            heads=len(heads),
        )


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

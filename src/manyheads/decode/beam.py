"""Beam search: keep the best few prefixes instead of one (Vaswani et al. 2017, section 6.1)."""

from collections.abc import Callable, Hashable, Sequence
from itertools import chain, zip_longest

import torch
from jaxtyping import Float
from torch import Tensor

from manyheads.cancellation import raise_if_cancelled
from manyheads.decode.beam_selection import TOP_K, BeamSelector
from manyheads.decode.constraints import Rule, apply_rules
from manyheads.decode.step import Hypothesis, State, Step
from manyheads.decode.traced_decoder import inner, traced_step
from manyheads.nn.shapes import Sources


@torch.inference_mode()
def beam_search(
    model: Step[State],
    source: Sources,
    max_lengths: Sequence[int],
    *,
    beams: int,
    start: int,
    end: int,
    length_penalty: float = 1.0,
    early_stopping: bool = False,
    n_best: int = 1,
    rules: Sequence[Rule] = (),
    choose: BeamSelector = TOP_K,
    bonus: Callable[[State], Float[Tensor, "sentence beam"]] | None = None,
    same: Callable[[list[int]], Hashable] = tuple,
) -> list[list[Hypothesis]]:
    """Decode every sentence; return its n_best hypotheses, best score first.

    A sentence is done when it has `beams` finished hypotheses and no living beam, at its present
    length, scores better than the worst of them; or when it reaches its limit in max_lengths.

    Args:
        model: scores next tokens.
        source: token ids, padded.
        max_lengths: the most tokens a sentence's output may have, sentence by sentence: of the
            sentence alone, so that its output does not depend on the batch it came in.
        beams: prefixes kept a sentence.
        start: the token a target begins with.
        end: the token a target ends with.
        length_penalty: score = log-probability / length ** length_penalty; more favours long ones.
        early_stopping: a sentence is done as soon as it has `beams` finished hypotheses.
        n_best: hypotheses returned a sentence; fewer if the search found fewer that differ.
        rules: change the log-probabilities of the next tokens, in this order.
        choose: selects the continuations; each of its groups ends by itself.
        bonus: a number at most 0 for each beam, added to the score of an output that ends in it.
        same: what makes the tokens of two outputs equal, such as their text; only the first of
            equal outputs is returned, and what the best `beams` beat fills its place.
    """
    count, device = len(source), source.device
    size = beams // choose.groups
    pools = [
        [_Pool(size, length_penalty, early_stopping) for _ in range(choose.groups)]
        for _ in range(count)
    ]
    alive = list(range(count))  # rows of the batch -> sentences
    model = traced_step(model)
    state = model.start(source, beams, max(max_lengths))
    tokens = torch.full((count, beams), start, device=device)
    prefixes = torch.empty((count, beams, 0), dtype=torch.long, device=device)
    values = torch.empty((count, beams, 0), device=device)  # log-probabilities of their tokens
    # All beams are equal at first: start with one, or all would find the same outputs.
    scores = torch.full((count, beams), -torch.inf, device=device)
    scores[:, ::size] = 0.0
    for length in range(1, max(max_lengths) + 1):
        raise_if_cancelled()
        log_probabilities, state = model.step(tokens, state)
        log_probabilities = apply_rules(rules, log_probabilities, prefixes, alive, end=end)
        totals = scores[..., None] + log_probabilities
        choice = choose(totals, prefixes, alive, end=end)
        extra = torch.zeros_like(scores) if bonus is None else bonus(inner(state))
        if choice.complete:
            at = tuple(torch.tensor(choice.complete, device=device).T)  # rows, beams
            last = log_probabilities[..., end][at]
            grown = torch.cat((values[at], last[:, None]), dim=1)
            parts = (prefixes[at], grown, totals[..., end][at], extra[at])
            for (row, beam), *ended in zip(
                choice.complete, *map(Tensor.tolist, parts), strict=True
            ):
                pools[alive[row]][beam // size].add(*ended, finished=True)
        scores, vocabulary = choice.scores, totals.shape[-1]
        origin, tokens = choice.living // vocabulary, choice.living % vocabulary
        prefixes = _grow(prefixes, origin, tokens)
        values = _grow(values, origin, log_probabilities.flatten(1).gather(1, choice.living))
        stay = []
        best = choice.best.tolist()
        for row, sentence in enumerate(alive):
            if length == max_lengths[sentence]:
                parts = (prefixes[row], values[row], scores[row], extra[row, origin[row]])
                for beam, cut in enumerate(zip(*map(Tensor.tolist, parts), strict=True)):
                    pools[sentence][beam // size].add(*cut, finished=False)
                continue
            closed = [
                pool.closed_to(score, length)
                for pool, score in zip(pools[sentence], best[row], strict=True)
            ]
            if not all(closed):
                stay.append(row)
                for group, done in enumerate(closed):
                    if done:  # its beams die, while other groups go on
                        scores[row, group * size : (group + 1) * size] = -torch.inf
        if len(stay) < len(alive):  # finished sentences leave the batch
            alive = [alive[row] for row in stay]
            if not alive:
                break
            rows = torch.tensor(stay, dtype=torch.long, device=device)
            scores, origin, tokens, prefixes, values = (
                part[rows] for part in (scores, origin, tokens, prefixes, values)
            )
            state = model.keep(state, rows)
        state = model.reorder(state, origin)
    return [_best(groups, n_best, same) for groups in pools]


def _grow(history: Tensor, origin: Tensor, new: Tensor) -> Tensor:
    """Reorder the histories by origin and append a new column."""
    rows = origin[..., None].expand(-1, -1, history.shape[2])
    return torch.cat((history.gather(1, rows), new[..., None]), dim=2)


class _Pool:
    """The hypotheses of one sentence, or of one group of its beams; the best `size` count."""

    def __init__(self, size: int, length_penalty: float, early_stopping: bool) -> None:
        self.size = size
        self.length_penalty = length_penalty
        self.early_stopping = early_stopping
        self.hypotheses: list[Hypothesis] = []

    def add(
        self,
        tokens: list[int],
        values: list[float],
        log_probability: float,
        bonus: float,
        *,
        finished: bool,
    ) -> None:
        if log_probability == -torch.inf:
            return  # an unused beam: fewer continuations than beams
        score = log_probability / len(values) ** self.length_penalty + bonus
        self.hypotheses.append(Hypothesis(tokens, log_probability, score, finished, values))
        self.hypotheses.sort(key=lambda hypothesis: -hypothesis.score)  # stable: the first one wins

    def closed_to(self, log_probability: float, length: int) -> bool:
        """Whether an unfinished beam of this score can no longer enter the pool."""
        if len(self.hypotheses) < self.size:
            return False
        if self.early_stopping:
            return True
        return log_probability / length**self.length_penalty <= self.hypotheses[self.size - 1].score


def _best(
    groups: list[_Pool], count: int, same: Callable[[list[int]], Hashable]
) -> list[Hypothesis]:
    """Take the best of each group, then the second of each, and so on; every output once."""
    kept = zip_longest(*(pool.hypotheses[: pool.size] for pool in groups))
    beaten = zip_longest(*(pool.hypotheses[pool.size :] for pool in groups))
    found: dict[Hashable, Hypothesis] = {}
    for each in filter(None, chain(*kept, *beaten)):
        found.setdefault(same(each.tokens), each)
        if len(found) == count:
            break
    return sorted(found.values(), key=lambda hypothesis: -hypothesis.score)

"""Beam search: keep the best few prefixes instead of one (Vaswani et al. 2017, section 6.1)."""

from collections.abc import Sequence

import torch
from jaxtyping import Int
from torch import Tensor

from manyheads.decode.step import Hypothesis, State, Step


@torch.inference_mode()
def beam_search(
    model: Step[State],
    source: Int[Tensor, "sentence source"],
    max_lengths: Sequence[int],
    *,
    beams: int,
    start: int,
    end: int,
    length_penalty: float = 1.0,
    n_best: int = 1,
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
        n_best: hypotheses returned a sentence, at most `beams`.
    """
    count, device = len(source), source.device
    pools = [_Pool(beams, length_penalty) for _ in range(count)]
    alive = list(range(count))  # rows of the batch -> sentences
    state = model.start(source, beams, max(max_lengths))
    tokens = torch.full((count, beams), start, device=device)
    prefixes = torch.empty((count, beams, 0), dtype=torch.long, device=device)
    # All beams are equal at first: let only one of them live, or they would find the same.
    scores = torch.full((count, beams), -torch.inf, device=device)
    scores[:, 0] = 0.0
    for length in range(1, max(max_lengths) + 1):
        log_probabilities, state = model.step(tokens, state)
        vocabulary = log_probabilities.shape[-1]
        # Of 2 * beams candidates at least `beams` do not end, whatever happens (one end a beam).
        candidates, flat = (scores[..., None] + log_probabilities).flatten(1).topk(2 * beams)
        origin, token = flat // vocabulary, flat % vocabulary
        for row, candidate in (token[:, :beams] == end).nonzero().tolist():
            prefix = prefixes[row, origin[row, candidate]].tolist()
            pools[alive[row]].add(prefix, candidates[row, candidate].item(), length, finished=True)
        ended = (token == end).to(torch.int8)
        going_on = ended.argsort(dim=1, stable=True)[:, :beams]  # still in order of score
        scores = candidates.gather(1, going_on)
        origin = origin.gather(1, going_on)
        tokens = token.gather(1, going_on)
        prefixes = prefixes.gather(1, origin[..., None].expand(-1, -1, length - 1))
        prefixes = torch.cat((prefixes, tokens[..., None]), dim=2)
        stay = []
        best = scores[:, 0].tolist()
        for row, sentence in enumerate(alive):
            if length == max_lengths[sentence]:
                for prefix, score in zip(prefixes[row].tolist(), scores[row].tolist(), strict=True):
                    pools[sentence].add(prefix, score, length, finished=False)
            elif not pools[sentence].closed_to(best[row], length):
                stay.append(row)
        rows = torch.tensor(stay, dtype=torch.long, device=device)
        if len(stay) < len(alive):  # finished sentences leave the batch
            alive = [alive[row] for row in stay]
            if not alive:
                break
            scores, origin, tokens, prefixes = (
                part[rows] for part in (scores, origin, tokens, prefixes)
            )
            state = model.keep(state, rows)
        state = model.reorder(state, origin)
    return [pool.best(n_best) for pool in pools]


class _Pool:
    """The best `size` hypotheses of one sentence."""

    def __init__(self, size: int, length_penalty: float) -> None:
        self.size = size
        self.length_penalty = length_penalty
        self.hypotheses: list[Hypothesis] = []

    def add(
        self, tokens: list[int], log_probability: float, length: int, *, finished: bool
    ) -> None:
        if log_probability == -torch.inf:
            return  # a beam that never lived: fewer continuations than beams
        score = log_probability / length**self.length_penalty
        self.hypotheses.append(Hypothesis(tokens, log_probability, score, finished))
        self.hypotheses.sort(key=lambda hypothesis: -hypothesis.score)  # stable: the first one wins
        del self.hypotheses[self.size :]

    def closed_to(self, log_probability: float, length: int) -> bool:
        """Whether a living beam of this score can no longer get in."""
        if len(self.hypotheses) < self.size:
            return False
        return log_probability / length**self.length_penalty <= self.hypotheses[-1].score

    def best(self, count: int) -> list[Hypothesis]:
        return self.hypotheses[:count]

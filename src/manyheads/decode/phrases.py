"""Phrases that an output must contain: dynamic beam allocation.

Post and Vilar 2018, "Fast Lexically Constrained Decoding with Dynamic Beam Allocation for Neural
Machine Translation", section 3.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from manyheads.decode.beam_selection import Choice, top_continuations
from manyheads.errors import UsageError
from manyheads.nn.shapes import Grid, Prefixes, Scores

# Of each phrase: how often it has occurred, and how much of it the output ends with just now.
Progress = tuple[Grid, ...]


class Phrases:
    """The phrases that one output must contain, each as often as it is listed.

    Different phrases may overlap in the output; occurrences of the same phrase do not.
    """

    def __init__(self, phrases: Iterable[Sequence[int]]) -> None:
        wanted = Counter(tuple(phrase) for phrase in phrases if len(phrase))
        self.phrases = list(wanted)
        self.times = list(wanted.values())
        self.falls = [_falls(phrase) for phrase in self.phrases]
        self.size = sum(map(len, wanted.elements()))  # tokens, if nothing overlaps
        # Remembered, since prefixes grow by one token a step.
        self._progress: Callable[[tuple[int, ...]], Progress] = cache(self._read_all)

    def progress(self, prefix: Sequence[int]) -> Progress:
        """Compute the progress of an output."""
        return self._progress(tuple(prefix))

    def _read_all(self, prefix: tuple[int, ...]) -> Progress:
        if not prefix:
            return ((0, 0),) * len(self.phrases)
        return self.after(self._progress(prefix[:-1]), prefix[-1])

    def after(self, progress: Progress, token: int) -> Progress:
        """Read one more token: the automaton of Knuth, Morris and Pratt, phrase by phrase."""
        parts = zip(self.phrases, self.times, self.falls, progress, strict=True)
        return tuple(
            (count, ready) if count == times else _read(phrase, falls, count, ready, token)
            for phrase, times, falls, (count, ready) in parts
        )

    def met(self, progress: Progress) -> int:
        """Count the tokens of complete phrases, and of a phrase that the output ends in."""
        parts = zip(self.phrases, progress, strict=True)
        whole = sum(len(phrase) * count for phrase, (count, _) in parts)
        return whole + max((ready for _, ready in progress), default=0)

    def helpful(self, progress: Progress) -> set[int]:
        """List the tokens that continue a phrase."""
        parts = zip(self.phrases, self.times, progress, strict=True)
        return {phrase[ready] for phrase, times, (count, ready) in parts if count < times}


def _falls(phrase: tuple[int, ...]) -> list[int]:
    """The failure function: for each prefix of a phrase, its longest proper prefix that ends it."""
    return [
        max((size for size in range(t) if phrase[:size] == phrase[t - size : t]), default=0)
        for t in range(len(phrase))
    ]


def _read(phrase: tuple[int, ...], falls: list[int], count: int, ready: int, token: int) -> Grid:
    while ready and phrase[ready] != token:
        ready = falls[ready]
    ready += phrase[ready] == token
    return (count + 1, 0) if ready == len(phrase) else (count, ready)


class PhraseConstraint:
    """Chooses continuations so that the outputs contain their phrases.

    Beams are shared out among banks, one for each number of phrase tokens that a beam has met, so
    that beams which have paid for a phrase need not compete with those that have not. An output
    may end only when it has all. A beam that could not place the rest before its limit, one phrase
    after the other, is dropped: so phrases are missing only where the model or a rule gives them no
    probability at all. Sentences without phrases are searched as ever.
    """

    groups = 1

    def __init__(
        self, phrases: Sequence[Iterable[Sequence[int]]], max_lengths: Sequence[int]
    ) -> None:
        """Take the phrases of every sentence of a batch, and its limits.

        Raises:
            UsageError: a sentence has less room than its phrases and the end token need.
        """
        self.wanted = [Phrases(each) for each in phrases]
        self.max_lengths = max_lengths
        for n, (wanted, limit) in enumerate(zip(self.wanted, max_lengths, strict=True), 1):
            if wanted.size >= limit:
                raise UsageError(
                    f"Output {n} may have {limit} tokens, the end included, but must contain "
                    f"phrases of {wanted.size}: raise its limit, or demand less of it."
                )

    def __call__(
        self, totals: Scores, prefixes: Prefixes, sentences: Sequence[int], *, end: int
    ) -> Choice:
        """Choose bank by bank where there are phrases, by log-probability where there are none."""
        complete, living, scores, best = top_continuations(totals, end)
        best = best.clone()  # a view of scores
        for row, sentence in enumerate(sentences):
            wanted = self.wanted[sentence]
            if not wanted.phrases:
                continue
            room = max(self.max_lengths[sentence] - prefixes.shape[2] - 2, 0)  # before the end
            found = _choose(totals[row], prefixes[row].tolist(), wanted, room, end)
            complete = [pair for pair in complete if pair[0] != row]
            complete += [(row, beam) for beam in found.complete]
            living[row] = living.new_tensor(found.living)
            scores[row] = scores.new_tensor(found.scores)
            best[row] = found.best
        return Choice(complete, living, scores, best)


class _Row(NamedTuple):
    """A Choice for one sentence."""

    complete: list[int]
    living: list[int]
    scores: list[float]
    best: float


class _Candidate(NamedTuple):
    """One continuation of one beam."""

    score: float
    flat: int  # beam * vocabulary + token
    ends: bool
    met: int  # tokens of phrases


def _choose(
    totals: Float[Tensor, "beam vocabulary"],
    prefixes: list[list[int]],
    wanted: Phrases,
    room: int,
    end: int,
) -> _Row:
    beams = len(totals)
    candidates = _candidates(totals, prefixes, wanted, end)
    if not candidates:  # a rule wants the end now: it comes without the phrases
        choice = top_continuations(totals[None], end)
        complete = [beam for _, beam in choice.complete]
        return _Row(complete, choice.living[0].tolist(), choice.scores[0].tolist(), -torch.inf)
    candidates = [each for each in candidates if wanted.size - each.met <= room] or candidates
    full = [each for each in candidates if each.met == wanted.size]
    complete = [each.flat // totals.shape[1] for each in full[:beams] if each.ends]
    banks: list[list[_Candidate]] = [[] for _ in range(wanted.size + 1)]
    for each in candidates:
        if not each.ends:
            banks[each.met].append(each)
    slots = share_out(beams, [len(bank) for bank in banks])
    kept = [each for bank, size in zip(banks, slots, strict=True) for each in bank[:size]]
    kept.sort(key=lambda each: -each.score)
    missing = beams - len(kept)  # dead beams: any token that is not the end will do
    return _Row(
        complete,
        [each.flat for each in kept] + [int(end == 0)] * missing,
        [each.score for each in kept] + [-torch.inf] * missing,
        max((each.score for each in kept if each.met == wanted.size), default=-torch.inf),
    )


def _candidates(
    totals: Float[Tensor, "beam vocabulary"], prefixes: list[list[int]], wanted: Phrases, end: int
) -> list[_Candidate]:
    """Collect candidate continuations, best first.

    As in the paper the best of all, the best of each beam, and what helps a beam; also the best of
    the beams that have everything, which are an ordinary beam search among themselves.
    """
    beams, vocabulary = totals.shape
    progress = [wanted.progress(prefix) for prefix in prefixes]
    met = [wanted.met(each) == wanted.size for each in progress]
    ready = torch.tensor(met, device=totals.device)
    allowed = totals.clone()
    allowed[~ready, end] = -torch.inf
    flats = set(allowed.flatten().topk(2 * beams).indices.tolist())
    flats |= {beam * vocabulary + token for beam, token in enumerate(allowed.argmax(1).tolist())}
    for beam, each in enumerate(progress):
        flats |= {beam * vocabulary + token for token in wanted.helpful(each)}
    allowed[~ready] = -torch.inf
    best, places = allowed.flatten().topk(2 * beams)
    # Where nothing is allowed, which places a topk of equals gives depends on the machine.
    ordered = sorted(flats | set(places[best > -torch.inf].tolist()))
    candidates = []
    for flat, score in zip(ordered, totals.flatten()[ordered].tolist(), strict=True):
        beam, token = divmod(flat, vocabulary)
        ends = token == end
        if score > -torch.inf and (ready[beam] or not ends):
            after = progress[beam] if ends else wanted.after(progress[beam], token)
            candidates.append(_Candidate(score, flat, ends, wanted.met(after)))
    return sorted(candidates, key=lambda each: -each.score)  # stable: the same for any batch


def share_out(beams: int, waiting: Sequence[int]) -> list[int]:
    """Divide the beams among the banks of candidates; no bank gets more than it can use.

    Shares are equal, with the rest for the last bank, which has met most. What a bank cannot use
    goes to the one below, and what is left at the lowest to the highest that can.
    """
    share, spare = divmod(beams, len(waiting))
    slots = [share] * len(waiting)
    for bank in reversed(range(len(slots))):
        offered = slots[bank] + spare
        slots[bank] = min(offered, waiting[bank])
        spare = offered - slots[bank]
    for bank in reversed(range(len(slots))):
        more = min(spare, waiting[bank] - slots[bank])
        slots[bank] += more
        spare -= more
    return slots

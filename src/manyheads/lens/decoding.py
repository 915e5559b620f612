"""A recorded search, read as one output: what each of its tokens looked at when it was chosen.

A search computes one token at a time, for many beams, and forgets most of them. From the moments
that its records carry (`nn/moments.py`) the way of one output can be followed through the batch,
and its rows put together: then it looks like one pass over the whole output, as in training.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from manyheads.errors import UsageError
from manyheads.nn.alignment import ScoreRecord
from manyheads.nn.attention import AttentionRecord, CachedRecord
from manyheads.nn.masks import causal_mask
from manyheads.nn.moments import CandidateRecord, Moment, Search
from manyheads.nn.recurrent import RecurrentRecord
from manyheads.nn.trace import Record, Site, Trace


class Candidate(NamedTuple):
    """A token that might have come next, and its probability as the model has it."""

    token: int
    probability: float


@dataclass(frozen=True, slots=True, eq=False)
class Decoded:
    """One output of a recorded search."""

    trace: Trace  # of this output alone, like that of one pass over its source and itself
    candidates: list[list[Candidate]]  # of each step, the likeliest first


def decoded(trace: Trace, output: Sequence[int], source: Sequence[int] | None = None) -> Decoded:
    """Put together what was recorded of one output of a search.

    Args:
        trace: what was recorded, of any number of searches.
        output: the tokens that were chosen, the end token included if it was.
        source: the tokens that the model read; needed if several sentences were searched.

    Raises:
        UsageError: no recorded search came by this output, or several sentences did and none is
            named; or not everything was recorded.
    """
    trace = trace.complete()
    moments = _moments(trace)
    sentences = [
        (search, number)
        for search in moments
        for number, tokens in enumerate(search.sources)
        if source is None or _begins(tokens, source)
    ]
    if source is None and len(sentences) > 1:
        raise UsageError(
            f"{len(sentences)} sentences were searched while this was recorded: say which is meant "
            "by the source's tokens, decoded(trace, output, source)."
        )
    for search, number in sentences:
        way = _way(moments[search], number, output)
        if way is not None:
            return _assembled(trace, way, number)
    raise UsageError(
        f"No beam of a recorded search came by the output {list(output)}: record the search itself "
        "(`with record() as trace:` around translate()), and give all of the tokens it chose."
    )


class _Stand(NamedTuple):
    """Where an output stood in one step: the row of its sentence, and its beam of `beams`."""

    row: int
    beam: int
    beams: int


Way = dict[Moment, _Stand]


def _moments(trace: Trace) -> dict[Search, list[Moment]]:
    """List the moments of each search, in order."""
    found: dict[Search, dict[Moment, None]] = {}
    for record in trace:
        moment = getattr(record, "moment", None)
        if moment is not None:
            found.setdefault(moment.search, {})[moment] = None
    return {search: list(moments) for search, moments in found.items()}


def _begins(tokens: Int[Tensor, " token"], with_these: Sequence[int]) -> bool:
    """Compare a padded source with one that is not."""
    wanted = torch.tensor(with_these, device=tokens.device)
    rest = tokens[len(wanted) :]
    alike = len(tokens) >= len(wanted) and torch.equal(tokens[: len(wanted)], wanted)
    return alike and bool((rest == rest[:1]).all())


def _way(moments: Iterable[Moment], sentence: int, output: Sequence[int]) -> Way | None:
    """Find the beam that had read the output at every step; None if there is none."""
    by_step = {moment.step: moment for moment in moments}
    way = {}
    for step in range(len(output) + 1):
        if step not in by_step:
            return None
        moment = by_step[step]
        stand = _stand(moment, sentence, output[: max(step - 1, 0)])
        if stand is None:
            return None
        way[moment] = stand
    return way


def _stand(moment: Moment, sentence: int, said: Sequence[int]) -> _Stand | None:
    row = (moment.sentences == sentence).nonzero()
    if not len(row):
        return None
    read = moment.read[int(row[0, 0])]
    wanted = torch.tensor(said, dtype=torch.long, device=read.device)
    beam = (read[:, 1:] == wanted).all(dim=1).nonzero()  # behind the start token
    # Of beams that have read the same, one is as good as another.
    return _Stand(int(row[0, 0]), int(beam[0, 0]), len(read)) if len(beam) else None


def _assembled(trace: Trace, way: Way, sentence: int) -> Decoded:
    parts: dict[Site, list[Record]] = {}
    candidates = []
    for record in trace:
        moment = getattr(record, "moment", None)
        if moment not in way:
            continue
        stand = way[moment]
        if isinstance(record, CandidateRecord):
            tokens, logs = (
                each[stand.row, stand.beam].tolist()
                for each in (record.tokens, record.log_probabilities.exp())
            )
            candidates.append([Candidate(*each) for each in zip(tokens, logs, strict=True)])
        elif moment.step == 0:
            parts.setdefault(record.site, []).append(_of_sentence(record, sentence))
        else:
            parts.setdefault(record.site, []).append(_of_beam(record, stand))
    return Decoded(Trace([_joined(each) for each in parts.values()]), candidates)


def _of_sentence(record: Record, row: int) -> Record:
    """Take one sentence out of a batch, without its padding."""
    mine = slice(row, row + 1)
    if isinstance(record, RecurrentRecord):
        length = None if record.lengths is None else int(record.lengths[row])
        state = tuple(each[mine] for each in record.state)
        return replace(record, x=record.x[mine, :length], state=state, lengths=None, moment=None)
    assert isinstance(record, AttentionRecord)
    record = replace(record, q=record.q[mine], k=record.k[mine], mask=_of(record.mask, row))
    record = replace(record, moment=None, flow=None)
    return _without_padding(record, own=True)


def _of_beam(record: Record, stand: _Stand) -> Record:
    """Take one beam of one sentence out of a batch: a query, or a token that is read."""
    mine = slice(stand.row, stand.row + 1)
    beam = slice(stand.beam, stand.beam + 1)
    row = stand.row * stand.beams + stand.beam  # where every beam is a row of its own
    each = slice(row, row + 1)
    if isinstance(record, CachedRecord):
        return replace(record, q=record.q[each], k=record.k[each])
    if isinstance(record, RecurrentRecord):
        state = tuple(part[each] for part in record.state)
        return replace(record, x=record.x[each], state=state, moment=None)
    if isinstance(record, ScoreRecord):
        mask, scores = _of(record.mask, stand.row), record.scores[mine, :, beam]
        record = replace(record, scores=scores, mask=mask, moment=None, flow=None)
        return _scores_without_padding(record)
    assert isinstance(record, AttentionRecord)
    mask = _of(record.mask, stand.row)
    record = replace(record, q=record.q[mine, :, beam], k=record.k[mine], mask=mask)
    return _without_padding(replace(record, moment=None, flow=None))


def _of(mask: Tensor | None, row: int) -> Tensor | None:
    """Take the part of a sentence, or what is the same for all."""
    return mask[row : row + 1] if mask is not None and mask.ndim == 4 and len(mask) > 1 else mask


def _length(mask: Tensor | None) -> int | None:
    """Say how many keys come before the padding; None if the mask is not one of padding."""
    return int(mask.sum()) if mask is not None and mask.numel() == mask.shape[-1] else None


def _without_padding(record: AttentionRecord, *, own: bool = False) -> AttentionRecord:
    length = _length(record.mask)
    if length is None:
        return record
    queries = record.q[:, :, :length] if own else record.q
    return replace(record, q=queries, k=record.k[:, :, :length], mask=None)


def _scores_without_padding(record: ScoreRecord) -> ScoreRecord:
    length = _length(record.mask)
    if length is None:
        return record
    return replace(record, scores=record.scores[..., :length], mask=None)


def _joined(parts: Sequence[Record]) -> Record:
    """Make one record of those of all steps at a site."""
    first = parts[0]
    if isinstance(first, RecurrentRecord):
        return replace(first, x=_cat([part.x for part in parts], 1))  # type: ignore[attr-defined]
    if isinstance(first, ScoreRecord):
        return replace(first, scores=_cat([part.scores for part in parts]))  # type: ignore[attr-defined]
    assert isinstance(first, AttentionRecord | CachedRecord)
    q = _cat([part.q for part in parts])  # type: ignore[attr-defined]
    if not any(isinstance(part, CachedRecord) for part in parts):
        return replace(first, q=q)  # the same keys in every step, or only one
    # Self-attention, in a language model behind a prompt that was read at once.
    k = _cat([part.k for part in parts])  # type: ignore[attr-defined]
    return AttentionRecord(first.site, q, k, causal_mask(k.shape[2], k.device), None)


def _cat(parts: Sequence[Tensor], dim: int = 2) -> Tensor:
    return torch.cat(list(parts), dim=dim)

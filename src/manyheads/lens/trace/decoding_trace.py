"""One output of a recorded search: what each of its tokens attended to when it was chosen.

A search computes one token at a time, for many beams, and drops most of them. From the decode
steps of its records (`nn/recording/decode_steps.py`) the beams that led to one output are followed
through the batch, and their rows are put together: the result is like the trace of one pass over
the whole output, as in training.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from manyheads.errors import UsageError
from manyheads.nn.recording.attention_record import ALL, AttentionRecord, take
from manyheads.nn.recording.beam_candidates import CandidateRecord
from manyheads.nn.recording.decode_steps import DecodeStep, Search
from manyheads.nn.recording.token_grid import TokenGrid
from manyheads.nn.recording.trace import LayerId, Record, SequenceRecord, Trace


class Candidate(NamedTuple):
    """A possible next token, and its probability under the model."""

    token: int
    probability: float


@dataclass(frozen=True, slots=True, eq=False)
class Decoded:
    """One output of a recorded search."""

    trace: Trace  # of this output alone, like that of one pass over its source and itself
    candidates: list[list[Candidate]]  # of each step, in order of probability


def decoded(trace: Trace, output: Sequence[int], source: Sequence[int] | None = None) -> Decoded:
    """Put together what was recorded of one output of a search.

    Args:
        trace: what was recorded, of any number of searches.
        output: the tokens that were chosen, the end token included if it was.
        source: the tokens that the model read; needed if several sentences were searched.

    Raises:
        UsageError: no recorded search found this output, or several sentences were searched and
            `source` is None; or not everything was recorded.
    """
    trace = trace.complete()
    steps = _steps(trace)
    sentences = [
        (search, number)
        for search in steps
        for number, tokens in enumerate(search.sources)
        if source is None or _equal_without_padding(tokens, source)
    ]
    if source is None and len(sentences) > 1:
        raise UsageError(
            f"{len(sentences)} sentences were searched while this was recorded: say which is meant "
            "by the source's tokens, decoded(trace, output, source)."
        )
    for search, number in sentences:
        path = _path(steps[search], number, output)
        if path is not None:
            return _assemble(trace, path)
    raise UsageError(
        f"No beam of a recorded search came by the output {list(output)}: record the search itself "
        "(`with record() as trace:` around translate()), and give all of the tokens it chose."
    )


class _Position(NamedTuple):
    """Where in the batch of one step an output is."""

    sentence: int  # row of its sentence
    sentences: int
    beam: int  # of the sentence's; 0 while the sources are encoded
    beams: int  # 1 while the sources are encoded

    @property
    def row(self) -> int:
        """The row where every beam has one of its own."""
        return self.sentence * self.beams + self.beam


Path = dict[DecodeStep, _Position]


def _steps(trace: Trace) -> dict[Search, list[DecodeStep]]:
    """List the steps of each search, in order."""
    found: dict[Search, dict[DecodeStep, None]] = {}
    for record in trace:
        step = getattr(record, "decode_step", None)
        if step is not None:
            found.setdefault(step.search, {})[step] = None
    return {search: list(steps) for search, steps in found.items()}


def _equal_without_padding(padded: Int[Tensor, " token"], tokens: Sequence[int]) -> bool:
    wanted = torch.tensor(tokens, device=padded.device)
    rest = padded[len(wanted) :]
    equal = len(padded) >= len(wanted) and torch.equal(padded[: len(wanted)], wanted)
    return equal and bool((rest == rest[:1]).all())


def _path(steps: Iterable[DecodeStep], sentence: int, output: Sequence[int]) -> Path | None:
    """Find the beam that had read the output so far at every step; None if there is none."""
    by_number = {each.step: each for each in steps}
    path = {}
    for number in range(len(output) + 1):
        if number not in by_number:
            if number == 0:  # an encoder that records nothing, such as convolutions
                continue
            return None
        step = by_number[number]
        position = _position(step, sentence, output[: max(number - 1, 0)])
        if position is None:
            return None
        path[step] = position
    return path


def _position(step: DecodeStep, sentence: int, output: Sequence[int]) -> _Position | None:
    rows = (step.sentences == sentence).nonzero()
    if not len(rows):
        return None
    row, count = int(rows[0, 0]), len(step.sentences)
    if step.step == 0:
        return _Position(row, count, 0, 1)
    read = step.read[row]
    wanted = torch.tensor(output, dtype=torch.long, device=read.device)
    beams = (read[:, 1:] == wanted).all(dim=1).nonzero()  # behind the start token
    # Beams that have read the same tokens are equal.
    return _Position(row, count, int(beams[0, 0]), len(read)) if len(beams) else None


def _assemble(trace: Trace, path: Path) -> Decoded:
    attentions: dict[LayerId, list[_Part]] = {}
    sequences: dict[LayerId, list[SequenceRecord]] = {}
    records: dict[LayerId, Record] = {}  # in the order in which the layers ran
    candidates = []
    for record in trace:
        step = getattr(record, "decode_step", None)
        if step not in path:
            continue
        position = path[step]
        if isinstance(record, CandidateRecord):
            tokens, logs = (
                each[position.sentence, position.beam].tolist()
                for each in (record.tokens, record.log_probabilities.exp())
            )
            candidates.append([Candidate(*each) for each in zip(tokens, logs, strict=True)])
        elif isinstance(record, AttentionRecord):
            attentions.setdefault(record.layer_id, []).append(_part(record, position))
            records[record.layer_id] = record
        elif isinstance(record, SequenceRecord):
            sequences.setdefault(record.layer_id, []).append(record.select(position.row))
            records[record.layer_id] = record
    for layer_id, parts in attentions.items():
        one = parts[0].record
        records[layer_id] = JoinedRecord(layer_id, tuple(parts), one.query_grid, one.key_grid)
    for layer_id, (first, *later) in sequences.items():
        records[layer_id] = first.join(later)
    return Decoded(Trace(list(records.values())), candidates)


class _Part(NamedTuple):
    """Some queries in one row of a recorded attention, and its keys without padding."""

    record: AttentionRecord
    row: int
    first: int
    queries: int
    keys: int

    def weights(self, queries: range) -> Float[Tensor, "1 head query key"]:
        some = slice(self.first + queries.start, self.first + queries.stop)
        return self.record.weights(slice(self.row, self.row + 1), some)[..., : self.keys]


def _part(record: AttentionRecord, position: _Position) -> _Part:
    """Take the queries of one output: a beam is a query, or a row of the batch."""
    batch, _, queries, keys = record.shape
    on_queries = batch == position.sentences
    row = position.sentence if on_queries else position.row
    mask = take(record.mask, slice(row, row + 1), ALL)
    padded = mask is not None and mask.numel() == keys  # the same keys for all queries
    length = int(mask.sum()) if mask is not None and padded else keys
    if position.beams > 1 and on_queries:
        return _Part(record, row, position.beam, 1, length)
    # In self-attention over a padded source the queries are padded too.
    own = padded and queries == keys
    return _Part(record, row, 0, length if own else queries, length)


@dataclass(frozen=True, slots=True, eq=False)
class JoinedRecord:
    """The attention of one output, from the records of all its steps."""

    layer_id: LayerId
    parts: tuple[_Part, ...]
    query_grid: TokenGrid | None  # positions of the queries in an image
    key_grid: TokenGrid | None
    partition: None = None
    values: None = None
    decode_step: None = None

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """One example; its heads, queries and keys."""
        heads = self.parts[0].record.shape[1]
        keys = max(part.keys for part in self.parts)
        return 1, heads, sum(part.queries for part in self.parts), keys

    @property
    def mask(self) -> Bool[Tensor, "query key"] | None:
        """Hides from each query the keys of later steps; padding is left out already."""
        seen = torch.tensor([part.keys for part in self.parts for _ in range(part.queries)])
        keys = int(seen.max())
        return None if bool((seen == keys).all()) else torch.arange(keys) < seen[:, None]

    def weights(
        self, rows: slice = ALL, queries: slice = ALL
    ) -> Float[Tensor, "row head query key"]:
        """Compute the map of some queries in fp32."""
        _, _, count, keys = self.shape
        wanted, first, found = range(count)[queries], 0, []
        for part in self.parts:
            inside = range(max(wanted.start - first, 0), min(wanted.stop - first, part.queries))
            if inside:
                found.append(F.pad(part.weights(inside), (0, keys - part.keys)))
            first += part.queries
        return torch.cat(found, dim=2)[rows]

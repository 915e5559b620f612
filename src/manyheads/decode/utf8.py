"""Whole characters: the byte tokens of an output form valid UTF-8."""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from manyheads.decode.constraints import Rule
from manyheads.nn.shapes import PerBeam, Prefixes, Scores

# The Unicode Standard, table 3-7, "Well-Formed UTF-8 Byte Sequences", as an automaton: of each
# state the bytes that may follow, and the state behind them. State 0 is between two characters.
_BYTES: tuple[dict[tuple[int, int], int], ...] = (
    {
        (0x00, 0x7F): 0,
        (0xC2, 0xDF): 1,
        (0xE0, 0xE0): 4,
        (0xE1, 0xEC): 2,
        (0xED, 0xED): 5,
        (0xEE, 0xEF): 2,
        (0xF0, 0xF0): 6,
        (0xF1, 0xF3): 3,
        (0xF4, 0xF4): 7,
    },
    {(0x80, 0xBF): 0},
    {(0x80, 0xBF): 1},
    {(0x80, 0xBF): 2},
    {(0xA0, 0xBF): 1},  # behind E0: no longer form of a shorter sequence
    {(0x80, 0x9F): 1},  # behind ED: no surrogate
    {(0x90, 0xBF): 2},  # behind F0: no longer form of a shorter sequence
    {(0x80, 0x8F): 2},  # behind F4: nothing above U+10FFFF
)
_LACKING = torch.tensor([0, 1, 2, 3, 2, 2, 3, 3])  # bytes that a character lacks in each state
_LONGEST = 4  # bytes of a character

ByteTokens = tuple[tuple[int, int], ...]  # (token, byte)


class _Tables(NamedTuple):
    """What follows what in one vocabulary."""

    after: Int[Tensor, "8 vocabulary"]  # the state behind a token; -1: the token is not allowed
    opens: Bool[Tensor, "vocabulary"]  # tokens that begin a character and do not end it
    never: Int[Tensor, "banned"]  # tokens that begin no character
    longer: tuple[Int[Tensor, "some"], ...]  # by n: tokens that leave n bytes or more to come


@lru_cache(maxsize=8)
def _tables(
    byte_tokens: ByteTokens, banned: tuple[int, ...], vocabulary: int, device: torch.device
) -> _Tables:
    of_byte = torch.full((len(_BYTES), 256), -1)
    for state, ranges in enumerate(_BYTES):
        for (first, last), behind in ranges.items():
            of_byte[state, first : last + 1] = behind
    after = torch.full((len(_BYTES), vocabulary), -1)
    after[0] = 0
    tokens, values = (list(each) for each in zip(*byte_tokens, strict=True))
    after[:, tokens] = of_byte[:, values]
    after[:, list(banned)] = -1
    for _ in range(_LONGEST - 1):  # what leads only to states without a way on is not allowed
        dead = ~(after >= 0).any(dim=1)
        after[(after >= 0) & dead[after.clamp(min=0)]] = -1
    lacking = _LACKING[after[0].clamp(min=0)]
    return _Tables(
        after.to(device),
        (lacking > 0).to(device),
        torch.tensor([t for t in tokens if after[0, t] < 0], dtype=torch.long, device=device),
        tuple((lacking >= n).nonzero()[:, 0].to(device) for n in range(_LONGEST)),
    )


class WholeCharacters:
    """Allow only outputs whose byte tokens are whole characters.

    Banned are bytes that begin no character, whatever breaks a character off, its end included, and
    a character that does not fit into the limit. Other rules that would leave none of the bytes
    that complete a character are passed over there. Without byte tokens they are all that applies.
    """

    def __init__(
        self,
        byte_tokens: ByteTokens,
        max_lengths: Sequence[int],
        rules: Sequence[Rule] = (),
        *,
        banned: Sequence[int] = (),
    ) -> None:
        """Take the byte tokens of a vocabulary.

        Args:
            byte_tokens: (token, byte).
            max_lengths: tokens that each output may have, without an end that is forced.
            rules: other rules.
            banned: tokens that are never allowed, so that no character needs one.
        """
        self.byte_tokens = byte_tokens
        self.max_lengths = max_lengths
        self.rules = rules
        self.banned = tuple(banned)

    def __call__(self, scores: Scores, prefixes: Prefixes, sentences: Sequence[int]) -> Scores:
        """Ban what would not be UTF-8."""
        if not self.byte_tokens:
            return self._others(scores, prefixes, sentences)
        tables = _tables(self.byte_tokens, self.banned, scores.shape[-1], scores.device)
        state = _state(tables, prefixes)
        if state is None:
            scores = self._others(scores, prefixes, sentences)
            return self._between(tables, scores, prefixes, sentences)
        inside = state > 0
        wrong = tables.after[state[inside]] < 0
        kept = scores[inside].masked_fill(wrong, -torch.inf)
        scores = self._others(scores, prefixes, sentences)
        ruled = scores[inside].masked_fill(wrong, -torch.inf)
        stuck = ruled.amax(dim=-1, keepdim=True) == -torch.inf
        scores = self._between(tables, scores, prefixes, sentences)
        scores[inside] = torch.where(stuck, kept, ruled)
        return scores

    def _between(
        self, tables: _Tables, scores: Scores, prefixes: Prefixes, sentences: Sequence[int]
    ) -> Scores:
        """Ban what may not follow a whole character."""
        scores.index_fill_(-1, tables.never, -torch.inf)
        for row, n in enumerate(sentences):
            room = self.max_lengths[n] - prefixes.shape[2]
            if 0 < room < _LONGEST:
                scores[row].index_fill_(-1, tables.longer[room], -torch.inf)
        return scores

    def _others(self, scores: Scores, prefixes: Prefixes, sentences: Sequence[int]) -> Scores:
        for rule in self.rules:
            scores = rule(scores, prefixes, sentences)
        return scores


def _state(tables: _Tables, prefixes: Prefixes) -> PerBeam | None:
    """Run over the last tokens, more than which no character can be open; None: none is open."""
    last = prefixes[..., -(_LONGEST - 1) :]
    if not tables.opens[last].any():
        return None
    state = torch.zeros_like(last[..., 0])
    for token in last.unbind(dim=-1):
        follows = tables.after[state, token]
        # The first tokens may end a character from before, and a forced prefix may be anything.
        state = torch.where(follows < 0, tables.after[0, token].clamp(min=0), follows)
    return state

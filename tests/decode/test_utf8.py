"""Byte tokens of outputs are whole characters in every search, by Python's own decoder."""

import math
from collections.abc import Sequence
from functools import cache
from itertools import groupby
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from manyheads.decode.beam import beam_search
from manyheads.decode.beam_selection import TOP_K, Diverse
from manyheads.decode.constraints import ForcedEnd, ForcedPrefix, NoRepeatNgram, Rule
from manyheads.decode.greedy import greedy_search
from manyheads.decode.phrases import PhraseConstraint
from manyheads.decode.sampling import sample
from manyheads.decode.step import Hypothesis
from manyheads.decode.utf8 import WholeCharacters
from tests.decode.tree import END, START, Next, Prefix, Tree, changed, random_tree

TEXT = 2  # a token that is text
# Every border of table 3-7 of the Unicode Standard, and bytes that no character has.
BYTES = bytes.fromhex("00 41 7f 80 8f 90 9f a0 bf c0 c1 c2 df e0 e1 ec ed ee ef f0 f1 f3 f4 f5 ff")
TOKENS = tuple((3 + n, byte) for n, byte in enumerate(BYTES))
OF = dict(TOKENS)
TOKEN = {byte: token for token, byte in TOKENS}
VOCABULARY = 3 + len(BYTES)
ENDS: dict[str, Any] = {"start": START, "end": END}

thorough = settings(deadline=None, derandomize=True, max_examples=12)
seeds = st.integers(0, 10_000)
many_limits = st.lists(st.integers(1, 7), min_size=1, max_size=3)


def runs(tokens: Sequence[int]) -> list[bytes]:
    """The byte strings of an output, which text and special tokens divide."""
    return [
        bytes(OF[token] for token in run)
        for are_bytes, run in groupby(tokens, key=OF.__contains__)
        if are_bytes
    ]


def valid(tokens: Sequence[int]) -> bool:
    return all(map(decodes, runs(tokens)))


@cache
def decodes(run: bytes) -> bool:
    try:
        run.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def lacking(tokens: Sequence[int]) -> float:
    """Bytes that an output lacks to be valid; infinite if none can make it so."""
    *_, last = [b"", *runs(tokens)] if tokens and tokens[-1] in OF else [b""]
    return bytes_lacking(last) if valid(tokens[: len(tokens) - len(last)]) else math.inf


@cache
def bytes_lacking(run: bytes) -> float:
    """Tried out; only the second byte of a character has borders of its own."""
    if decodes(run):
        return 0
    ways = (
        (n, bytes([second, 0x80, 0x80][:n])) for n in (1, 2, 3) for second in (0x80, 0x90, 0xA0)
    )
    return min((n for n, way in ways if decodes(run + way)), default=math.inf)


def obedient(after: Next, limits: Sequence[int]) -> Next:
    """A model that gives a token no probability if the output could not become valid behind it."""

    def of_source(source: int, prefix: Prefix) -> list[float]:
        def change(prefix: Prefix, scores: list[float]) -> list[float]:
            left = limits[source] - len(prefix) - 1
            return [
                score if lacking([*prefix, token]) <= left * (token != END) else -math.inf
                for token, score in enumerate(scores)
            ]

        return changed(after, change)(source, prefix)

    return of_source


def sources(count: int) -> Tensor:
    return torch.arange(count)[:, None]


def byte_lover(seed: int) -> Next:
    """Random probabilities; text and the end are rare."""

    def change(prefix: Prefix, scores: list[float]) -> list[float]:
        return [score - 3 * (token in (START, END, TEXT)) for token, score in enumerate(scores)]

    return cache(changed(random_tree(seed, VOCABULARY), change))


def searches(after: Next, limits: list[int], rules: list[Rule]) -> list[Hypothesis]:
    """All outputs of all searches."""
    tree, source = Tree(after, carries=True), sources(len(limits))
    found = greedy_search(tree, source, limits, rules=rules, **ENDS)
    room = [[[TOKEN[0xC2], TOKEN[0x80]]] if limit > 2 else [] for limit in limits]
    for choose in (TOP_K, Diverse(2, 1.0), PhraseConstraint(room, limits)):
        for best in beam_search(
            tree, source, limits, beams=4, n_best=9, rules=rules, choose=choose, **ENDS
        ):
            found += best
    for drawn in sample(tree, source, limits, limits, samples=3, rules=rules, **ENDS):
        found += drawn
    return found


@thorough
@given(seed=seeds, limits=many_limits)
def test_outputs_are_whole_characters(seed: int, limits: list[int]) -> None:
    """In every search, also where the limit cuts it off."""
    rules: list[Rule] = [WholeCharacters(TOKENS, limits)]
    for each in searches(byte_lover(seed), limits, rules):
        assert valid(each.tokens), runs(each.tokens)


@thorough
@given(seed=seeds, limits=many_limits)
def test_other_rules_leave_them_whole(seed: int, limits: list[int]) -> None:
    """No repetition, a forced end, a forced prefix."""
    whole = WholeCharacters(
        TOKENS,
        [limit - 1 for limit in limits],
        [NoRepeatNgram(1), ForcedEnd(limits, end=END)],
    )
    for each in searches(byte_lover(seed), limits, [whole]):
        assert valid(each.tokens), runs(each.tokens)
        assert each.finished
    prefix = [TOKEN[0xC2]]  # half a character: it is completed
    longer = [limit + 1 for limit in limits]
    forced = ForcedPrefix([prefix] * len(limits), [WholeCharacters(TOKENS, longer)])
    for each in greedy_search(
        Tree(byte_lover(seed), carries=True), sources(len(limits)), longer, rules=[forced], **ENDS
    ):
        assert valid(each.tokens), runs(each.tokens)


@thorough
@given(seed=seeds, limits=many_limits, beams=st.integers(1, 4))
def test_it_is_a_model_that_knows_utf8(seed: int, limits: list[int], beams: int) -> None:
    """The search finds what it finds where the model itself gives other bytes no probability."""
    after, source = byte_lover(seed), sources(len(limits))
    rules = [WholeCharacters(TOKENS, limits)]
    ours = beam_search(Tree(after), source, limits, beams=beams, n_best=beams, rules=rules, **ENDS)
    wanted = beam_search(
        Tree(obedient(after, limits)), source, limits, beams=beams, n_best=beams, **ENDS
    )
    for found, expected in zip(ours, wanted, strict=True):
        assert [(each.tokens, each.score) for each in found] == [
            (each.tokens, each.score) for each in expected
        ]


@pytest.mark.parametrize(
    ("prefix", "room", "allowed"),
    [
        ("", 9, "00 41 7f c2 df e0 e1 ec ed ee ef f0 f1 f3 f4"),
        ("", 3, "00 41 7f c2 df e0 e1 ec ed ee ef"),
        ("", 2, "00 41 7f c2 df"),
        ("", 1, "00 41 7f"),
        ("c2", 9, "80 8f 90 9f a0 bf"),
        ("e0", 9, "a0 bf"),
        ("ed", 9, "80 8f 90 9f"),
        ("f0", 9, "90 9f a0 bf"),
        ("f4", 9, "80 8f"),
        ("f4 80 80", 9, "80 8f 90 9f a0 bf"),
        ("f4 80 80 80", 2, "00 41 7f c2 df"),
        ("e1 80 80 c2 80", 2, "00 41 7f c2 df"),
    ],
)
def test_by_hand(prefix: str, room: int, allowed: str) -> None:
    """The bytes that may follow; text and the end may follow only between characters."""
    tokens = [TOKEN[byte] for byte in bytes.fromhex(prefix)]
    rule = WholeCharacters(TOKENS, [len(tokens) + room])
    scores = torch.full((1, 1, VOCABULARY), -1.5)
    left = rule(scores, torch.tensor([[tokens]], dtype=torch.long), [0])[0, 0]
    found = {token for token, score in enumerate(left.tolist()) if score == -1.5}
    others = {START, END, TEXT} if not lacking(tokens) else set()
    assert found == {TOKEN[byte] for byte in bytes.fromhex(allowed)} | others


def test_a_character_that_cannot_be_completed_is_not_begun() -> None:
    """Without bytes of the last place, no sequence of several bytes leads anywhere."""
    few = tuple((token, byte) for token, byte in TOKENS if byte not in (0x80, 0x8F))
    banned = [TOKEN[byte] for byte in (0x90, 0x9F, 0xA0)]
    scores = torch.zeros(1, 1, VOCABULARY)
    prefixes = torch.empty(1, 1, 0, dtype=torch.long)
    open_to_bf = WholeCharacters(few, [9], banned=banned)(scores.clone(), prefixes, [0])[0, 0]
    assert open_to_bf[TOKEN[0xC2]] == 0  # c2 bf is a character
    assert open_to_bf[TOKEN[0xF4]] == -math.inf  # f4 needs 80 to 8f
    nothing = WholeCharacters(few, [9], banned=[*banned, TOKEN[0xBF]])(scores, prefixes, [0])[0, 0]
    assert nothing[TOKEN[0xC2]] == -math.inf
    assert nothing[TOKEN[0x41]] == 0


def test_without_byte_tokens_it_changes_nothing() -> None:
    """Scores are those that came in, the same tensor."""
    scores = torch.zeros(1, 2, 5)
    assert WholeCharacters((), [3])(scores, torch.zeros(1, 2, 1).long(), [0]) is scores
    assert scores.eq(0).all()

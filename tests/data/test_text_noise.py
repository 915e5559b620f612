"""Noise on training pairs, by hand: what changes, on which side, and what must not."""

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyheads.data.augment.text_noise import (
    TextNoise,
    change_apostrophes,
    contract,
    drop_end_mark,
    joined_pairs,
    lower_source,
    random_name,
    random_number,
    replace_copied,
)


def draw(seed: int = 0) -> random.Random:
    return random.Random(seed)


def test_lower_case_of_the_source_only() -> None:
    """German nouns keep their capital."""
    assert lower_source("I like Tom.", "Ich mag Tom.") == ("i like tom.", "Ich mag Tom.")


@pytest.mark.parametrize(
    ("pair", "expected"),
    [
        (("Go!", "Geh!"), ("Go", "Geh")),
        (("Why?!", "Warum?"), ("Why", "Warum")),
        (("어디예요?", "Where is it?"), ("어디예요", "Where is it")),
        (("A title", "Ein Titel."), ("A title", "Ein Titel.")),  # one side has none: both stay
        (("...", "..."), ("...", "...")),  # nothing would be left
        (("at 3.5", "um 3.5"), ("at 3.5", "um 3.5")),
    ],
)
def test_end_marks(pair: tuple[str, str], expected: tuple[str, str]) -> None:
    """They go on both sides or on neither."""
    assert drop_end_mark(*pair) == expected


@pytest.mark.parametrize(
    ("source", "other"),
    [
        ("I'm sure you won't go.", "I am sure you will not go."),
        ("Do not ask.", "Don't ask."),
        ("He said I am late.", "He said I'm late."),
        ("It isn't", "It is not"),
        ("Tom's dog", "Tom's dog"),  # ambiguous: is, has or a possessive
    ],
)
def test_contractions_go_both_ways(source: str, other: str) -> None:
    """And back again."""
    assert contract(source, "x") == (other, "x")
    assert contract(other, "x") == (source, "x")


def test_apostrophes_go_or_become_curly() -> None:
    """Both occur."""
    found = {change_apostrophes('"Don\'t!"', "x", draw=draw(seed))[0] for seed in range(20)}
    assert found == {'"Dont!"', "“Don’t!”"}


def test_copied_names_and_numbers_change_alike() -> None:
    """The same new name on both sides, the genitive with it; digits keep their form."""
    source, target = replace_copied(
        "Tom's train to Bremen leaves at 14:35.", "Toms Zug nach Bremen geht um 14:35.", draw=draw()
    )
    found = re.fullmatch(r"(\w+)'s train to (\w+) leaves at (\d\d:\d\d)\.", source)
    assert found
    name, town, time = found.groups()
    assert target == f"{name}s Zug nach {town} geht um {time}."
    assert not {"Tom", "Bremen", "14:35"} & {name, town, time}


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("Mary is here.", "Maria ist hier."),  # translated, not copied
        ("The park is big.", "Der Park ist groß."),  # a noun, not a name
        ("Tom met Tom.", "Tom traf ihn."),  # not as often
        ("It is 1,000 km.", "Es sind 1.000 km."),
        ("The USA and I", "Die USA und ich"),
    ],
)
def test_what_is_not_copied_stays(source: str, target: str) -> None:
    """Only what both sides have equally often is a copy."""
    assert replace_copied(source, target, draw=draw()) == (source, target)


@given(st.integers(0, 2**32))
def test_random_names_and_numbers(seed: int) -> None:
    """A name is one capitalised word that can take a genitive s; a number keeps its form."""
    name = random_name(draw(seed))
    assert name.istitle()
    assert name.isalpha()
    number = random_number("120.5", draw(seed))
    assert re.fullmatch(r"[1-9]\d\d\.\d", number)


@given(st.text(), st.text(), st.integers(0, 2**32 - 1))
def test_a_draw_is_a_function_of_its_seed(source: str, target: str, seed: int) -> None:
    """Any text passes; without shares nothing changes."""
    every = TextNoise(
        lowercase=0.5, end_mark=0.5, contractions=0.5, apostrophes=0.5, names=0.5, joined=0.5
    )
    assert every(source, target, seed) == every(source, target, seed)
    assert TextNoise()(source, target, seed) == (source, target)


def test_shares_are_shares() -> None:
    """Of 2,000 pairs about a tenth: three standard deviations are 2 percent points."""
    noise = TextNoise(lowercase=0.1)
    changed = sum(noise("A", "A", seed)[0] == "a" for seed in range(2000))
    assert abs(changed / 2000 - 0.1) < 0.02
    assert noise.changes_pairs
    assert not TextNoise(joined=1).changes_pairs


def test_joined_pairs_stay_aligned() -> None:
    """Two sentences in one line on both sides; one without an end mark is never first."""
    sources, targets = ["a.", "b!", "c"], ["A.", "B!", "C"]
    found = list(joined_pairs(sources, targets, 20.0, seed=0))
    assert 20 < len(found) <= 60  # a third begins with "c"
    assert all(target == source.upper() for source, target in found)
    assert {source for source, _ in found} == {f"{a} {b}" for a in ("a.", "b!") for b in sources}

"""Bins of sentences by length."""

from hypothesis import given
from hypothesis import strategies as st

from manyheads.tasks.translate.length_bins import WORDS, length_bins


def test_bins_of_words() -> None:
    """Limits belong to the bin below; empty bins are left out; the last has no end."""
    sources = ["word " * count for count in (1, 5, 6, 51, 900)]
    unit, bins = length_bins(sources, "en")
    assert unit == "words"
    assert bins == [(1, 5, [0, 1]), (6, 10, [2]), (51, None, [3, 4])]


def test_languages_without_spaces() -> None:
    """Characters are counted; Korean has spaces."""
    assert length_bins(["今日は寒い。"], "ja") == ("characters", [(1, 10, [0])])
    assert length_bins(["오늘은 춥다."], "ko")[0] == "words"
    for code in ("zh_CN", "zh-Hans", "zho", "cmn", "jpn", "ja_JP", "tha_Thai"):
        assert length_bins(["今日は寒い。"], code)[0] == "characters"


@given(st.lists(st.integers(1, 200)))
def test_every_sentence_is_in_one_bin(lengths: list[int]) -> None:
    """And in the right one: so counts of bins add up to the corpus."""
    _, bins = length_bins(["a " * length for length in lengths], "en")
    members = [index for each in bins for index in each.members]
    assert sorted(members) == list(range(len(lengths)))
    for each in bins:
        assert each.last in (*WORDS, None)
        for index in each.members:
            assert each.first <= lengths[index] <= (each.last or 200)

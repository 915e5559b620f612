"""Corpora larger than memory: found by their size, named like any other, sampled fairly."""

from collections import Counter
from pathlib import Path

import pytest

from manyheads.data.text import corpus as streamed
from manyheads.data.text.corpus import Corpus, StreamedCorpus, read_bounded, read_parallel
from manyheads.data.text.formats import Pair, read_pairs
from tests.made import write_lines


def corpus(count: int, sample_size: int = 5) -> StreamedCorpus:
    """Pairs "0" - "-0", "1" - "-1", ... on every second line of a file."""
    return StreamedCorpus(
        lambda: (Pair(2 * i + 1, str(i), f"-{i}") for i in range(count)), "made", (), sample_size
    )


def test_the_size_of_the_text_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to the limit, counted in characters of both sides, a corpus is held in memory."""
    made = corpus(3)  # 0 -0 1 -1 2 -2: nine characters
    for limit, kind in [(9, Corpus), (8, StreamedCorpus)]:
        monkeypatch.setattr(streamed, "IN_MEMORY", limit)
        read = read_bounded(made.read, "made", ("hash",))
        assert type(read) is kind
        assert list(read.pairs()) == [("0", "-0"), ("1", "-1"), ("2", "-2")]
        assert (read.origin, read.hashes) == ("made", ("hash",))


def test_pairs_are_named_as_if_they_were_in_memory(tmp_path: Path) -> None:
    """By the lines of a file whose records span several."""
    path = tmp_path / "pairs.csv"
    write_lines(path, ["en,de", 'one,"eins', '"', "two,zwei", "three,drei"])
    held = read_parallel(path, "en", "de")
    left = StreamedCorpus(lambda: read_pairs(path, "en", "de"), str(path), (), 1)
    for indices in ([0], [2, 0], [1, 2, 0]):
        assert left.describe(indices) == held.describe(indices)
    assert left.describe([2, 1]) == f"{path}, lines 4, 5"


def test_a_sample_is_of_different_pairs() -> None:
    """As many as are held, sources beside their targets; the same for the same seed."""
    sources, targets = corpus(40).sample(seed=1)
    assert len(set(sources)) == 5
    assert targets == [f"-{source}" for source in sources]
    assert corpus(40).sample(seed=1) == (sources, targets)
    assert corpus(40).sample(seed=2) != (sources, targets)


def test_every_pair_is_as_likely(monkeypatch: pytest.MonkeyPatch) -> None:
    """5 of 12, drawn 1,200 times: each about 500 times (17 is one standard deviation)."""
    monkeypatch.setattr(streamed, "CHUNK", 3)
    counts = Counter(source for seed in range(1200) for source in corpus(12).sample(seed)[0])
    assert len(counts) == 12
    assert all(abs(count - 500) < 5 * 17 for count in counts.values())

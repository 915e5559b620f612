"""A corpus as token ids: the same from memory and from files, and files that can be trusted."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from manyheads.data.tokenizers import token_store
from manyheads.data.tokenizers.token_store import TokenStore, encode_in_memory, encode_on_disk
from manyheads.data.tokenizers.tokenizer import Tokenizer, TokenizerConfig, Tokenizers
from tests.made import numbers

PAIRS = [("one two", "zwei eins"), ("three 🙂", "drei 🙂"), ("four", "vier")]
EVERY = np.arange(3)


@cache
def tokenizers() -> Tokenizers:
    """Two vocabularies, as different as their languages."""
    sides = (Tokenizer.train(lines, TokenizerConfig(size=300)) for lines in numbers(100, 0))
    return Tokenizers(*sides)


def nobody() -> Iterator[tuple[str, str]]:
    """Pairs that must not be read."""
    yield from ()
    raise AssertionError("encoded again")


def same(one: TokenStore, other: TokenStore) -> bool:
    return one.tokens(EVERY) == other.tokens(EVERY)


@pytest.mark.parametrize("texts", [False, True])
def test_memory_and_disk_hold_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, texts: bool
) -> None:
    """Each side in its own vocabulary, without start and end; encoded in chunks, or at once."""
    expected = tuple(t.encode([p[i] for p in PAIRS]) for i, t in enumerate(tokenizers()))
    in_memory = encode_in_memory(iter(PAIRS), tokenizers(), texts=texts)
    monkeypatch.setattr(token_store, "CHUNK", 2)
    on_disk = encode_on_disk(iter(PAIRS), tokenizers(), tmp_path / "cache", "key", texts=texts)
    for store in (in_memory, on_disk):
        assert store.tokens(EVERY) == expected
        assert store.tokens(np.array([2, 0])) == tuple([s[2], s[0]] for s in expected)
        assert len(store) == 3
        if texts:
            assert list(zip(*store.texts(EVERY), strict=True)) == PAIRS


def test_files_are_found_again(tmp_path: Path) -> None:
    """As a resumed run does: the corpus is not even read."""
    first = encode_on_disk(PAIRS, tokenizers(), tmp_path, "key")
    again = encode_on_disk(nobody(), tokenizers(), tmp_path, "key")
    assert same(first, again)


def test_another_key_is_another_corpus(tmp_path: Path) -> None:
    """What it replaces is removed."""
    encode_on_disk(PAIRS, tokenizers(), tmp_path, "key")
    other = encode_on_disk(PAIRS[::-1], tokenizers(), tmp_path, "other")
    assert same(other, encode_in_memory(PAIRS[::-1], tokenizers()))
    assert [path.name for path in tmp_path.iterdir()] == ["other"]


@pytest.mark.parametrize("name", ["source.ids", "target.ids", "source.ids.offsets.npy"])
@pytest.mark.parametrize("damage", ["cut off", "gone"])
def test_damaged_files_are_written_anew(tmp_path: Path, name: str, damage: str) -> None:
    """A file that is shorter than its offsets say, or missing, is not trained on."""
    whole = encode_on_disk(PAIRS, tokenizers(), tmp_path, "key").tokens(EVERY)
    path = tmp_path / "key" / name
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-2])
    assert encode_on_disk(PAIRS, tokenizers(), tmp_path, "key").tokens(EVERY) == whole


def test_a_kill_leaves_nothing_to_be_mistaken(tmp_path: Path) -> None:
    """Files have their final place only when they are whole."""

    def killed() -> Iterator[tuple[str, str]]:
        yield PAIRS[0]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        encode_on_disk(killed(), tokenizers(), tmp_path, "key")
    assert not (tmp_path / "key").exists()
    encode_on_disk(PAIRS, tokenizers(), tmp_path, "key")
    assert [path.name for path in tmp_path.iterdir()] == ["key"]  # the remains are gone

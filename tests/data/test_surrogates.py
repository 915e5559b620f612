"""Half of a surrogate pair: refused wherever a text becomes tokens."""

import pytest

from manyheads.data.text.encoding import is_valid_unicode, reject_surrogates
from manyheads.data.tokenizers.characters import Characters
from manyheads.data.tokenizers.tokenizer import Tokenizer, TokenizerConfig
from manyheads.errors import DataError

HALF = "one \ud83d two"  # of U+1F600, whose other half is \ude00


def test_a_pair_is_a_character_and_a_half_is_not() -> None:
    """A plane beyond the first is no half, nor are bytes that were decoded rightly."""
    assert is_valid_unicode("\U0001f600 \u3131 \u0000")
    assert not is_valid_unicode(HALF)
    assert not is_valid_unicode(b"\xff".decode("utf-8", "surrogateescape"))


def test_the_place_is_shown() -> None:
    """Of a long text only what stands around it, in signs that any terminal can print."""
    with pytest.raises(DataError, match=r"not valid UTF-8.*iconv") as caught:
        reject_surrogates(["fine", "a" * 500 + HALF + "b" * 500])
    assert r"one \ud83d two" in str(caught.value)
    assert str(caught.value).isascii()
    assert len(str(caught.value)) < 250


def test_tokenizers_refuse_it() -> None:
    """sentencepiece would raise TypeError, or RuntimeError."""
    tokenizer = Tokenizer.train(["one two three"] * 4, TokenizerConfig(size=300))
    for read in (lambda: tokenizer.encode(["one", HALF]), lambda: tokenizer.pieces(HALF)):
        with pytest.raises(DataError, match="contains a lone surrogate"):
            read()
    assert tokenizer.decode(tokenizer.encode(["one \U0001f600"])) == ["one \U0001f600"]


def test_characters_refuse_it() -> None:
    """It would be an unknown character, and could not be printed."""
    with pytest.raises(DataError, match="contains a lone surrogate"):
        Characters("ab").encode(HALF)

"""A tag in front of a source: one token, whose text may stand there or not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyheads.data.tokenizers.tagged_tokenizer import TaggedTokenizer, with_tag
from manyheads.data.tokenizers.tokenizer import PairTokenizerConfig, Tokenizer, Tokenizers
from manyheads.errors import UsageError

TAGS = ("<polite>", "<plain>")
CONFIG = PairTokenizerConfig(size=320, symbols=TAGS, tag="<polite>")
PLAIN = Tokenizer.train(["hello there, you are nice", "where do you go?"] * 20, CONFIG)
TAGGED = TaggedTokenizer(PLAIN.model, TAGS, "<polite>")


@given(st.text("helo yu<>polaint", max_size=30))
def test_one_token_in_front(text: str) -> None:
    """The rest is what it would be without."""
    for tag, given_text in (("<polite>", text), ("<plain>", f"<plain>{text}")):
        if text.startswith(TAGS):
            continue
        rest = text if tag == "<polite>" else text.lstrip(" ")
        (ids,) = TAGGED.encode([given_text])
        assert TAGGED.piece(ids[0]) == tag
        assert ids[1:] == PLAIN.encode([rest])[0]
        assert [piece.id for piece in TAGGED.pieces(given_text)] == ids


def test_tokens_cover_the_characters_of_the_text() -> None:
    """A tag that stands there covers itself; one that does not, nothing."""
    spans = [(piece.begin, piece.end) for piece in TAGGED.pieces("hello")]
    assert spans[0] == (0, 0)
    text = "<plain> hello"
    tag, *pieces = TAGGED.pieces(text)
    assert text[tag.begin : tag.end] == "<plain> "
    assert "".join(text[piece.begin : piece.end] for piece in pieces) == "hello"


def test_sampled_segmentations_and_none() -> None:
    """They begin with the tag as well."""
    ids = TAGGED.sample("<plain> hello there", 0.1, 3)
    assert TAGGED.piece(ids[0]) == "<plain>"
    assert PLAIN.decode([ids[1:]]) == ["hello there"]
    assert TAGGED.encode([]) == []


def test_another_tag_for_texts_without_one() -> None:
    """With its brackets or without; one that stands in the text counts more."""
    both = Tokenizers(TAGGED, PLAIN)
    for name in ("plain", "<plain>"):
        source = with_tag(both, name).source
        assert [source.piece(ids[0]) for ids in source.encode(["hello", "<polite> hello"])] == [
            "<plain>",
            "<polite>",
        ]
    with pytest.raises(UsageError, match=r"no tag 'plan'.*'plain'.*Its tags: polite, plain"):
        with_tag(both, "plan")
    with pytest.raises(UsageError, match="reads no tags: leave `tag` out"):
        with_tag(Tokenizers(PLAIN, PLAIN), "plain")


def test_a_tag_is_one_of_the_symbols() -> None:
    """Or the vocabulary would not have it."""
    with pytest.raises(ValueError, match="must be one of symbols"):
        PairTokenizerConfig(symbols=("<a>",), tag="<b>")

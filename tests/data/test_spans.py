"""Spans: what is read for the characters of a document, cut and written back."""

from hypothesis import given
from hypothesis import strategies as st

from manyheads.data.documents.placeholders import find
from manyheads.data.documents.spans import (
    Markup,
    Part,
    Span,
    cut_spans,
    one_space,
    paragraphs,
    plain,
)

SPANS = st.lists(
    st.one_of(
        st.text("abc ", min_size=1, max_size=5).map(plain),
        st.builds(Span, st.text("xyz", max_size=4), st.text("abc", max_size=4)),
    )
)


@given(SPANS, st.lists(st.integers(0, 30)))
def test_cutting_loses_nothing(spans: list[Span], places: list[int]) -> None:
    """One piece more than places; a span that is read as something else stays whole."""
    pieces = cut_spans(spans, places)
    assert len(pieces) == len(places) + 1
    for field in (0, 1):
        joined = "".join(span[field] for piece in pieces for span in piece)
        assert joined == "".join(span[field] for span in spans)
    length = sum(len(span.text) for span in spans)
    if all(span.source == span.text for span in spans):
        begins = [sum(len(s.text) for p in pieces[: n + 1] for s in p) for n in range(len(places))]
        assert begins == [min(place, length) for place in sorted(places)]


def test_markup_is_numbered() -> None:
    """Pairs have one number; what has no partner is a position; a word of its own is in braces."""
    pieces: list[Span | Markup] = [
        Markup("**", "open", "strong"),
        plain("a"),
        Markup("`b`", "opaque"),
        Markup("**", "close", "strong"),
        Markup("</i>", "close", "i"),
    ]
    (spans,) = paragraphs(pieces)
    text = "".join(span.text for span in spans)
    assert text == "<g1>a{x3}</g1><x5/>"
    assert [item.kind for item in find(text)] == ["tag", "placeholder", "tag", "tag"]
    part = Part("**a`b`**</i>", False, spans, str.upper)
    assert part.write("c {x3} <g1>d</g1><x5/>") == "C `b` **D**</i>"


def test_a_text_with_such_tags_of_its_own() -> None:
    """Other tags are chosen, so that nothing is mixed up."""
    (spans,) = paragraphs([plain("{x1} <g7> "), Markup("`b`", "opaque")])
    assert "".join(span.text for span in spans) == "{x1} <g7> {x_2}"


def test_hidden_text_and_breaks() -> None:
    """What a tag hides is one word; a paragraph ends where markup says so."""
    code = Markup("<code>", "open", "code", hides=True)
    pieces: list[Span | Markup] = [
        plain("a "),
        code,
        code,
        plain("b"),
        *[Markup("</code>", "close", "code")] * 2,
    ]
    pieces += [Markup("<p>", "open", "p", breaks=True), Markup("<p>", "open", "p", breaks=True)]
    assert list(paragraphs([*pieces, plain("c")])) == [
        [plain("a "), Span("<code><code>b</code></code>", "{x2}", "<code><code>b</code></code>")],
        [Span("<p><p>", "")],
        [plain("c")],
    ]


def test_white_space_is_one_space() -> None:
    """But a space that may not be broken."""
    assert list(one_space("a \n b\xa0 c")) == [plain("a"), Span(" \n ", " "), plain("b\xa0 c")]

"""Images with texts: every form is read as the same set, and what is wrong is named."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manyheads.data.images.captioned_images import CaptionedImages
from manyheads.data.images.image_set import Preprocessing
from tests.captioned import FORMS, PAIRS, Pair, colour, contents, expected, read


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_the_same_set(form: str, tmp_path: Path) -> None:
    """Images, texts, languages and their order."""
    found = read(FORMS[form](tmp_path, PAIRS))
    assert contents(found) == expected(PAIRS)
    assert found.owners.tolist() == [0, 0, 0, 1, 2, 2]
    assert (len(found), found.images.classes, found.images.left_out) == (3, [], ())
    assert len(set(found.images.names)) == 3
    assert all(len(digest) == 64 for digest in found.images.hashes)


# Whatever a line of a text file can hold; a byte order mark would be taken for one.
LINES = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufeff"), min_size=1
).filter(str.strip)
TEXTS = st.lists(LINES, max_size=3)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(TEXTS, TEXTS).filter(any), min_size=1, max_size=4))
def test_any_texts(
    tmp_path_factory: pytest.TempPathFactory, texts: list[tuple[list[str], list[str]]]
) -> None:
    """Quotes, separators, spaces and signs of every script stay as they are."""
    pairs = [Pair(colour(n), {"en": en, "ko": ko}) for n, (en, ko) in enumerate(texts)]
    for form in FORMS.values():
        found = read(form(tmp_path_factory.mktemp("form"), pairs))
        assert contents(found) == expected(pairs), form.__name__


def test_parts(tmp_path: Path) -> None:
    """Images in any order, or twice, take their captions along."""
    found = read(FORMS["parquet"](tmp_path, PAIRS))
    part = found.select(np.array([2, 0, 2]))
    all_pairs = expected(PAIRS)
    assert contents(part) == [all_pairs[2], all_pairs[0], all_pairs[2]]
    assert part.owners.tolist() == [0, 0, 1, 1, 1, 2, 2]
    assert list(part.captions(1)) == [2, 3, 4]
    assert len(found.select(np.array([], dtype=int))) == 0


def test_images_that_cannot_be_read(tmp_path: Path) -> None:
    """Their texts go with them; a name may occur twice."""
    data = FORMS["beside"](tmp_path, PAIRS)
    (tmp_path / "images" / "1.png").write_bytes(b"")
    found = read(data)
    twice = found.select(np.array([0, 1, 2, 0]))
    readable = twice.readable(Preprocessing(height=4, width=6))
    all_pairs = expected(PAIRS)
    assert contents(readable) == [all_pairs[0], all_pairs[2], all_pairs[0]]
    assert readable.images.labels.tolist() == [0, 0, 0]
    assert readable.images.left_out == (f"{tmp_path / 'images/1.png'} (it is empty (0 bytes))",)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.lists(st.integers(0, 4), max_size=3), min_size=1, max_size=6), st.data())
def test_select_is_indexing(owners: Sequence[Sequence[int]], draw: st.DataObject) -> None:
    """Of any captions and indices: the same as of a list of lists."""
    from manyheads.data.images.image_set import ImageSet

    size = len(owners)
    images = ImageSet(np.zeros(size, dtype=int), [], [str(n) for n in range(size)], lambda n: None)  # type: ignore[arg-type, return-value]
    flat = [(n, str(text)) for n, texts in enumerate(owners) for text in texts]
    found = CaptionedImages(
        images, np.array([n for n, _ in flat], dtype=int), [t for _, t in flat], ["en"] * len(flat)
    )
    indices = draw.draw(st.lists(st.integers(0, size - 1), max_size=8))
    part = found.select(np.array(indices, dtype=int))
    texts = [[part.texts[n] for n in part.captions(index)] for index in range(len(part))]
    assert texts == [list(map(str, owners[index])) for index in indices]
    assert part.images.names == [str(index) for index in indices]

"""Sequences as one flat array: what goes in comes out, from memory and from a file."""

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyheads.data.tokenizers.token_store import (
    JaggedArray,
    JaggedFile,
    JaggedWriter,
    smallest_dtype,
)

IDS = np.dtype(np.uint16)
SEQUENCES = st.lists(st.lists(st.integers(0, 65_535), max_size=6), min_size=1, max_size=9)


def test_by_hand() -> None:
    """Three sequences, the second empty: six values and four offsets."""
    file = io.BytesIO()
    writer = JaggedWriter(file, IDS)
    writer.append([[7, 8], []])
    writer.append([[9, 1, 2, 3]])
    assert np.frombuffer(file.getvalue(), IDS).tolist() == [7, 8, 9, 1, 2, 3]
    assert writer.offsets().tolist() == [0, 2, 2, 6]


@given(sequences=SEQUENCES, data=st.data())
def test_what_was_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, sequences: list[list[int]], data: st.DataObject
) -> None:
    """Any rows in any order, however often, with their lengths."""
    path = tmp_path_factory.getbasetemp() / "values"
    with path.open("wb") as file:
        writer = JaggedWriter(file, IDS)
        for sequence in sequences:
            writer.append([sequence])
    wanted = data.draw(st.lists(st.integers(0, len(sequences) - 1)))
    values = np.frombuffer(path.read_bytes(), IDS)
    in_memory = JaggedArray(values, writer.offsets())
    on_disk = JaggedFile(path, IDS, writer.offsets())
    for rows in (in_memory, on_disk):
        assert rows.lengths.tolist() == list(map(len, sequences))
        found = rows.rows(np.array(wanted, dtype=np.int64))
        assert [row.tolist() for row in found] == [sequences[index] for index in wanted]


@pytest.mark.parametrize(("vocabulary", "size"), [(600, 2), (65_536, 2), (65_537, 4)])
def test_two_bytes_a_token_if_they_suffice(vocabulary: int, size: int) -> None:
    """The largest id of a vocabulary fits, and the next vocabulary takes four bytes."""
    dtype = smallest_dtype(vocabulary)
    assert dtype.itemsize == size
    assert np.array([vocabulary - 1]).astype(dtype)[0] == vocabulary - 1

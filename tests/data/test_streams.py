"""Named random streams: each use of chance by itself, and nothing to store."""

import subprocess
import sys

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from manyheads.streams import generator, stream

SEEDS = st.integers(0, 2**63 - 1)
INDICES = st.lists(st.integers(0, 2**31), max_size=3)


@given(seed=SEEDS, name=st.text(), indices=INDICES)
def test_a_stream_is_a_pure_function(seed: int, name: str, indices: list[int]) -> None:
    """The same arguments, the same numbers; and torch takes the seed as it is."""
    found = stream(seed, name, *indices)
    assert found == stream(seed, name, *indices)
    assert 0 <= found < 2**63
    torch.Generator().manual_seed(found)
    first, second = generator(seed, name, *indices), generator(seed, name, *indices)
    assert first.random(3).tolist() == second.random(3).tolist()


def test_streams_do_not_meet() -> None:
    """Another seed, name, index or number of indices is another stream."""
    calls: list[tuple[int, str, tuple[int, ...]]] = [
        (1, "order", ()),
        (2, "order", ()),
        (1, "dropout", ()),
        (1, "order", (0,)),
        (1, "order", (1,)),
        (1, "order", (0, 0)),
        (1, "order", (0, 1)),
        (1, "order", (1, 0)),
    ]
    assert len({stream(seed, name, *indices) for seed, name, indices in calls}) == len(calls)


def test_streams_are_the_same_in_every_process() -> None:
    """A resumed run is another process: nothing may hang on Python's own hash of strings."""
    program = "from manyheads.streams import stream; print(stream(1, 'order', 3))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) == stream(1, "order", 3)


@pytest.mark.parametrize(("seed", "index"), [(-1, 0), (1, -1)])
def test_negative_numbers_are_refused(seed: int, index: int) -> None:
    """Better than a stream that another number has too."""
    with pytest.raises(ValueError, match="non-negative"):
        stream(seed, "order", index)

"""Named random streams: every use of chance has its own.

With one global generator, switching dropout off would also change the order of the batches, and a
run could only be resumed by storing the generator's state. Here the initial weights, the order of
the examples, dropout, augmentation and subword sampling each draw from a stream of their own, and
the seed of a stream is a pure function of the run's seed, the stream's name and its indices
(epoch, step, example...). So changing one stream never shifts another, and to resume a run it is
enough to know where it was.
"""

from typing import TYPE_CHECKING
from zlib import crc32

if TYPE_CHECKING:
    import numpy as np

__all__ = ["generator", "stream"]


def stream(seed: int, name: str, *indices: int) -> int:
    """The seed of one named random stream, as a pure function of its arguments.

    The result fits a signed 64-bit integer, so that ``torch.manual_seed`` takes it as it is. A
    negative seed or index is refused with a ``ValueError``.

    Args:
        seed: The seed of the run.
        name: What the chance is for, such as ``"order"`` or ``"dropout"``.
        *indices: Where in the run it is used, such as the epoch and the example.

    Returns:
        A number of 63 bits.
    """
    (word,) = _sequence(seed, name, *indices).generate_state(1, "uint64")
    return int(word) >> 1


def generator(seed: int, name: str, *indices: int) -> "np.random.Generator":
    """A NumPy generator at the beginning of one named random stream.

    Args:
        seed: The seed of the run.
        name: What the chance is for, such as ``"order"`` or ``"dropout"``.
        *indices: Where in the run it is used, such as the epoch and the example.

    Returns:
        A new generator; the same arguments always give the same numbers.
    """
    import numpy as np

    return np.random.default_rng(stream(seed, name, *indices))


def _sequence(seed: int, name: str, *indices: int) -> "np.random.SeedSequence":
    import numpy as np  # here, so that importing this module stays free

    # The count comes first because a SeedSequence ignores trailing zeros: without it, the stream
    # of index 0 would be the stream without an index.
    return np.random.SeedSequence([seed, crc32(name.encode()), len(indices), *indices])

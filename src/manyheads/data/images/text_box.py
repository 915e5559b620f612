"""A text in a frame or on a button: find the box, and leave what it holds on its paper alone."""

from collections.abc import Sequence

import numpy as np

APART = 20  # grey levels between a box and what is around it, at least
LIKE = 20  # grey levels between two pixels of one paper, at most
CORNERS = 0.2  # of the paper may be outside of a round frame; cells of a table are more
DEEPEST = 4  # boxes within boxes that are opened
SMALLEST = 10  # pixels of a side
WIDE = 1.25  # a low box is at least so many times as wide as high; "O" and "ㅁ" are not
PAGE = 100  # pixels: a box as high as this is a page, and may be narrow


def without_box(pixels: np.ndarray) -> np.ndarray:
    """Cut out what is within a frame or on a button, if nothing else is in the image.

    A box differs from its surroundings along all four sides; round corners may be missing. Within
    it lies paper of one level, and something on the paper. What the paper does not surround, such
    as the frame itself, becomes paper.

    Args:
        pixels: (height, width), 0..255.

    Returns:
        The pixels within the innermost box; the same ones if there is no box.
    """
    for _ in range(DEEPEST):
        if (inner := _within(pixels)) is None:
            break
        pixels = inner
    return pixels


def _within(pixels: np.ndarray) -> np.ndarray | None:
    levels = pixels.astype(np.int16)
    edges = np.concatenate((levels[0], levels[-1], levels[:, 0], levels[:, -1]))
    around = np.median(edges)
    if (abs(edges - around) <= LIKE).mean() < 0.95:
        return None
    other = abs(levels - around) > APART
    counts = other.sum(axis=1), other.sum(axis=0)
    if min(count.max() for count in counts) < SMALLEST:
        return None
    rows, columns = (np.flatnonzero(count >= 0.3 * count.max()) for count in counts)
    box = levels[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    height, width = box.shape
    if min(box.shape) < SMALLEST or (width < WIDE * height and min(box.shape) < PAGE):
        return None
    if _sides(abs(box - around) > APART, range(3)) < 0.85:
        return None
    paper = np.bincount(box.ravel(), minlength=256).argmax()
    like = abs(box - paper) <= LIKE
    for depth in range(min(box.shape) // 3):
        if _sides(like, [depth]) > 0.9:
            break
    else:
        return None
    start = np.zeros_like(like)
    start[[depth, -1 - depth], width // 2] = True
    start[height // 2, [depth, -1 - depth]] = True
    held = _connected(like, start)
    start[:] = False
    start[[0, -1]] = start[:, [0, -1]] = True
    outside = _connected(~held, start)
    if (like | outside).all() or (like & outside).sum() > CORNERS * like.sum():
        return None
    rows, columns = (np.flatnonzero(held.any(axis=axis)) for axis in (1, 0))
    inner = np.where(outside, paper, box).astype(np.uint8)
    return inner[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]


def _sides(flags: np.ndarray, depths: Sequence[int]) -> float:
    """Return the smallest share of flags, at any of the depths, along the middle of a side."""
    shares = []
    for side in (flags, flags[::-1], flags.T, flags[:, ::-1].T):
        length = side.shape[1]
        third = slice(length * 3 // 8, length * 5 // 8 + 1)
        shares.append(side[list(depths), third].any(axis=0).mean())
    return float(min(shares))


def _connected(flags: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Return the flags that some of `start` reaches along rows and columns of flags."""
    reached = flags & start
    while True:
        before = reached
        for _ in range(2):
            reached, flags = _along_rows(flags, reached).T, flags.T
        if (reached == before).all():
            return before


def _along_rows(flags: np.ndarray, reached: np.ndarray) -> np.ndarray:
    """Spread what is reached over each run of flags in a row."""
    begins = flags.copy()
    begins[:, 1:] &= ~flags[:, :-1]
    runs = begins.cumsum().reshape(flags.shape) * flags  # the number of each run; 0 is no flag
    hit = np.zeros(int(runs.max()) + 1, dtype=bool)
    hit[runs[reached]] = True
    hit[0] = False
    return hit[runs]

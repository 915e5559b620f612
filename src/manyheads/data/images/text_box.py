"""A text in a frame or on a button: find the box, and leave what it holds on its paper alone."""

from collections.abc import Sequence

import numpy as np

APART = 20  # grey levels between a box and what is around it, at least
LIKE = 20  # grey levels between two pixels of one paper, at most
DEEPEST = 4  # boxes within boxes that are opened
SMALLEST = 10  # pixels of a side
WIDE = 1.25  # a low box is at least so many times as wide as high; "O" and "ㅁ" are not
PAGE = 100  # pixels: a box as high as this is a page, and may be narrow
ALONE = 0.99  # of all that differs from the surroundings belongs to the box
HELD = 0.8  # of the height and width of a box are paper
ROUNDS = 40  # a paper that is not filled by then is a maze, and no box


def without_box(pixels: np.ndarray) -> np.ndarray:
    """Cut out what is within a frame or on a button, if nothing else is in the image.

    A box differs from its surroundings along all four sides; round corners may be missing. Within
    it lies paper of one level, and something on the paper, which touches no side. What the paper
    does not surround, such as the frame itself, becomes paper.

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
    around = int(np.median(edges))
    if (abs(edges - around) <= LIKE).mean() < 0.95:
        return None
    other = abs(levels - around) > APART
    counts = other.sum(axis=1), other.sum(axis=0)
    if min(count.max() for count in counts) < SMALLEST:
        return None
    rows, columns = (np.flatnonzero(count >= 0.3 * count.max()) for count in counts)
    place = slice(rows[0], rows[-1] + 1), slice(columns[0], columns[-1] + 1)
    box, differs = levels[place], other[place]
    height, width = box.shape
    if min(box.shape) < SMALLEST or (width < WIDE * height and min(box.shape) < PAGE):
        return None
    if differs.sum() < ALONE * other.sum() or _sides(differs, range(3)) < 0.85:
        return None
    paper = int(np.bincount(box.ravel(), minlength=256).argmax())
    like = abs(box - paper) <= LIKE
    for depth in range(max(8, min(box.shape) // 8)):
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
    outside = None if held is None else _connected(~held, start)
    if held is None or outside is None:
        return None
    rows, columns = (np.flatnonzero(held.any(axis=axis)) for axis in (1, 0))
    whole = len(rows) >= HELD * height - 2 * depth and len(columns) >= HELD * width - 2 * depth
    if not whole or (like | outside).all() or _loses(outside, depth):
        return None
    inner = np.where(outside, paper, box).astype(np.uint8)
    return inner[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]


def _loses(outside: np.ndarray, depth: int) -> bool:
    """Tell whether something of what a frame holds is outside of its paper.

    That is a letter that touches the frame, a bar with a title, or a cell of a table.
    """
    height, width = outside.shape
    inset, round_end = depth + 3, height // 2
    if outside[inset:-inset, round_end : max(round_end, width - round_end)].any():
        return True
    corners = outside[inset:-inset, inset:-inset]  # round ones are alike
    down, across = corners.shape[0] // 2, corners.shape[1] // 2
    sums = [
        int(corners[half, side].sum())
        for half in (slice(None, down), slice(-down, None))
        for side in (slice(None, across), slice(-across, None))
    ]
    return max(sums) > 1.5 * min(sums) + SMALLEST


def _sides(flags: np.ndarray, depths: Sequence[int]) -> float:
    """Return the smallest share of flags, at any of the depths, along the middle of a side."""
    shares = []
    for side in (flags, flags[::-1], flags.T, flags[:, ::-1].T):
        length = side.shape[1]
        middle = slice(length * 3 // 8, length * 5 // 8 + 1)
        shares.append(side[list(depths), middle].any(axis=0).mean())
    return float(min(shares))


def _connected(flags: np.ndarray, start: np.ndarray) -> np.ndarray | None:
    """Return the flags that some of `start` reaches along rows and columns; None in a maze."""
    along_rows, along_columns = _runs(flags), _runs(flags.T).T
    reached = flags & start
    for _ in range(ROUNDS):
        before = reached
        for runs in (along_rows, along_columns):
            hit = np.zeros(int(runs.max()) + 1, dtype=bool)
            hit[runs[reached]] = True
            hit[0] = False
            reached = hit[runs]
        if (reached == before).all():
            return reached
    return None


def _runs(flags: np.ndarray) -> np.ndarray:
    """Number the runs of flags in each row, from 1; 0 is no flag."""
    begins = flags.copy()
    begins[:, 1:] &= ~flags[:, :-1]
    return np.cumsum(begins, dtype=np.int32).reshape(flags.shape) * flags

"""What the heads did with one input: how they spread their attention, who idles, who is alike."""

from collections.abc import Callable, Sequence

from manyheads.lens.idle_heads import Head, HeadWatch
from manyheads.lens.panels import Cell, Figure, Heat, Table
from manyheads.nn.trace import Site

SHOWN = 12  # rows of the table


def head_figures(
    heads: Sequence[Head], watch: HeadWatch, judge: Callable[[Head], str], alike: float
) -> list[Figure]:
    """Show the entropy of every head, and list those that do nothing or the same as another.

    Args:
        heads: as the watch describes them.
        watch: of one pass.
        judge: says why a head idles, in words; "" if it does not.
        alike: the distance of maps up to which two heads are twins.
    """
    if not heads:
        return []
    idle = {(head.site, head.number): judge(head) for head in heads}
    idle = {head: words for head, words in idle.items() if words}
    twins = [
        each
        for each in watch.twins()
        if each.distance <= alike and not {(each.site, n) for n in each.numbers} & idle.keys()
    ]
    told = (
        f"{len(idle) or 'none'} of {len(heads)} heads {'is' if len(idle) == 1 else 'are'} idle and "
        f"{len(twins) or 'no'} pair{'' if len(twins) == 1 else 's'} alike on this input"
    )
    figures = [
        Figure(
            "heads",
            "entropy of each head's attention as a share of the largest possible, mean over "
            f"queries: 0 looks at one token, 1 at all alike; {told} (one input proves little: "
            "`manyheads doctor` measures several)",
            _entropies(heads),
        )
    ]
    rows: list[list[Cell]] = [
        [f"{site}, head {number}", words] for (site, number), words in idle.items()
    ]
    rows += [[str(each), f"maps differ by {each.distance:.2g} of 1"] for each in twins]
    if rows:
        rest = f"; {len(rows) - SHOWN} more are left out" if len(rows) > SHOWN else ""
        legend = f"heads whose attention does not depend on what they read, and twins{rest}"
        table = Table("Idle heads and twins", ["head", "what it does"], rows[:SHOWN])
        figures.append(Figure("heads", legend, table))
    return figures


def _entropies(heads: Sequence[Head]) -> Heat:
    sites: dict[Site, list[float | None]] = {}
    for head in heads:
        sites.setdefault(head.site, []).append(round(head.entropy, 4))
    most = max(map(len, sites.values()))
    return Heat(
        "Entropy of heads",
        "head",
        "",
        [row + [None] * (most - len(row)) for row in sites.values()],
        rows=list(map(str, sites)),
        columns=[str(number + 1) for number in range(most)],
        scale=[0.0, 1.0],
    )

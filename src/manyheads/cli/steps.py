"""A translation in a terminal: how it was found step by step, and what comes from what."""

from itertools import groupby

from manyheads.cli.flags import with_flags
from manyheads.lens.labels import SPACE, label
from manyheads.lens.view.text_view import Matrix, TextView

LOOKS = 3  # source tokens a step that are named
LEAST = 0.001  # of a probability or a weight that is printed


def print_steps(view: TextView) -> None:
    """Print each step of a search: the output so far, what may come next, where it looks."""
    looks = _looks(view)
    output = ""
    for number, step in enumerate(view.steps):
        print(f"step {number + 1}  {output.strip() or '(nothing yet)'}")
        print(f"  chosen    {_shares([(step.token, step.probability)])}")
        print(f"  top-k     {_shares(step.candidates)}")
        if looks is not None:
            _, columns, rows = looks
            weights = zip(columns, rows[number], strict=True)
            most = sorted(weights, key=lambda pair: -pair[1])[:LOOKS]
            print(f"  looks at  {_shares(most)}")
        output += step.token.replace(SPACE, " ")
    if looks is not None:
        print(f"where it looks: {looks[0]}")
    print()


def print_alignment(view: TextView) -> None:
    """Print which output tokens come from which source token, in the order of the output."""
    alignment = view.alignment
    assert alignment is not None
    pairs = []
    for column, links in groupby(alignment.links, key=lambda link: int(link[1])):
        tokens = "".join(view.output[int(row)] for row, *_ in links)
        pairs.append(f"{label(tokens)} ← {label(view.source[column])}")
    print(f"alignment: {', '.join(pairs)}")
    print(f"  {alignment.legend}; {with_flags(alignment.why)}")


def _shares(pairs: list[tuple[str, float]]) -> str:
    shown = [(name, share) for name, share in pairs if share >= LEAST] or pairs[:1]
    return "  ".join(f"{label(name)} {share:.1%}" for name, share in shown)


def _looks(view: TextView) -> tuple[str, list[str], Matrix] | None:
    """Say what each step's attention over the source was: that of the alignment, as it wrote."""
    maps = [found for found in view.maps if found.kind == "decoder cross"]
    if view.alignment is None or any(len(found.rows) < len(view.output) for found in maps):
        return None  # nothing attends, or rows are groups of tokens
    layer, head = view.alignment.chosen["layer"], view.alignment.chosen["head"]
    if layer is not None:
        (found,) = (found for found in maps if found.layer == layer)
        if head is None:
            return found.legend, found.columns, found.mean
        return found.head_legends[head - 1], found.columns, found.weights[head - 1]
    rows = [
        [sum(column) / len(maps) for column in zip(*row, strict=True)]
        for row in zip(*(found.mean for found in maps), strict=True)
    ]
    return "mean of all decoder layers and heads", maps[0].columns, rows

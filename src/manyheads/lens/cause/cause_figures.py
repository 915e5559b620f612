"""Figures of patching and of direct contributions, for texts and images alike."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch

from manyheads.lens.cause import patching
from manyheads.lens.cause.contributions import Contributions
from manyheads.lens.described_figures import figure, filled
from manyheads.lens.panels import Cell, Figure, Heat, Table
from manyheads.nn.editing.seam import HEAD, STATE
from manyheads.nn.recording.trace import record

GROUP = "cause"
DIGITS = 4


class Columns(NamedTuple):
    """The tokens of a stack as they are shown, and the counterparts of each in the other input."""

    names: Sequence[str]
    links: patching.Links
    tokens: Sequence[int]  # the counterpart of each token


def patch_figures(
    run: patching.Run, other: patching.Run, stacks: Mapping[str, Columns], question: str
) -> list[Figure]:
    """Show which states and heads of one input carry its difference from another.

    Args:
        run: runs the input; the score is the logit of the other's answer less that of its own.
        other: runs the other input, scored alike.
        stacks: the columns of each stack that is patched.
        question: the two answers.

    Raises:
        UsageError: the score of both inputs is the same.
    """
    with torch.no_grad():
        own = float(run(1)[0])
        with record(states=True) as source:
            end = float(other(1)[0])
    figures = []
    for stack, columns in stacks.items():
        layers = patching.depth(source, stack)
        scores = patching.patch_states(run, source, stack, layers, columns.links)
        shares = patching.share(scores, own, end)
        heat = figure(
            "patched-states",
            {"stack": stack, "question": question, "own": own, "end": end},
            values=[[round(float(x), DIGITS) for x in row] for row in shares],
            rows=["input", *(f"layer {layer + 1}" for layer in range(layers))],
            columns=list(columns.names),
        )
        figures.append(heat)
    rows: dict[str, list[float | None]] = {}
    for site in patching.head_sites(source):
        if site.stack in stacks or site.stack == "decoder":
            places = stacks[site.stack].tokens if site.stack in stacks else None
            shares = patching.share(patching.patch_heads(run, source, site, places), own, end)
            rows[str(site).removesuffix(f" {HEAD}")] = [round(float(x), DIGITS) for x in shares]
    if rows:
        heads = filled([*rows.values()])
        figures.append(figure("patched-heads", {"question": question}, rows=[*rows], **heads))
    return figures


def part_figures(
    found: Contributions, names: Sequence[str], groups: Sequence[Sequence[int]], question: str
) -> list[Figure]:
    """Show the parts of a difference of two logits: by source and kind, and by layer and head.

    Args:
        found: the parts.
        names: of the groups of source tokens.
        groups: the tokens of each group.
        question: the two answers.
    """
    crossed = any(site.kind.startswith("cross") for site in found.sources)
    read = [site for site in found.sources if not crossed or site.kind.startswith("cross")]
    totals = sum((found.sources[site].sum(dim=0) for site in read), torch.tensor(0.0))
    named = list(zip(names, groups, strict=True)) if read else []
    lines = [(name, float(totals[list(group)].sum())) for name, group in named]
    rest = sum(float(x.sum()) for site, x in found.heads.items() if site not in read)
    lines.append(("self-attention" if crossed else "other attention", rest))
    for name, kind in (("feed-forward", "added feedforward"), ("embeddings", STATE)):
        lines.append((name, sum(x for site, x in found.parts.items() if site.kind == kind)))
    lines += [("biases", found.rest), ("together", found.total)]
    layers: dict[tuple[str, int], dict[str, float]] = {}
    for site, heads in found.heads.items():
        kind = site.kind.removesuffix(f" {HEAD}")
        for number, value in enumerate(heads.tolist()):
            layers.setdefault((site.stack, site.layer), {})[f"{kind} {number + 1}"] = value
    for site, value in found.parts.items():
        if site.kind != STATE:
            layers.setdefault((site.stack, site.layer), {})["feed-forward"] = value
    columns = list(dict.fromkeys(name for row in layers.values() for name in row))
    facts = {"question": question}
    return [
        figure("parts", facts, rows=[[name, round(x, DIGITS)] for name, x in lines if x]),
        figure(
            "parts-of-heads",
            facts,
            values=[
                [round(row[name], DIGITS) if name in row else None for name in columns]
                for row in layers.values()
            ],
            rows=[f"{stack} layer {layer + 1}" for stack, layer in layers],
            columns=columns,
        ),
    ]


def tabulated(figure: Figure) -> Table:
    """Write one of these figures as a table, for terminals."""
    heat = figure.panel
    if not isinstance(heat, Heat):
        assert isinstance(heat, Table)
        return heat
    rows = heat.rows or [str(number + 1) for number in range(len(heat.values))]
    columns = heat.columns or [str(number + 1) for number in range(len(heat.values[0]))]
    lines: list[list[Cell]] = [
        [name, *("" if each is None else f"{each:.3f}" for each in row)]
        for name, row in zip(rows, heat.values, strict=True)
    ]
    return Table(heat.title, ["", *columns], lines)

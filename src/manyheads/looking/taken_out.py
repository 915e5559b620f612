"""Mark the heads of a view that were taken out of the model."""

from collections.abc import Sequence
from dataclasses import replace

from manyheads.lens.view.image_view import ImageView
from manyheads.lens.view.text_view import MapView, TextView
from manyheads.nn.editing.edits import Edit

NOTE = (
    " The weights of a head that is taken out are computed and shown, also in the mean; its output "
    "is zero."
)


def marked(view: TextView | ImageView, without: Sequence[str]) -> TextView | ImageView:
    """Mark the heads that sites at zero leave without an output, and note what was taken out.

    A head that is zero at some tokens only is noted, not marked.
    """
    names = {Edit().site(each).name for each in without if " token" not in each}
    maps = [_marked(each, names) for each in view.maps]
    heads = NOTE if any(each.taken_out for each in maps) else ""
    note = f"Taken out: {', '.join(without)}.{heads}"
    return replace(view, maps=maps, notes=[note, *view.notes])


def _marked(shown: MapView, names: set[str]) -> MapView:
    attention = shown.site.removesuffix(" (implied)")
    kind = attention.rpartition(" layer ")[2].partition(" ")[2]
    part = "cross" if kind.startswith("cross") else "attention"
    whole = f"{attention.removesuffix(kind)}added {part}"
    numbers = range(1, len(shown.weights) + 1)
    out = [n for n in numbers if not names.isdisjoint((whole, f"{attention} head {n}"))]
    if not out:
        return shown
    which = f"head{'s' * (len(out) > 1)} {', '.join(map(str, out))}"
    return replace(
        shown,
        taken_out=out,
        legend=f"{shown.legend}; {which} taken out",
        head_legends=[
            f"{legend}; taken out" if n in out else legend
            for n, legend in zip(numbers, shown.head_legends, strict=True)
        ],
    )

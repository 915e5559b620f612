"""Mark the heads of a view that were taken out of the model."""

from collections.abc import Sequence
from dataclasses import replace

from manyheads.lens.view.image_view import ImageView
from manyheads.lens.view.text_view import MapView, TextView
from manyheads.nn.editing.edits import Edit
from manyheads.nn.editing.seam import added_by

NOTE = (
    "The weights of a head that is taken out are computed and shown, also in the mean; its output "
    "is zero."
)


def marked(view: TextView | ImageView, without: Sequence[str]) -> TextView | ImageView:
    """Note which sites are zero, and mark the heads that have no output at any token."""
    names = {Edit().site(each).name for each in without if " token" not in each}
    maps = [_marked(each, names) for each in view.maps]
    heads = f" {NOTE}" if any(each.taken_out for each in maps) else ""
    note = f"Taken out: {', '.join(without)}.{heads}"
    return replace(view, maps=maps, notes=[note, *view.notes])


def _marked(shown: MapView, names: set[str]) -> MapView:
    attention = shown.site.removesuffix(" (implied)")
    kind = attention.rpartition(" layer ")[2].partition(" ")[2]
    whole = f"{attention.removesuffix(kind)}{added_by(kind)}"
    heads = range(1, len(shown.weights) + 1)
    out = [n for n in heads if not names.isdisjoint((whole, f"{attention} head {n}"))]
    which = f"; head{'s' * (len(out) > 1)} {', '.join(map(str, out))} taken out" if out else ""
    return replace(shown, taken_out=out or None, legend=shown.legend + which)

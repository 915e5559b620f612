"""The line of an evaluation: which data, under which name, and the scores."""

from collections.abc import Mapping, Sequence
from typing import Any

from manyheads.asks.evaluate_request import EvaluateRequest
from manyheads.data.even_sample import limited
from manyheads.data.images.image_set import ImageSet
from manyheads.data.split_register import find_registered_splits
from manyheads.data.text.corpus import Sentences
from manyheads.errors import NotFoundError, UsageError
from manyheads.measure.text_metrics import Score
from manyheads.project.base_recipe import DataTable
from manyheads.project.paths import find_data, here, split_selection
from manyheads.recipe_data.image_data import ImageRecipe
from manyheads.recipe_data.image_splits import image_split, read_images
from manyheads.recipe_data.named_splits import sentence_split, sentences
from manyheads.recipe_data.text_data import SentenceData

Line = dict[str, Any]
ROWS = "rows"  # in a line, if `outputs` asks for them: `OutputRow`s, which are not logged


def images_to_measure(recipe: ImageRecipe, request: EvaluateRequest) -> tuple[ImageSet, Line]:
    """Read the images of a request, and the beginning of the line about them."""
    name = request.data
    images = image_split(request.split, recipe) if name is None else read_images(here(name), recipe)
    images = limited(images, request.limit)
    return images, heading(images.origin, images.hashes, request, recipe.data)


def sentences_to_measure(data: SentenceData, request: EvaluateRequest) -> tuple[Sentences, Line]:
    """Read the sentences of a request, and the beginning of the line about them."""
    name = request.data
    lines = sentence_split(request.split, data) if name is None else sentences(here(name), data)
    lines = limited(lines, request.limit)
    return lines, heading(lines.origin, lines.hashes, request, data)


def heading(
    origin: str,
    hashes: Sequence[str],
    request: EvaluateRequest,
    data: DataTable | None,
    *,
    test: bool = False,
    suffixes: Sequence[str] = ("",),
) -> Line:
    """Write what is measured on: a split as the recipe's [data] table calls it.

    Where its files lie on this machine would mean nothing later.

    Args:
        origin: the files, for people.
        hashes: of the content.
        request: what is measured.
        data: the recipe's table; None where there is no recipe.
        test: it is known to be a test split.
        suffixes: appended to names of data, such as ".en" and ".de".

    Raises:
        UsageError: a test split without final.
    """
    known = find_registered_splits(hashes)
    final = (
        test
        or any(entry.test for entry in known)
        or (request.data is None and request.split == "test")
        or (data is not None and is_test(request.data, data, suffixes))
    )
    if final and not request.final:
        raise UsageError(
            f"{origin} is a test split: it is measured once, when everything has been chosen by "
            "validation. If that is so now, set `final=True`; to choose, use `split='valid'`."
        )
    split = data.split_name(request.split) if data is not None else None
    return {
        "data": (split or origin) if request.data is None else request.data,
        "split": request.split if request.data is None else None,
        "registered": [entry.name for entry in known],
        "sha256": list(hashes),
        "final": final,
        **({"limit": request.limit} if request.limit else {}),
    }


def is_test(name: str | None, data: DataTable, suffixes: Sequence[str] = ("",)) -> bool:
    """Tell whether other data are the recipe's own test split by another name."""
    if name is None or data.test is None:
        return False
    if name == data.test:
        return True
    # Parts of a file overlap unless they have different values in one column.
    parts = [split_selection(each) for each in (here(name, suffixes), data.test)]
    rows = [selected for _, selected in parts if selected is not None]
    try:
        given, test = (
            [path.resolve() for path in find_data(file, data.root, suffixes)] for file, _ in parts
        )
        apart = len(rows) == 2 and rows[0][0] == rows[1][0] and rows[0] != rows[1]
        return given == test and not apart
    except (NotFoundError, UsageError):  # generated, not there or not read: nothing to compare
        return False


def scored(scores: Mapping[str, Score]) -> Line:
    """Write scores for the log; the first is the headline."""
    (metric, first), *_ = scores.items()
    return {
        "metric": metric,
        "value": first.value,
        "signature": first.signature,
        "all": {name: {"value": s.value, "signature": s.signature} for name, s in scores.items()},
    }


def refuse_report(
    name: str, request: EvaluateRequest, *, matches: bool = False, classifies: bool = False
) -> None:
    """Refuse what only translators are measured by, and what `refuse_images` refuses.

    Raises:
        UsageError: the request asks for it.
    """
    refuse_images(name, request, matches=matches, classifies=classifies)
    if request.more_than_scores:
        raise UsageError(
            f"{name} does not translate: other metrics, lengths and timing are measured "
            "of translators only."
        )


def refuse_images(
    name: str, request: EvaluateRequest, *, matches: bool = False, classifies: bool = False
) -> None:
    """Refuse what only matchers are measured by, and what only classifiers are, unless it is one.

    Raises:
        UsageError: the request asks for it.
    """
    if request.among is not None and not matches:
        raise UsageError(
            f"{name} does not match images and texts, so it does not search: leave out `among`."
        )
    if request.mirrored and not classifies:
        raise UsageError(f"{name} does not classify images: leave out `mirrored`.")

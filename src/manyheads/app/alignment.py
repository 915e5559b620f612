"""Which attention of a translator says where words come from: measured, and kept with the model.

The choice lies in manyheads.json under "alignment". A folder without it is read by a rule that was
not measured.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from torch import Tensor

from manyheads.app.folder import ModelFolder, read_json, write_json
from manyheads.data.links import Link, carried
from manyheads.data.text import Corpus
from manyheads.errors import FolderError
from manyheads.lens.alignment import Chosen, Errors, Reader, choose, fallback, readers
from manyheads.tasks.alignment import alignment_errors

if TYPE_CHECKING:
    from manyheads.app.predict import Translator

TEXTS = 1000  # with words of known origin, for the choice
LEAST = 30  # words of known origin that a choice is based on

Links = list[Sequence[Link]]


class Entry(BaseModel):
    """What manyheads.json says; layers and heads count from 1, null is the mean of all."""

    model_config = ConfigDict(extra="ignore")

    layer: int | None = Field(ge=1)
    head: int | None = Field(ge=1)
    step: str = Field(pattern="^(written|read)$")
    error: float  # percent
    references: int
    usual: float  # percent, of the rule that is used without measuring
    ways: int  # how many were compared
    data: str

    @property
    def chosen(self) -> Chosen:
        """Say it in the lens's words."""
        reader = Reader(
            layer=None if self.layer is None else self.layer - 1,
            head=None if self.head is None else self.head - 1,
            late=self.step == "read",
        )
        why = (
            f"of {self.ways} ways to read alignments this one errs least on {self.references:,} "
            f"words of {self.data} whose origin is known: {self.error:.1f}%; the mean of the last "
            f"layer but one, {self.usual:.1f}%"
        )
        return Chosen(reader=reader, why=why, error=round(self.error / 100, 4))


def stored(folder: ModelFolder) -> Chosen | None:
    """Read the choice that lies with a model; None if it was not measured.

    Raises:
        FolderError: the entry is damaged.
    """
    entry = folder.manifest.get("alignment")
    if entry is None:
        return None
    try:
        return Entry.model_validate(entry).chosen
    except ValidationError as error:
        detail = error.errors()[0]
        raise FolderError(
            f"{folder.path / 'manyheads.json'}, alignment.{'.'.join(map(str, detail['loc']))}: "
            f"{detail['msg']}. Remove the entry, or measure anew with `manyheads evaluate --model "
            f"{folder.path} --alignment`."
        ) from None


def store(folder: ModelFolder, entry: dict[str, Any]) -> None:
    """Keep a choice with its model."""
    path = folder.path / "manyheads.json"
    folder.manifest = read_json(path) | {"alignment": entry}
    write_json(path, folder.manifest)


def known_links(corpus: Corpus, outputs: Sequence[str]) -> Links:
    """Find the words of translations whose origin is known.

    The corpus may know those of its targets: they hold for outputs that are equal. Otherwise they
    are the numbers and names that text and output both have once.
    """
    if corpus.links is None:
        return [
            carried(source, output) for source, output in zip(corpus.source, outputs, strict=True)
        ]
    return [
        links if output == target else ()
        for links, output, target in zip(corpus.links, outputs, corpus.target, strict=True)
    ]


def choose_reader(translator: "Translator", corpus: Corpus, data: str) -> Entry | None:
    """Choose by words of known origin in a corpus; None if there are too few of them.

    Args:
        translator: whose attention is asked, over texts and their translations as they are given.
        corpus: pairs.
        data: what to call it.

    Raises:
        UsageError: the model has no attention over the source.
    """
    links = known_links(corpus, corpus.target)
    errors = _errors(translator, corpus, corpus.target, links, readers, most=TEXTS)
    if not errors or next(iter(errors.values())).of < LEAST:
        return None
    best, usual = choose(errors), next(iter(errors))  # the rule is asked first
    return Entry(
        layer=None if best.layer is None else best.layer + 1,
        head=None if best.head is None else best.head + 1,
        step="read" if best.late else "written",
        error=round(errors[best].percent, 3),
        references=errors[best].of,
        usual=round(errors[usual].percent, 3),
        ways=len(errors),
        data=data,
    )


def measured(
    translator: "Translator", corpus: Corpus, outputs: Sequence[str], chosen: Chosen | None
) -> dict[str, Any] | None:
    """Measure the chosen attention, or that of the rule; None if no word's origin is known.

    Raises:
        UsageError: the model has no attention over the source.
    """
    links = known_links(corpus, outputs)
    numbers: Links = [
        [link for link in found if output[slice(*link.target)].isdigit()]
        for found, output in zip(links, outputs, strict=True)
    ]

    def ask(maps: Mapping[int, Tensor]) -> list[Reader]:
        return [fallback(maps) if chosen is None else chosen.reader]

    found = {
        name: _errors(translator, corpus, outputs, part, ask)
        for name, part in (("words", links), ("numbers", numbers))
    }
    if not found["words"]:
        return None
    ((reader, _),) = found["words"].items()
    return {
        "reader": str(reader),
        **{
            name: {"wrong": each.wrong, "of": each.of, "error": each.percent}
            for name, errors in found.items()
            for each in errors.values()
            if each.of
        },
    }


def _errors(
    translator: "Translator",
    corpus: Corpus,
    outputs: Sequence[str],
    links: Links,
    ask: Callable[[Mapping[int, Tensor]], Sequence[Reader]],
    most: int | None = None,
) -> dict[Reader, Errors]:
    rows = [row for row, found in enumerate(links) if found][:most]
    return alignment_errors(
        translator.model,
        translator.tokenizers,
        [corpus.source[row] for row in rows],
        [outputs[row] for row in rows],
        [links[row] for row in rows],
        ask,
    )

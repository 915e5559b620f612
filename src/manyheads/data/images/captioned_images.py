"""Images with texts in one or several languages: what captioners and matchers learn from.

`CaptionCollector` makes them of rows and files. All readers are strict: what cannot be used is
listed and left out, never repaired.
"""

import hashlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from manyheads.data.images.image_file import ImageContent
from manyheads.data.images.image_set import ImageSet, Preprocessing, labelled
from manyheads.data.text.encoding import is_valid_unicode
from manyheads.data.text.languages import is_language_code
from manyheads.data.text.lines import Problem
from manyheads.errors import DataError, nearest


@dataclass(frozen=True)
class CaptionedImages:
    """Images and their captions; an image may have several, in several languages."""

    images: ImageSet  # without labels
    owners: np.ndarray  # (caption,) index of its image, ascending
    texts: list[str]  # of each caption
    languages: list[str]  # of each caption
    problems: tuple[Problem, ...] = ()  # what the reader left out

    def __len__(self) -> int:
        return len(self.images)

    def select(self, indices: np.ndarray) -> "CaptionedImages":
        """Return the images at these indices, with their captions."""
        first = np.searchsorted(self.owners, indices, side="left")
        end = np.searchsorted(self.owners, indices, side="right")
        chosen = [n for a, b in zip(first, end, strict=True) for n in range(a, b)]
        return replace(
            self,
            images=self.images.select(indices),
            owners=np.repeat(np.arange(len(indices)), end - first),
            texts=[self.texts[n] for n in chosen],
            languages=[self.languages[n] for n in chosen],
        )

    def captions(self, index: int) -> range:
        """Return the numbers of the captions of an image."""
        first, end = np.searchsorted(self.owners, [index, index + 1])
        return range(int(first), int(end))

    def readable(self, preprocessing: Preprocessing, **ranks: Any) -> "CaptionedImages":
        """Leave out the images that cannot be read and preprocessed; every image is read once.

        `ranks` as `ImageSet.readable` has them.
        """
        # The labels of a set without labels are all 0: as numbers they tell which images stay.
        numbered = replace(self.images, labels=np.arange(len(self)))
        found = numbered.readable(preprocessing, **ranks)
        unlabelled = replace(found, labels=np.zeros(len(found), dtype=int))
        return replace(self.select(found.labels), images=unlabelled)


KEYS = "Name columns with data.image, and with data.texts or data.caption and data.language_column"
VALUES = 20  # of a column that are remembered for messages


class Selection(NamedTuple):
    """The rows of a table that have this value in a column."""

    column: str
    value: str

    def __str__(self) -> str:
        """Write it as in the name of data."""
        return f"[{self.column}={self.value}]"


@dataclass(frozen=True)
class CaptionColumns:
    """Where a table has images and texts."""

    image: str = "image"
    # For each language its columns, of texts or lists of texts.
    texts: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: {"en": ("caption",)})
    default_language: str = "en"
    language: str | None = None  # a column with the language of a row's texts
    languages: tuple[str, ...] = ()  # that texts may have; empty: any
    named: bool = False  # whether columns of texts were asked for by name
    only: Selection | None = None  # the rows to read

    @property
    def names(self) -> list[str]:
        """The columns of texts and of their language."""
        columns = [name for each in self.texts.values() for name in each]
        return list(dict.fromkeys([*columns, *([self.language] if self.language else [])]))

    @property
    def wanted(self) -> list[str]:
        """The columns to read besides that of images."""
        return [*self.names, *([self.only.column] if self.only else [])]

    def pick(self, row: Mapping[str, Any]) -> Iterator[tuple[object, object]]:
        """Yield the language and the value of each column of texts in a row."""
        for language, names in self.texts.items():
            for name in names:
                yield (row.get(self.language) if self.language else language), row.get(name)


def describe(problem: Problem) -> str:
    """Write a problem as unreadable images are listed: an image or place, and the reason."""
    return f"{problem.place} ({problem.message.rstrip('.')})"


class CaptionCollector:
    """Collects images and their texts one by one."""

    def __init__(self, columns: CaptionColumns) -> None:
        self.columns = columns
        self.problems: list[Problem] = []
        self._names: list[str] = []
        self._cells: list[Any] = []
        self._known: dict[Hashable, int] = {}
        self._captions: list[tuple[int, str, str]] = []  # image, text, language
        self._selected = columns.only is None
        self._others: dict[str, None] = {}

    def selects(self, row: Mapping[str, Any]) -> bool:
        """Tell whether a row is one to read; remember what else was there."""
        only = self.columns.only
        value = only and str(row.get(only.column))
        if only is None or value == only.value:
            self._selected = True
            return True
        if len(self._others) < VALUES:
            self._others[str(value)] = None
        return False

    def add(
        self,
        name: str,
        cell: object,
        texts: Iterable[tuple[object, object]],
        *,
        place: str | None = None,
        key: Hashable = None,
    ) -> None:
        """Add an image, or further texts of one.

        Args:
            name: of the image, for messages.
            cell: where its content is; `finish` knows how to open it.
            texts: languages and values: a text, a list of texts, or None.
            place: of the texts, for messages; None: `name`.
            key: images with the same key are one image, with the texts of all.
        """
        number = len(self._names) if key is None else self._known.setdefault(key, len(self._names))
        if number == len(self._names):
            self._names.append(name)
            self._cells.append(cell)
        for language, value in texts:
            for text in value if isinstance(value, list | tuple) else [value]:
                self._add_text(number, language, text, place or name)

    def _add_text(self, number: int, language: object, text: object, place: str) -> None:
        if text is None:
            return
        if not isinstance(text, str):
            self.leave_out("not-text", place, f"{text!a:.50} is not a text")
        elif not text.strip():
            self.leave_out("empty-text", place, "an empty text", harmless=True)
        elif not is_valid_unicode(text):
            self.leave_out("invalid-utf8", place, f"not valid UTF-8: {text!a:.50}")
        elif not isinstance(language, str) or not is_language_code(language):
            reason = f"the language is {language!a:.50}, not a code such as en or pt-BR"
            self.leave_out("no-language", place, reason)
        elif self.columns.languages and language not in self.columns.languages:
            declared = ", ".join(self.columns.languages)
            reason = f"the language is {language!r}, and data.languages names {declared}"
            self.leave_out("undeclared-language", place, reason)
        else:
            self._captions.append((number, text, language))

    def leave_out(self, kind: str, name: str, reason: str, *, harmless: bool = False) -> None:
        """List an image or a text that is not used; `name` is that of the image, or a place."""
        self.problems.append(Problem(kind, 0, name, reason, harmless=harmless))

    def finish(
        self,
        read: Callable[[Any], bytes | ImageContent],
        *,
        origin: str,
        hashes: tuple[str, ...],
        other_files: tuple[str, ...] = (),
    ) -> CaptionedImages:
        """Return the images that have texts; `read` opens the content of a cell.

        Raises:
            DataError: there are none, or no row was selected.
        """
        only = self.columns.only
        if not self._selected and only is not None and self._others:
            raise DataError(
                f"{origin}: no row has {only.column} = {only.value!r}"
                f"{nearest(only.value, self._others)}There are "
                f"{', '.join(map(repr, self._others))[:200]}."
            )
        if only is not None:
            origin = f"{origin}{only}"
            hashes = tuple(hashlib.sha256(f"{e}{only}".encode()).hexdigest() for e in hashes)
        captions = sorted(self._captions, key=itemgetter(0))
        owners = np.array([owner for owner, _, _ in captions], dtype=int)
        counts = np.bincount(owners, minlength=len(self._names))
        for number in np.nonzero(counts == 0)[0]:
            self.leave_out("no-text", self._names[number], "an image without a text")
        kept = np.nonzero(counts)[0]
        if not len(kept):
            found = len(self._names)
            raise DataError(
                f"{origin}: " + (f"none of {found:,} images has a text." if found else "no images.")
            )
        cells = [self._cells[number] for number in kept]
        images = labelled(
            [self._names[number] for number in kept],
            read=lambda index: read(cells[index]),
            origin=origin,
            hashes=hashes,
            other_files=other_files,
        )
        return CaptionedImages(
            images,
            np.searchsorted(kept, owners),
            [text for _, text, _ in captions],
            [language for _, _, language in captions],
            tuple(self.problems),
        )

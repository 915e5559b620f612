"""Images with texts in one or several languages: what captioners and matchers learn from."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from manyheads.data.images.image_file import read_cell
from manyheads.data.images.image_set import ImageSet, number_labels
from manyheads.data.regular_files import require_regular
from manyheads.errors import DataError, MissingExtraError


@dataclass(frozen=True)
class CaptionedImages:
    """Images and their captions; an image may have several, in several languages."""

    images: ImageSet  # without labels
    owners: np.ndarray  # (caption,) index of its image, ascending
    texts: list[str]  # of each caption
    languages: list[str]  # of each caption

    def __len__(self) -> int:
        """Count the images."""
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


@dataclass(frozen=True)
class CaptionColumns:
    """Where a table has images and texts."""

    image: str
    texts: dict[str, tuple[str, ...]]  # for each language its columns, of texts or lists of texts
    language: str | None = None  # a column with the language of a row's texts, in place of the keys


def read_captioned_parquet(
    paths: Sequence[Path], columns: CaptionColumns, only: tuple[str, str] | None = None
) -> CaptionedImages:
    """Read parquet files; `only` = (column, value) leaves out the other rows."""
    try:
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingExtraError(package="pyarrow", extra="images") from None
    names: list[str] = []
    rows: list[dict[str, object]] = []
    cells: list[tuple[object, Path]] = []
    for path in paths:
        for number, row in enumerate(pq.read_table(require_regular(path)).to_pylist(), 1):
            if only is None or str(row[only[0]]) == only[1]:
                names.append(f"{path}, row {number}")
                cells.append((row[columns.image], path.parent))
                rows.append(row)
    owners, texts, languages = [], [], []
    for owner, row in enumerate(rows):
        for language, keys in columns.texts.items():
            for key in keys:
                value = row.get(key)
                for text in value if isinstance(value, list) else [value]:
                    if text is None or not str(text).strip():
                        continue
                    owners.append(owner)
                    texts.append(str(text))
                    languages.append(str(row[columns.language]) if columns.language else language)
    if not rows:
        raise DataError(f"{', '.join(map(str, paths))}: no rows.")
    labels, classes = number_labels(None, names, None)
    digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in paths]
    if only is not None:
        digests = [
            hashlib.sha256(f"{digest}[{only[0]}={only[1]}]".encode()).hexdigest()
            for digest in digests
        ]
    images = ImageSet(
        labels=labels,
        classes=classes,
        names=names,
        read=lambda index: read_cell(*cells[index]),
        origin=", ".join(map(str, paths)),
        hashes=tuple(digests),
    )
    return CaptionedImages(images, np.array(owners, dtype=int), texts, languages)

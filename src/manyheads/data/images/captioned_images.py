"""Images with texts in one or several languages: what captioners and matchers learn from."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from manyheads.data.images.image_set import ImageSet, Preprocessing


@dataclass(frozen=True)
class CaptionedImages:
    """Images and their captions; an image may have several, in several languages."""

    images: ImageSet  # without labels
    owners: np.ndarray  # (caption,) index of its image, ascending
    texts: list[str]  # of each caption
    languages: list[str]  # of each caption

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

    def readable(
        self, preprocessing: Preprocessing, threads: int = 1, **ranks: Any
    ) -> "CaptionedImages":
        """Leave out the images that cannot be read and preprocessed; every image is read once.

        `ranks` as `ImageSet.readable` has them.
        """
        # The labels of a set without labels are all 0: as numbers they tell which images stay.
        numbered = replace(self.images, labels=np.arange(len(self)))
        found = numbered.readable(preprocessing, threads, **ranks)
        unlabelled = replace(found, labels=np.zeros(len(found), dtype=int))
        return replace(self.select(found.labels), images=unlabelled)

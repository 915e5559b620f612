"""Adding images to an index: what is known is not read or embedded again, what is done is saved."""

import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from manyheads.asks.image_search_request import UnreadableImage
from manyheads.data.images.image_file import ImageContent, load, naming
from manyheads.data.images.image_set import ImageSet, in_threads
from manyheads.errors import DataError, ManyheadsError, UnreadableError, UsageError
from manyheads.image_search.embedder import Embedder, check_vectors, place_of, with_names
from manyheads.image_search.index_folder import (
    FORMAT_VERSION,
    WITHOUT_NAMES,
    Header,
    IndexedImage,
    IndexFolder,
    check_place,
    create,
    state_of,
)
from manyheads.image_search.indexed_images import is_gone, sha256_of, words_of

CHUNK = 32  # images that are read, and embedded, together
PIXELS = 1 << 26  # of images that are embedded together, but for those DECODED last
DECODED = 4  # images that a thread decodes before the pixels are counted
COMMIT = 1.0  # seconds between two commits

Progress = Callable[[int, int, dict[str, float]], None]
COUNTED = ("added", "changed", "unchanged", "removed", "embedded", "gone")  # images, so far


@dataclass(frozen=True)
class _Image:
    """An image that has to be read."""

    images: ImageSet
    index: int
    now: IndexedImage  # as it will be in the index, but for its row
    before: IndexedImage | None  # as it is in the index
    words: str  # of its name, if they count

    def read(self) -> tuple[str, bytes | ImageContent] | str:
        """Read and hash it; return the reason if it cannot be read."""
        try:
            with naming(self.now.name):
                content = self.images.read(self.index)
        except UnreadableError as error:
            return error.reason
        sha256 = sha256_of(content)
        if self.words:
            sha256 = sha256_of(f"{sha256}\n{self.words}".encode())
        return sha256, content


class IndexWriter:
    """Writes to an index while its folder is locked; commits about once a second."""

    def __init__(self, path: Path, embedder: Embedder, *, names: bool, reread: bool) -> None:
        """Open the index, if there is one; a new one is made with its first vectors.

        Raises:
            UsageError: names shall count, and the index was made without.
        """
        self.path = path
        self.embedder = embedder
        self.counts = dict.fromkeys(COUNTED, 0)
        self.unreadable: list[UnreadableImage] = []
        self.reread = reread
        self.folder = IndexFolder(path, write=True) if check_place(path) else None
        self.names = names if self.folder is None else self.folder.header.names
        if names and not self.names:
            self.close()
            raise UsageError(
                f"The index {path} was made without names. Leave `names` out, or index the images "
                "into another folder."
            )
        self._seen: set[str] = set()
        self._committed = time.monotonic()
        self._forget()

    def _forget(self) -> None:
        self._new: dict[str, tuple[int, np.ndarray]] = {}  # sha256 -> row and vector
        self._images: list[IndexedImage] = []
        self._removed: list[str] = []

    def add(
        self, sets: Sequence[ImageSet], stopped: Callable[[], bool], progress: Progress
    ) -> tuple[int, int]:
        """Add the images of some sets.

        Args:
            sets: from `gather`.
            stopped: asked now and then; if it says so, no more is done.
            progress: called with the number of images done, of how many, and images a second.

        Returns:
            How many images are done, of how many.
        """
        total, done = sum(map(len, sets)), 0
        began = time.monotonic()
        try:
            for images in sets:
                waiting: list[_Image] = []
                for number in range(1, len(images) + 1):
                    image = self._look_up(images, number - 1)
                    waiting += [] if image is None else [image]
                    last = number == len(images)
                    if last or len(waiting) == CHUNK:
                        self._add(waiting)
                        waiting = []
                    if last or number % CHUNK == 0:
                        now = time.monotonic()
                        if now - self._committed >= COMMIT:
                            self.commit()
                        speed = (done + number) / max(now - began, 1e-9)
                        progress(done + number, total, {"images_per_second": speed})
                        if not last and stopped():
                            return done + number - len(waiting), total
                done += len(images)
                self._remove_vanished_rows(images)
                if stopped():
                    break
        except BaseException:
            with suppress(ManyheadsError):  # the first error is the one to tell
                self.commit()
            raise
        return done, total

    def prune(self, *, remove: bool) -> None:
        """Count the images whose files are gone, or remove them."""
        if self.folder is None:
            return
        for file in self.folder.files():
            if file not in self._seen and is_gone(file):
                names = [name for name in self.folder.names_in(file) if name not in self._seen]
                if remove:
                    self._remove(names)
                else:
                    self.counts["gone"] += len(names)

    def commit(self) -> None:
        """Save what was added."""
        if self.folder is None:
            if (dim := self._dim) is None:
                return
            place, weights = place_of(self.embedder), self.embedder.folder.weights_hash
            version = FORMAT_VERSION if self.names else WITHOUT_NAMES
            header = Header(
                format_version=version, model=place, weights=weights, dim=dim, names=self.names
            )
            create(self.path, header)
            self.folder = IndexFolder(self.path, write=True)
        if self._new or self._images or self._removed:
            vectors = [vector for _, vector in self._new.values()]
            self.folder.commit(vectors, list(self._new), self._images, self._removed)
            self._forget()
        self._committed = time.monotonic()

    def close(self) -> None:
        """Close the index."""
        if self.folder is not None:
            self.folder.close()

    # --- One chunk ------------------------------------------------------------------------------

    def _add(self, waiting: Sequence[_Image]) -> None:
        """Read images, and embed the contents that the index does not know."""
        found: list[tuple[_Image, str]] = []
        unknown: dict[str, tuple[bytes | ImageContent, str]] = {}  # with the words of its name
        for image, known in zip(waiting, in_threads(_Image.read, waiting), strict=True):
            if isinstance(known, str):
                self._refuse(image, known)
                continue
            sha256, content = known
            found.append((image, sha256))
            if self._row_of(sha256) is None:
                unknown[sha256] = content, image.words
        reasons = self._embed(unknown)
        for image, sha256 in found:
            row = self._row_of(sha256)
            if row is None:
                self._refuse(image, reasons[sha256])
            else:
                self._put(image.now._replace(row=row), image.before)

    def _look_up(self, images: ImageSet, index: int) -> _Image | None:
        """Describe an image that has to be read; None if the index knows all about it."""
        name, file = images.names[index], str(images.files[index]) if images.files else None
        own = file == name
        if own and ".." in Path(name).parts:
            name = file = str(Path(name).resolve())
        if name in self._seen:
            return None
        self._seen.add(name)
        label = images.classes[int(images.labels[index])] if images.classes else None
        state = state_of(name, time.time_ns()) if own else None
        now = IndexedImage(name, file, row=-1, label=label, state=state)
        before = None if self.folder is None else self.folder.image(name)
        renamed = self.names and before is not None and before.label != label
        if before and state and before.state == state and not (self.reread or renamed):
            self._put(now._replace(row=before.row), before)
            return None
        words = (label or words_of(name)) if self.names else ""
        return _Image(images, index, now, before, words)

    def _put(self, now: IndexedImage, before: IndexedImage | None) -> None:
        """Let an image of the index be so from now on."""
        kind = "added" if before is None else "changed" if before.row != now.row else "unchanged"
        self.counts[kind] += 1
        if now != before:
            self._images.append(now)

    def _refuse(self, image: _Image, reason: str) -> None:
        """Tell that an image cannot be indexed; what it was before must not be found, either."""
        error = f"{image.now.name} cannot be read as an image: {reason}."
        self.unreadable.append(UnreadableImage(path=image.now.name, error=error))
        if image.before is not None:
            self._remove([image.before.name])

    def _remove(self, names: Sequence[str]) -> None:
        self._removed += names
        self.counts["removed"] += len(names)

    def _remove_vanished_rows(self, images: ImageSet) -> None:
        """Remove the images of a table or an archive that it does not hold any more."""
        if self.folder is None or not images.files:
            return
        for file in dict.fromkeys(map(str, images.files)):
            if file not in self._seen:
                names = self.folder.names_in(file)
                self._remove([name for name in names if name not in self._seen])

    @property
    def _dim(self) -> int | None:
        if self.folder is not None:
            return self.folder.header.dim
        return next((len(vector) for _, vector in self._new.values()), None)

    def _row_of(self, sha256: str) -> int | None:
        if (new := self._new.get(sha256)) is not None:
            return new[0]
        return None if self.folder is None else self.folder.row_of(sha256)

    # --- The model ------------------------------------------------------------------------------

    def _embed(self, contents: dict[str, tuple[bytes | ImageContent, str]]) -> dict[str, str]:
        """Give contents their vectors and rows; return the reasons why some have none."""
        reasons: dict[str, str] = {}
        decoded: dict[str, tuple[ImageContent, str]] = {}
        pixels = 0
        waiting = list(contents.items())
        threads = torch.get_num_threads()
        step = 1 if threads == 1 else DECODED * threads
        for first in range(0, len(waiting), step):
            part = dict(waiting[first : first + step])
            images = in_threads(_decode, [image for image, _ in part.values()])
            for (sha256, (_, words)), image in zip(part.items(), images, strict=True):
                if isinstance(image, str):
                    reasons[sha256] = image
                else:
                    decoded[sha256] = image, words
                    pixels += image.size if isinstance(image, np.ndarray) else math.prod(image.size)
            if decoded and (pixels > PIXELS or first + step >= len(waiting)):
                vectors = self._vectors_of([*decoded.values()])
                for sha256, vector in zip(decoded, vectors, strict=True):
                    if isinstance(vector, str):
                        reasons[sha256] = vector
                        continue
                    rows = 0 if self.folder is None else self.folder.rows
                    self._new[sha256] = rows + len(self._new), vector
                    self.counts["embedded"] += 1
                decoded, pixels = {}, 0
        return reasons

    def _vectors_of(self, images: list[tuple[ImageContent, str]]) -> list[np.ndarray | str]:
        """Embed images and words; of those that the model cannot take return the reason."""
        named = [words for _, words in images if words]
        try:
            vectors = self.embedder.embed_images([image for image, _ in images])
            texts = self.embedder.embed_texts(named) if named else None
        except DataError as error:
            if len(images) > 1:
                return [vector for image in images for vector in self._vectors_of([image])]
            return [error.reason if isinstance(error, UnreadableError) else str(error).rstrip(".")]
        check_vectors(vectors, (len(images), self._dim), self.embedder)
        if texts is not None:
            check_vectors(texts, (len(named), vectors.shape[1]), self.embedder)
            rows = [bool(words) for _, words in images]
            vectors = vectors.copy()
            vectors[rows] = with_names(vectors[rows], texts)
        return [
            vector if np.isfinite(vector).all() else "the model's vector of it is not finite"
            for vector in vectors
        ]


def _decode(content: bytes | ImageContent) -> ImageContent | str:
    """Decode an image; return the reason if that cannot be done."""
    try:
        with naming(""):
            return load(lambda: content)
    except UnreadableError as error:
        return error.reason

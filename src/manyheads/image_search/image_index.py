"""Images that are found by words or by an image: from Python `index`, `search` and `ImageIndex`."""

import os
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Any, Literal

import numpy as np

from manyheads.asks.image_search_request import (
    FoundImage,
    ImageSearchAnswer,
    ImageSearchRequest,
    IndexAnswer,
    IndexRequest,
)
from manyheads.data.images.image_file import SUFFIXES, ImageContent, is_image, open_image
from manyheads.data.text.encoding import reject_surrogates
from manyheads.errors import DataError, FolderError, InterruptedRunError, NotFoundError, UsageError
from manyheads.image_search.embedder import Embedder, check_vectors, load_embedder, place_of
from manyheads.image_search.index_folder import Header, IndexFolder, check_place, read_header
from manyheads.image_search.index_writer import IndexWriter, Progress
from manyheads.image_search.indexed_images import gather, is_gone
from manyheads.image_search.top_k import top_k
from manyheads.predict.base_predictor import Predictor
from manyheads.project.lock import locked
from manyheads.project.paths import find_model
from manyheads.train.interrupt import stop_signals

MODEL = "emoji-search"  # of a new index
Kind = Literal["text", "image"]
Model = str | Path | Predictor | Embedder


class ImageIndex:
    """An open index of images: search it any number of times, or add images.

    It sees what others add meanwhile. One thread at a time may call the model.

    Examples:
        index = ImageIndex("icons.index")
        for found in index.search("a smiling cat", top=5):
            print(found.score, found.path)
    """

    def __init__(self, folder: str | Path, *, model: Model | None = None, **options: Any) -> None:
        """Open an index, and load its model.

        Args:
            folder: of the index, which `index` made.
            model: where the model of the index is; where it was when the index was made if None.
            options: of loading, such as `device` and `threads` (see `manyheads.load`).

        Raises:
            NotFoundError: there is no such index, or the model is not where it was.
            FolderError: the index is damaged, of a later version, or was made with another model.
        """
        self.path = Path(folder)
        self._folder = IndexFolder(self.path)
        try:
            self.embedder = _embedder(self._folder.header, self.path, model, options)
        except BaseException:
            self._folder.close()
            raise
        self._lock = Lock()
        self._version: int | None = None
        self._unused: np.ndarray | None = None

    def __enter__(self) -> "ImageIndex":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        with self._lock:
            return len(self._folder)

    def close(self) -> None:
        """Close the files of the index."""
        self._folder.close()

    def search(
        self, query: str | Path | ImageContent, *, top: int = 10, kind: Kind | None = None
    ) -> list[FoundImage]:
        """Find the images that are most similar to a text or to an image.

        Args:
            query: a text; or an image: its path, a Pillow image or an array.
            top: how many images to find.
            kind: "text" or "image"; if None, a path of an image file is an image.

        Returns:
            The images, best first; those with equal scores in the order in which they were added.

        Raises:
            NotFoundError: there is no such image file.
            UnreadableError: the file is not an image, or damaged.
            DataError: the query is empty.
            FolderError: the index is damaged.
        """
        given = str(query) if isinstance(query, Path) else query
        if isinstance(query, Path):
            kind = "image"
        if isinstance(given, str):
            request = ImageSearchRequest(queries=(given,), top=top, kind=kind)
            vector = self._embed(given, request.kind or _kind_of(given))
        else:
            request = ImageSearchRequest(queries=(), top=top)
            if not isinstance(given, ImageContent) or kind == "text":
                raise UsageError(
                    f"The query is {query!r:.80}: give a text, the path of an image, a Pillow "
                    "image, or an array (height, width, channel)."
                )
            vector = self._checked(self.embedder.embed_images([given]))[0]
        return self.search_vectors(vector[None], top=request.top)[0]

    def answer(self, request: ImageSearchRequest) -> list[ImageSearchAnswer]:
        """Answer a request: one answer for each query; what cannot be read is told in its place."""
        vectors: list[np.ndarray] = []
        answers: list[ImageSearchAnswer] = []
        for query in request.queries:
            kind, wrong = request.kind or _kind_of(query), None
            try:
                vectors.append(self._embed(query, kind))
            except (DataError, NotFoundError) as error:
                wrong = str(error)
            answers.append(ImageSearchAnswer(query=query, kind=kind, error=wrong))
        found = iter(self.search_vectors(np.stack(vectors), top=request.top) if vectors else [])
        return [
            each if each.error else each.model_copy(update={"images": tuple(next(found))})
            for each in answers
        ]

    def search_vectors(self, vectors: np.ndarray, *, top: int = 10) -> list[list[FoundImage]]:
        """Find the images that are most similar to vectors of the model: (query, dim), length 1."""
        vectors = self._checked(np.asarray(vectors, dtype=np.float32))
        with self._lock, self._folder.snapshot() as version:
            if version != self._version:
                self._unused, self._version = self._folder.unused_rows(), version
            try:
                best = top_k(self._folder.vectors(), vectors, top, self._unused)
            except DataError as error:
                raise self._folder.damaged(str(error)) from error
            images = self._folder.images_of([*{int(row) for rows, _ in best for row in rows}])
        files = {each.file for group in images.values() for each in group}
        gone = {file for file in files if file is not None and is_gone(file)}
        return [
            [
                FoundImage(
                    path=each.name,
                    score=float(score),
                    label=each.label,
                    gone=each.file in gone or None,
                )
                for row, score in zip(rows, scores, strict=True)
                for each in images[int(row)]
            ][:top]
            for rows, scores in best
        ]

    def add(
        self, *images: str | Path, progress: Progress | None = None, **parameters: Any
    ) -> IndexAnswer:
        """Add images, as `index` does.

        Args:
            images: images, folders, tables or archives.
            progress: called with the number of images done, of how many, and images a second.
            parameters: those of `IndexRequest`.
        """
        request = IndexRequest(images=tuple(map(str, images)), **parameters)
        return _add(self.path, self.embedder, request, progress)

    def _embed(self, query: str, kind: Kind) -> np.ndarray:
        if kind == "text":
            reject_surrogates([query], "the query")
            if not query.strip():
                raise DataError("The query is empty: give words, or the path of an image.")
            return self._checked(self.embedder.embed_texts([query]))[0]
        try:
            image = open_image(Path(query))
        except NotFoundError as error:
            raise NotFoundError(f"{error} If these are words: `kind=text`.") from None
        return self._checked(self.embedder.embed_images([image]))[0]

    def _checked(self, vectors: np.ndarray) -> np.ndarray:
        check_vectors(vectors, (len(vectors), self._folder.header.dim), self.embedder)
        if not np.isfinite(vectors).all():
            raise DataError("The model's vector of the query is not finite.")
        return vectors


def index(
    images: str | Path | Sequence[str | Path],
    *,
    out: str | Path,
    model: Model | None = None,
    progress: Progress | None = None,
    image_column: str = "image",
    label_column: str | None = None,
    names: bool = False,
    prune: bool = False,
    reread: bool = False,
    **options: Any,
) -> IndexAnswer:
    """Make an index of images, or bring one up to date.

    Images that are in the index and have not changed are left alone; of a file that was moved or
    copied the vector is used again, unless names count. What is done is saved about once a second.

    Args:
        images: images, folders of images at any depth, tables (.csv, .tsv, .jsonl), .parquet or
            .tar files, or several of them.
        out: the folder of the index.
        model: the name or the folder of a model that embeds images and texts; that of the index
            if None, and "emoji-search" for a new one.
        progress: called with the number of images done, of how many, and images a second.
        image_column: of tables, with images or their paths.
        label_column: of tables, with what is shown beside the name of an image.
        names: what an image is found by is the mean of its vector and of that of its name, a text;
            of its label if it has one. An index that was made so stays so.
        prune: remove images whose files are gone.
        reread: read all files, also those whose size and times are as they were.
        options: of loading the model, such as `device` and `threads`.

    Returns:
        What has changed, and which images could not be read.

    Raises:
        NotFoundError: something is not there.
        UsageError: another process adds images to the index; `out` is something else; the model
            does not embed; `names` for an index that was made without.
        DataError: there are no images, or none can be read; a table cannot be read.
        FolderError: the index is damaged, of a later version, or was made with another model.
        InterruptedRunError: stopped by Ctrl-C; what is done is saved.
    """
    several = [images] if isinstance(images, str | Path) else images
    request = IndexRequest(
        images=tuple(map(str, several)),
        image_column=image_column,
        label_column=label_column,
        names=names,
        prune=prune,
        reread=reread,
    )
    path = Path(out)
    if check_place(path) or not request.images:
        embedder = _embedder(read_header(path), path, model, options)
    else:
        embedder = load_embedder(model or MODEL, **options)
    return _add(path, embedder, request, progress)


def search(
    query: str | Path | ImageContent,
    *,
    index: str | Path,
    top: int = 10,
    kind: Kind | None = None,
    model: Model | None = None,
    **options: Any,
) -> list[FoundImage]:
    """Find images of an index: `ImageIndex.search`, for one query.

    For more than one, an `ImageIndex` loads its model only once.

    Args:
        query: a text; or an image: its path, a Pillow image or an array.
        index: the folder of the index.
        top: how many images to find.
        kind: "text" or "image"; if None, a path of an image file is an image.
        model: where the model of the index is; where it was when the index was made if None.
        options: of loading the model, such as `device` and `threads`.

    Raises:
        ManyheadsError: as `ImageIndex` and its `search`.
    """
    with ImageIndex(index, model=model, **options) as opened:
        return opened.search(query, top=top, kind=kind)


def _embedder(header: Header, path: Path, model: Model | None, options: dict[str, Any]) -> Embedder:
    """Load the model of an index; refuse another one."""
    try:
        # What an index says fetches nothing.
        where = find_model(header.model, fetch=False) if model is None else model
        found = load_embedder(where, **options)
    except NotFoundError as error:
        if model is not None:
            raise
        raise NotFoundError(
            f"The model of the index {path} is not there any more: {header.model}. Say where it is "
            "now with `model`."
        ) from error
    weights = found.folder.weights_hash
    if weights != header.weights:
        raise FolderError(
            f"The index {path} was made with {header.model} (weights {header.weights[:12]}), and "
            f"{place_of(found)} has others ({weights[:12]}): vectors of two models "
            "cannot be compared. Give the model that it was made with as `model`, or index the "
            "images into another folder."
        )
    return found


def _add(
    path: Path, embedder: Embedder, request: IndexRequest, progress: Progress | None
) -> IndexAnswer:
    """Add images while nobody else does; save what is done when it is interrupted."""
    sets = gather(request.images, request.image_column, request.label_column)
    with locked(path, "adds images"), stop_signals() as stopped:
        writer = IndexWriter(path, embedder, names=request.names, reread=request.reread)
        try:
            done, total = writer.add(sets, stopped, progress or (lambda *_: None))
            if done == total:
                writer.prune(remove=request.prune)
            writer.commit()
            if done < total:
                raise InterruptedRunError(
                    f"Stopped after {done:,} of {total:,} images, which are saved. Run the same "
                    "command again to go on."
                )
            unreadable = writer.unreadable
            if writer.folder is None:
                raise DataError(
                    f"None of {len(unreadable):,} images can be read, so there is no index. The "
                    f"first: {unreadable[0].error}"
                )
            images = len(writer.folder)
            return IndexAnswer(images=images, unreadable=tuple(unreadable), **writer.counts)
        finally:
            writer.close()


def _kind_of(query: str) -> Kind:
    """Tell whether a query is the path of an image."""
    # A name with the ending of an image is one, too: a text would be answered without a word.
    if Path(query).suffix.lower() in SUFFIXES and "\n" not in query:
        return "image"
    return "image" if os.path.isfile(query) and is_image(Path(query)) else "text"  # noqa: PTH113

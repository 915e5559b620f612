"""Documents, whose sentences are translated among the requests of all other clients.

A document is put together in a thread of its own; its sentences wait in the queue of the model, a
few at a time, so that a long one delays no other, and it stops where its client leaves.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from manyheads.app.documents import documents
from manyheads.app.documents.documents import Document, translate_document, translate_file
from manyheads.app.documents.fallbacks import TextTranslator
from manyheads.app.predictors.translator import Translator
from manyheads.app.requests import estimate_tokens
from manyheads.data.documents.glossary import Entry, Glossary
from manyheads.data.documents.office import Unpacked
from manyheads.errors import UsageError
from manyheads.tasks.decoding import Translation
from manyheads.web.batching import Job
from manyheads.web.problems import ProblemError
from manyheads.web.served import Served, ServedModel

AT_A_TIME = 32  # sentences
UNPACKED = Unpacked(part=8 << 20, texts=8 << 20, all=256 << 20, parts=5000)  # of a DOCX or XLSX
T = TypeVar("T")
Progress = Callable[[int, int], None]  # sentences that are translated, and of how many


class LeftError(Exception):
    """Nobody waits for the document any more."""


@dataclass(frozen=True)
class _Translate:
    """Translate texts by a translator."""

    options: Mapping[str, Any]
    constraints: Sequence[Sequence[Sequence[int]]] | None

    def __call__(self, own: Translator, given: Sequence[str]) -> list[Any]:
        """Translate them."""
        return own.translate(given, constraints=self.constraints, **self.options)


class QueuedTranslator:
    """A `TextTranslator` whose searches wait in the queue of the model.

    The model itself is the worker's; here are its tokenizers only.
    """

    def __init__(
        self,
        models: Served,
        model: ServedModel,
        loop: asyncio.AbstractEventLoop,
        progress: Progress | None,
    ) -> None:
        self._model, self._loop, self._progress = model, loop, progress
        self._most = models.limits.document
        self.folder = model.folder
        recipe: Any = self.folder.recipe
        self.source, self.target = recipe.data.source, recipe.data.target
        self.decode = recipe.decode
        self.longest = int(recipe.train.max_length)
        self.tokenizers = models.tokenizers(model)
        self._left = False
        self._asked: Future[list[Any]] | None = None

    def source_length(self, text: str) -> int:
        """Count the tokens of a source, its end included."""
        return len(self.tokenizers.source.encode([text])[0]) + 1

    def leave(self) -> None:
        """Stop: the client has left."""
        self._left = True
        if self._asked is not None:
            self._asked.cancel()

    def translate(
        self,
        texts: Sequence[str],
        *,
        constraints: Sequence[Sequence[Sequence[int]]] | None = None,
        **options: Any,
    ) -> list[list[Translation]]:
        """Translate texts, as the translator does.

        Raises:
            LeftError: the client has left.
            ProblemError: the texts are longer than is allowed.
        """
        if (length := sum(map(len, texts))) > self._most:
            raise ProblemError(
                413,
                "Too large",
                f"A document may have {self._most:,} characters; this one has {length:,}.",
                remedy="Divide the document.",
            )
        found: list[list[Translation]] = []
        width = int(options.get("n_best", 1))
        key = None if constraints is not None else ("translate", *sorted(options.items()))
        for first in range(0, len(texts), AT_A_TIME):
            if self._left:
                raise LeftError
            part = texts[first : first + AT_A_TIME]
            demands = None if constraints is None else constraints[first : first + AT_A_TIME]
            cost = estimate_tokens(part) * width
            job = partial(Job, _Translate(options, demands), part, cost, key)
            self._asked = asyncio.run_coroutine_threadsafe(self._ask(job), self._loop)
            found += self._asked.result()
            if self._progress is not None and constraints is None:
                self._progress(len(found), len(texts))
        return found

    async def _ask(self, job: Callable[[], Job]) -> list[Any]:
        return await self._model.queue.ask(job())


def check_translator(model: ServedModel) -> None:
    """Refuse a translator from outside the package, which translates texts only.

    Raises:
        UsageError: it is one.
    """
    if not model.predictor.documents:
        raise UsageError(f"{model.name} translates single texts only: use /api/v1/translate.")


def glossary(entries: Mapping[str, str]) -> Glossary:
    """Make a glossary of terms and their translations."""
    return Glossary(Entry(term, translation) for term, translation in entries.items())


async def translate(
    models: Served,
    model: ServedModel,
    text: str,
    *,
    format: str = "text",
    terms: Glossary | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Document:
    """Translate a document; it stops when the caller is cancelled.

    Raises:
        ProblemError: too many are being translated.
        UsageError: no such format.
    """

    def work(translator: TextTranslator) -> Document:
        return translate_document(translator, text, format=format, glossary=terms, **options)

    return await with_translator(models, model, work, progress)


async def translate_texts(
    models: Served,
    model: ServedModel,
    texts: Sequence[str],
    *,
    format: str = "text",
    terms: Glossary | None = None,
) -> list[str]:
    """Translate texts that are independent of each other; they count as one document.

    Raises:
        ProblemError: too many are being translated.
        UsageError: no such format.
    """

    def work(translator: TextTranslator) -> list[str]:
        return documents.translate_texts(translator, texts, format=format, glossary=terms)

    return await with_translator(models, model, work)


async def translate_content(
    models: Served,
    model: ServedModel,
    content: bytes,
    *,
    format: str,
    terms: Glossary | None = None,
    progress: Progress | None = None,
) -> Document:
    """Translate the content of a file; it stops when the caller is cancelled.

    Raises:
        ProblemError: too many are being translated.
        DataError: it is damaged, of another format, or unpacks to too much.
    """

    def work(translator: TextTranslator) -> Document:
        name = "The document"
        return translate_file(
            translator, content, name, format=format, glossary=terms, unpacked=UNPACKED
        )

    _check_room(models.files, models.limits.files)
    models.files += 1
    try:
        return await with_translator(models, model, work, progress)
    finally:
        models.files -= 1


async def with_translator(
    models: Served,
    model: ServedModel,
    work: Callable[[TextTranslator], T],
    progress: Progress | None = None,
) -> T:
    """Run work that translates, as one document; it stops when the caller is cancelled.

    Args:
        models: all that are served.
        model: the translator.
        work: is run in a thread, with what translates.
        progress: is told how far each translation is.

    Raises:
        ProblemError: too many documents are being translated.
        UsageError: the model translates single texts only.
    """
    check_translator(model)
    _check_room(models.documents, models.limits.documents)
    loop = asyncio.get_running_loop()
    queued = QueuedTranslator(models, model, loop, progress)
    models.documents += 1
    try:
        return await loop.run_in_executor(_threads(models), work, queued)
    finally:
        queued.leave()
        models.documents -= 1


def _check_room(count: int, most: int) -> None:
    if count >= most:
        raise ProblemError(
            429,
            "Too many requests",
            f"{count} documents are being translated.",
            remedy="Try again after the seconds that Retry-After names.",
            retry_after=5,
        )


def _threads(models: Served) -> ThreadPoolExecutor:
    if models.threads is None:
        models.threads = ThreadPoolExecutor(models.limits.documents, "document")
    return models.threads

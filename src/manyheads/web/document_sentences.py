"""Documents, whose sentences are translated among the requests of all other clients.

A document is divided and put together in another process, so that no other request waits for it;
its sentences wait in the queue of the model, a few at a time. It stops where its client leaves.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from manyheads.asks.request import estimate_tokens
from manyheads.data.documents.glossary import Entry, Glossary
from manyheads.data.documents.office import Unpacked
from manyheads.documents import document_translation as documents
from manyheads.documents.document_translation import Document, translate_document, translate_file
from manyheads.documents.fallbacks import TextTranslator
from manyheads.errors import ChangedFolderError, UsageError
from manyheads.generation.text_decoding import Translation
from manyheads.predict.load import LoadVersion
from manyheads.project.folder import ModelFolder
from manyheads.tasks.translate.predictor import Translator
from manyheads.tasks.translate.stored_translator import StoredTranslator
from manyheads.web.batching import Job
from manyheads.web.problems import ProblemError, model_changed, process_ended
from manyheads.web.served import Served, ServedModel
from manyheads.web.workers import Work, WorkerDiedError, ask_server

AT_A_TIME = 32  # sentences
TOKENS = 1024  # of them in all beams, by estimate
UNPACKED = Unpacked(part=8 << 20, texts=8 << 20, all=256 << 20, parts=5000)  # of a DOCX or XLSX
T = TypeVar("T")
Progress = Callable[[int, int], None]  # sentences that are translated, and of how many
_numbers = count(1)  # of documents


# --- In the process that divides ------------------------------------------------------------------


@dataclass(frozen=True)
class Sentences:
    """Sentences of a document, to be translated."""

    texts: Sequence[str]
    constraints: Sequence[Sequence[Sequence[int]]] | None
    options: Mapping[str, Any]  # of `Translator.translate`
    done: int  # sentences with these
    of: int
    characters: int  # of them all


class QueuedTranslator(StoredTranslator):
    """A `TextTranslator` whose searches wait in the server's queue of the model.

    The model itself is elsewhere; here is what is stored with it.
    """

    def __init__(self, folder: ModelFolder) -> None:
        self.read_folder(folder, folder.tokenizers())

    def translate(
        self,
        texts: Sequence[str],
        *,
        constraints: Sequence[Sequence[Sequence[int]]] | None = None,
        **options: Any,
    ) -> list[list[Translation]]:
        """Translate texts, as the translator does.

        Raises:
            WorkCancelledError: the client has left.
        """
        found: list[list[Translation]] = []
        width = int(options.get("n_best", 1))
        length = sum(map(len, texts))
        while len(found) < len(texts):
            first = len(found)
            last, cost = first, 0
            while last < min(len(texts), first + AT_A_TIME) and cost < TOKENS:
                cost += estimate_tokens(texts[last : last + 1]) * width
                last += 1
            demands = None if constraints is None else constraints[first:last]
            part = Sentences(texts[first:last], demands, options, last, len(texts), length)
            found += ask_server(part)
        return found


@dataclass(frozen=True)
class _Open:
    """Opens one version of a translator's folder."""

    path: Path
    version: str

    def __call__(self) -> QueuedTranslator:
        """Open it.

        Raises:
            ChangedFolderError: it is another version, or was changed meanwhile.
        """
        return _opened(self.path, self.version)


@lru_cache(maxsize=16)
def _opened(path: Path, version: str) -> QueuedTranslator:
    found = QueuedTranslator(ModelFolder(path))
    found.folder.check_version(version)
    return found


@dataclass(frozen=True)
class _Once:
    """Work that translates, as a worker takes it."""

    work: Callable[[TextTranslator], Any]
    lines: bool = False

    def __call__(self, own: TextTranslator, given: Sequence[Any]) -> list[Any]:
        """Do it."""
        found = self.work(own)
        if self.lines:
            return [found]
        # The lines of a document are many times what it is.
        if isinstance(found, list):
            return [[_without_lines(each) for each in found]]
        return [_without_lines(found)]


def _without_lines(found: Any) -> Any:
    return replace(found, lines=(), summary=found.notes) if isinstance(found, Document) else found


# --- In the server --------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Translate:
    """Translate texts by a translator."""

    options: Mapping[str, Any]
    constraints: Sequence[Sequence[Sequence[int]]] | None

    def __call__(self, own: Translator, given: Sequence[str]) -> list[Any]:
        """Translate them."""
        return own.translate(given, constraints=self.constraints, **self.options)


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
    lines: bool = False,
) -> Document:
    """Translate a document, with its lines if they are asked for; cancelled with its caller.

    Raises:
        ProblemError: too many are being translated.
        UsageError: no such format.
    """
    work = partial(translate_document, text=text, format=format, glossary=terms)
    return await with_translator(models, model, work, len(text), progress, lines=lines)


async def translate_texts(
    models: Served,
    model: ServedModel,
    texts: Sequence[str],
    *,
    format: str = "text",
    terms: Glossary | None = None,
) -> list[Document]:
    """Translate texts that are independent of each other; they count as one document.

    Raises:
        ProblemError: too many are being translated.
        UsageError: no such format.
    """
    work = partial(documents.translate_texts, texts=texts, format=format, glossary=terms)
    return await with_translator(models, model, work, sum(map(len, texts)))


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
    work = partial(
        translate_file,
        content=content,
        name="The document",
        format=format,
        glossary=terms,
        unpacked=UNPACKED,
    )
    own = models.documents
    _check_room(own.files < models.limits.files)
    own.files += 1
    try:
        return await with_translator(models, model, work, models.limits.document, progress)
    finally:
        own.files -= 1


async def with_translator(
    models: Served,
    model: ServedModel,
    work: Callable[[TextTranslator], T],
    characters: int,
    progress: Progress | None = None,
    *,
    lines: bool = False,
) -> T:
    """Run work that translates, as one document; it stops when the caller is cancelled.

    Args:
        models: all that are served.
        model: the translator.
        work: is run elsewhere, with what translates; it can be pickled.
        characters: that it translates, at most.
        progress: is told how far each translation is.
        lines: documents keep their lines.

    Raises:
        ProblemError: too many or too long documents are being translated.
        UsageError: the model translates single texts only.
    """
    check_translator(model)
    own, limits = models.documents, models.limits
    others = sum(each for each in own.characters if each > limits.characters)
    large = characters > limits.characters and others > 0
    _check_room(bool(own.slots) and not (large and others + characters > limits.all_documents))
    load = model.queue.load_model
    assert isinstance(load, LoadVersion)
    most = limits.document

    async def translated(part: Sentences) -> list[Any]:
        if part.characters > most:
            raise ProblemError(
                413,
                "Too large",
                f"A document may have {most:,} characters; this one has {part.characters:,}.",
                remedy="Divide the document.",
            )
        width = int(part.options.get("n_best", 1))
        plain = part.constraints is None
        key = ("translate", *sorted(part.options.items())) if plain else None
        search = _Translate(part.options, part.constraints)
        cost = estimate_tokens(part.texts) * width
        found = await model.queue.ask(Job(search, part.texts, cost, key, patient=True, load=load))
        if progress is not None and plain:
            progress(part.done, part.of)
        return found

    slot = own.slots.popleft()
    own.characters.append(characters)
    try:
        doing = Work(
            next(_numbers),
            f"document {slot}",
            _Open(load.path, load.version),
            _Once(work, lines),
            [(None,)],
        )
        outcome = (await own.worker.work(doing, translated)).outcomes[0]
    except ChangedFolderError:
        await model.queue.read_again()
        raise model_changed(model.name) from None
    except WorkerDiedError:
        raise process_ended("divides documents") from None
    finally:
        own.slots.append(slot)  # used last, as what is stopped may still be at its last step
        own.characters.remove(characters)
    if isinstance(outcome, BaseException):
        raise outcome
    found: T = outcome[0]
    return found


def _check_room(free: bool) -> None:
    if not free:
        raise ProblemError(
            429,
            "Too many requests",
            "Too many documents are being translated, or too long ones.",
            remedy="Try again after the seconds that Retry-After names.",
            retry_after=5,
        )

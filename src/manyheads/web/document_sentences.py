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
from manyheads.data.documents.office import Unpacked
from manyheads.documents.document_translation import Document
from manyheads.documents.fallbacks import Demands, TextTranslator
from manyheads.errors import ChangedFolderError, UsageError
from manyheads.generation.text_decoding import Translation
from manyheads.predict.load import LoadVersion
from manyheads.project.folder import ModelFolder
from manyheads.tasks.translate.predictor import Translator
from manyheads.tasks.translate.stored_translator import StoredTranslator
from manyheads.web.batching import Job
from manyheads.web.problem_json import refusal
from manyheads.web.served import Served, ServedModel
from manyheads.web.worker_threads import Work, WorkerDiedError, ask_server

AT_A_TIME = 32  # sentences
TOKENS = 1024  # of them in all beams, by estimate
UNPACKED = Unpacked(part=8 << 20, texts=8 << 20, all=256 << 20, parts=5000)  # of a DOCX or XLSX
T = TypeVar("T")
_numbers = count(1)  # of documents


# --- In the process that divides ------------------------------------------------------------------


@dataclass(frozen=True)
class Sentences:
    """Sentences of a document, to be translated."""

    texts: Sequence[str]
    constraints: Demands | None
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
        self, texts: Sequence[str], *, constraints: Demands | None = None, **options: Any
    ) -> list[list[Translation]]:
        """Translate texts as the translator does, or raise WorkCancelledError."""
        translations: list[list[Translation]] = []
        width = int(options.get("n_best", 1))
        length = sum(map(len, texts))
        while len(translations) < len(texts):
            first = len(translations)
            last, cost = first, 0
            while last < min(len(texts), first + AT_A_TIME) and cost < TOKENS:
                cost += estimate_tokens(texts[last : last + 1]) * width
                last += 1
            demands = None if constraints is None else constraints[first:last]
            part = Sentences(texts[first:last], demands, options, last, len(texts), length)
            translations += ask_server(part)
        return translations


@dataclass(frozen=True)
class _Open:
    """Opens one version of a translator's folder; raises `ChangedFolderError` of another one."""

    path: Path
    version: str

    def __call__(self) -> QueuedTranslator:
        return _opened(self.path, self.version)


@lru_cache(maxsize=16)
def _opened(path: Path, version: str) -> QueuedTranslator:
    translator = QueuedTranslator(ModelFolder(path))
    translator.folder.check_version(version)
    return translator


def _once(
    work: Callable[[TextTranslator], Any], lines: bool, own: TextTranslator, _: Sequence[Any]
) -> list[Any]:
    """Do work that translates; without `lines`, which are many times what a document is."""
    result = work(own)
    return [result if lines else _without_lines(result)]


def _without_lines(result: Any) -> Any:
    if isinstance(result, list):
        return [_without_lines(each) for each in result]
    if not isinstance(result, Document):
        return result
    return replace(result, lines=(), summary=result.notes)


# --- In the server --------------------------------------------------------------------------------


def _translate(options: Mapping[str, Any], own: Translator, texts: Sequence[str]) -> list[Any]:
    return own.translate(list(texts), **options)


async def with_translator(
    models: Served,
    model: ServedModel,
    work: Callable[[TextTranslator], T],
    characters: int | None,
    progress: Callable[[int, int], None] | None = None,
    *,
    lines: bool = False,
) -> T:
    """Run work that translates, as one document; it stops when the caller is cancelled.

    Args:
        models: all that are served.
        model: the translator.
        work: is run elsewhere, with what translates; it can be pickled.
        characters: that it translates, at most; None: those of a file, which are not known yet.
        progress: is told how many sentences are translated, and of how many.
        lines: documents keep their lines.

    Raises:
        ProblemError: too many or too long documents are being translated.
        UsageError: the model comes from outside the package, and translates single texts only.
    """
    if not model.predictor.documents:
        raise UsageError(f"{model.name} translates single texts only: use /api/v1/translate.")
    own, limits = models.documents, models.limits
    is_file = characters is None
    characters = limits.document if characters is None else characters
    others = sum(each for each in own.characters if each > limits.characters)
    large = characters > limits.characters and others > 0
    full = not own.slots or (is_file and own.files >= limits.files)
    if full or (large and others + characters > limits.all_documents):
        raise refusal("many_documents")
    load = model.queue.load_model
    assert isinstance(load, LoadVersion)

    async def translated(part: Sentences) -> list[Any]:
        if part.characters > limits.document:
            raise refusal("document", most=limits.document, count=part.characters)
        width = int(part.options.get("n_best", 1))
        plain = part.constraints is None
        key = ("translate", *sorted(part.options.items())) if plain else None
        search = partial(_translate, {**part.options, "constraints": part.constraints})
        cost = estimate_tokens(part.texts) * width
        job = Job(search, part.texts, cost, key, patient=True, load=load)
        translations = await model.queue.ask(job)
        if progress is not None and plain:
            progress(part.done, part.of)
        return translations

    slot = own.slots.popleft()
    own.characters.append(characters)
    own.files += is_file
    try:
        doing = Work(
            next(_numbers),
            f"document {slot}",
            _Open(load.path, load.version),
            partial(_once, work, lines),
            [(None,)],
        )
        outcome = (await own.worker.work(doing, translated)).outcomes[0]
    except ChangedFolderError:
        await model.queue.read_again()
        raise refusal("model_changed", model=model.name) from None
    except WorkerDiedError:
        raise refusal("process_ended", does="divides documents") from None
    finally:
        own.slots.append(slot)  # used last, as what is stopped may still be at its last step
        own.characters.remove(characters)
        own.files -= is_file
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome[0]

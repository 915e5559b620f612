"""The models and the index that a server answers with."""

import asyncio
import logging
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from manyheads.asks.request import Request
from manyheads.asks.translate_request import TranslateRequest
from manyheads.data.text.languages import base
from manyheads.data.tokenizers.tokenizer import Tokenizers
from manyheads.errors import FolderError, ManyheadsError, NotFoundError, UsageError, nearest
from manyheads.image_search.image_index import ImageIndex
from manyheads.image_search.index_folder import read_header
from manyheads.predict.base_predictor import Predictor
from manyheads.predict.load import LoadVersion
from manyheads.predict.task_pipeline import pipeline_of
from manyheads.project.folder import ModelFolder
from manyheads.project.paths import find_model, shipped
from manyheads.project.plugins import LOADED
from manyheads.web.batching import ModelQueue
from manyheads.web.metrics import Metrics
from manyheads.web.settings import Limits
from manyheads.web.worker_process import LONGEST, ProcessWorker
from manyheads.web.worker_threads import Worker

# Shipped models that are the defaults of their kinds, before the others.
FIRST = ("en-de", "multi30k-en-de", "en-ko", "ko-en", "cifar10-cct-2-3x2")
LOG = logging.getLogger("manyheads.web")


@dataclass(frozen=True)
class ServedModel:
    """A model, known by its folder's name; loaded when it is first asked."""

    folder: ModelFolder
    queue: ModelQueue

    @property
    def name(self) -> str:
        """The name that clients give."""
        return self.folder.name

    @property
    def languages(self) -> tuple[str | None, str | None]:
        """The languages of a translator; of a reader its own; None where there is none."""
        return self.folder.recipe.data.language_pair

    @property
    def predictor(self) -> type[Predictor]:
        """The class that it is loaded as."""
        return pipeline_of(self.folder.recipe).predictor

    def answers(self, request: type[Request]) -> bool:
        """Tell whether it answers requests of this type."""
        own = self.predictor.request
        return own is not None and issubclass(request, own)

    def facts(self) -> dict[str, Any]:
        """Describe it to clients."""
        recipe, pipeline = self.folder.recipe, pipeline_of(self.folder.recipe)
        own = self.predictor.request
        scores = {
            f"{line['data']} {metric}": round(score["value"], 2)
            for line in self.folder.evaluations()
            for metric, score in line["all"].items()
            if score["value"] is not None
        }
        source, target = self.languages
        return {
            "name": self.name,
            "task": recipe.task,
            "request": None if own is None else own.__name__.removesuffix("Request").lower(),
            "words": self.predictor.zero_shot,
            "parameters": self.folder.weight_count,
            "looks": pipeline.looks,
            "images": recipe.data.has_images,
            "source": source,
            "target": target,
            "trained_on": recipe.data.train,
            "measured": scores,
            # Percent of words that threads tie to a wrong one, where it was measured.
            "alignment_error": (self.folder.manifest.get("alignment") or {}).get("error"),
            # Of a captioner; None until it is loaded.
            "languages": self.queue.facts.get("languages"),
            "loaded": bool(self.queue.facts),
        }


@dataclass(frozen=True)
class ServedOptions:
    """What to serve: models by name or folder, those shipped if empty, and an index of images."""

    models: tuple[str, ...] = ()
    index: Path | None = None
    engine: str = "torch"
    device: str | None = None
    threads: int | None = None

    def make(self, limits: Limits, worker: Worker | None = None) -> "Served":
        """Open the folders of the models; raise as `Served` does."""
        return Served(self, limits, worker, None if LOADED else ProcessWorker(early=False))


@dataclass
class Documents:
    """The documents that are translated, and what divides them into sentences."""

    worker: Worker
    limits: Limits
    characters: list[int] = field(default_factory=list)  # of each
    files: int = 0  # of them, those that were sent as files
    slots: deque[int] = field(init=False)  # each for a document, with a thread of its own

    def __post_init__(self) -> None:
        self.slots = deque(range(self.limits.documents))


class Served:
    """All models by name, the first of each kind being its default, and an index of images."""

    def __init__(
        self,
        served: ServedOptions,
        limits: Limits,
        worker: Worker | None = None,
        dividing: Worker | None = None,
    ) -> None:
        """Open the folders of models; their weights are loaded later.

        `worker` owns the models, `dividing` divides documents into sentences: threads of this
        process where they are None.

        Raises:
            NotFoundError: there is no such model, or no such index.
            FolderError: a folder is damaged.
            UsageError: two models have the same name.
        """
        engine, device, threads = served.engine, served.device, served.threads
        self.options: dict[str, Any] = {"engine": engine, "device": device, "threads": threads}
        self.named = bool(served.models)
        self.limits, self.metrics = limits, Metrics()
        self.worker = worker or Worker()
        self.documents = Documents(dividing or Worker(), limits)
        self._loading: asyncio.Task[None] | None = None  # again, after the worker has died
        self.models: dict[str, ServedModel] = {}
        self._tokenizers: dict[str, Tokenizers] = {}
        self.ready = False
        for name in served.models or dict.fromkeys((*FIRST, *shipped("pretrained"))):
            self._add(name)
        self.index: ModelQueue | None = None
        if served.index is not None:
            read_header(served.index)  # refused before anything is served
            opened = partial(ImageIndex, served.index, **self.options)
            self.index = ModelQueue("index", opened, self.worker, limits, self.metrics)
        self.worker.watch(self._load_again, self.metrics.failed_starts.inc)

    def _add(self, name: str) -> None:
        folder = ModelFolder(find_model(name, fetch=False))
        if folder.name in self.models:
            raise UsageError(
                f"Two models are called {folder.name!r}: rename the folder of one, for clients "
                "choose models by their names."
            )
        name = folder.name
        again = partial(self._read_again, name)
        loads = LoadVersion(folder.path, folder.version, self.options)
        queue = ModelQueue(name, loads, self.worker, self.limits, self.metrics, again)
        self.models[name] = ServedModel(folder, queue)

    async def _read_again(self, name: str) -> None:
        """Read a folder that was written anew: its recipe, its tokenizers, and then its weights."""
        own = self.models[name]
        try:
            folder = await asyncio.to_thread(ModelFolder, own.folder.path)
        except ManyheadsError as error:  # it is being written
            LOG.error("%s cannot be read again: %s", name, error)
            return
        LOG.warning("%s was written anew, and is loaded again", name)
        self._tokenizers.pop(name, None)
        own.queue.load_model = LoadVersion(folder.path, folder.version, self.options)
        own.queue.facts = {}
        self.models[name] = replace(own, folder=folder)

    async def start(self) -> None:
        """Load models one after the other; ready when those that were named are loaded.

        The shipped ones are ready at once: each is loaded when it is asked, or else now.
        """
        await self.worker.start()
        self.ready = not self.named and self.index is None
        await self._load(self.queues())
        self.ready = True
        await self.documents.worker.start()

    async def _load(self, queues: Iterable[ModelQueue]) -> None:
        """Load models one after the other; those that must be there as soon as it is possible."""
        for queue in queues:
            tries = 0
            while not await self._is_loaded(queue) and (self.named or queue is self.index):
                tries += 1
                await asyncio.sleep(min(tries**2, LONGEST))

    async def _is_loaded(self, queue: ModelQueue) -> bool:
        try:
            await queue.load()
        except Exception as error:
            LOG.error("%s cannot be loaded: %s", queue.name, getattr(error, "detail", error))
        return bool(queue.facts)

    def _load_again(self) -> None:
        lost = [queue for queue in self.queues() if queue.facts]
        for queue in lost:
            queue.facts = {}
        self.metrics.restarts.inc()
        self._loading = asyncio.create_task(self._load(lost), name="load models again")

    def status(self) -> str:
        """Tell how the server is: "ready", "starting", or "failed" where it cannot start."""
        worker = self.worker.status()
        return worker if worker != "running" else "ready" if self.ready else "starting"

    def count_tokens(self, model: ServedModel, texts: Sequence[str]) -> int:
        """Count tokens of texts, without the model; four characters of a tagger count as one."""
        if model.name not in self._tokenizers:
            try:
                self._tokenizers[model.name] = model.folder.tokenizers()
            except FolderError:  # it has none
                return -(-sum(map(len, texts)) // 4)
        return sum(map(len, self._tokenizers[model.name].source.encode(texts)))

    def queues(self) -> Iterator[ModelQueue]:
        """All queues."""
        yield from (model.queue for model in self.models.values())
        if self.index is not None:
            yield self.index

    async def close(self) -> None:
        """Finish what was accepted."""
        if self._loading is not None:
            self._loading.cancel()
        await asyncio.gather(*(queue.close() for queue in self.queues()))
        await asyncio.gather(self.worker.close(), self.documents.worker.close())

    def find(self, name: str | None, request: type[Request], *, verb: str) -> ServedModel:
        """Find a model that answers requests of a type: by its name, or the first one.

        Raises:
            NotFoundError: none is served, or none of this name.
            UsageError: this one answers others.
        """
        able = [each for each in self.models.values() if each.answers(request)]
        if name is None:
            if not able:
                raise NotFoundError(f"No model is served that can {verb}.")
            return able[0]
        found = self.by_name(name)
        if found not in able:
            names = ", ".join(each.name for each in able) or "none"
            raise UsageError(f"{found.name} does not {verb}. Models that do: {names}.")
        return found

    def by_name(self, name: str) -> ServedModel:
        """Find a model by its name, or raise NotFoundError."""
        if name not in self.models:
            raise NotFoundError(
                f"No model {name[:100]!r} is served{nearest(name[:100], self.models)}Served: "
                f"{', '.join(self.models)}."
            )
        return self.models[name]

    def translator(self, source: str | None, target: str | None) -> ServedModel:
        """Find a translator between two languages, or raise NotFoundError; None is any."""
        pairs = self.language_pairs()
        for name, (one, other) in pairs.items():
            if _fits(source, one) and _fits(target, other):
                return self.models[name]
        listed = dict.fromkeys(f"{one} to {other}" for one, other in pairs.values())
        raise NotFoundError(
            f"No served model translates from {_named(source)} to {_named(target)}. "
            f"Languages: {', '.join(listed) or 'none'}."
        )

    def language_pairs(self) -> dict[str, tuple[str, str]]:
        """Name translators that know their languages, and these: general ones come first."""
        pairs = {}
        for name, each in self.models.items():
            source, target = each.languages
            if each.answers(TranslateRequest) and source is not None and target is not None:
                pairs[name] = source, target
        return pairs


def _named(language: str | None) -> str:
    return "any language" if language is None else repr(language[:20])


def _fits(wanted: str | None, own: str) -> bool:
    return wanted is None or base(wanted) == base(own)

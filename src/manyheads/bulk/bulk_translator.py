"""Sentences of documents, translated by other processes, with a ledger of what is finished."""

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path

from manyheads.bulk.blocks import BlockRunner, Setup, finish_blocks
from manyheads.bulk.finished_blocks import Ledger
from manyheads.documents.fallbacks import FallbackTranslator, Sentence, TextTranslator
from manyheads.strict_json import dumps
from manyheads.version import __version__

BLOCK = 128  # sentences: what a killed process loses


@dataclass
class BulkTranslator:
    """Translates as the `FallbackTranslator` of this process would, in others."""

    own: FallbackTranslator
    setup: Setup
    runner: BlockRunner
    ledger: Path | None  # a folder; None keeps nothing
    watch: Callable[[int, int], None]  # given sentences translated, and how many there are
    failed: Callable[[str], None]  # given the reason when blocks are run again

    @property
    def translator(self) -> TextTranslator:
        """The model of this process, for lengths and languages."""
        return self.own.translator

    def translate_with_fallbacks(self, sentences: Iterable[str]) -> dict[str, Sentence]:
        """Translate each of some different sentences; those of like length are one block."""
        texts = sorted(sentences, key=lambda text: (-len(text.encode()), text))
        blocks = dict(enumerate(texts[n : n + BLOCK] for n in range(0, len(texts), BLOCK)))
        ledger = None if self.ledger is None else Ledger(self.ledger, self._job(texts))
        translated: dict[str, Sentence] = {}

        def take(answer: Iterable[Sentence]) -> None:
            translated.update((each.source, each) for each in answer)
            self.watch(len(translated), len(texts))

        def finished(number: int, answer: list[Sentence]) -> None:
            if ledger is not None:
                ledger.keep(number, [asdict(each) for each in answer])
            take(answer)

        for number in list(blocks):
            kept = None if ledger is None else ledger.finished(number)
            if kept is not None:
                take(Sentence(**each | {"notes": tuple(each["notes"])}) for each in kept)
                del blocks[number]
        finish_blocks(self.runner, self.setup, blocks, finished, self.failed)
        return translated

    def _job(self, texts: list[str]) -> str:
        """Identify what the translations depend on; who translates, and how many, is no part."""
        manifest = self.translator.folder.manifest
        parts = asdict(replace(self.setup, model="", threads=1, device=None))
        job = [__version__, manifest.get("sha256"), manifest.get("domain"), parts, texts]
        return sha256(dumps(job).encode()).hexdigest()

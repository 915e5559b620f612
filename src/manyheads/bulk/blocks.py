"""Blocks of sentences: what translates one, what runs them all, and what happens when one fails."""

from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Protocol

from manyheads.asks.decode_config import DecodeConfig
from manyheads.child_process import portable
from manyheads.data.documents.glossary import Entry, Glossary
from manyheads.documents.fallbacks import FallbackTranslator, Sentence
from manyheads.errors import ManyheadsError, OutOfMemoryError, WorkerError
from manyheads.predict.load import load
from manyheads.project.plugins import load_plugin
from manyheads.tasks.translate.predictor import Translator

ATTEMPTS = 3  # at one block, and in a row without any block that is finished

Blocks = Mapping[int, Sequence[str]]


@dataclass(frozen=True)
class Setup:
    """What another process needs to translate as this one would."""

    model: str
    engine: str
    device: str | None
    threads: int
    terms: tuple[Entry, ...]
    options: DecodeConfig
    seed: int
    plugins: tuple[str, ...] = ()  # modules, or paths of .py files


@dataclass(frozen=True)
class Outcome:
    """What became of a block: an answer, or the error that prevented it."""

    block: int
    answer: list[Sentence] | None  # in the order of the block
    error: Exception | None = None


class BlockFailedError(Exception):
    """An error of another package, as its text: the error itself may not be picklable."""


class BlockTranslator:
    """Translates blocks in the process that made it, which loads the model once.

    A model that cannot be loaded fails every block, so that the reason reaches the user.
    """

    def __init__(self, setup: Setup) -> None:
        self._own: FallbackTranslator | None = None
        self._error: Exception | None = None
        try:
            for plugin in setup.plugins:
                load_plugin(plugin)
            translator = load(
                setup.model, engine=setup.engine, device=setup.device, threads=setup.threads
            )
        except Exception as error:
            self._error = _portable(error)
            return
        assert isinstance(translator, Translator)
        self._own = FallbackTranslator(translator, Glossary(setup.terms), setup.options, setup.seed)

    def translate(self, block: int, texts: Sequence[str]) -> Outcome:
        """Translate the sentences of a block, in their order."""
        if self._own is None:
            return Outcome(block, None, self._error)
        try:
            sentences = self._own.translate_with_fallbacks(texts)
        except Exception as error:
            return Outcome(block, None, _portable(error))
        return Outcome(block, [sentences[text] for text in texts])


Outcomes = Generator[Outcome, None, None]


class BlockRunner(Protocol):
    """Runs blocks somewhere: in processes of this machine, or on a cluster."""

    # Processes that died and were started again so far, without the loss of others.
    restarts: int = 0

    def run(self, setup: Setup, blocks: Blocks) -> Outcomes:
        """Yield the outcomes of blocks, in any order; a block that was lost has none."""

    def close(self) -> None:
        """Give back what it holds."""


def finish_blocks(
    runner: BlockRunner,
    setup: Setup,
    blocks: Blocks,
    finished: Callable[[int, list[Sentence]], None],
    failed: Callable[[str], None],
) -> None:
    """Run blocks until all are finished: those that failed or were lost are run again.

    Args:
        runner: runs them.
        setup: how to translate.
        blocks: their sentences, by number.
        finished: called once for each block, in any order.
        failed: called with the reason when a block is run again.

    Raises:
        ManyheadsError: the same error would stop every block.
        WorkerError: one block failed `ATTEMPTS` times, or none was finished as often in a row.
    """
    left = dict(blocks)
    failures: Counter[int] = Counter()
    in_vain = 0
    while left:
        before = len(left)
        heard = 0
        with closing(runner.run(setup, dict(left))) as outcomes:
            for outcome in outcomes:
                heard += 1
                if outcome.answer is not None:
                    finished(outcome.block, outcome.answer)
                    del left[outcome.block]
                    continue
                error, number = outcome.error, outcome.block
                if isinstance(error, ManyheadsError) and not isinstance(error, OutOfMemoryError):
                    raise error
                failures[number] += 1
                if failures[number] == ATTEMPTS:
                    raise WorkerError(
                        f"A block of {len(left[number])} sentences failed {ATTEMPTS} times, the "
                        f"last time with: {error}. The first of them is {left[number][0]!r:.100}."
                    )
                failed(f"a block failed and is run again: {error}")
        if heard < before:
            failed(f"a process ended; {before - heard} blocks without an answer are run again")
        in_vain = in_vain + 1 if len(left) == before else 0
        if in_vain == ATTEMPTS:
            raise WorkerError(
                f"{ATTEMPTS} times in a row all processes ended before they had finished a block. "
                "There may be too little memory: give `workers` a smaller number."
            )


def _portable(error: Exception) -> Exception:
    """Return an error that another process can read: those of other packages as their text."""
    return portable(error) or BlockFailedError(f"{type(error).__name__}: {error}")

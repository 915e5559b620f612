"""A queue in front of each model: requests of many clients are answered together.

A worker (`worker_threads.py`) owns the model. It takes up what has arrived while it was busy, up to
a budget of tokens; if that is little, it first waits a few milliseconds for more. Only requests
that differ in nothing but their inputs are merged. A large request is answered in parts, and small
ones in between. Work that nobody waits for any more is taken back, or stopped if it runs.
"""

import asyncio
import math
import time
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any

from manyheads.errors import ChangedFolderError
from manyheads.web.metrics import Metrics
from manyheads.web.problem_json import refusal
from manyheads.web.settings import Limits
from manyheads.web.worker_threads import Answers, Done, Load, Work, Worker, WorkerDiedError

_numbers = count(1)  # of pieces of work


@dataclass(eq=False)
class Job:
    """Inputs that wait for their answers."""

    answers: Answers  # picklable, as the worker may be another process
    inputs: Sequence[Any]
    cost: int  # tokens, by estimate
    key: Hashable | None  # jobs with equal keys are merged; None: never
    patient: bool = False  # small ones go before it
    load: Load | None = None  # of the version of the model that it is made for; None: any
    future: "asyncio.Future[list[Any]]" = field(init=False)
    begun: int = field(default=0, init=False)  # inputs that were taken
    found: list[Any] = field(default_factory=list, init=False)  # answers so far

    def __post_init__(self) -> None:
        self.future = asyncio.get_running_loop().create_future()

    def take(self, budget: float, *, first: bool) -> "Part | None":
        """Take as many inputs as the budget has room for; the first of a batch at least one.

        What is never merged is not divided either.
        """
        count = len(self.inputs) - self.begun
        if self.key is not None and self.left > budget > 0:
            count = int(budget * len(self.inputs) / self.cost)
        if not first and (count == 0 or budget <= 0):
            return None
        inputs = self.inputs[self.begun : self.begun + max(1, count)]
        before, self.begun = self.left, self.begun + len(inputs)
        return Part(self, inputs, before - self.left)

    @property
    def left(self) -> float:
        """The cost of the inputs that were not taken yet."""
        return self.cost * (1 - self.begun / max(1, len(self.inputs)))


@dataclass(frozen=True)
class Part:
    """Inputs of a job that are answered at a time."""

    job: Job
    inputs: Sequence[Any]
    cost: float


def _tokens(line: Iterable[Job]) -> float:
    return sum(job.left for job in line)


def _once(act: Callable[[Any], Any], own: Any, _: Sequence[Any]) -> list[Any]:
    """Call a function once with the model, rather than with inputs."""
    return [act(own)]


async def _no_folder() -> None:
    """Read a changed folder again: there is none."""


class ModelQueue:
    """Jobs for one model, answered in the order of their arrival, equal ones together."""

    def __init__(
        self,
        name: str,
        load: Load,
        worker: Worker,
        limits: Limits,
        metrics: Metrics,
        read_again: Callable[[], Awaitable[None]] = _no_folder,
    ) -> None:
        self.name = name
        # Called when the folder is another version; it then replaces what loads the model.
        self.read_again = read_again
        self.load_model = load
        self._worker = worker
        self._limits, self._metrics = limits, metrics
        # What the worker tells of the model; empty before it is loaded, and when it is lost.
        self.facts: Mapping[str, Any] = {}
        self._small, self._large = deque[Job](), deque[Job]()
        self._turn = self._large  # the line that was served last
        self._running = 0.0  # tokens that are being answered
        self._rate = 2000.0  # tokens per second, a running mean
        self._arrived = asyncio.Event()
        self._closing = False
        self._jobs: list[Job] = []  # that are being answered
        self._number = 0  # of the piece of work they are
        self._task: asyncio.Task[None] | None = None

    async def load(self) -> None:
        """Load the model, if it is not."""
        await self.call(callable, cost=0)  # any work lets the worker load it

    async def call(self, act: Callable[[Any], Any], *, cost: int = 64) -> Any:
        """Run a function with the model; for a worker process, it must be picklable."""
        job = Job(partial(_once, act), (None,), cost, None)
        return (await self.ask(job, most=self._limits.queued))[0]

    async def ask(self, job: Job, *, most: int | None = None) -> list[Any]:
        """Wait for the answers to a job; a caller that is cancelled takes it back, or stops it.

        `most` is the highest cost; that of a request, whole or in parts, if None.

        Raises:
            ProblemError: too much is waiting, or the server is shutting down.
        """
        if self._closing:
            raise refusal("shutting_down")
        if most is None:
            most = self._limits.whole if job.key is None else self._limits.queued
        if job.cost > most:
            raise refusal("work", cost=job.cost, most=most)
        line = self._large if job.patient or job.cost > self._limits.part else self._small
        waiting = _tokens(line)
        if waiting and waiting + job.cost > self._limits.queued:
            self._metrics.refused.labels(self.name).inc()
            seconds = (waiting + self._running) / self._rate
            raise refusal("full_queue", waiting=waiting, model=self.name, retry_after=seconds)
        if self._task is None:
            self._task = asyncio.create_task(self._work(), name=f"queue of {self.name}")
        line.append(job)
        self._count()
        self._arrived.set()
        try:
            return await job.future
        except asyncio.CancelledError:
            if job in line:
                line.remove(job)
                self._count()
                self._metrics.left.labels(self.name).inc()
            if job in self._jobs and all(each.future.done() for each in self._jobs):
                self._worker.cancel(self._number)
                self._metrics.stopped.labels(self.name).inc()
            raise

    async def close(self) -> None:
        """Answer what was accepted, then stop."""
        self._closing = True
        self._arrived.set()
        if self._task is not None:
            await self._task

    @property
    def _waiting(self) -> float:
        return _tokens(self._small) + _tokens(self._large)

    def _count(self) -> None:
        self._metrics.waiting.labels(self.name).set(round(self._waiting))

    async def _work(self) -> None:
        while True:
            while not (pending := self._small or self._large):
                if self._closing:
                    return
                self._arrived.clear()
                await self._arrived.wait()
            if pending[0].key is not None:
                await self._wait_for_more()
            parts = self._take()
            if not parts:
                continue
            self._running = sum(part.cost for part in parts)
            done = await self._answer(parts)
            self._observe(parts, done.seconds)
            self._running = 0
            for part, outcome in zip(parts, done.outcomes, strict=True):
                job = part.job
                if job.future.done():  # its client has left
                    continue
                if isinstance(outcome, BaseException):
                    job.future.set_exception(outcome)
                    continue
                job.found += outcome
                if job.begun == len(job.inputs):
                    job.future.set_result(job.found)

    async def _wait_for_more(self) -> None:
        """Wait a moment for more jobs, or until there are enough: few cost as much as many."""
        end = time.monotonic() + self._limits.batch_wait
        while self._waiting < self._limits.full_batch and not self._closing:
            self._arrived.clear()
            try:
                await asyncio.wait_for(self._arrived.wait(), end - time.monotonic())
            except TimeoutError:
                return

    def _take(self) -> list[Part]:
        """Take the first job, or a part of it, and what can be answered with it.

        Small and large jobs take turns. What is left of a large one waits behind the others.
        """
        lines = (self._small, self._large)
        line = next((each for each in lines if each and each is not self._turn), self._turn)
        self._turn = line
        budget = self._limits.batch if line is self._small else self._limits.part
        taken: list[Part] = []
        passed, rest = deque[Job](), deque[Job]()
        while line:
            job = line.popleft()
            if job.future.done():  # a part of it has failed
                continue
            fits = not taken or (job.key is not None and job.key == taken[0].job.key)
            left = budget - sum(part.cost for part in taken)
            part = job.take(left, first=not taken) if fits else None
            if part is not None:
                taken.append(part)
            if part is None or job.begun < len(job.inputs):
                (passed if part is None else rest).append(job)
            if taken and taken[0].job.key is None:
                break
        line.extendleft(reversed(passed))
        line.extend(rest)
        self._count()
        return taken

    async def _answer(self, parts: list[Part]) -> Done:
        """Let the worker answer parts of jobs; if it cannot, none of them is answered."""
        jobs = [part.job for part in parts]
        self._jobs, self._number = jobs, next(_numbers)
        groups = [part.inputs for part in parts]
        own = self.load_model
        work = Work(self._number, self.name, own, jobs[0].answers, groups)
        try:
            if any(job.load not in (None, own) for job in jobs):
                raise ChangedFolderError(self.name)
            done = await self._worker.work(work)
        except ChangedFolderError:
            await self.read_again()
            return Done([refusal("model_changed", model=self.name)] * len(jobs))
        except WorkerDiedError:
            return Done([refusal("process_ended", does=f"runs {self.name}")] * len(jobs))
        except Exception as error:  # such as a model that cannot be loaded
            return Done([error] * len(jobs))
        finally:
            self._jobs = []
        if done.facts and not self.facts:
            self._metrics.loaded.labels(self.name).set(done.facts["seconds"])
            self.facts = done.facts
        return done

    def _observe(self, parts: Sequence[Part], seconds: float) -> None:
        self._metrics.merged.labels(self.name).observe(len(parts))
        self._metrics.busy.labels(self.name).inc(seconds)
        self._metrics.inputs.labels(self.name).inc(sum(len(part.inputs) for part in parts))
        if self._running >= 16 and math.isfinite(seconds) and seconds > 0:
            self._rate += 0.2 * (self._running / seconds - self._rate)

"""A queue in front of each model: requests of many clients are answered together.

A worker (`workers.py`) owns the model. It takes up what has arrived while it was busy, up to a
budget of tokens; if that is little, it first waits a few milliseconds for more. Only requests
that differ in nothing but their inputs are merged. Work that nobody waits for any more is taken
back, or stopped if it runs.
"""

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from manyheads.web.metrics import Metrics
from manyheads.web.problems import ProblemError
from manyheads.web.settings import Limits
from manyheads.web.workers import Answers, Done, Load, Work, Worker, WorkerDiedError

_numbers = count(1)  # of pieces of work


@dataclass(eq=False)
class Job:
    """Inputs that wait for their answers."""

    answers: Answers  # picklable, as the worker may be another process
    inputs: Sequence[Any]
    cost: int  # tokens, by estimate
    key: Hashable | None  # jobs with equal keys are merged; None: never
    future: "asyncio.Future[list[Any]]" = field(init=False)

    def __post_init__(self) -> None:
        self.future = asyncio.get_running_loop().create_future()


@dataclass(frozen=True)
class Once:
    """A function that is called once with the model, rather than with inputs."""

    act: Callable[[Any], Any]

    def __call__(self, own: Any, given: Sequence[Any]) -> list[Any]:
        """Call it."""
        return [self.act(own)]


def _nothing(_: Any) -> None:
    """Let the worker load the model."""


class ModelQueue:
    """Jobs for one model, answered in the order of their arrival, equal ones together."""

    def __init__(
        self, name: str, load: Load, worker: Worker, limits: Limits, metrics: Metrics
    ) -> None:
        self.name = name
        self._load, self._worker = load, worker
        self._limits, self._metrics = limits, metrics
        self._facts: Mapping[str, Any] = {}
        self._pending: deque[Job] = deque()
        self._waiting = 0  # tokens that wait
        self._running = 0  # tokens that are being answered
        self._rate = 2000.0  # tokens per second, a running mean
        self._arrived = asyncio.Event()
        self._closing = False
        self._jobs: list[Job] = []  # that are being answered
        self._number = 0  # of the piece of work they are
        self._task: asyncio.Task[None] | None = None

    @property
    def facts(self) -> Mapping[str, Any]:
        """What the worker tells of the model; empty before it is loaded."""
        return self._facts

    def forget(self) -> None:
        """The worker has lost the model."""
        self._facts = {}

    async def load(self) -> None:
        """Load the model, if it is not."""
        await self.call(_nothing, cost=0)

    async def call(self, act: Callable[[Any], Any], *, cost: int = 64) -> Any:
        """Run a function with the model; for a worker process, it must be picklable."""
        return (await self.ask(Job(Once(act), (None,), cost, None)))[0]

    async def ask(self, job: Job) -> list[Any]:
        """Wait for the answers to a job; a caller that is cancelled takes it back, or stops it.

        Raises:
            ProblemError: too much is waiting, or the server is shutting down.
        """
        if self._closing:
            raise ProblemError(
                503,
                "Shutting down",
                "The server is shutting down.",
                remedy="Try again when it has started again.",
                retry_after=5,
            )
        if self._waiting and self._waiting + job.cost > self._limits.queued:
            self._metrics.refused.labels(self.name).inc()
            raise ProblemError(
                429,
                "Too many requests",
                f"About {self._waiting:,} tokens wait for {self.name} already.",
                remedy="Try again after the seconds that Retry-After names.",
                retry_after=(self._waiting + self._running) / self._rate,
            )
        if self._task is None:
            self._task = asyncio.create_task(self._work(), name=f"queue of {self.name}")
        self._pending.append(job)
        self._count(job.cost)
        self._arrived.set()
        try:
            return await job.future
        except asyncio.CancelledError:
            if job in self._pending:
                self._pending.remove(job)
                self._count(-job.cost)
                self._metrics.left.labels(self.name).inc()
            elif job in self._jobs and all(each.future.done() for each in self._jobs):
                self._worker.cancel(self._number)
                self._metrics.stopped.labels(self.name).inc()
            raise

    async def close(self) -> None:
        """Answer what was accepted, then stop."""
        self._closing = True
        self._arrived.set()
        if self._task is not None:
            await self._task

    def _count(self, cost: int) -> None:
        self._waiting += cost
        self._metrics.waiting.labels(self.name).set(self._waiting)

    async def _work(self) -> None:
        while True:
            while not self._pending:
                if self._closing:
                    return
                self._arrived.clear()
                await self._arrived.wait()
            if self._pending[0].key is not None:
                await self._wait_for_more()
            jobs = self._take()
            if not jobs:
                continue
            self._running = sum(job.cost for job in jobs)
            done = await self._answer(jobs)
            self._observe(jobs, done.seconds)
            self._running = 0
            for job, outcome in zip(jobs, done.outcomes, strict=True):
                if job.future.done():  # its client has left
                    continue
                if isinstance(outcome, BaseException):
                    job.future.set_exception(outcome)
                else:
                    job.future.set_result(outcome)

    async def _wait_for_more(self) -> None:
        """Wait a moment for more jobs, or until there are enough: few cost as much as many."""
        end = time.monotonic() + self._limits.batch_wait
        while self._waiting < self._limits.full_batch and not self._closing:
            self._arrived.clear()
            try:
                await asyncio.wait_for(self._arrived.wait(), end - time.monotonic())
            except TimeoutError:
                return

    def _take(self) -> list[Job]:
        """Take the first job, and those that can be answered with it."""
        if not self._pending:
            return []
        first = self._pending.popleft()
        taken, rest, cost = [first], deque[Job](), first.cost
        while self._pending and first.key is not None:
            job = self._pending.popleft()
            if job.key == first.key and cost + job.cost <= self._limits.batch:
                taken.append(job)
                cost += job.cost
            else:
                rest.append(job)
        self._pending.extendleft(reversed(rest))
        self._count(-cost)
        return taken

    async def _answer(self, jobs: list[Job]) -> Done:
        """Let the worker answer jobs; if it cannot, none of them is answered."""
        self._jobs, self._number = jobs, next(_numbers)
        groups = [job.inputs for job in jobs]
        work = Work(self._number, self.name, self._load, jobs[0].answers, groups)
        try:
            done = await self._worker.work(work)
        except WorkerDiedError:
            problem = ProblemError(
                503,
                "The model's process ended",
                f"The process that runs {self.name} ended while it worked; it is started again.",
                remedy="Try again after the seconds that Retry-After names.",
                retry_after=5,
            )
            return Done([problem] * len(jobs))
        except Exception as error:  # such as a model that cannot be loaded
            return Done([error] * len(jobs))
        finally:
            self._jobs = []
        if done.facts and not self._facts:
            self._metrics.loaded.labels(self.name).set(done.facts["seconds"])
            self._facts = done.facts
        return done

    def _observe(self, jobs: Sequence[Job], seconds: float) -> None:
        self._metrics.merged.labels(self.name).observe(len(jobs))
        self._metrics.busy.labels(self.name).inc(seconds)
        self._metrics.inputs.labels(self.name).inc(sum(len(job.inputs) for job in jobs))
        if self._running >= 16 and math.isfinite(seconds) and seconds > 0:
            self._rate += 0.2 * (self._running / seconds - self._rate)

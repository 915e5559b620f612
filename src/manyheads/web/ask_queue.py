"""Ask a model's queue for a client: not longer than it waits, nor longer than is allowed."""

import asyncio
from collections.abc import Coroutine, Sequence
from functools import partial
from typing import Any, TypeVar

from fastapi import Request as HttpRequest

from manyheads.asks.request import BatchRequest, ImageRequest
from manyheads.web.batching import Job
from manyheads.web.problem_json import refusal
from manyheads.web.request_images import EncodedImage, cost_of, room_for
from manyheads.web.served import Served, ServedModel

T = TypeVar("T")


async def while_connected(http: HttpRequest, work: Coroutine[Any, Any, T], seconds: float) -> T:
    """Await work; cancel it when the client leaves, or after some seconds.

    Raises:
        ProblemError: it took too long, or nobody waits for it any more.
    """
    task = asyncio.create_task(work)
    gone = asyncio.create_task(_gone(http))
    try:
        await asyncio.wait((task, gone), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        if gone.done():
            raise refusal("client_gone")
        raise refusal("too_slow", seconds=seconds, retry_after=seconds / 4)
    finally:
        for each in (task, gone):
            each.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)


async def _gone(http: HttpRequest) -> None:
    while (await http.receive())["type"] != "http.disconnect":
        pass


def served(http: HttpRequest) -> Served:
    """Return what the server answers with."""
    return http.app.state.served


async def ask(
    http: HttpRequest,
    model: ServedModel,
    request: BatchRequest,
    images: Sequence[EncodedImage] = (),
) -> list[Any]:
    """Ask a model for its answers to a request, together with equal requests of others."""
    work = model.queue.ask(job_of(request, images))
    return await while_connected(http, work, served(http).limits.answer)


def _answer(request: BatchRequest, own: Any, inputs: Sequence[Any]) -> list[Any]:
    """Ask a predictor, or an index, for its answers to inputs."""
    of_images = isinstance(request, ImageRequest)
    with room_for(inputs if of_images else ()):
        given = [image.decode() for image in inputs] if of_images else inputs
        return own.answer(request.with_inputs(given))


def job_of(request: BatchRequest, images: Sequence[EncodedImage] = ()) -> Job:
    """Make a job of a request, or of one without images and those that were sent.

    Requests are merged if only their inputs differ.
    """
    options = request.with_inputs(())
    key = options if request.independent else None
    if isinstance(request, ImageRequest):
        cost = request.cost_of(len(images)) + cost_of(images)
        return Job(partial(_answer, options), images, cost, key)
    return Job(partial(_answer, options), request.inputs, request.cost, key)

"""Any number of texts, such as the lines of a file, answered a few at a time."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TypeVar

from manyheads.asks.request import TextRequest
from manyheads.errors import ManyheadsError

AT_A_TIME = 1024
LONG = 1000  # characters of a text that those before it do not wait for

Q = TypeVar("Q", bound=TextRequest)
A = TypeVar("A")


def stream(
    answer: Callable[[Q], list[A]], request: Q, texts: Iterable[str], at_a_time: int = AT_A_TIME
) -> Iterator[A]:
    """Answer a request for each text, in order.

    Args:
        answer: of a predictor.
        request: its own texts are not read.
        texts: read only as far as they are needed; where reading fails, those before are answered.
        at_a_time: texts that are answered together; a long one is answered alone.
    """
    waiting = iter(texts)
    failure: ManyheadsError | None = None
    while failure is None:
        chunk: list[str] = []
        long: list[str] = []
        try:
            for text in islice(waiting, at_a_time):  # keeps what came before an error
                if len(text) > LONG:
                    long.append(text)
                    break
                chunk.append(text)
        except ManyheadsError as error:
            failure = error
        if not chunk and not long:
            break
        for part in filter(None, (chunk, long)):
            yield from answer(request.with_inputs(part))
    if failure is not None:
        raise failure

"""Commands that ask a model about texts, and print the answers one by one."""

from collections.abc import Callable
from typing import Any

from manyheads.asks.load_options import LoadOptions
from manyheads.asks.request import TextRequest
from manyheads.cli.texts import texts as read_texts


def asks_texts(
    request: type[TextRequest], *, does: str
) -> Callable[[Callable[[Any], None]], Callable[..., None]]:
    """Make a command of what prints one answer; `does` is what a model must do, for messages."""

    def make(show: Callable[[Any], None]) -> Callable[..., None]:
        def run(
            model: str,
            ask: request,  # type: ignore[valid-type]
            load: LoadOptions,
            texts: list[str] | None = None,
            json: bool = False,
        ) -> None:
            from manyheads.cli.printed_answers import print_json, warn_of
            from manyheads.predict.load import load_for
            from manyheads.predict.stream import stream

            predictor = load_for(request, model, verb=does, **dict(load))
            answers = stream(predictor.answer, ask, read_texts(texts), 1)
            for number, answer in enumerate(answers, 1):
                warn_of(number, answer.notes)
                if json:
                    print_json(answer.to_json())
                else:
                    show(answer)

        run.__doc__, run.__module__ = show.__doc__, show.__module__
        return run

    return make

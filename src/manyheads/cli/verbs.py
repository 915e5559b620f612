"""Commands that ask a model about texts, and print the answers one by one."""

from collections.abc import Callable
from typing import Annotated, Any

import typer

from manyheads.asks.load_options import LoadOptions
from manyheads.asks.request import TextRequest
from manyheads.cli.options import Json, with_requests
from manyheads.cli.texts import texts as read_texts


def asks_texts(
    request: type[TextRequest], *, does: str, model: str, texts: str, metavar: str = "TEXT"
) -> Callable[[Callable[[Any], None]], Callable[..., None]]:
    """Make a command of what prints one answer.

    Args:
        request: what the model is asked.
        does: what the model must do, for messages.
        model: what it is, for the help.
        texts: what they are, for the help.
        metavar: stands for a text.
    """

    def make(show: Callable[[Any], None]) -> Callable[..., None]:
        def run(
            model: Annotated[str, typer.Option(help=model)],
            ask: request,  # type: ignore[valid-type]
            load: LoadOptions,
            texts: Annotated[list[str] | None, typer.Argument(metavar=metavar, help=texts)] = None,
            json: Json = False,
        ) -> None:
            from manyheads.cli.show import print_json, warn_of
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
        return with_requests(run)

    return make

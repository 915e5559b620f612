"""manyheads read."""

from pathlib import Path

from manyheads.asks.load_options import LoadOptions
from manyheads.asks.read_request import ReadAnswer, ReadRequest
from manyheads.cli.images import print_answers
from manyheads.cli.terminal import visible_name


def run(
    request: ReadRequest,
    load: LoadOptions,
    paths: list[Path] | None = None,
    model: str = "read-ko",
    json: bool = False,
) -> None:
    """Read the printed text in images, line by line, and translate it.

    With --to the translation follows behind an empty line. Several images are told apart by their
    names. An image that cannot be read is named on stderr, and the exit code is 1, or 2 if there is
    no such file.
    """
    from manyheads.asks.caption_request import CaptionRequest
    from manyheads.picture_translation import ReadingTranslator
    from manyheads.predict.load import load_for

    reader = load_for(CaptionRequest, model, verb="read images", **dict(load))

    def show(answer: ReadAnswer, several: bool) -> None:
        if answer.text is None:
            return
        if several:
            print(f"{visible_name(answer.path)}:")
        print(answer.text)
        if answer.translation is not None:
            print(f"\n{answer.translation}")
        print(end="\n" if several else "", flush=True)

    both = ReadingTranslator(reader, request)
    print_answers(paths, both.answer, request, ReadAnswer, show, json=json)

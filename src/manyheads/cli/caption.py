"""manyheads caption."""

from pathlib import Path

from manyheads.asks.caption_request import CaptionAnswer, CaptionRequest
from manyheads.asks.load_options import LoadOptions
from manyheads.cli.images import print_answers


def run(
    request: CaptionRequest,
    load: LoadOptions,
    paths: list[Path] | None = None,
    model: str = "emoji-caption",
    json: bool = False,
) -> None:
    """Write the text of images: what they show, or what is printed on them.

    One answer a line, in order. An image that cannot be read is named on stderr, its line is empty,
    and the exit code is 1, or 2 if there is no such file.
    """
    from manyheads.errors import UsageError
    from manyheads.predict.load import load_for
    from manyheads.predict.text_reader import one_line

    if request.probabilities and not json:
        raise UsageError("`probabilities` are told in JSON: add `json`.")
    captioner = load_for(CaptionRequest, model, verb="write texts for images", **dict(load))

    def show(answer: CaptionAnswer, _: bool) -> None:
        for each in answer.n_best or ():
            line = one_line(each.text)
            print(line if request.n_best == 1 else f"{each.score:.4f}\t{line}", flush=True)
        if answer.n_best is None:
            print(flush=True)

    print_answers(paths, captioner.answer, request, CaptionAnswer, show, json=json)

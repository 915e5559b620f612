"""manyheads classify."""

from pathlib import Path

from manyheads.asks.classify_request import ClassifyAnswer, ClassifyRequest
from manyheads.asks.load_options import LoadOptions
from manyheads.cli.images import print_answers
from manyheads.cli.terminal import visible_name


def run(
    request: ClassifyRequest,
    load: LoadOptions,
    paths: list[Path] | None = None,
    model: str | None = None,
    json: bool = False,
    csv: bool = False,
) -> None:
    """Classify images: the most probable classes of each, with probabilities.

    An image that cannot be read is named on stderr, the others are classified, and the exit code
    is 1, or 2 if there is no such file. Of animated images the first frame counts.
    """
    from manyheads.errors import UsageError
    from manyheads.predict.load import load_for

    if json and csv:
        raise UsageError("`json` and `csv` are two forms of one answer: give one of them.")
    name = model or ("emoji-search" if request.labels else "digits")
    classifier = load_for(ClassifyRequest, name, verb="classify images", **dict(load))
    if csv:
        own = classifier.output_classes(classifier.folder)
        count = len(request.labels) or (request.top if own is None else len(own.names))
        columns = range(1, min(request.top, count) + 1)
        _print_row(["path", *(f"{what}{n}" for n in columns for what in ("label", "p"))])

    def show(answer: ClassifyAnswer, _: bool) -> None:
        if answer.classes is None:
            return
        if csv:
            cells = [(each.label, f"{each.probability:.4f}") for each in answer.classes]
            _print_row([answer.path, *(cell for pair in cells for cell in pair)])
        else:
            named = (
                f"{visible_name(each.label)} {each.probability:.1%}" for each in answer.classes
            )
            print(f"{visible_name(answer.path)}\t{'  '.join(named)}", flush=True)

    print_answers(paths, classifier.answer, request, ClassifyAnswer, show, json=json)


def _print_row(cells: list[str]) -> None:
    import csv
    import sys

    csv.writer(sys.stdout, lineterminator="\n").writerow(cells)
    sys.stdout.flush()

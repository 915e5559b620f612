"""manyheads classify."""

from pathlib import Path
from typing import Annotated

import typer


def run(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH", help="Pictures or folders.")],
    model: Annotated[str, typer.Option(help="Name of a shipped model, or a folder.")] = "digits",
    top: Annotated[int, typer.Option(min=1, help="Classes shown a picture.")] = 5,
    json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """Classify pictures: the likeliest classes of each, with probabilities."""
    from manyheads.app.predict import Classifier, load
    from manyheads.cli.show import other_use, print_json
    from manyheads.errors import UsageError

    classifier = load(model)
    if not isinstance(classifier, Classifier):
        raise UsageError(f"{model} does not classify pictures: {other_use(classifier)}")
    for path in _pictures(paths):
        (guesses,) = classifier.classify([path], top=top)
        if json:
            print_json({"path": str(path), "classes": [guess._asdict() for guess in guesses]})
        else:
            named = "  ".join(f"{label} {probability:.1%}" for label, probability in guesses)
            print(f"{path}\t{named}", flush=True)


def _pictures(paths: list[Path]) -> list[Path]:
    from manyheads.data.images import SUFFIXES
    from manyheads.errors import DataError

    found: list[Path] = []
    for path in paths:
        if not path.is_dir():
            found.append(path)
            continue
        inside = sorted(each for each in path.rglob("*") if each.suffix.lower() in SUFFIXES)
        if not inside:
            raise DataError(f"{path} has no pictures ({', '.join(sorted(SUFFIXES))}).")
        found += inside
    return found

"""Options that several commands have."""

import re
from typing import Annotated

import typer

from manyheads.errors import UsageError

Split = Annotated[str, typer.Option(help="Split of the recipe: train, valid, test.")]
Final = Annotated[
    bool, typer.Option("--final", help="Measure a test split: once, after all choices.")
]
Metrics = Annotated[
    list[str] | None,
    typer.Option(
        "--metric", help="One more metric: bleu, chrf, ter, exact, bleu_lc_tok. Repeatable."
    ),
]


def read_image_size(text: str) -> tuple[int, int]:
    """Read N or HxW.

    Raises:
        UsageError: it is neither.
    """
    found = re.fullmatch(r"(\d+)(?:[xX](\d+))?", text)
    if found is None or int(found[1]) < 1 or (found[2] and int(found[2]) < 1):
        raise UsageError(
            f"--image-size is {text!r}: give pixels as one number, or as height and width, "
            "such as 384 or 256x384."
        )
    return int(found[1]), int(found[2] or found[1])

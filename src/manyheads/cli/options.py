"""Options that several commands have."""

from typing import Annotated

import typer

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

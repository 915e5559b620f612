"""Options that several commands have."""

import inspect
import re
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer

from manyheads.cli.terminal import escape_controls
from manyheads.errors import UsageError

Split = Annotated[str, typer.Option(help="Split of the recipe: train, valid, test.")]
Final = Annotated[
    bool, typer.Option("--final", help="Allow a test split: measure it once, after all choices.")
]
Remote = Annotated[
    bool, typer.Option("--remote", help="Read data by addresses that the model's recipe names.")
]
Metrics = Annotated[
    list[str] | None,
    typer.Option(
        "--metric", help="Additional metric: bleu, chrf, ter, exact, bleu_lc_tok. Repeatable."
    ),
]

MACHINE = "Machine"  # a panel of the help
Engine = Annotated[
    str,
    typer.Option(
        rich_help_panel=MACHINE,
        help="What runs the model: torch, or an engine that it was exported to.",
    ),
]
Device = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=MACHINE, help="Device, such as cpu or cuda:0; the best there is by default."
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=1024,
        rich_help_panel=MACHINE,
        help="Number of CPU threads; by default one for small models, all cores for large ones.",
    ),
]

SAMPLING = "Sampling"  # a panel of the help
Sample = Annotated[
    bool,
    typer.Option(
        "--sample",
        rich_help_panel=SAMPLING,
        help="Sample the output instead of searching for the best.",
    ),
]
Temperature = Annotated[
    float | None,
    typer.Option(
        rich_help_panel=SAMPLING, help="Below 1: more probable words; above 1: more varied ones."
    ),
]
TopK = Annotated[
    int | None,
    typer.Option(
        min=1, rich_help_panel=SAMPLING, help="Sample from this many most probable tokens."
    ),
]
TopP = Annotated[
    float | None,
    typer.Option(
        rich_help_panel=SAMPLING,
        help="Sample from the most probable tokens with this total probability.",
    ),
]
Seed = Annotated[
    int, typer.Option(min=0, rich_help_panel=SAMPLING, help="Random seed for sampling.")
]

Plugins = Annotated[
    list[str] | None,
    typer.Option(
        "--plugin",
        metavar="MODULE",
        help="Module, or .py file, with models and tasks of your own. Repeatable.",
    ),
]


def load_plugins(plugins: list[str] | None) -> None:
    """Import what --plugin names, in order."""
    if not plugins:
        return
    from manyheads.app.project.plugins import load_plugin

    for name in plugins:
        load_plugin(name)


def with_plugins(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the option --plugin, whose modules are imported before it runs.

    What it prints is shown without control characters.
    """

    @wraps(command)
    def run(*, plugin: list[str] | None = None, **options: Any) -> Any:
        escape_controls()
        load_plugins(plugin)
        return command(**options)

    signature = inspect.signature(command)
    added = inspect.Parameter("plugin", inspect.Parameter.KEYWORD_ONLY, default=None)
    parameters = [*signature.parameters.values(), added.replace(annotation=Plugins)]
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {**command.__annotations__, "plugin": Plugins}
    return run


def read_image_size(text: str) -> tuple[int, int]:
    """Read N or HxW.

    Raises:
        UsageError: it is neither.
    """
    found = re.fullmatch(r"(\d{1,9})(?:[xX](\d{1,9}))?", text)
    if found is None or int(found[1]) < 1 or (found[2] and int(found[2]) < 1):
        raise UsageError(
            f"--image-size is {text!r}: give pixels as one number, or as height and width, "
            "such as 384 or 256x384."
        )
    return int(found[1]), int(found[2] or found[1])

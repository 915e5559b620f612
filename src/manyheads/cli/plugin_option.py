"""The option --plugin, which every command has."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer

from manyheads.cli.terminal import escape_controls

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
    from manyheads.project.plugins import load_plugin

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

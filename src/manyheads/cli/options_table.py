"""What `options.toml` describes, and the option --plugin, which every command has."""

import tomllib
from pathlib import Path
from typing import Annotated

import typer

TABLE = tomllib.loads(Path(__file__).with_name("options.toml").read_text(encoding="utf-8"))
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
    for name in plugins or ():
        from manyheads.project.plugins import load_plugin

        load_plugin(name)

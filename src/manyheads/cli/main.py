"""The command `manyheads`."""

import os
import sys
import warnings
from io import TextIOWrapper
from typing import Any, TextIO

import typer
from typer.core import TyperGroup

from manyheads import __version__
from manyheads.cli import (
    advise,
    check_data,
    classify,
    compare,
    convert,
    doctor,
    evaluate,
    fetch,
    fill,
    generate,
    info,
    lab,
    look,
    models,
    tag,
    train,
    translate,
)
from manyheads.cli.flags import with_flags
from manyheads.cli.options import Plugins, load_plugins, with_plugins
from manyheads.errors import InterruptedRunError, ManyheadsError
from manyheads.memory import keep_freed_memory


class _ReaderGoneError(Exception):
    """Nobody reads our output any more, as in `manyheads translate | head -1`."""


class _Verbs(TyperGroup):
    """Takes two exceptions before typer does, which leaves with 130 or 1 and says nothing."""

    def invoke(self, ctx: Any) -> Any:
        try:
            try:
                return super().invoke(ctx)
            finally:
                sys.stdout.flush()
        except KeyboardInterrupt:
            raise InterruptedRunError("interrupted.") from None
        except BrokenPipeError:
            raise _ReaderGoneError from None


app = typer.Typer(
    name="manyheads",
    cls=_Verbs,
    help="One attention core, many heads: train, run and look inside Transformers.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for verb in (
    train,
    translate,
    classify,
    generate,
    fill,
    tag,
    evaluate,
    compare,
    look,
    lab,
    info,
    models,
    check_data,
    advise,
    doctor,
    fetch,
):
    app.command(name=verb.__name__.rpartition(".")[2].replace("_", "-"))(verb.run)
app.add_typer(convert.app, name="convert")
for command in (*app.registered_commands, *convert.app.registered_commands):
    assert command.callback is not None
    command.callback = with_plugins(command.callback)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(  # noqa: ARG001 - typer calls _version
        False, "--version", callback=_version, is_eager=True, help="Print the version."
    ),
    plugin: Plugins = None,
) -> None:
    """One attention core, many heads: train, run and look inside Transformers."""
    load_plugins(plugin)


def main() -> None:
    """Run the command; turn the errors we raise on purpose into a message and an exit code."""
    warnings.showwarning = _show_warning
    keep_freed_memory()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # Korean, whatever the locale says; and names of files that are not UTF-8.
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        app()
    except ManyheadsError as error:
        print(f"manyheads: {with_flags(str(error))}", file=sys.stderr)
        sys.exit(error.exit_code)
    except _ReaderGoneError:  # nothing is wrong; what is left in the buffer goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:  # a full disk, a folder that may not be written to
        print(f"manyheads: {error}", file=sys.stderr)
        sys.exit(1)


def _show_warning(
    message: Warning | str,
    category: type[Warning],  # noqa: ARG001 - as warnings.showwarning
    filename: str,  # noqa: ARG001 - as warnings.showwarning
    lineno: int,  # noqa: ARG001 - as warnings.showwarning
    file: TextIO | None = None,  # noqa: ARG001 - as warnings.showwarning
    line: str | None = None,  # noqa: ARG001 - as warnings.showwarning
) -> None:
    print(f"manyheads: {with_flags(str(message))}", file=sys.stderr)

"""The command `manyheads`."""

import logging
import os
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from manyheads import __version__
from manyheads.cli.options_table import TABLE, Plugins, load_plugins
from manyheads.cli.printed_answers import warn
from manyheads.cli.terminal import ReaderGoneError, standard_streams, visible
from manyheads.errors import (
    LOG,
    InterruptedRunError,
    ManyheadsError,
    NonFiniteLossError,
    OtherRankError,
    RecipeError,
    UsageError,
)
from manyheads.memory import is_out_of_memory, keep_freed_memory
from manyheads.version import code_digest

TRACEBACK = "MANYHEADS_TRACEBACK"  # if set, an unexpected error ends with its traceback
FIRST = 1.0  # seconds that rank 0 has to print what others are silent about

# Arguments and options that hold a text, which may be empty; an empty path or name is a mistake,
# such as a variable that is not set: as a path it would be the current folder.
TEXTS = {"texts", "given", "queries", "--prefix", "--reference", "--word", "--also"}
TEXTS |= {"--instead", "--why", "--not"}
# What divides the work of a command among processes, where something does.
INSTEAD = {"translate": ", with --file FILE --workers N", "serve": ", with --processes N"}
HELP = {"help_option_names": ["-h", "--help"]}


class _PastTyperError(Exception):
    """Takes an error past typer, which would end the process in its own way."""


@contextmanager
def _around_typer() -> Iterator[None]:
    """Leave to `main` what typer would explain: Ctrl-C, and errors of files."""
    try:
        yield
    except (KeyboardInterrupt, EOFError, OSError) as error:
        raise _PastTyperError from error
    except Exception as error:
        if isinstance(message := getattr(error, "message", None), str):  # quotes what was given
            with suppress(AttributeError):  # of somebody else's error, where it is a property
                error.message = visible(message)  # type: ignore[attr-defined]
        raise


class _Verbs(TyperGroup):
    """The command itself, without a verb: only the verb that is asked for is imported."""

    def make_context(self, *args: Any, **options: Any) -> Any:
        with _around_typer():
            return super().make_context(*args, **options)

    def invoke(self, ctx: Any) -> Any:
        with _around_typer():
            return super().invoke(ctx)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        return name, load_verb(name) if name else command, rest


class _Verb(TyperCommand):
    """Refuses empty names, and several processes that would do the same."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        given, *_ = self.make_parser(ctx).parse_args(list(args))
        for param in self.get_params(ctx):
            value = given.get(param.name)
            values = value if isinstance(value, list | tuple) else [value]
            if param.opts[0] not in TEXTS and "" in values:
                name = param.opts[0] if param.opts[0].startswith("-") else param.metavar
                rest = "" if param.required else ", or leave it out"
                raise UsageError(f"{name} is empty: give it a value{rest}.")
        if self.name == "look" and given["given"] is None and given["model"] is not None:
            from manyheads.cli.look import model_for

            args = [*model_for(given["model"]), *args]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        world = os.environ.get("WORLD_SIZE", "")
        if self.name != "train" and world.isdecimal() and world not in ("0", "1"):
            raise UsageError(
                f"WORLD_SIZE is {world:.20}, as under torchrun, which is for `manyheads train`: "
                f"each of the processes would do all that `manyheads {self.name}` does. Start it "
                f"without torchrun{INSTEAD.get(self.name or '', '')}, or unset WORLD_SIZE."
            )
        return super().invoke(ctx)


app = typer.Typer(
    name="manyheads",
    cls=_Verbs,
    help="One attention core, many heads: train, run and look inside Transformers.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings=HELP,
)
VERBS = {verb: table["about"] for verb, table in TABLE.items() if "about" in table}


def _not_loaded() -> None:
    raise NotImplementedError


for verb, text in VERBS.items():
    app.command(name=verb, help=text)(_not_loaded)


@cache
def load_verb(name: str) -> Any:
    """Import the command of a verb."""
    from manyheads.cli.options import command  # imports pydantic

    module = import_module(f"manyheads.cli.{name.replace('-', '_')}")
    own: typer.Typer | None = getattr(module, "app", None)
    if own is None:
        own = typer.Typer(add_completion=False)
        own.command(name=name, context_settings=HELP)(module.run)
    for each in own.registered_commands:
        assert each.callback is not None
        word = each.name or each.callback.__name__.replace("_", "-")
        words = name if word == name else f"{name} {word}"
        each.callback, each.cls = command(words, each.callback), _Verb
    return typer.main.get_command(own)


def whole() -> Any:
    """Return the command with all its verbs, for whoever lists them."""
    group: Any = typer.main.get_command(app)
    group.commands = {name: load_verb(name) for name in VERBS}
    return group


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"{__version__}+{code_digest()}")
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
    """Run the command; turn every error into a message and an exit code."""
    _use_utf8()
    warnings.showwarning = _show_warning
    keep_freed_memory()
    with standard_streams(), _remarks():
        try:
            try:
                app()
            finally:
                sys.stdout.flush()
        except (Exception, KeyboardInterrupt) as error:
            code = _explain(error.__cause__ if isinstance(error, _PastTyperError) else error)
    sys.exit(code)


@contextmanager
def _remarks() -> Iterator[None]:
    """Print what is logged as a remark on stderr, as warnings are."""
    handler = logging.Handler()
    handler.emit = lambda record: warn(record.getMessage())  # type: ignore[method-assign]
    LOG.addHandler(handler)
    try:
        yield
    finally:
        LOG.removeHandler(handler)


def _use_utf8() -> None:
    """Start again in UTF-8 mode where the locale is another: names and texts are UTF-8 here."""
    if sys.getfilesystemencoding() != "utf-8" and sys.executable:
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])


def _explain(error: BaseException | None) -> int:
    """Print what an error means for the user; return the exit code."""
    if isinstance(error, ReaderGoneError):  # nothing is wrong
        return 0
    if isinstance(error, ManyheadsError):
        # Rank 0 of several prints what all of them see, and what it was told.
        alike = (OtherRankError, InterruptedRunError, NonFiniteLossError, RecipeError)
        if isinstance(error, alike) and os.environ.get("RANK", "0") != "0":
            time.sleep(FIRST)  # torchrun ends all ranks when one has ended
        else:
            warn(str(error))
        return error.exit_code
    if _was_interrupted(error):
        warn("interrupted.")
        return InterruptedRunError.exit_code
    assert error is not None
    if os.environ.get(TRACEBACK):
        raise error
    if is_out_of_memory(error):
        warn(
            "there is not enough memory. Lower what is done at once: train.max_tokens or "
            "train.batch_size (with train.accumulate as many times higher), `beams`, `n_best` or "
            "`tokens`, the size of the image or the length of the text; or take a smaller model."
        )
    elif isinstance(error, OSError):  # a folder that may not be read
        warn(f"{error.filename}: {error.strerror}." if error.filename else f"{error}.")
    else:
        kind = f"{type(error).__name__}: {error}".partition("\n")[0]
        warn(f"an error that should not occur: {kind[:200]}. {_write_report(error)}")
    return 1


def _was_interrupted(error: BaseException | None) -> bool:
    """Tell whether Ctrl-C is behind an error: libraries raise others while they are imported."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def _write_report(error: BaseException) -> str:
    """Write a traceback to a file; say where it is, and what to do with it."""
    import platform  # all three are slow to import, and hardly ever needed
    import tempfile
    import traceback

    lines = [
        f"manyheads {__version__}+{code_digest()}, Python {sys.version}, {platform.platform()}\n"
    ]
    used = [sys.modules[name] for name in ("torch", "numpy", "typer") if name in sys.modules]
    lines += [f"{module.__name__} {module.__version__}\n" for module in used]
    lines += traceback.format_exception(error)
    try:
        number, path = tempfile.mkstemp(prefix="manyheads-", suffix=".txt")
        with open(number, "wb") as file:  # noqa: PTH123 - an open one
            file.write("".join(lines).encode("utf-8", "backslashreplace"))
    except OSError as problem:
        return f"A report could not be written ({problem.strerror}): see {TRACEBACK}=1."
    return f"The report {path} says where; please send it to the authors. {TRACEBACK}=1 prints it."


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    warn(str(message))

"""The standard streams: what is written to them, and in which form (docs/decisions/streams.md)."""

import codecs
import os
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any, TextIO, cast

from manyheads.errors import OutputError

if TYPE_CHECKING:
    from rich.console import Console

PATIENCE = 0.3  # seconds that work may take before it is shown

# C0 but tab and line end, DEL, C1; overrides and isolates of the direction of writing.
_CONTROLS = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]|\r(?!\n)")


class ReaderGoneError(Exception):
    """Nobody reads our output any more, as in `manyheads translate | head -1`."""


def visible(text: str) -> str:
    r"""Write control characters as Python escapes, so that a terminal does not obey them.

    Examples:
        >>> print(visible("\x1b[31mred.png"))
        \x1b[31mred.png
    """
    return _CONTROLS.sub(lambda control: control[0].encode("unicode_escape").decode(), text)


def visible_name(name: str) -> str:
    r"""Write a name on one line, in one column.

    Examples:
        >>> print(visible_name("two\nlines.png"))
        two\nlines.png
    """
    return visible(name).replace("\n", "\\n").replace("\t", "\\t")


class _Stream:
    """A standard stream; a write that fails is an error of ours, which no library swallows."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.escape = False

    def write(self, text: str) -> int:
        with _errors(self.stream):
            self.stream.write(visible(text) if self.escape else text)
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        with _errors(self.stream):
            self.stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextmanager
def standard_streams() -> Iterator[None]:
    """Write UTF-8 to stdout and stderr, whatever the locale says; a closed stream is an empty one.

    Names of files that are not UTF-8 are written to stdout as they are, unless it is a terminal.
    """
    _open_closed()
    before = sys.stdout, sys.stderr
    for stream in before:
        if isinstance(stream, TextIOWrapper):
            exact = stream is sys.stdout and not stream.isatty()
            errors = _EXACT if exact else "backslashreplace"
            stream.reconfigure(encoding="utf-8", errors=errors, newline="\n")
    sys.stdout, sys.stderr = (cast(TextIO, _Stream(stream)) for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
        for stream in before:
            try:
                stream.flush()
            except OSError:  # Python would try again when it ends, and complain
                _discard(stream)


def escape_controls() -> None:
    """From now on, show control characters as escapes if stdout is a terminal.

    Not for the parser of the command line: its help has colours.
    """
    if isinstance(sys.stdout, _Stream):
        sys.stdout.escape = sys.stdout.isatty()


def write_bytes(content: bytes) -> None:
    """Write a document to stdout: as it is, or to a terminal as text."""
    stream = sys.stdout
    if not isinstance(stream, _Stream) or stream.escape:
        print(content.decode("utf-8", "backslashreplace"), end="", flush=True)
        return
    stream.flush()
    with _errors(stream.stream):
        stream.buffer.write(content)
        stream.buffer.flush()


def console(stream: TextIO) -> "Console":
    """Return a rich console on a standard stream, for texts that are `visible`."""
    from rich.console import Console

    # Not through the stream's own `write`, which would escape rich's colours.
    file = cast(TextIO, _Stream(stream.stream)) if isinstance(stream, _Stream) else stream
    return Console(file=file, markup=False, emoji=False, highlight=False)


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Show on a terminal what is being done, and for how long, beyond `PATIENCE` seconds."""
    screen = console(sys.stderr)
    if not screen.is_terminal:
        yield
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()
    shown = Progress(*columns, console=screen, transient=True, redirect_stdout=False)
    shown.add_task(visible(what), total=None)
    late = threading.Timer(PATIENCE, shown.start)
    late.start()
    try:
        yield
    finally:
        late.cancel()
        late.join()
        with suppress(ReaderGoneError, OutputError):
            shown.stop()


@contextmanager
def _errors(stream: TextIO) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        _discard(stream)
        raise ReaderGoneError from None
    except OSError as error:
        _discard(stream)
        name = getattr(stream, "name", "the output")
        raise OutputError(f"{name} cannot be written: {error.strerror}.") from error


def _discard(stream: TextIO) -> None:
    """Let what is written to a stream from now on go nowhere."""
    with suppress(OSError):  # a stream that is no file
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _open_closed() -> None:
    """Open the null device in place of standard streams that are closed.

    Otherwise the next file that is opened gets a stream's number, and `print(file=sys.stderr)`
    writes to stdout.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            # The lowest free number, so that of the stream.
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123


def _exact(error: UnicodeError) -> tuple[str | bytes, int]:
    """Encode bytes that were not UTF-8 as they were; other lone surrogates as escapes."""
    assert isinstance(error, UnicodeEncodeError)
    sign = error.object[error.start]
    try:
        return sign.encode("utf-8", "surrogateescape"), error.start + 1
    except UnicodeEncodeError:
        return sign.encode("ascii", "backslashreplace"), error.start + 1


_EXACT = "manyheads-exact"
codecs.register_error(_EXACT, _exact)

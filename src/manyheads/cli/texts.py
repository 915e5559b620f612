"""Texts as a command gets them: as arguments, or as the lines of stdin."""

import sys
from collections.abc import Iterator


def texts(arguments: list[str] | None) -> Iterator[str]:
    """Yield the arguments; without any, the lines of stdin.

    Raises:
        DataError: something is not valid UTF-8.
    """
    return _checked(arguments) if arguments else _stdin()


def _checked(arguments: list[str]) -> Iterator[str]:
    """Refuse what the shell passed on in another encoding."""
    from manyheads.data.text.encoding import reject_surrogates

    for number, text in enumerate(arguments, 1):
        reject_surrogates([text], f"text {number},")
        yield text


def _stdin() -> Iterator[str]:
    r"""Read lines that end at \n and nowhere else."""
    from manyheads.errors import DataError

    if sys.stdin.isatty():
        print("One text a line; Ctrl-D ends.", file=sys.stderr)
    for number, line in enumerate(sys.stdin.buffer, 1):
        try:
            text = line.decode("utf-8").removesuffix("\n").removesuffix("\r")
            yield text.removeprefix("\ufeff") if number == 1 else text
        except UnicodeDecodeError as error:
            raise DataError(
                f"stdin, line {number}: byte {error.start + 1} is not valid UTF-8. "
                "Convert the input, for example with iconv."
            ) from error

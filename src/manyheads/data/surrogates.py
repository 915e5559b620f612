"""Half of a surrogate pair is no character: no UTF-8 can hold it, and no tokenizer reads it.

Python makes such halves of bytes that are not UTF-8 (PEP 383), and of a careless escape in JSON.
"""

from collections.abc import Iterable

from manyheads.errors import DataError


def is_whole(text: str) -> bool:
    """Say whether a text consists of characters."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def refuse_halves(texts: Iterable[str], name: str = "the text") -> None:
    """Refuse texts that hold half of a character.

    Args:
        texts: to be read.
        name: what to call each.

    Raises:
        DataError: one of them does.
    """
    for text in texts:
        if not is_whole(text):
            raise DataError(
                f"{name} {_excerpt(text)} is not valid UTF-8: it holds half of a character (a lone "
                "surrogate). Convert it where it comes from, for example with iconv."
            )


def _excerpt(text: str, beside: int = 30) -> str:
    """Quote what stands around the first half; `repr` escapes halves, so it can be printed."""
    place = next(n for n, sign in enumerate(text) if "\ud800" <= sign <= "\udfff")
    return repr(text[max(place - beside, 0) : place + beside])

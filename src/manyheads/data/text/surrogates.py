"""Lone surrogates are invalid UTF-8, and no tokenizer accepts them.

Python creates them from bytes that are not UTF-8 (PEP 383), and from incomplete JSON escapes.
"""

from collections.abc import Iterable

from manyheads.errors import DataError


def is_valid_unicode(text: str) -> bool:
    """Return whether a text contains no lone surrogate."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def reject_surrogates(texts: Iterable[str], name: str = "the text") -> None:
    """Refuse texts that contain lone surrogates; `name` is how the error message calls a text.

    Raises:
        DataError: a text contains a lone surrogate.
    """
    for text in texts:
        if not is_valid_unicode(text):
            raise DataError(
                f"{name} {_excerpt(text)} is not valid UTF-8: it contains a lone surrogate (half "
                "of a character). Convert the original file, for example with iconv."
            )


def _excerpt(text: str, context: int = 30) -> str:
    """Quote the text around the first surrogate; `repr` escapes it, so it can be printed."""
    index = next(n for n, sign in enumerate(text) if "\ud800" <= sign <= "\udfff")
    return repr(text[max(index - context, 0) : index + context])

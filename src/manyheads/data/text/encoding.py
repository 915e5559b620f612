"""Encodings of Unicode: UTF-8, and UTF-16 and UTF-32 by their byte order mark or their zeros.

Lone surrogates are invalid UTF-8, and no tokenizer accepts them. Python creates them from bytes
that are not UTF-8 (PEP 383), and from incomplete JSON escapes.
"""

import codecs
from collections.abc import Iterable

from manyheads.errors import DataError

# UTF-32 first: its mark begins with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
SAMPLE = 1 << 10  # bytes that are looked at


def unicode_encoding(content: bytes) -> str:
    """Return the encoding that the beginning of a file speaks for: UTF-8 unless it is another."""
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return encoding
    # Without a mark: null bytes where there are none in UTF-8, and text if it is read so.
    head = content[:SAMPLE]
    zeros = head.count(0)
    if len(head) < 8 or not zeros or (zeros < len(head) * 0.4 and _is_text(head, "utf-8")):
        return "utf-8"
    return next((encoding for _, encoding in _MARKS if _is_text(head, encoding)), "utf-8")


def _is_text(head: bytes, encoding: str) -> bool:
    """Tell whether bytes are characters in this encoding, hardly any of them unprintable."""
    text = codecs.getincrementaldecoder(encoding)("replace").decode(head)
    odd = sum(c == "\ufffd" or not (c.isprintable() or c in "\t\n\r\0") for c in text)
    return odd <= max(1, len(text) // 20)


def decode(content: bytes, name: str) -> tuple[str, str]:
    """Decode a file; return its text, with the byte order mark, and its encoding.

    Raises:
        DataError: it is not valid in its encoding.
    """
    encoding = unicode_encoding(content)
    try:
        return content.decode(encoding), encoding
    except UnicodeDecodeError as error:
        line = content[: error.start].decode(encoding, "ignore").count("\n") + 1
        what = f"byte 0x{content[error.start]:02x} is not valid {encoding.upper()[:6].rstrip('-')}"
        raise DataError(
            f"{name}, line {line}: {what}. Convert the text, for example with iconv."
        ) from error


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
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            # `repr` escapes the surrogate, so it can be printed.
            around = repr(text[max(error.start - 30, 0) : error.start + 30])
            raise DataError(
                f"{name} {around} is not valid UTF-8: it contains a lone surrogate (half of a "
                "character). Convert the original file, for example with iconv."
            ) from None

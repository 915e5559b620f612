"""Encodings of Unicode: UTF-8, and UTF-16 and UTF-32 by their byte order mark or their zeros."""

import codecs

from manyheads.errors import DataError

# UTF-32 first: its mark begins with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Which bytes of four are zeros where Latin characters are written in so many bytes.
_ZEROS = {
    (False, True, True, True): "utf-32-le",
    (True, True, True, False): "utf-32-be",
    (False, True, False, True): "utf-16-le",
    (True, False, True, False): "utf-16-be",
}


def unicode_encoding(content: bytes) -> str:
    """Return the encoding that the beginning of a file speaks for: UTF-8 unless it is another."""
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return encoding
    parts = [content[place:1024:4] for place in range(4)]
    first, second, third, fourth = (part.count(0) * 2 > len(part) for part in parts)
    return _ZEROS.get((first, second, third, fourth), "utf-8")


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

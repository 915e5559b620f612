"""Formats of documents, by the ending of a name: how each is opened, divided and written."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import PurePath

from manyheads.data.documents import office
from manyheads.data.documents.html import split_attributes, split_html
from manyheads.data.documents.markdown import split_markdown
from manyheads.data.documents.office import DOCX, XLSX, Unpacked, pack, split_xml, unpack
from manyheads.data.documents.segments import Line, split_document
from manyheads.data.text.encoding import decode
from manyheads.errors import UsageError, nearest

Splitter = Callable[[str, str], list[Line]]  # of a text in a language


@dataclass(frozen=True, slots=True)
class OpenDocument:
    """A document whose texts can be divided and replaced."""

    texts: Mapping[str, str]  # by name; a text file has one
    passes: Sequence[Splitter]  # each divides what the one before has left
    pack: Callable[[Mapping[str, str]], bytes]  # the document with its changed texts
    unit: str = "line"  # what notes count
    shown: Callable[[str], str] = str  # how a part is shown to a person


TEXT_FORMATS: dict[str, Sequence[Splitter]] = {
    "text": [split_document],
    "markdown": [split_markdown],
    "html": [split_attributes, split_html],
}
# Of texts that a program puts into a page, or shows: their encoding is not that of a page.
PART_FORMATS: dict[str, Sequence[Splitter]] = {
    **TEXT_FORMATS,
    "html": [partial(split_attributes, part_of=True), partial(split_html, part_of=True)],
}
_PACKAGES = {"docx": (DOCX, "paragraph"), "xlsx": (XLSX, "text")}
FORMATS = (*TEXT_FORMATS, *_PACKAGES)
_ENDINGS = {
    **dict.fromkeys((".md", ".markdown", ".mdown", ".mkd"), "markdown"),
    **dict.fromkeys((".html", ".htm", ".xhtml"), "html"),
    **dict.fromkeys((".docx", ".docm", ".dotx"), "docx"),
    **dict.fromkeys((".xlsx", ".xlsm"), "xlsx"),
}
# What is more than text and has no format here, with the format to save it in.
_OTHERS = {
    **dict.fromkeys((".doc", ".dot", ".odt", ".rtf", ".pages", ".pdf", ".epub"), ".docx or .html"),
    **dict.fromkeys((".xls", ".xlsb", ".ods", ".numbers", ".csv"), ".xlsx"),
    **dict.fromkeys((".json", ".jsonl", ".po", ".pot", ".xliff", ".xlf"), "text: its texts alone"),
    **dict.fromkeys((".ppt", ".pptx", ".odp", ".key"), "text, or its texts in a .docx"),
}


def format_of(name: str | PurePath, named: str | None = None) -> str:
    """Return the format of a document: the one that is named, or by its ending; else text.

    Raises:
        UsageError: there is no such format, or documents with this ending cannot be read.
    """
    if named is not None:
        if named not in FORMATS:
            raise UsageError(
                f"`format` is {named!r}{nearest(named, FORMATS)}Allowed: {', '.join(FORMATS)}."
            )
        return named
    ending = PurePath(name).suffix.lower()
    if ending in _OTHERS:
        raise UsageError(
            f"{name}: documents in {ending} are not read. Save it as {_OTHERS[ending]}; or name "
            f"its `format`, if it is one of {', '.join(FORMATS)}."
        )
    return _ENDINGS.get(ending, "text")


def open_document(
    content: bytes, name: str, named: str, unpacked: Unpacked = office.UNPACKED
) -> OpenDocument:
    """Open a document of a format; `unpacked` is the most that an archive may unpack to.

    Raises:
        DataError: it cannot be read.
    """
    if named in TEXT_FORMATS:
        text, encoding = decode(content, name)
        return open_text(text, named, encoding)
    package, unit = _PACKAGES[named]
    texts = unpack(package, content, name, unpacked)  # which refuses what is too large
    split = partial(split_xml, package=package, keep=office.table_headers(content, name))
    return OpenDocument(texts, [split], partial(pack, content, name), unit, office.shown)


def open_text(text: str, named: str, encoding: str = "utf-8") -> OpenDocument:
    """Open a text of a format."""
    return OpenDocument(
        {"": text}, TEXT_FORMATS[named], lambda changed: changed.get("", text).encode(encoding)
    )

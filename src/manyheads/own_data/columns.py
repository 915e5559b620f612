"""Which columns of a table hold what: two languages, or a text and its label, or one text."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from manyheads.data.text.languages import NAMES, guess, is_language_code, languages_with_words
from manyheads.errors import DataError, UsageError
from manyheads.own_data.loose_table import Table

LOOKED_AT = 500  # cells of a column that tell what it holds
SURE = 1.3  # times as probable as the next language
LABEL_ROWS = 5  # of each label on average, at least
LANGUAGES = ("zh", *sorted({*NAMES, *languages_with_words()} - {"zh"}))  # with Han alone: Chinese
_SIDES = {"source": 0, "src": 0, "input": 0, "target": 1, "tgt": 1, "output": 1, "translation": 1}
_SIDES |= {"reference": 1}
_LABELS = {"label", "class", "category", "sentiment", "intent"}
_ABOUT = {"language", "lang", "code", "id"}
_CODES = {name.lower(): code for code, name in NAMES.items()}
# Numbers, paths, names.
_NO_TEXT = re.compile(r"[\d\W_]*|[^\s/\\@]*[/\\@]\S*|(?:[^\W\d]|-)*\d[\w-]*")


class Column(NamedTuple):
    """A column that is used."""

    number: int  # from 0
    language: str | None  # None: not known
    name: str  # for people


class Roles(NamedTuple):
    """What the columns are; `label` instead of `target` for texts with a class each."""

    source: Column
    target: Column | None = None
    label: Column | None = None


def find_roles(table: Table, wanted: Sequence[str], languages: Sequence[str] = ()) -> Roles:
    """Choose the columns: those that were named, else those that hold sentences.

    Args:
        table: the rows.
        wanted: names or numbers from 1, each perhaps with a language in front: "en=1".
        languages: those of a model that is continued; its source comes first.

    Raises:
        UsageError: no such column.
        DataError: no column holds texts.
    """
    if wanted:
        chosen = [_named(table, each) for each in wanted]
        if len(chosen) > 2:
            raise UsageError(f"`columns` names {len(chosen)} columns: name one or two.")
    else:
        chosen = [_column(table, index) for index in _sentences(table)]
    if not chosen:
        raise DataError(
            "No column holds sentences. Name the columns with `columns`: names, or numbers from 1."
        )
    if len(chosen) == 1:
        label = None if wanted else _label(table, chosen[0].number)
        return Roles(chosen[0], label=label)
    first, second = chosen if wanted else sorted(chosen, key=lambda c: _side(table, c.number) or 0)
    if _is_label(table, second.number) and not _is_label(table, first.number):
        return Roles(first, label=second)
    if len(languages) == 2 and (first.language, second.language) == (languages[1], languages[0]):
        first, second = second, first
    if first.language is not None and first.language == second.language:
        second = second._replace(language=None)
    return Roles(first, second)


def _cells(table: Table, index: int) -> list[str]:
    """Return the filled cells of the first rows of a column."""
    rows = table.rows[:: max(1, len(table.rows) // LOOKED_AT)]
    found = (cells[index].strip() for _, cells in rows if len(cells) > index)
    return [cell for cell in found if cell]


def _column(table: Table, index: int, language: str | None = None) -> Column:
    name = table.header[index] if index < len(table.header) else f"column {index + 1}"
    return Column(index, language or _language(table, index), name)


def _language(table: Table, index: int) -> str | None:
    codes, name = _codes(table, index), _header(table, index)
    if codes or (is_language_code(name) and len(name) == 2):
        return [*codes, name.lower()][0]
    (best, first), (following, second), *_ = guess(" ".join(_cells(table, index)), LANGUAGES)
    alone = first > SURE * second or (best, following) == ("zh", "ja")
    return best if first and alone else None


def _named(table: Table, wanted: str) -> Column:
    language, equals, name = wanted.rpartition("=")
    if equals and not is_language_code(language):
        raise UsageError(f"`columns`: {language!r} is no language code, such as en.")
    if name in table.header:
        return _column(table, table.header.index(name), language or None)
    if name.isdecimal() and 0 < int(name[:9]) <= table.width:
        return _column(table, int(name) - 1, language or None)
    known = ", ".join(table.header) or "no header"
    raise UsageError(
        f"There is no column {name!r}: the table has {table.width} ({known}). Give a name of the "
        "header, or a number from 1."
    )


def _sentences(table: Table) -> list[int]:
    """Return the columns that hold texts; of more than two, those with most letters."""
    letters = {}
    for index in range(table.width):
        cells = _cells(table, index)
        texts = [cell for cell in cells if not _NO_TEXT.fullmatch(cell)]
        if texts and len(texts) >= len(cells) / 2 and not _is_label(table, index):
            different = len(set(texts)) / len(texts)
            letters[index] = sum(map(len, texts)) / len(cells) * different
    sides = [each for each in letters if _side(table, each) is not None]
    languages = [each for each in letters if _codes(table, each)]
    for named in (sides, languages):
        if len(named) == 2:
            return named
    return sorted(sorted(letters, key=lambda each: -letters[each])[:2])


def _header(table: Table, index: int) -> str:
    return "".join(table.header[index : index + 1])  # some rows may be longer


def _words(table: Table, index: int) -> list[str]:
    return re.findall(r"[^\W\d_]+", _header(table, index).lower())


def _codes(table: Table, index: int) -> list[str]:
    codes = (_CODES.get(word, word) for word in _words(table, index))
    return [code for code in codes if code in LANGUAGES]


def _side(table: Table, index: int) -> int | None:
    words = _words(table, index)
    return next((_SIDES[word] for word in words if word in _SIDES and not _ABOUT & {*words}), None)


def _is_label(table: Table, index: int) -> bool:
    """Tell whether a column holds few different short values, each many times."""
    cells = _cells(table, index)
    different = set(cells)
    return 1 < len(different) <= min(200, len(cells) / LABEL_ROWS) and all(
        len(each) <= 40 and len(each.split()) < 5 and each[-1] not in ".?!" for each in different
    )


def _label(table: Table, text: int) -> Column | None:
    """Find the column of labels: by its name, or the only one."""
    found = [each for each in range(table.width) if each != text and _is_label(table, each)]
    words = {each: re.findall("[a-z]+", _header(table, each).lower()) for each in found}
    chosen = [each for each in found if _LABELS & {*words[each]}] or found
    return _column(table, chosen[0])._replace(language=None) if len(chosen) == 1 else None

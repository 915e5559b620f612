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
    columns = [_Seen(table, number) for number in range(table.width)]
    if wanted:
        chosen = [_named(columns, table.header, each) for each in wanted]
        if len(chosen) > 2:
            raise UsageError(f"`columns` names {len(chosen)} columns: name one or two.")
    else:
        chosen = [each.column() for each in _sentences(columns)]
    if not chosen:
        names = ", ".join(each.name for each in columns)
        raise DataError(
            f"No column holds sentences ({names}). Name the columns with `columns`: names, or "
            "numbers from 1."
        )
    if len(chosen) == 1:
        return Roles(chosen[0], label=None if wanted else _label(columns, chosen[0].number))
    first, second = chosen if wanted else sorted(chosen, key=lambda c: columns[c.number].side or 0)
    if columns[second.number].is_label and not columns[first.number].is_label:
        return Roles(first, label=second)
    if len(languages) == 2 and (first.language, second.language) == (languages[1], languages[0]):
        first, second = second, first
    if first.language is not None and first.language == second.language:
        second = second._replace(language=None)
    return Roles(first, second)


class _Seen:
    """What the name of a column and the filled cells of some rows say of it."""

    def __init__(self, table: Table, number: int) -> None:
        self.number = number
        self.header = "".join(table.header[number : number + 1])  # some rows may be longer
        self.name = self.header if number < len(table.header) else f"column {number + 1}"
        rows = table.rows[:: max(1, len(table.rows) // LOOKED_AT)]
        found = (cells[number].strip() for _, cells in rows if len(cells) > number)
        self.cells = [cell for cell in found if cell]
        words = re.findall(r"[^\W\d_]+", self.header.lower())
        self.codes = [code for w in words if (code := _CODES.get(w, w)) in LANGUAGES]
        sides = [_SIDES[word] for word in words if word in _SIDES and not _ABOUT & {*words}]
        self.side = sides[0] if sides else None
        # Few different short values, each many times.
        different = set(self.cells)
        self.is_label = 1 < len(different) <= min(200, len(self.cells) / LABEL_ROWS) and all(
            len(each) <= 40 and len(each.split()) < 5 and each[-1] not in ".?!"
            for each in different
        )

    def column(self, language: str | None = None) -> Column:
        return Column(self.number, language or self._language(), self.name)

    def _language(self) -> str | None:
        if self.codes or (is_language_code(self.header) and len(self.header) == 2):
            return [*self.codes, self.header.lower()][0]
        (best, first), (following, second), *_ = guess(" ".join(self.cells), LANGUAGES)
        alone = first > SURE * second or (best, following) == ("zh", "ja")
        return best if first and alone else None


def _named(columns: Sequence[_Seen], header: Sequence[str], wanted: str) -> Column:
    language, equals, name = wanted.rpartition("=")
    if equals and not is_language_code(language):
        raise UsageError(f"`columns`: {language!r} is no language code, such as en.")
    if name in header:
        return columns[header.index(name)].column(language or None)
    if name.isdecimal() and 0 < int(name[:9]) <= len(columns):
        return columns[int(name) - 1].column(language or None)
    raise UsageError(
        f"There is no column {name!r}: the table has {len(columns)} "
        f"({', '.join(header) or 'no header'}). Give a name of the header, or a number from 1."
    )


def _sentences(columns: Sequence[_Seen]) -> list[_Seen]:
    """Return the columns that hold texts; of more than two, those with most letters."""
    letters = dict[_Seen, float]()
    for each in columns:
        texts = [cell for cell in each.cells if not _NO_TEXT.fullmatch(cell)]
        if texts and len(texts) >= len(each.cells) / 2 and not each.is_label:
            different = len(set(texts)) / len(texts)
            letters[each] = sum(map(len, texts)) / len(each.cells) * different
    sides = [each for each in letters if each.side is not None]
    languages = [each for each in letters if each.codes]
    for named in (sides, languages):
        if len(named) == 2:
            return named
    most = sorted(letters, key=lambda each: -letters[each])[:2]
    return sorted(most, key=lambda each: each.number)


def _label(columns: Sequence[_Seen], text: int) -> Column | None:
    """Find the column of labels: by its name, or the only one."""
    found = [each for each in columns if each.number != text and each.is_label]
    named = [each for each in found if _LABELS & {*re.findall("[a-z]+", each.header.lower())}]
    chosen = named or found
    return chosen[0].column()._replace(language=None) if len(chosen) == 1 else None

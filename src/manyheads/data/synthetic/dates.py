"""Synthetic corpus of English dates and their Korean translations, drawn from a seed.

It needs no download: words and patterns come from CLDR through Babel (the extra ``demo``). Korean
orders and spells the parts very differently, so there is something to learn. A translation has
exactly the parts of its source: without a weekday or year in English there is none in Korean.

Every phrasing in date_phrasings.toml is written for one reference time, **Saturday, September 5,
2026, 15:05**; a range ends on **Sunday, November 8** of the same year or of 2027. A word in a
layout that expresses a part of a reference time stands for that part of any time: ``9/5/2026`` is
month/day/year and ``09/05/2026`` the same with zeros; ``Sep``, ``Sep.`` and ``Sept`` are different
spellings; ``Sep 5 – 8, 2026`` is a range within one month. Brackets enclose alternatives, one of
which is drawn for each example.

Some days are held out for validation and others for the test, as a pure function of the day and
the seed: no held-out day occurs in training in any phrasing of its kind.
"""

import re
import tomllib
from bisect import bisect, bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from functools import cache, lru_cache
from itertools import accumulate, cycle, islice, product
from operator import attrgetter
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any, Literal, NamedTuple, TypeVar

from manyheads.data.text.word_links import Link, Span
from manyheads.errors import DataError, nearest, optional_import
from manyheads.streams import stream

Kind = Literal["full", "yearless", "month", "timed", "range"]
SPLITS = ("train", "valid", "test")


@dataclass(frozen=True, slots=True)
class DateExample:
    """An English date, its Korean translation, and the name of the phrasing it was drawn from."""

    source: str
    target: str
    phrasing: str
    # For each part of the target, such as the month, the source words that it translates.
    links: tuple[Link, ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Phrasing:
    """One way to write a date in English; training draws it in proportion to its weight."""

    kind: Kind
    layout: str
    weight: float = 1.0

    @property
    def spellings(self) -> tuple[str, ...]:
        """The layout with every choice of its alternatives; the first is the default."""
        parts = re.split(r"\[(.*?)\]", self.layout)  # every second part was in brackets
        choices = [part.split("|") if i % 2 else [part] for i, part in enumerate(parts)]
        return tuple("".join(choice) for choice in product(*choices))

    @property
    def name(self) -> str:
        """The name in reports: the default spelling of the reference time."""
        return self.spellings[0]


_TABLES = tomllib.loads(Path(__file__).with_name("date_phrasings.toml").read_text("utf-8"))
PHRASINGS = tuple(
    Phrasing(kind, layout, weight)  # type: ignore[arg-type] # one of `Kind`
    for kind, table in _TABLES.items()
    for layout, weight in table.items()
)

# The reference times of these layouts: the start (or only date), and the ends of ranges.
_START = datetime(2026, 9, 5, 15, 5)
_ENDS = (date(2026, 11, 8), date(2027, 11, 8))
_YEARS = range(1900, 2100)
_SHORT_YEARS = range(1950, 2050)  # the years that two digits can mean

# The unit that is held out; times and ranges contain full dates, so they share one set of days.
_UNITS: dict[Kind, tuple[str, ...]] = {"yearless": ("month", "day"), "month": ("year", "month")}
_UNITS |= dict.fromkeys(("full", "timed", "range"), ("year", "month", "day"))

_T = TypeVar("_T")
_Formatter = Callable[[date], str]


def generate(split: str, *, size: int, seed: int = 0) -> list[DateExample]:
    """Draw one split of the corpus; the same arguments always give the same examples.

    Training draws phrasings by their weights, and a source may occur twice. Validation and test
    use the phrasings in turn, so that each is covered equally, and no source occurs twice. A
    larger size begins with the examples of a smaller one. Held-out days depend on the seed.

    Raises:
        DataError: The split is unknown, or has fewer different examples than requested.
        MissingExtraError: Babel is not installed.
    """
    if split not in SPLITS:
        hint = f"{nearest(split, SPLITS)}Choose one of {', '.join(SPLITS)}."
        raise DataError(f"the dates have no split {split!r}{hint}")
    if size < 0:
        raise DataError(f"a size of {size} dates is not possible: ask for 0 or more")
    rng = Random(stream(seed, f"dates-{split}"))
    days = {kind: _days(unit, seed)[split] for kind, unit in _UNITS.items()}
    examples = _weighted(rng, days) if split == "train" else _in_turn(rng, days)
    return list(islice(examples, size))


@lru_cache(maxsize=8)
def _days(unit: tuple[str, ...], seed: int) -> dict[str, list[date]]:
    """Return the days of each split, in order; days with an equal unit are in the same split."""
    rng, unit_of = Random(stream(seed, f"dates-{'-'.join(unit)}")), attrgetter(*unit)
    first, stop = date(_YEARS.start, 1, 1), date(_YEARS.stop, 1, 1)
    calendar = [date.fromordinal(n) for n in range(first.toordinal(), stop.toordinal())]
    units = sorted(dict.fromkeys(map(unit_of, calendar)), key=lambda _: rng.random())
    tenth = len(units) // 10
    split_of = dict.fromkeys(units, "train")
    split_of |= dict.fromkeys(units[:tenth], "valid")
    split_of |= dict.fromkeys(units[tenth : 2 * tenth], "test")
    days: dict[str, list[date]] = {split: [] for split in SPLITS}
    for day in calendar:
        days[split_of[unit_of(day)]].append(day)
    return days


def _weighted(rng: Random, days: dict[Kind, list[date]]) -> Iterator[DateExample]:
    thresholds = list(accumulate(phrasing.weight for phrasing in PHRASINGS))
    while True:
        phrasing = PHRASINGS[bisect(thresholds, rng.random() * thresholds[-1])]
        yield _draw(rng, phrasing, days[phrasing.kind])


def _in_turn(rng: Random, days: dict[Kind, list[date]]) -> Iterator[DateExample]:
    seen: set[str] = set()
    for phrasing in cycle(PHRASINGS):
        draws = (_draw(rng, phrasing, days[phrasing.kind]) for _ in range(1000))
        example = next((draw for draw in draws if draw.source not in seen), None)
        if example is None:
            raise DataError(
                f"more than {len(seen)} different held-out dates were asked for, but those like "
                f"{phrasing.name!r} are used up: ask for a size of {len(seen)} or less"
            )
        seen.add(example.source)
        yield example


def _draw(rng: Random, phrasing: Phrasing, days: list[date]) -> DateExample:
    """Draw one example with one of these days, or a range between two of them."""
    layout = _pick(rng, _layouts(phrasing))
    years = date(layout.years.start, 1, 1), date(layout.years.stop, 1, 1)
    while True:
        start = days[_pick(rng, _between(days, *years))]
        if phrasing.kind == "timed":
            start = datetime.combine(start, time(_pick(rng, range(24)), _pick(rng, range(60))))
        if phrasing.kind != "range":
            return layout.write(start, start)
        ends = _between(days, *_reach(start, _pick(rng, tuple(layout.korean))))
        if ends:  # held-out days are few: some have no other in their month or year
            return layout.write(start, days[_pick(rng, ends)])


def _pick(rng: Random, options: Sequence[_T]) -> _T:
    # Only random.random() is guaranteed to give the same numbers in every Python version.
    return options[int(rng.random() * len(options))]


def _between(days: list[date], first: date, stop: date) -> range:
    return range(bisect_left(days, first), bisect_left(days, stop))


def _reach(start: date, difference: str) -> tuple[date, date]:
    """Return the first possible end of a range with this largest difference, and the limit."""
    next_month = (start.replace(day=1) + timedelta(31)).replace(day=1)
    next_year = date(start.year + 1, 1, 1)
    return {
        "d": (start + timedelta(1), next_month),
        "M": (next_month, next_year),
        "y": (next_year, date(start.year + 11, 1, 1)),
    }[difference]


def _difference(start: date, end: date) -> str:
    """Return CLDR's letter of the largest part in which two days differ; "" for the same day."""
    if start.year != end.year:
        return "y"
    if start.month != end.month:
        return "M"
    return "d" if start.day != end.day else ""


@dataclass(frozen=True, slots=True)
class _Layout:
    """A parsed spelling of a phrasing: its English pattern and its Korean patterns."""

    phrasing: str
    english: "_Pattern"
    korean: dict[str, "_Pattern"]  # by the difference between start and end
    # For each part of the Korean, the indices of the English words that it translates.
    source_words: dict[str, tuple[tuple[int, ...], ...]]
    years: range

    def write(self, start: date, end: date) -> DateExample:
        difference = _difference(start, end)
        source, words = self.english.write((start, end))
        target, parts = self.korean[difference].write((start, end))
        links = [
            Link(_number(target, part), tuple([words[index] for index in source_words]))
            for part, source_words in zip(parts, self.source_words[difference], strict=True)
        ]
        return DateExample(source, target, self.phrasing, tuple(links))


class _Part(NamedTuple):
    """A part of the start (0) or end (1) of a range, with CLDR's letters for it."""

    which: int
    letters: str
    write: _Formatter


@dataclass(frozen=True, slots=True)
class _Pattern:
    """Parts of dates, and the text between them."""

    texts: tuple[str, ...]  # before each part, and after the last
    parts: tuple[_Part, ...]

    def write(self, times: tuple[date, date]) -> tuple[str, list[Span]]:
        """Return the text, and the span of each part in it."""
        text, spans = self.texts[0], []
        for (which, _, write), behind in zip(self.parts, self.texts[1:], strict=True):
            begin = len(text)
            text += write(times[which])
            spans.append((begin, len(text)))
            text += behind
        return text, spans


def _source_words(parts: Sequence[_Part], words: Sequence[_Part]) -> tuple[tuple[int, ...], ...]:
    """Find the source words of each part of a translation.

    A part that Korean writes once for start and end, often the year, English may write twice.
    """
    count = Counter(part.letters for part in parts)
    return tuple(
        tuple(
            index
            for index, word in enumerate(words)
            if part.letters in word.letters
            and (word.which == part.which or count[part.letters] == 1)
        )
        for part in parts
    )


def _number(text: str, span: Span) -> Span:
    """Return the span of the number in "12월"; of a word the whole span."""
    begin, end = span
    digits = end - begin - len(text[begin:end].lstrip("0123456789"))
    return (begin, begin + digits) if digits else span


@cache
def _layouts(phrasing: Phrasing) -> tuple[_Layout, ...]:
    return tuple(_read(phrasing.name, spelling) for spelling in phrasing.spellings)


def _read(name: str, spelling: str) -> _Layout:
    """Turn the words for parts of the reference times into gaps for these parts."""
    english = _english()
    meanings: dict[str, tuple[int, str]] = {}
    # Later entries overwrite earlier ones: 2026 is the start's year, and Nov is US English.
    for end, part in product(_ENDS, reversed([part for part in english if part[0] in "yMdE"])):
        meanings[english[part](end)] = (1, part)
    for part, write in english.items():
        meanings[write(_START)] = (0, part)
    word = re.compile("|".join(map(re.escape, sorted(meanings, key=len, reverse=True))))
    found = [meanings[text] for text in word.findall(spelling)]
    in_start, in_end = ({part[0] for which, part in found if which == i} for i in (0, 1))
    words = tuple(_Part(which, _letters(part), english[part]) for which, part in found)
    korean = _korean(in_start, in_end)
    return _Layout(
        phrasing=name,
        english=_Pattern(tuple(word.split(spelling)), words),
        korean=korean,
        source_words={
            difference: _source_words(each.parts, words) for difference, each in korean.items()
        },
        years=_SHORT_YEARS if any(part == "yy" for _, part in found) else _YEARS,
    )


def _letters(part: str) -> str:
    """Return CLDR's letters in the name of a part: "h:mm" has hours and minutes."""
    return "".join(dict.fromkeys(filter(str.isalpha, part.partition(",")[0]))).replace("H", "h")


@cache
def _english() -> dict[str, _Formatter]:
    """Return English formatters by name; a name begins with CLDR's letter for the part."""
    fields = ("EEEE", "E", "MMMM", "MMM", "MM", "M", "d", "dd", "y", "yy", "h:mm", "HH:mm", "a")
    english = {field: _formatter(field, "en") for field in fields}
    english["MMM, British"] = _formatter("MMM", "en_GB")  # Sept
    english["a, British"] = _formatter("a", "en_GB")  # pm
    english["a, Canadian"] = _formatter("a", "en_CA")  # p.m.

    def altered(part: str, change: Callable[[str], str]) -> _Formatter:
        write = english[part]
        return lambda when: change(write(when))

    locale = _babel().Locale.parse("en")
    months = set(locale.months["format"]["wide"].values())
    endings = {"one": "st", "two": "nd", "few": "rd", "other": "th"}
    for part in ("MMM", "MMM, British"):  # May is not an abbreviation
        english[f"{part}, dotted"] = altered(part, lambda m: m if m in months else f"{m}.")
    for part in ("EEEE", "E", "MMMM", "MMM"):
        english[f"{part}, lower"] = altered(part, str.lower)
    english["d, ordinal"] = altered("d", lambda day: day + endings[locale.ordinal_form(int(day))])
    return english


def _korean(in_start: set[str], in_end: set[str]) -> dict[str, _Pattern]:
    """Return CLDR's Korean patterns of the same parts, by the difference of start and end."""
    locale = _babel().Locale.parse("ko")
    skeleton = "".join(field for field in ("y", "MMM", "EEEE", "d") if field[0] in in_start)
    if in_end:
        # Missing parts of the end are those of the start: "Sep 5 – 7" stays within one month.
        differences = "dMy"[: 1 + max("dMy".find(letter) for letter in in_end)]
        patterns = locale.interval_formats[skeleton]
        return {d: _pattern(patterns[d]) for d in differences}
    pattern = str(locale.datetime_skeletons[skeleton])
    if in_start & {"h", "H"}:
        clock = "aaaa h:mm" if "h" in in_start else str(locale.datetime_skeletons["Hm"])
        joint = str(locale.datetime_formats["medium"])
        pattern = joint.replace("{1}", pattern).replace("{0}", clock)
    return {"": _pattern([pattern])}


def _pattern(patterns: Sequence[str]) -> _Pattern:
    """Parse CLDR's Korean patterns of the start, and of the end if there is one."""
    texts, parts = [""], []
    for which, pattern in enumerate(patterns):
        for kind, token in _tokens(pattern):
            if kind == "field":
                parts.append(_Part(which, _letters(token[0]), _field(token[0] * token[1], "ko")))
                texts.append("")
            else:
                texts[-1] += token
    return _Pattern(tuple(texts), tuple(parts))


def _formatter(pattern: str, locale: str) -> _Formatter:
    """Return the formatter of a CLDR pattern in a locale."""
    tokens = _tokens(pattern)
    template = "".join("%s" if kind == "field" else text for kind, text in tokens)
    fields = [_field(text[0] * text[1], locale) for kind, text in tokens if kind == "field"]
    return lambda when: template % tuple([write(when) for write in fields])


def _tokens(pattern: str) -> list[tuple[str, Any]]:
    """Tokenize a CLDR pattern, with plain spaces for CLDR's narrow and no-break spaces."""
    tokens: list[tuple[str, Any]] = _babel().dates.tokenize_pattern(re.sub(r"\s", " ", pattern))
    return tokens


@cache
def _field(field: str, locale: str) -> _Formatter:
    """Return the formatter of one CLDR field in a locale, cached because Babel is slow."""
    babel = _babel()
    pattern, language = babel.dates.parse_pattern(field), babel.Locale.parse(locale)
    part = {"y": "year", "M": "month", "d": "day", "m": "minute"}.get(field[0], "hour")
    value: Callable[[date], int] = date.weekday if field[0] == "E" else attrgetter(part)
    known: dict[int, str] = {}

    def write(when: date) -> str:
        key = value(when)
        if key not in known:
            known[key] = pattern.apply(when, language)
        return known[key]

    return write


def _babel() -> ModuleType:
    with optional_import("babel", extra="demo"):
        import babel.dates
    return babel

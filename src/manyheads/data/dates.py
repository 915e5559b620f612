"""English dates and their Korean translations, as many as a seed can draw.

A corpus that needs no download: the words and the patterns are CLDR's, by way of Babel (the extra
``demo``), and Korean orders and spells the parts so differently that there is something to learn.
What goes in comes out: no weekday in, none out; no year in, none out.

Every phrasing below is written down as it would say one reference moment, **Saturday, September 5,
2026, 15:05**, and a range as if it ended on **Sunday, November 8** of the same year or of 2027.
Whatever in a layout is a word for a part of these moments stands for that part of any other:
``9/5/2026`` is read as month/day/year and ``09/05/2026`` as the same with zeros, ``Sep``, ``Sep.``
and ``Sept`` are different spellings, and ``Sep 5 – 8, 2026`` is a range within one month. Brackets
enclose alternatives, one of which is drawn for each example.

Some days are kept for validation and others for the test, as a pure function of the day and the
seed: no held-out day occurs in training in any phrasing of its kind.
"""

import re
from bisect import bisect, bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from functools import cache, lru_cache
from itertools import accumulate, cycle, islice, product
from operator import attrgetter
from random import Random
from types import ModuleType
from typing import Any, Literal, NamedTuple, TypeVar

from manyheads.data.links import Link, Span
from manyheads.errors import DataError, MissingExtraError, nearest
from manyheads.streams import stream

__all__ = ["PHRASINGS", "SPLITS", "DateExample", "Kind", "Phrasing", "generate", "render"]

Kind = Literal["full", "yearless", "month", "timed", "range"]
SPLITS = ("train", "valid", "test")


@dataclass(frozen=True, slots=True)
class DateExample:
    """An English date, its Korean translation, and the name of the phrasing it was drawn from."""

    source: str
    target: str
    phrasing: str
    # For each part of the target, such as the month, the words of the source that say it.
    links: tuple[Link, ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Phrasing:
    """One way to say a date in English; training draws it in proportion to its weight."""

    kind: Kind
    layout: str
    weight: float = 1.0

    @property
    def spellings(self) -> tuple[str, ...]:
        """The layout with every choice of its alternatives; the first is the usual spelling."""
        parts = re.split(r"\[(.*?)\]", self.layout)  # every second part was in brackets
        choices = [part.split("|") if i % 2 else [part] for i, part in enumerate(parts)]
        return tuple("".join(choice) for choice in product(*choices))

    @property
    def name(self) -> str:
        """What reports call it: the usual spelling of the reference moment."""
        return self.spellings[0]


PHRASINGS = (
    Phrasing("full", "Saturday, September 5, 2026"),
    Phrasing("full", "Saturday, 5 September 2026"),
    Phrasing("full", "Sat[|,] 5 Sep 2026"),
    Phrasing("full", "Sat, Sep 5, ['|’]26", weight=2),
    Phrasing("full", "September 5, 2026"),
    Phrasing("full", "[Sep|Sept|Sep.|Sept.] 5, 2026"),
    Phrasing("full", "5 [Sep|September] 2026"),
    Phrasing("full", "[Sep|September] 5th, 2026"),
    Phrasing("full", "[the |]5th of September[|,] 2026"),
    Phrasing("full", "[Saturday|Sat] the 5th of September 2026"),
    Phrasing("full", "[|saturday, ][september|sep] 5[,|] 2026"),
    Phrasing("full", "[2026-09-05|2026/09/05]"),
    Phrasing("full", "[9/5|09/05]/2026", weight=3),
    Phrasing("full", "[9/5|09/05]/26", weight=3),
    Phrasing("yearless", "[September|Sep] [5|5th]"),
    Phrasing("yearless", "[5|5th|the 5th of] [September|Sep]"),
    Phrasing("yearless", "[Saturday, September|Sat, Sep] 5"),
    Phrasing("month", "[September|Sep|Sept.][|,] 2026"),
    Phrasing("month", "[2026-09|09/2026|9/2026]", weight=3),
    Phrasing("timed", "Sep 5, 2026[ at|,] 3:05 [PM|p.m.|pm]", weight=2.5),
    Phrasing("timed", "Saturday, September 5, 2026 at 3:05 [PM|p.m.|pm]", weight=2.5),
    Phrasing("timed", "3:05 [p.m.|PM|pm] on September 5, 2026", weight=2.5),
    Phrasing("timed", "Sep 5, 2026[,| at] 15:05", weight=2.5),
    Phrasing("timed", "15:05 on [5 September|September 5,] 2026", weight=2.5),
    Phrasing("timed", "2026-09-05[ |T]15:05", weight=2.5),
    Phrasing("range", "Sep 5 – 8, 2026", weight=2),
    Phrasing("range", "September 5[-|–| to ]8, 2026", weight=2),
    Phrasing("range", "Sep 5 [–|-|to] Nov 8, 2026", weight=4),
    Phrasing("range", "Sat, Sep 5 [–|-|to] Sun, Nov 8, 2026", weight=4),
    Phrasing("range", "Sep 5, 2026 [–|-|to] Nov 8, 2027", weight=9),
    Phrasing("range", "[from |]September 5 to November 8, 2026", weight=4),
    Phrasing("range", "[from |]September 5, 2026 to November 8, 2027", weight=9),
    Phrasing("range", "2026-09-05 [to|–] 2027-11-08", weight=9),
)

# The moments that the layouts above say: the start, or the only one, and the ends of ranges.
_START = datetime(2026, 9, 5, 15, 5)
_ENDS = (date(2026, 11, 8), date(2027, 11, 8))
_YEARS = range(1900, 2100)
_SHORT_YEARS = range(1950, 2050)  # what a year of two digits means

# What makes a day held out; times and ranges say full dates, so these share one set of days.
_UNITS: dict[Kind, tuple[str, ...]] = {"yearless": ("month", "day"), "month": ("year", "month")}
_UNITS |= dict.fromkeys(("full", "timed", "range"), ("year", "month", "day"))

_T = TypeVar("_T")
_Say = Callable[[date], str]


def generate(split: str, *, size: int, seed: int = 0) -> list[DateExample]:
    """Draws one split of the corpus.

    Training draws phrasings by their weights, and a source may come twice. Validation and test take
    the phrasings in turn, so that each is covered equally, and no source comes twice. The first
    examples of a larger size are those of a smaller one.

    Args:
        split: ``"train"``, ``"valid"`` or ``"test"``.
        size: How many examples.
        seed: Decides which days are held out and which examples are drawn.

    Returns:
        The examples; the same arguments always give the same ones.

    Raises:
        DataError: The split is unknown, or has fewer different examples than were asked for.
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


def render(
    phrasing: Phrasing, start: date, end: date | None = None, *, spelling: int = 0
) -> DateExample:
    """Says a date, or a range that has an end, in one spelling of a phrasing, and in Korean.

    A timed phrasing takes a ``datetime``; what a phrasing cannot say raises a ``DataError``.
    """
    layout = _layouts(phrasing)[spelling]
    last = start if end is None else end
    if not (
        {start.year, last.year} <= set(layout.years)
        and start.toordinal() <= last.toordinal()
        and _difference(start, last) in layout.korean
        and (phrasing.kind != "timed" or isinstance(start, datetime))
    ):
        raise DataError(
            f"{phrasing.name!r} cannot say {start}{f' to {end}' if end else ''}: years go from "
            f"{layout.years[0]} to {layout.years[-1]}, a timed phrasing takes a datetime, and only "
            "a range takes an end, later than its start and equal to it in what is left unsaid"
        )
    return layout.write(start, last)


@lru_cache(maxsize=8)
def _days(unit: tuple[str, ...], seed: int) -> dict[str, list[date]]:
    """The days of each split, in order; days that agree in the unit are in the same one."""
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
    """One example that says one of these days, or begins and ends on two of them."""
    layout = _pick(rng, _layouts(phrasing))
    years = date(layout.years.start, 1, 1), date(layout.years.stop, 1, 1)
    while True:
        start = days[_pick(rng, _between(days, *years))]
        if phrasing.kind == "timed":
            start = datetime.combine(start, time(_pick(rng, range(24)), _pick(rng, range(60))))
        if phrasing.kind != "range":
            return layout.write(start, start)
        ends = _between(days, *_reach(start, _pick(rng, tuple(layout.korean))))
        if ends:  # held-out days are few: some have no other within their month or year
            return layout.write(start, days[_pick(rng, ends)])


def _pick(rng: Random, options: Sequence[_T]) -> _T:
    # Of random's methods, only random() is promised to give the same numbers in every Python.
    return options[int(rng.random() * len(options))]


def _between(days: list[date], first: date, stop: date) -> range:
    return range(bisect_left(days, first), bisect_left(days, stop))


def _reach(start: date, difference: str) -> tuple[date, date]:
    """The first day on which a range with this greatest difference may end, and the first after."""
    next_month = (start.replace(day=1) + timedelta(31)).replace(day=1)
    next_year = date(start.year + 1, 1, 1)
    return {
        "d": (start + timedelta(1), next_month),
        "M": (next_month, next_year),
        "y": (next_year, date(start.year + 11, 1, 1)),
    }[difference]


def _difference(start: date, end: date) -> str:
    """CLDR's letter for the largest part in which two days differ; empty for the same day."""
    if start.year != end.year:
        return "y"
    if start.month != end.month:
        return "M"
    return "d" if start.day != end.day else ""


@dataclass(frozen=True, slots=True)
class _Layout:
    """One spelling of a phrasing after reading it: what fills its gaps, and the Korean for it."""

    phrasing: str
    english: "_Pattern"
    korean: dict[str, "_Pattern"]  # by the difference between start and end
    # For each part of the Korean, which words of the English say it.
    saying: dict[str, tuple[tuple[int, ...], ...]]
    years: range

    def write(self, start: date, end: date) -> DateExample:
        difference = _difference(start, end)
        source, words = self.english.say((start, end))
        target, parts = self.korean[difference].say((start, end))
        links = [
            Link(_number(target, part), tuple([words[index] for index in saying]))
            for part, saying in zip(parts, self.saying[difference], strict=True)
        ]
        return DateExample(source, target, self.phrasing, tuple(links))


class _Part(NamedTuple):
    """Something that is said of a moment: 0, the start, or 1, the end; CLDR's letters for it."""

    which: int
    letters: str
    say: _Say


@dataclass(frozen=True, slots=True)
class _Pattern:
    """Parts of moments, and the text between them."""

    texts: tuple[str, ...]  # before each part, and behind the last
    parts: tuple[_Part, ...]

    def say(self, moments: tuple[date, date]) -> tuple[str, list[Span]]:
        """The text, and where in it each part is said."""
        text, spans = self.texts[0], []
        for (which, _, say), behind in zip(self.parts, self.texts[1:], strict=True):
            begin = len(text)
            text += say(moments[which])
            spans.append((begin, len(text)))
            text += behind
        return text, spans


def _saying(parts: Sequence[_Part], words: Sequence[_Part]) -> tuple[tuple[int, ...], ...]:
    """For each part of a translation, find the words that say it.

    What it says once for start and end, as the year often is, English may say twice.
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
    """Of "12월" the number, of a word all of it."""
    begin, end = span
    digits = end - begin - len(text[begin:end].lstrip("0123456789"))
    return (begin, begin + digits) if digits else span


@cache
def _layouts(phrasing: Phrasing) -> tuple[_Layout, ...]:
    return tuple(_read(phrasing.name, spelling) for spelling in phrasing.spellings)


def _read(name: str, spelling: str) -> _Layout:
    """Turns the words that say a part of the reference moments into gaps for that part."""
    english = _english()
    meanings: dict[str, tuple[int, str]] = {}
    # What is met last stays: 2026 is the start's, and Nov is the part named before Britain's.
    for end, part in product(_ENDS, reversed([part for part in english if part[0] in "yMdE"])):
        meanings[english[part](end)] = (1, part)
    for part, say in english.items():
        meanings[say(_START)] = (0, part)
    word = re.compile("|".join(map(re.escape, sorted(meanings, key=len, reverse=True))))
    found = [meanings[text] for text in word.findall(spelling)]
    said, said_of_end = ({part[0] for which, part in found if which == i} for i in (0, 1))
    words = tuple(_Part(which, _letters(part), english[part]) for which, part in found)
    korean = _korean(said, said_of_end)
    return _Layout(
        phrasing=name,
        english=_Pattern(tuple(word.split(spelling)), words),
        korean=korean,
        saying={difference: _saying(each.parts, words) for difference, each in korean.items()},
        years=_SHORT_YEARS if any(part == "yy" for _, part in found) else _YEARS,
    )


def _letters(part: str) -> str:
    """CLDR's letters in the name of a part: "h:mm" says hours and minutes."""
    return "".join(dict.fromkeys(filter(str.isalpha, part.partition(",")[0]))).replace("H", "h")


@cache
def _english() -> dict[str, _Say]:
    """How English says the parts of a moment; a name begins with CLDR's letter for the part."""
    fields = ("EEEE", "E", "MMMM", "MMM", "MM", "M", "d", "dd", "y", "yy", "h:mm", "HH:mm", "a")
    english = {field: _say(field, "en") for field in fields}
    english["MMM, British"] = _say("MMM", "en_GB")  # Sept
    english["a, British"] = _say("a", "en_GB")  # pm
    english["a, Canadian"] = _say("a", "en_CA")  # p.m.

    def altered(part: str, change: Callable[[str], str]) -> _Say:
        say = english[part]
        return lambda moment: change(say(moment))

    locale = _babel().Locale.parse("en")
    months = set(locale.months["format"]["wide"].values())
    endings = {"one": "st", "two": "nd", "few": "rd", "other": "th"}
    for part in ("MMM", "MMM, British"):  # May is no abbreviation
        english[f"{part}, dotted"] = altered(part, lambda m: m if m in months else f"{m}.")
    for part in ("EEEE", "E", "MMMM", "MMM"):
        english[f"{part}, lower"] = altered(part, str.lower)
    english["d, ordinal"] = altered("d", lambda day: day + endings[locale.ordinal_form(int(day))])
    return english


def _korean(said: set[str], said_of_end: set[str]) -> dict[str, _Pattern]:
    """CLDR's Korean for the same parts, by the difference between the start and the end."""
    locale = _babel().Locale.parse("ko")
    skeleton = "".join(field for field in ("y", "MMM", "EEEE", "d") if field[0] in said)
    if said_of_end:
        # What is not said of the end is that of the start: "Sep 5 – 7" stays within one month.
        differences = "dMy"[: 1 + max("dMy".find(letter) for letter in said_of_end)]
        patterns = locale.interval_formats[skeleton]
        return {d: _pattern(patterns[d]) for d in differences}
    pattern = str(locale.datetime_skeletons[skeleton])
    if said & {"h", "H"}:
        clock = "aaaa h:mm" if "h" in said else str(locale.datetime_skeletons["Hm"])
        joint = str(locale.datetime_formats["medium"])
        pattern = joint.replace("{1}", pattern).replace("{0}", clock)
    return {"": _pattern([pattern])}


def _pattern(patterns: Sequence[str]) -> _Pattern:
    """Korean for the start, and for the end if there is one, by CLDR's patterns."""
    texts, parts = [""], []
    for which, pattern in enumerate(patterns):
        for kind, token in _tokens(pattern):
            if kind == "field":
                parts.append(_Part(which, _letters(token[0]), _field(token[0] * token[1], "ko")))
                texts.append("")
            else:
                texts[-1] += token
    return _Pattern(tuple(texts), tuple(parts))


def _say(pattern: str, locale: str) -> _Say:
    """How a locale says a CLDR pattern."""
    tokens = _tokens(pattern)
    template = "".join("%s" if kind == "field" else text for kind, text in tokens)
    fields = [_field(text[0] * text[1], locale) for kind, text in tokens if kind == "field"]
    return lambda moment: template % tuple([say(moment) for say in fields])


def _tokens(pattern: str) -> list[tuple[str, Any]]:
    """Split a CLDR pattern, with plain spaces for CLDR's narrow and no-break ones."""
    tokens: list[tuple[str, Any]] = _babel().dates.tokenize_pattern(re.sub(r"\s", " ", pattern))
    return tokens


@cache
def _field(field: str, locale: str) -> _Say:
    """How a locale says one CLDR field; remembered, because asking Babel takes microseconds."""
    babel = _babel()
    pattern, spoken_in = babel.dates.parse_pattern(field), babel.Locale.parse(locale)
    part = {"y": "year", "M": "month", "d": "day", "m": "minute"}.get(field[0], "hour")
    value: Callable[[date], int] = date.weekday if field[0] == "E" else attrgetter(part)
    known: dict[int, str] = {}

    def say(moment: date) -> str:
        key = value(moment)
        if key not in known:
            known[key] = pattern.apply(moment, spoken_in)
        return known[key]

    return say


def _babel() -> ModuleType:
    try:
        import babel.dates
    except ImportError as error:
        raise MissingExtraError(package="babel", extra="demo") from error
    return babel

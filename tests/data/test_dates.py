import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from datetime import date, datetime, timedelta
from itertools import combinations
from operator import attrgetter

import pytest
from babel import Locale
from babel.dates import format_date, format_datetime, format_interval, format_skeleton, format_time
from hypothesis import given, settings
from hypothesis import strategies as st

from manyheads.data.synthetic.dates import (
    PHRASINGS,
    SPLITS,
    DateExample,
    Phrasing,
    _days,
    _difference,
    _layouts,
    generate,
)
from manyheads.errors import DataError

DAY = date(2026, 11, 20)
CONTRACT = [
    ("Friday, November 20, 2026", "2026년 11월 20일 금요일", DAY, None),
    ("Friday, 20 November 2026", "2026년 11월 20일 금요일", DAY, None),
    ("Fri 20 Nov 2026", "2026년 11월 20일 금요일", DAY, None),
    ("Fri, Nov 20, '26", "2026년 11월 20일 금요일", DAY, None),
    ("November 20, 2026", "2026년 11월 20일", DAY, None),
    ("20 Nov 2026", "2026년 11월 20일", DAY, None),
    ("Nov 20th, 2026", "2026년 11월 20일", DAY, None),
    ("the 20th of November 2026", "2026년 11월 20일", DAY, None),
    ("2026-11-20", "2026년 11월 20일", DAY, None),
    ("11/20/2026", "2026년 11월 20일", DAY, None),
    ("11/20/26", "2026년 11월 20일", DAY, None),
    ("November 20", "11월 20일", DAY, None),
    ("Friday, November 20", "11월 20일 금요일", DAY, None),
    ("November 2026", "2026년 11월", DAY, None),
    (
        "Nov 20, 2026 at 3:05 PM",
        "2026년 11월 20일 오후 3:05",
        datetime(2026, 11, 20, 15, 5),
        None,
    ),
    ("Nov 20, 2026, 15:05", "2026년 11월 20일 15:05", datetime(2026, 11, 20, 15, 5), None),
    (
        "12:30 a.m. on November 20, 2026",
        "2026년 11월 20일 오전 12:30",
        datetime(2026, 11, 20, 0, 30),
        None,
    ),
    ("Nov 20 – 22, 2026", "2026년 11월 20일~22일", DAY, date(2026, 11, 22)),
    ("Nov 20 – Dec 2, 2026", "2026년 11월 20일 ~ 12월 2일", DAY, date(2026, 12, 2)),
    (
        "from November 20, 2026 to January 2, 2027",
        "2026년 11월 20일 ~ 2027년 1월 2일",
        DAY,
        date(2027, 1, 2),
    ),
]
ALSO = [
    ("Friday the 20th of November 2026", "2026년 11월 20일 금요일", DAY, None),
    ("friday, november 20 2026", "2026년 11월 20일 금요일", DAY, None),
    ("2026/11/20", "2026년 11월 20일", DAY, None),
    ("Nov. 20, 2026", "2026년 11월 20일", DAY, None),
    ("Sept. 3, 2026", "2026년 9월 3일", date(2026, 9, 3), None),
    ("Sept 3, 2026", "2026년 9월 3일", date(2026, 9, 3), None),
    ("May 3, 2026", "2026년 5월 3일", date(2026, 5, 3), None),
    ("March 21st, 1950", "1950년 3월 21일", date(1950, 3, 21), None),
    ("the 2nd of June 2026", "2026년 6월 2일", date(2026, 6, 2), None),
    ("the 11th of June 2026", "2026년 6월 11일", date(2026, 6, 11), None),
    ("03/04/2026", "2026년 3월 4일", date(2026, 3, 4), None),
    ("3/4/49", "2049년 3월 4일", date(2049, 3, 4), None),
    ("3/4/50", "1950년 3월 4일", date(1950, 3, 4), None),
    ("February 29", "2월 29일", date(2024, 2, 29), None),
    ("2026-11", "2026년 11월", DAY, None),
    (
        "Nov 20, 2026, 12:05 pm",
        "2026년 11월 20일 오후 12:05",
        datetime(2026, 11, 20, 12, 5),
        None,
    ),
    ("2026-11-20 09:05", "2026년 11월 20일 09:05", datetime(2026, 11, 20, 9, 5), None),
    ("2026-11-20T00:00", "2026년 11월 20일 00:00", datetime(2026, 11, 20), None),
    ("November 20-22, 2026", "2026년 11월 20일~22일", DAY, date(2026, 11, 22)),
    ("Nov 20, 2026 – Nov 22, 2026", "2026년 11월 20일~22일", DAY, date(2026, 11, 22)),
    (
        "Fri, Nov 20 – Wed, Dec 2, 2026",
        "2026년 11월 20일 금요일 ~ 12월 2일 수요일",
        DAY,
        date(2026, 12, 2),
    ),
    (
        "2026-11-20 to 2027-01-02",
        "2026년 11월 20일 ~ 2027년 1월 2일",
        DAY,
        date(2027, 1, 2),
    ),
]

days = st.dates(date(1900, 1, 1), date(2090, 12, 31))
moments = st.datetimes(datetime(1900, 1, 1), datetime(2099, 12, 31, 23, 59))
seeds = st.integers(0, 2**32)
steady = settings(deadline=None)  # the first call reads CLDR
few = settings(max_examples=8, deadline=None)  # a new seed takes a third of a second

NAMED = {phrasing.name: phrasing for phrasing in PHRASINGS}


def render(
    phrasing: Phrasing, start: date, end: date | None = None, *, spelling: int = 0
) -> DateExample:
    """Write a date, or a range with an end; ValueError: the phrasing cannot express it."""
    layout = _layouts(phrasing)[spelling]
    last = start if end is None else end
    if not (
        {start.year, last.year} <= set(layout.years)
        and start.toordinal() <= last.toordinal()
        and _difference(start, last) in layout.korean
        and (phrasing.kind != "timed" or isinstance(start, datetime))
    ):
        raise ValueError(f"{phrasing.name!r} cannot express {start} to {end}")
    return layout.write(start, last)


def everything_said_of(start: date, end: date | None) -> dict[str, str]:
    """Source to target, over all spellings of all phrasings that can say it."""
    said = {}
    for phrasing in PHRASINGS:
        for spelling in range(len(phrasing.spellings)):
            try:
                example = render(phrasing, start, end, spelling=spelling)
            except ValueError:
                continue
            said[example.source] = example.target
    return said


def plain(text: str) -> str:
    return re.sub(r"\s", " ", text)


def read_korean(target: str) -> tuple[list[tuple[int | None, int, int | None]], bool]:
    """The (year, month, day) of each end of what a target says, read without the generator."""
    dates: list[tuple[int | None, int, int | None]] = []
    year, month = None, 0
    for part in target.split("~"):
        found = re.match(r"\s*(?:(\d{4})년 ?)?(?:(\d{1,2})월 ?)?(?:(\d{1,2})일)?", part)
        assert found is not None
        year = int(found[1]) if found[1] else year
        month = int(found[2]) if found[2] else month
        dates.append((year, month, int(found[3]) if found[3] else None))
    return dates, ":" in target


@pytest.mark.parametrize(("source", "target", "start", "end"), CONTRACT + ALSO)
def test_grammar(source: str, target: str, start: date, end: date | None) -> None:
    assert everything_said_of(start, end)[source] == target


def test_the_usual_spellings_of_the_contract_are_phrasings_of_their_own() -> None:
    usual = set()
    for phrasing in PHRASINGS:
        for _, _, start, end in CONTRACT:
            try:
                usual.add(render(phrasing, start, end).source)
            except ValueError:
                continue
    assert {source for source, *_ in CONTRACT} <= usual


@pytest.mark.parametrize("phrasing", PHRASINGS, ids=lambda phrasing: phrasing.name)
def test_every_layout_says_its_reference_moment(phrasing: Phrasing) -> None:
    start = datetime(2026, 9, 5, 15, 5)
    end = None
    if phrasing.kind == "range":
        years = "2027" in phrasing.layout
        months = "Nov" in phrasing.layout or "-11-" in phrasing.layout
        end = date(2027 if years else 2026, 11 if months else 9, 8)
    for spelling, layout in enumerate(phrasing.spellings):
        assert render(phrasing, start, end, spelling=spelling).source == layout


@pytest.mark.parametrize("phrasing", PHRASINGS, ids=lambda phrasing: phrasing.name)
def test_no_part_of_the_reference_moment_is_left_in_another(phrasing: Phrasing) -> None:
    end = None
    if phrasing.kind == "range":
        end = date(1988, 12, 28)
    for spelling in range(len(phrasing.spellings)):
        start = datetime(1988, 12, 26, 1, 44)
        source = render(phrasing, start, end, spelling=spelling).source
        assert set(re.findall(r"\d+", source)) <= {"1988", "88", "12", "26", "28", "1", "01", "44"}
        assert not re.search(r"(?i)sep|nov|sat|sun|pm|p\.m", source)


def test_names_are_unique_and_kinds_are_what_is_said() -> None:
    assert len(NAMED) == len(PHRASINGS)
    for example in generate("valid", size=5 * len(PHRASINGS)):
        kind = NAMED[example.phrasing].kind
        said, timed = read_korean(example.target)
        (year, _, day) = said[0]
        expected = {
            "full": (True, True, False, 1),
            "timed": (True, True, True, 1),
            "range": (True, True, False, 2),
            "yearless": (False, True, False, 1),
            "month": (True, False, False, 1),
        }
        assert (year is not None, day is not None, timed, len(said)) == expected[kind]


# Agreement with Babel, whose own functions are too slow to be called for every example.

KOREAN: list[tuple[str, Callable[[datetime], str]]] = [
    ("Saturday, September 5, 2026", lambda t: format_date(t, "full", locale="ko")),
    ("September 5, 2026", lambda t: format_date(t, "long", locale="ko")),
    ("September 5", lambda t: format_skeleton("MMMMd", t, locale="ko")),
    ("Saturday, September 5", lambda t: format_skeleton("MMMEEEEd", t, locale="ko")),
    ("September 2026", lambda t: format_skeleton("yMMMM", t, locale="ko")),
    (
        "Sep 5, 2026 at 3:05 PM",
        lambda t: (
            f"{format_date(t, 'long', locale='ko')} {format_time(t, 'aaaa h:mm', locale='ko')}"
        ),
    ),
    (
        "Saturday, September 5, 2026 at 3:05 PM",
        lambda t: (
            f"{format_date(t, 'full', locale='ko')} {format_time(t, 'aaaa h:mm', locale='ko')}"
        ),
    ),
    ("2026-09-05 15:05", lambda t: format_datetime(t, "y년 M월 d일 HH:mm", locale="ko")),
]
ENGLISH: list[tuple[str, Callable[[datetime], str]]] = [
    ("Saturday, September 5, 2026", lambda t: format_date(t, "full", locale="en")),
    ("September 5, 2026", lambda t: format_date(t, "long", locale="en")),
    ("Sep 5, 2026", lambda t: format_date(t, "medium", locale="en")),
    ("5 Sep 2026", lambda t: format_date(t, "d MMM y", locale="en")),
    ("2026-09-05", lambda t: format_date(t, "yyyy-MM-dd", locale="en")),
    ("9/5/2026", lambda t: format_skeleton("yMd", t, locale="en")),
    ("September 5", lambda t: format_skeleton("MMMMd", t, locale="en")),
    ("September 2026", lambda t: format_skeleton("yMMMM", t, locale="en")),
    ("Sep 5, 2026 at 3:05 PM", lambda t: format_datetime(t, "MMM d, y 'at' h:mm a", locale="en")),
    ("Sep 5, 2026, 15:05", lambda t: format_datetime(t, "MMM d, y, HH:mm", locale="en")),
]


@pytest.mark.parametrize(("name", "babel"), KOREAN, ids=[name for name, _ in KOREAN])
@steady
@given(moment=moments)
def test_korean_is_babels(name: str, babel: Callable[[datetime], str], moment: datetime) -> None:
    assert render(NAMED[name], moment).target == plain(babel(moment))


@pytest.mark.parametrize(("name", "babel"), ENGLISH, ids=[name for name, _ in ENGLISH])
@steady
@given(moment=moments)
def test_english_is_babels(name: str, babel: Callable[[datetime], str], moment: datetime) -> None:
    assert render(NAMED[name], moment).source == plain(babel(moment))


@steady
@given(moment=st.datetimes(datetime(1950, 1, 1), datetime(2049, 12, 31)))
def test_short_years_are_babels(moment: datetime) -> None:
    babel = format_date(moment, "short", locale="en")
    assert render(NAMED["9/5/26"], moment).source == babel


@steady
@given(start=days, length=st.one_of(st.integers(1, 30), st.integers(1, 300), st.integers(1, 3_000)))
def test_ranges_are_babels(start: date, length: int) -> None:
    end = start + timedelta(length)
    expected = plain(format_interval(start, end, "yMMMd", locale="ko"))
    assert (
        render(NAMED["from September 5, 2026 to November 8, 2027"], start, end).target == expected
    )
    if start.year == end.year:
        example = render(NAMED["Sat, Sep 5 – Sun, Nov 8, 2026"], start, end)
        assert example.target == plain(format_interval(start, end, "yMMMEEEEd", locale="ko"))
        assert example.source == plain(format_interval(start, end, "yMMMEd", locale="en"))
    if start.year != end.year:
        name = "Sep 5, 2026 – Nov 8, 2027"
    else:
        name = "Sep 5 – Nov 8, 2026" if start.month != end.month else "Sep 5 – 8, 2026"
    example = render(NAMED[name], start, end)
    assert (example.source, example.target) == (
        plain(format_interval(start, end, "yMMMd", locale="en")),
        expected,
    )


# What is drawn.


@few
@given(seed=seeds, split=st.sampled_from(SPLITS))
def test_weekdays_are_right_and_come_out_only_if_they_went_in(seed: int, split: str) -> None:
    english = Locale.parse("en").days["format"]["abbreviated"]
    korean = Locale.parse("ko").days["format"]["wide"]
    for example in generate(split, size=2 * len(PHRASINGS), seed=seed):
        words = re.findall(r"\b(sun|mon|tue|wed|thu|fri|sat)", example.source.lower())
        spoken = re.findall(r"\w요일", example.target)
        numbers = {name.lower(): number for number, name in english.items()}
        assert [korean[numbers[word]] for word in words] == spoken
        for (year, month, day), weekday in zip(
            read_korean(example.target)[0], spoken, strict=False
        ):
            if year is not None and day is not None:
                assert korean[date(year, month, day).weekday()] == weekday


def test_no_held_out_day_is_trained_on_in_any_phrasing_of_its_kind() -> None:
    said: dict[str, dict[str, set[tuple[int | None, int, int | None]]]] = {}
    for split, size in (("train", 100_000), ("valid", 3_300), ("test", 3_300)):
        kinds = said.setdefault(split, {})
        for example in generate(split, size=size, seed=3):
            kind = NAMED[example.phrasing].kind
            group = kind if kind in ("yearless", "month") else "full"
            kinds.setdefault(group, set()).update(read_korean(example.target)[0])
    for kind in ("full", "yearless", "month"):
        assert not said["train"][kind] & said["valid"][kind]
        assert not said["train"][kind] & said["test"][kind]
        assert not said["valid"][kind] & said["test"][kind]


@few
@given(seed=seeds)
def test_a_tenth_of_the_days_is_held_out_twice(seed: int) -> None:
    for unit, count in ((("year", "month", "day"), 73_049), (("month", "day"), 366)):
        days = _days(unit, seed)
        units = {split: {attrgetter(*unit)(day) for day in days[split]} for split in SPLITS}
        tenth = count // 10
        sizes = {split: len(units[split]) for split in SPLITS}
        assert sizes == {"train": count - 2 * tenth, "valid": tenth, "test": tenth}
        assert len(set().union(*units.values())) == count
        assert sum(map(len, days.values())) == 73_049


@few
@given(seed=seeds, split=st.sampled_from(SPLITS), size=st.integers(0, 80))
def test_a_pure_function_whose_prefixes_are_stable(seed: int, split: str, size: int) -> None:
    longer = generate(split, size=size + 7, seed=seed)
    generate("train", size=3, seed=seed)
    assert generate(split, size=size, seed=seed) == longer[:size]


def test_the_corpus_stays_the_same_on_every_machine() -> None:
    assert generate("train", size=2) == [
        DateExample("26th of February 2024", "2024년 2월 26일", "the 5th of September 2026"),
        DateExample(
            "Tue, Jun 27 to Mon, Nov 13, 1922",
            "1922년 6월 27일 화요일 ~ 11월 13일 월요일",
            "Sat, Sep 5 – Sun, Nov 8, 2026",
        ),
    ]
    assert generate("test", size=1) == [
        DateExample(
            "Friday, November 24, 1961", "1961년 11월 24일 금요일", "Saturday, September 5, 2026"
        )
    ]


def test_seeds_and_splits_differ() -> None:
    drawn = [generate(split, size=33, seed=seed) for split in SPLITS for seed in (1, 2)]
    assert all(one != other for one, other in combinations(drawn, 2))


@pytest.mark.parametrize("split", ["valid", "test"])
def test_evaluation_covers_each_phrasing_equally_and_repeats_nothing(split: str) -> None:
    examples = generate(split, size=100 * len(PHRASINGS))
    assert set(Counter(example.phrasing for example in examples).values()) == {100}
    assert len({example.source for example in examples}) == len(examples)


def test_training_follows_the_weights_and_contradicts_itself_nowhere() -> None:
    examples = generate("train", size=120_000)  # the recipe's; fewer say little of the rarest
    counts = Counter(example.phrasing for example in examples)
    total = sum(phrasing.weight for phrasing in PHRASINGS)
    for phrasing in PHRASINGS:
        share = counts[phrasing.name] / len(examples)
        assert share == pytest.approx(phrasing.weight / total, rel=0.15)
    targets: dict[str, str] = {}
    for example in examples:
        assert targets.setdefault(example.source, example.target) == example.target
        assert (
            re.sub(r"\s", " ", example.source + example.target) == example.source + example.target
        )
        for year, month, day in read_korean(example.target)[0]:
            assert year is None or 1900 <= year <= 2099
            date(year or 2000, month, day or 1)  # exists
        if slash := re.search(r"\b(\d{1,2})/(\d{1,2})/\d{2,4}\b", example.source):
            (said, *_), _ = read_korean(example.target)
            assert said[1:] == (int(slash[1]), int(slash[2]))


def test_short_years_mean_1950_to_2049() -> None:
    years = set()
    for example in generate("train", size=30_000):
        if example.phrasing in ("9/5/26", "Sat, Sep 5, '26"):
            ((year, _, _),), _ = read_korean(example.target)
            assert year is not None
            years.add(year)
            assert f"{year % 100:02}" == example.source[-2:]
    assert years == set(range(1950, 2050))


def test_all_hours_and_ranges_of_all_lengths_are_drawn() -> None:
    examples = generate("train", size=20_000)
    clocks = {match[0] for e in examples if (match := re.search(r"오. \d+(?=:)", e.target))}
    assert clocks == {f"{half} {hour}" for half in ("오전", "오후") for hour in range(1, 13)}
    ranges = [e for e in examples if e.phrasing == "from September 5, 2026 to November 8, 2027"]
    shapes = Counter((e.target.count("월"), e.target.count("년")) for e in ranges)
    assert set(shapes) == {(1, 1), (2, 1), (2, 2)}
    assert min(shapes.values()) > len(ranges) / 6


# What is refused.


def test_unknown_split() -> None:
    with pytest.raises(DataError, match=r"'valdi'.*did you mean 'valid'.*train, valid, test"):
        generate("valdi", size=1)


def test_sizes_that_are_not_possible() -> None:
    with pytest.raises(DataError, match="-1"):
        generate("train", size=-1)
    with pytest.raises(DataError, match=r"September.*used up: ask for a size of \d{4} or less"):
        generate("test", size=20_000)


def test_importing_is_free_and_a_missing_babel_is_explained() -> None:
    program = """
import sys
import manyheads.data.synthetic.dates as dates
from manyheads.errors import MissingExtraError
assert "babel" not in sys.modules and "numpy" not in sys.modules
sys.modules["babel"] = None
try:
    dates.generate("train", size=1)
except MissingExtraError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True
    )
    assert "pip install 'manyheads[demo]'" in done.stdout


# --- What comes from what -----------------------------------------------------------------------


def linked(name: str, start: date, end: date | None = None, spelling: int = 0) -> dict[str, str]:
    """The parts of a Korean date, in order, and the English words that say each."""
    example = render(NAMED[name], start, end, spelling=spelling)
    return {
        f"{number} {example.target[slice(*link.target)]}": " ".join(
            example.source[slice(*span)] for span in link.sources
        )
        for number, link in enumerate(example.links, 1)
    }


def test_every_part_is_linked_with_the_words_that_say_it() -> None:
    """A month with its name, a year with two digits of it, a time with the word it is in."""
    assert linked("Sat, Sep 5, '26", DAY) == {
        "1 2026": "26",
        "2 11": "Nov",
        "3 20": "20",
        "4 금요일": "Fri",
    }
    assert linked("3:05 p.m. on September 5, 2026", datetime(2026, 3, 4, 15, 4)) == {
        "1 2026": "2026",
        "2 3": "March",
        "3 4": "4",
        "4 오후": "p.m.",
        "5 3": "3:04",
        "6 04": "3:04",
    }
    assert linked("2026-09-05", date(2026, 3, 4)) == {"1 2026": "2026", "2 3": "03", "3 4": "04"}


def test_a_range_says_some_parts_once() -> None:
    """Its end comes from its end; what Korean says once for both may stand twice in English."""
    assert linked("Sep 5, 2026 – Nov 8, 2027", DAY, date(2026, 11, 22)) == {
        "1 2026": "2026 2026",
        "2 11": "Nov Nov",
        "3 20": "20",
        "4 22": "22",
    }
    assert linked("from September 5 to November 8, 2026", DAY, date(2026, 12, 20)) == {
        "1 2026": "2026",
        "2 11": "November",
        "3 20": "20",
        "4 12": "December",
        "5 20": "20",
    }
    both = render(NAMED["from September 5 to November 8, 2026"], DAY, date(2026, 12, 20)).links
    assert both[2].sources != both[4].sources  # each its own 20


def test_all_that_is_said_has_an_origin() -> None:
    """In every phrasing, in order, no two parts overlapping; every number is a whole number."""
    for example in generate("valid", size=10 * len(PHRASINGS)):
        ends = [0]
        for (begin, end), sources in example.links:
            assert ends[-1] <= begin < end
            ends.append(end)
            assert sources
            word = example.target[begin:end]
            neighbours = example.target[begin - 1 : begin] + example.target[end : end + 1]
            assert not (word.isdigit() and any(map(str.isdigit, neighbours)))
        digits = sum(
            link.target[1] - link.target[0]
            for link in example.links
            if example.target[slice(*link.target)].isdigit()
        )
        assert digits == sum(map(str.isdigit, example.target))

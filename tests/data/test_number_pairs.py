"""Other numbers, times, prices and titles: both sides say the same, and nothing else changes."""

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyheads.data.augment.number_pairs import (
    in_digits,
    number_pairs,
    other_date,
    other_numbers,
    other_price,
    other_time,
    spelled,
    titled,
)
from manyheads.errors import RecipeError

DAYS = ["st", "nd", "rd", *["th"] * 17]  # of the first to the twentieth
PAIRS = [
    ("Tom ate three eggs.", "Tom aß drei Eier."),
    ("She got up at seven.", "Sie stand um sieben Uhr auf."),
    ("This shirt costs ten dollars.", "Dieses Hemd kostet zehn Dollar."),
    ("She comes on Friday.", "Sie kommt am Freitag."),
    ("Go home.", "Geh nach Hause."),
]


@pytest.mark.parametrize(
    ("number", "english", "german"),
    [
        (2, "two", "zwei"),
        (17, "seventeen", "siebzehn"),
        (21, "twenty-one", "einundzwanzig"),
        (30, "thirty", "dreißig"),
        (100, "one hundred", "einhundert"),
        (301, "three hundred and one", "dreihunderteins"),
        (999, "nine hundred and ninety-nine", "neunhundertneunundneunzig"),
    ],
)
def test_words_of_numbers(number: int, english: str, german: str) -> None:
    """As the two languages spell them."""
    assert (spelled(number, "en"), spelled(number, "de")) == (english, german)


@given(st.sets(st.integers(2, 999), min_size=2, max_size=2))
def test_no_two_numbers_share_a_word(two: set[int]) -> None:
    """Reading a word back gives one number."""
    for language in ("en", "de"):
        assert len({spelled(number, language) for number in two}) == 2


@given(st.integers(0, 2**32))
def test_both_sides_say_the_same_other_number(seed: int) -> None:
    """In words or in digits, and the rest of the pair stays."""
    found = other_numbers("In 5 days, I'll turn thirteen.", "In 5 Tagen werde ich dreizehn.",
                          random.Random(seed))  # fmt: skip
    assert found is not None
    ours = re.fullmatch(r"In (.+) days, I'll turn (.+)\.", found[0])
    theirs = re.fullmatch(r"In (.+) Tagen werde ich (.+)\.", found[1])
    assert ours
    assert theirs
    for english, german in zip(ours.groups(), theirs.groups(), strict=True):
        both = {(spelled(n, "en"), spelled(n, "de")) for n in range(2, 1000)}
        both |= {(str(n), str(n)) for n in range(2, 1000)}
        assert (english, german) in both


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("I've been here for thirty minutes.", "Ich bin seit einer halben Stunde hier."),
        ("Two of the two came.", "Zwei der zwei kamen."),  # which is which?
        ("two hundred thousand people", "zweihunderttausend Menschen"),
        ("the twenty-second of June", "der zweiundzwanzigste Juni"),
        ("a five-pound note", "ein 5-Pfund-Schein"),
        ("I'll come at ten.", "Ich komme um zehn."),  # a time, not 5,000
        ("It is 3.5 metres long.", "Es ist 3,5 Meter lang."),
        ("Go home.", "Geh nach Hause."),
        ("Class is from 9 a.m. to 5 p.m.", "Der Unterricht geht von 9 bis 5 Uhr."),
    ],
)
def test_a_pair_in_doubt_is_left_alone(source: str, target: str) -> None:
    """None rather than two sides that say different things."""
    assert other_numbers(source, target, random.Random(0)) is None


def test_years_stay_years() -> None:
    """Written alike on both sides, without a mark."""
    for seed in range(50):
        found = other_numbers("in 1974", "im Jahre 1974", random.Random(seed))
        assert found
        assert found[0].split()[1] == found[1].split()[2]
        assert 1200 <= int(found[0].split()[1]) < 2060


def test_thousands_are_marked_as_each_language_does() -> None:
    """A point is a comma."""
    assert (in_digits(1234567, "en"), in_digits(1234567, "de")) == ("1,234,567", "1.234.567")


def minutes_en(said: str) -> int:
    """Minutes after midnight or noon, of a time in English."""
    hours = {spelled(n, "en"): n for n in range(1, 61)} | {"half": 30, "a quarter": 15}
    if match := re.fullmatch(r"(.+) past (.+)", said):
        return hours[match[2]] * 60 + hours[match[1]]
    if match := re.fullmatch(r"(.+) to (.+)", said):
        return hours[match[2]] * 60 - hours[match[1]]
    said = re.sub(r" (o'clock|[ap]\.?m\.?)$", "", said)
    if said in hours:
        return hours[said] * 60
    hour, _, minute = said.partition(":")
    return int(hour) * 60 + int(minute or 0)


def minutes_de(said: str) -> int:
    """The same of a time in German."""
    hours = {spelled(n, "de"): n for n in range(1, 61)} | {"ein": 1, "Viertel": 15}
    if match := re.fullmatch(r"halb (.+)", said):
        return hours[match[1]] * 60 - 30
    if match := re.fullmatch(r"(.+) (nach|vor) (.+)", said):
        return hours[match[3]] * 60 + hours[match[1]] * (1 if match[2] == "nach" else -1)
    said = said.removesuffix(" Uhr")
    if said in hours:
        return hours[said] * 60
    hour, _, minute = said.replace(".", ":").partition(":")
    return int(hour) * 60 + int(minute or 0)


@given(st.integers(0, 2**32))
def test_both_sides_say_the_same_time(seed: int) -> None:
    """Half past seven is "halb acht"."""
    found = other_time("We eat at seven today.", "Wir essen heute um sieben Uhr.",
                       random.Random(seed))  # fmt: skip
    assert found is not None
    english = found[0].removeprefix("We eat at ").removesuffix(" today.")
    german = found[1].removeprefix("Wir essen heute um ").removesuffix(".")
    assert (minutes_en(english) - minutes_de(german)) % (12 * 60) == 0
    if english.endswith(("p.m.", "pm")):
        assert minutes_de(german) >= 12 * 60


def test_half_past() -> None:
    """By hand: the German hour is the next one, and one stands as "eins" in it."""
    drawn = {other_time("at 2:30", "um 2.30 Uhr", random.Random(seed)) for seed in range(2000)}
    assert ("at half past seven", "um halb acht") in drawn
    assert ("at half past twelve", "um halb eins") in drawn
    assert ("at one o'clock", "um ein Uhr") in drawn


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("at ten in the evening", "um zehn Uhr abends"),  # another time may be in the morning
        ("at a quarter past two", "um zwei Uhr fünfzehn"),
        ("at two", "um zwei Uhr dreißig"),
        ("at home", "zu Hause"),
    ],
)
def test_a_time_in_doubt_is_left_alone(source: str, target: str) -> None:
    """As numbers are."""
    assert other_time(source, target, random.Random(0)) is None


def test_prices() -> None:
    """The sign stands in front in English, the currency behind in German, with a comma."""
    for seed in range(200):
        found = other_price("I paid $5 for it.", "Ich habe 5 Dollar bezahlt.", random.Random(seed))
        assert found
        said = re.fullmatch(r"I paid (.+) for it\.", found[0])
        theirs = re.fullmatch(r"Ich habe (.+) (Dollar|Euro|Pfund) bezahlt\.", found[1])
        assert said
        assert theirs
        if said[1][0] in "$€£":
            assert said[1][1:] == theirs[1].replace(",", ".")
            assert {"$": "Dollar", "€": "Euro", "£": "Pfund"}[said[1][0]] == theirs[2]
    end = other_price("Pay €5.", "Zahl 5 Euro.", random.Random(0))
    assert end
    assert end[0].endswith(".")
    assert end[1].endswith(".")
    # What is left of "30 000" would stand before the new one.
    assert other_price("It was $30,000.", "Es waren 30 000 Dollar.", random.Random(0)) is None
    assert other_price("It weighs ten pounds.", "Es wiegt zehn Pfund.", random.Random(0)) is None


def test_titles() -> None:
    """Only of who begins both sides, and of nobody with a gender."""
    found = titled("Tom may go.", "Tom darf gehen.", random.Random(1))
    assert found
    ours = re.fullmatch(r"(Mrs?\.?|Ms\.|Dr\.) (\w+) may go\.", found[0])
    theirs = re.fullmatch(r"(Herr|Frau|Dr\.) (\w+) darf gehen\.", found[1])
    assert ours
    assert theirs
    assert ours[2] == theirs[2]
    for pair in [
        ("Tom's dog ran.", "Toms Hund rannte."),
        ("Tom lost his key.", "Tom hat seinen Schlüssel verloren."),
        ("Is Tom here?", "Ist Tom hier?"),
    ]:
        assert titled(*pair, random.Random(1)) is None


def test_pairs_more_are_the_same_each_time() -> None:
    """Counted as a share, German first too, and drawn by the seed."""
    sources, targets = map(list, zip(*PAIRS, strict=True))
    pairs = list(number_pairs(sources, targets, 4.0, 1, ("en", "de")))
    assert pairs == list(number_pairs(sources, targets, 4.0, 1, ("en", "de")))
    assert len(pairs) == 20
    turned = list(number_pairs(targets, sources, 4.0, 1, ("de", "en")))
    assert turned == [pair[::-1] for pair in pairs]
    assert not list(number_pairs(["Go."], ["Geh."], 1.0, 1, ("en", "de")))
    with pytest.raises(RecipeError, match="en and de"):
        list(number_pairs(sources, targets, 1.0, 1, ("en", "fr")))


@given(st.integers(0, 2**32))
def test_both_sides_say_the_same_other_date(seed: int) -> None:
    """A weekday, a day of a month, both, or with a year; alone or in the sentence."""
    pair = "I was born on April 3rd, 1950.", "Ich wurde am 3. April 1950 geboren."
    found = other_date(*pair, random.Random(seed))
    assert found is not None
    english, german = found
    assert sorted(re.findall(r"\d+", english)) == sorted(re.findall(r"\d+", german))
    for day, ending in re.findall(r"(\d+)(st|nd|rd|th)", english):
        assert ending == (DAYS[int(day) - 1] if int(day) <= 20 else DAYS[int(day) - 21])
    if english.startswith("I was"):
        assert (english[:14], english[-1]) == ("I was born on ", ".")
        assert (german[:13], german[-9:]) == ("Ich wurde am ", " geboren.")
    months = [("March", "März"), ("May", "Mai"), ("October", "Oktober"), ("Sunday", "Sonntag")]
    for one, other in months:
        assert (one in english) == (other in german)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("We met on Monday morning.", "Wir trafen uns am Montag Morgen."),
        ("He reads on Mondays.", "Er liest montags."),
        ("On Monday he left, on Friday he came.", "Am Montag ging er, am Freitag kam er."),
        ("It begins on Monday.", "Es beginnt montags."),
        ("I may leave on my own.", "Ich kann am Ende gehen."),
    ],
)
def test_dates_that_would_not_fit_are_left(source: str, target: str) -> None:
    """A part of the day, a habit, two dates, or none on one side."""
    assert other_date(source, target, random.Random(0)) is None

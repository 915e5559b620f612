"""Training pairs with other numbers, clock times, dates, prices and titles than a corpus has.

A corpus of everyday sentences counts to twelve: of 164,026 English-German pairs of Tatoeba 1,697
have a digit. Here a number that both sides say, as digits or as a word, becomes another one on
both, written as each language writes it. For English and German.
"""

import random
import re
from collections.abc import Iterator
from functools import cache

from manyheads.data.augment.text_noise import Pair, random_name
from manyheads.errors import RecipeError

_ONES = {
    "en": "one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen",
    "de": "ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn "
    "fünfzehn sechzehn siebzehn achtzehn neunzehn",
}
_TENS = {
    "en": "twenty thirty forty fifty sixty seventy eighty ninety",
    "de": "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig",
}
LANGUAGES = tuple(_ONES)


def spelled(number: int, language: str) -> str:
    """Write a number from 2 to 999 as a word of English or German.

    >>> spelled(24, "en"), spelled(24, "de"), spelled(305, "de")
    ('twenty-four', 'vierundzwanzig', 'dreihundertfünf')
    """
    ones, tens = _ONES[language].split(), _TENS[language].split()
    hundreds, rest = divmod(number, 100)
    ten, one = divmod(rest, 10)
    if rest < 20:
        word = "eins" if language == "de" and rest == 1 else ones[rest - 1] if rest else ""
    elif not one:
        word = tens[ten - 2]
    elif language == "de":
        word = f"{ones[one - 1]}und{tens[ten - 2]}"
    else:
        word = f"{tens[ten - 2]}-{ones[one - 1]}"
    if not hundreds:
        return word
    if language == "de":
        return f"{ones[hundreds - 1]}hundert{word}"
    return f"{ones[hundreds - 1]} hundred" + (f" and {word}" if word else "")


def in_digits(number: int, language: str) -> str:
    """Write a number in digits, thousands marked as the language does.

    >>> in_digits(12500, "en"), in_digits(12500, "de")
    ('12,500', '12.500')
    """
    marked = f"{number:,}"
    return marked.replace(",", ".") if language == "de" else marked


@cache
def number_words(language: str) -> dict[str, int]:
    """Return the words of the numbers from 2 to 999."""
    return {spelled(number, language): number for number in range(2, 1000)}


# What looks like a number, longer than those of number_words: "two hundred thousand" is none of
# them and is left alone, "twenty-second" and "fünfjährig" end in no number.
_PART = "|".join(_ONES["en"].split() + _TENS["en"].split() + ["hundred", "thousand", "million"])
_SAID = {
    "en": re.compile(
        rf"(?<![\w.,:$€£-])(?:\d[\d.,:]*(?<![.,:])|(?:{_PART})(?:(?:-| | and )(?:{_PART}))*)"
        r"(?![\w-]|[.,:]\d)",
        re.IGNORECASE,
    ),
    "de": re.compile(
        r"(?<![\w.,:-])(?<!um )(?<!gegen )(?:\d[\d.,:]*(?<![.,:])|[a-zäöüß]{3,})(?![\w-]|[.,:]\d)",
        re.IGNORECASE,
    ),
}


def _said(text: str, language: str) -> dict[int, re.Match[str]] | None:
    """The numbers of a text, each at its place; None if one of them stands twice."""
    found: dict[int, re.Match[str]] = {}
    for match in _SAID[language].finditer(text):
        words = match[0].lower()
        if words[0].isdigit():
            plain = re.sub(r"[.,](?=\d{3}\b)", "", words)
            value = int(plain) if plain.isdigit() and len(plain) < 10 else -1
        else:
            value = number_words(language).get(words, 0)
        if value in found or value == -1:
            return None
        if value > 1:
            found[value] = match
    return found


def _replaced(text: str, places: list[tuple[re.Match[str], str]]) -> str:
    """The text with other words at the places."""
    for match, words in sorted(places, key=lambda place: -place[0].start()):
        # A sentence that begins with a number in a word goes on beginning with a capital.
        words = words[0].upper() + words[1:] if match[0][0].isupper() else words
        text = text[: match.start()] + words + text[match.end() :]
    return text


def _other(value: int, draw: random.Random) -> int:
    """Draw another number, most often of the same order: a year for a year, no age of 4,000."""
    if 1000 < value < 2100:
        return draw.randrange(1200, 2060)
    if value < 100:
        top = draw.choice((12, 32, 99))
    else:
        top = draw.choice((999, value * 3, 99_999 if value < 1000 else 9_999_999))
    number = draw.randrange(2 if value < 100 else 100, top + 1)
    return number - number % 100 if number > 2000 and draw.random() < 0.5 else number


def other_numbers(source: str, target: str, draw: random.Random) -> Pair | None:
    """Replace every number that both sides say; None for a time of day, or other numbers."""
    if re.search(r"\bUhr\b", target):  # hours end at 24: see `other_time`
        return None
    if not (ours := _said(source, "en")) or not (theirs := _said(target, "de")):
        return None
    if ours.keys() != theirs.keys():
        return None
    places: tuple[list[tuple[re.Match[str], str]], ...] = ([], [])
    for value in sorted(ours):
        number = _other(value, draw)
        words = number < 1000 and draw.random() < (0.5 if number < 100 else 0.2)
        year = 1000 < value < 2100
        for language, found, side in zip(LANGUAGES, (ours, theirs), places, strict=True):
            if words:
                written = spelled(number, language)
            else:
                # German leaves four digits together as often as not, and years always are.
                loose = year or (language == "de" and number < 10_000)
                written = str(number) if loose else in_digits(number, language)
            side.append((found[value], written))
    return _replaced(source, places[0]), _replaced(target, places[1])


# The words before a time of day, and how each language says it.
_BEFORE = {"at": "um", "by|until|till": "bis", "after": "nach", "before": "vor", "since": "seit"}
_TIME = {
    "en": r"(?P<said>\d{1,2}(?:[:.]\d\d)?|HOURS)(?: o'clock| ?[ap]\.?m\.?)?(?![\w-])",
    "de": r"(?P<said>\d{1,2}(?:[:.]\d\d)?|ein|HOURS) Uhr(?! \w+(?:zehn|zig|ßig)\b)",
}
# Says a part of the day besides, which another time would contradict.
_PART_OF_DAY = re.compile("morgens|mittags|abends|nachts|früh|nachmittag", re.IGNORECASE)


@cache
def _time_after(language: str, before: str) -> re.Pattern[str]:
    hours = "|".join(spelled(hour, language) for hour in range(24, 0, -1))
    return re.compile(rf"\b(?:{before}) {_TIME[language].replace('HOURS', hours)}")


def _time(draw: random.Random) -> Pair:
    """Draw a time of day, as English and German say it."""
    hour, step = draw.randrange(1, 13), 5 * draw.randrange(1, 5)
    minute = draw.choice((30, step, 60 - step, draw.randrange(1, 60)))
    late, next_hour = hour % 12 + 12, hour % 12 + 1
    mark = draw.choice(":.")  # German writes 7:45 and 7.45
    english, german, after = spelled(hour, "en"), spelled(hour, "de"), spelled(next_hour, "de")
    few = spelled(step, "en"), spelled(step, "de")
    return draw.choice(
        (
            *[(f"{hour}:{minute:02d}", f"{hour}{mark}{minute:02d} Uhr")] * 4,
            (f"{late}:{minute:02d}", f"{late}{mark}{minute:02d} Uhr"),
            (f"{hour}:{minute:02d} p.m.", f"{late}{mark}{minute:02d} Uhr"),
            (f"{hour} p.m.", f"{late} Uhr"),
            (f"{hour} am", f"{hour % 12} Uhr"),
            (f"{english} o'clock", f"{'ein' if hour == 1 else german} Uhr"),
            (f"{hour} o'clock", f"{hour} Uhr"),
            *[(f"half past {english}", f"halb {after}")] * 2,
            (f"a quarter past {english}", f"Viertel nach {german}"),
            (f"a quarter to {spelled(next_hour, 'en')}", f"Viertel vor {after}"),
            (f"{few[0]} past {english}", f"{few[1]} nach {german}"),
            (f"{few[0]} to {spelled(next_hour, 'en')}", f"{few[1]} vor {after}"),
        )
    )


def _instead(text: str, match: re.Match[str], words: str) -> str:
    """The text with other words for what the match says, and behind that to its end."""
    return text[: match.start("said")] + words + text[match.end() :]


def other_time(source: str, target: str, draw: random.Random) -> Pair | None:
    """Replace the one time of day of a pair: "at seven", "um sieben Uhr"."""
    if _PART_OF_DAY.search(target):
        return None
    for english, german in _BEFORE.items():
        ours = list(_time_after("en", english).finditer(source))
        theirs = list(_time_after("de", german).finditer(target))
        if len(ours) == len(theirs) == 1:
            new = _time(draw)
            # The point of "p.m." is the end mark too.
            timed = _instead(source, ours[0], new[0]).replace(".m..", ".m.")
            return timed, _instead(target, theirs[0], new[1])
    return None


_WEEKDAYS = {"Monday": "Montag", "Tuesday": "Dienstag", "Wednesday": "Mittwoch"}
_WEEKDAYS |= {"Thursday": "Donnerstag", "Friday": "Freitag", "Saturday": "Samstag"}
_WEEKDAYS |= {"Sunday": "Sonntag"}
_MONTHS = {"January": "Januar", "February": "Februar", "March": "März", "April": "April"}
_MONTHS |= {"May": "Mai", "June": "Juni", "July": "Juli", "August": "August"}
_MONTHS |= {"September": "September", "October": "Oktober", "November": "November"}
_MONTHS |= {"December": "Dezember"}
# A part of the day would stay behind another date.
_ENGLISH_DAY = rf"(?:{'|'.join(_MONTHS)}) \d\d?(?:st|nd|rd|th)?(?:, \d{{4}})?"
_GERMAN_DAY = rf"\d\d?\. (?:{'|'.join(_MONTHS.values())})(?: \d{{4}})?"
_DATE = {
    "en": re.compile(
        rf"\bon (?P<said>{'|'.join(_WEEKDAYS)}|{_ENGLISH_DAY})"
        r"(?![\w,-]| (?:morning|afternoon|evening|night)\b)"
    ),
    "de": re.compile(
        rf"\b[Aa]m (?P<said>{'|'.join(_WEEKDAYS.values())}|{_GERMAN_DAY})"
        r"(?![\w-]| (?:[Mm]orgen|[Aa]bend|[Nn]achmittag|[Vv]ormittag|früh)\b)"
    ),
}


def _date(draw: random.Random) -> Pair:
    """Draw a date as English and German write it behind "on" and "am"."""
    day, year = draw.randrange(1, 29), draw.randrange(1900, 2060)
    month, monat = draw.choice(list(_MONTHS.items()))
    weekday, wochentag = draw.choice(list(_WEEKDAYS.items()))
    nth = f"{day}{'th' if day // 10 == 1 else {1: 'st', 2: 'nd', 3: 'rd'}.get(day % 10, 'th')}"
    german = f"{day}. {monat}"
    return draw.choice(
        (
            (weekday, wochentag),
            (f"{month} {day}", german),
            (f"{month} {nth}", german),
            (f"{day} {month}", german),
            (f"the {nth} of {month}", german),
            (f"{month} {day}, {year}", f"{german} {year}"),
            (f"{day} {month} {year}", f"{german} {year}"),
            (f"{weekday}, {month} {day}", f"{wochentag}, dem {german}"),
        )
    )


def other_date(source: str, target: str, draw: random.Random) -> Pair | None:
    """Replace the one date of a pair: "on Monday" by "on May 3", "am 3. Mai"; or leave it alone."""
    ours, theirs = list(_DATE["en"].finditer(source)), list(_DATE["de"].finditer(target))
    if len(ours) != 1 or len(theirs) != 1:
        return None
    english, german = _date(draw)
    if draw.random() < 0.1:  # what stands in a letter's head
        return english[0].upper() + english[1:], german.replace(", dem ", ", ")
    return _instead(source, ours[0], english), _instead(target, theirs[0], german)


# "pounds" of an original are mostly a weight.
_PRICE = {
    "en": re.compile(
        r"(?:(?<![\w,.-])(?P<said>[\w,.-]{1,40}) (?:dollars|euros)|[$€£]\d(?:[\d,.]{0,12}\d)?)"
        r"(?![\w,.]\w|\w)"
    ),
    "de": re.compile(r"(?<!\d )(?<![\w,.])(?P<said>[\w,.]{1,40}) (?:Dollar|Euro|Pfund)(?!\w)"),
}
_CURRENCIES = (("$", "dollars", "Dollar"), ("€", "euros", "Euro"), ("£", "pounds", "Pfund"))


def other_price(source: str, target: str, draw: random.Random) -> Pair | None:
    """Replace the one price of a pair: "ten dollars" by "$12.50", "12,50 Dollar"."""

    def prices(text: str, language: str) -> list[re.Match[str]]:
        return [
            match
            for match in _PRICE[language].finditer(text)
            if match["said"] is None
            or match["said"][0].isdigit()
            or match["said"].lower() in number_words(language)
        ]

    ours, theirs = prices(source, "en"), prices(target, "de")
    if len(ours) != 1 or len(theirs) != 1:
        return None
    sign, english, german = draw.choice(_CURRENCIES)
    whole, cents = draw.randrange(2, draw.choice((20, 100, 1000))), draw.randrange(1, 20) * 5
    new = draw.choice(
        (
            (f"{spelled(whole, 'en')} {english}", f"{spelled(whole, 'de')} {german}"),
            (f"{whole} {english}", f"{whole} {german}"),
            (f"{sign}{whole}", f"{whole} {german}"),
            (f"{sign}{whole}.{cents:02d}", f"{whole},{cents:02d} {german}"),
        )
    )
    return _replaced(source, [(ours[0], new[0])]), _replaced(target, [(theirs[0], new[1])])


_TITLES = (("Mr.", "Herr"), ("Mr", "Herr"), ("Mrs.", "Frau"), ("Ms.", "Frau"), ("Dr.", "Dr."))
_FIRST = re.compile(r"[A-Z][a-z]+\b(?!['’])")
_HIS = re.compile(r"\b(?:er|ihm|ihn|sein\w*|der\w*|sie|ihr\w*|einer?)\b", re.IGNORECASE)


def titled(source: str, target: str, draw: random.Random) -> Pair | None:
    """Give the person that begins both sides a title and another name: "Mr. Kovacs", "Herr Kovacs".

    Only at the beginning is "Herr" and not "Herrn" certain; without a word that has a gender.
    """
    ours, theirs = _FIRST.match(source), _FIRST.match(target)
    if not ours or not theirs or ours[0] != theirs[0] or _HIS.search(target):
        return None
    name = random_name(draw)
    english, german = draw.choice(_TITLES)
    return f"{english} {name}{source[ours.end() :]}", f"{german} {name}{target[theirs.end() :]}"


def number_pairs(
    sources: list[str], targets: list[str], share: float, seed: int, languages: Pair
) -> Iterator[Pair]:
    """Yield up to `share` times as many pairs as there are, with other numbers and titles.

    Four in ten have another number, two a title, two a date, the others a time or a price, drawn
    from the pairs that have one.

    Raises:
        RecipeError: The languages are not English and German.
    """
    if set(languages) != set(LANGUAGES):
        raise RecipeError(
            f"augment.numbers is for {' and '.join(LANGUAGES)}, not for {' and '.join(languages)}: "
            "leave it out."
        )
    turned = languages != LANGUAGES
    sides = (targets, sources) if turned else (sources, targets)  # English first
    pairs = list(zip(*sides, strict=True))
    draw = random.Random(seed)
    parts = ((other_numbers, 4), (titled, 2), (other_date, 2), (other_time, 1), (other_price, 1))
    for change, part in parts:
        with_one = [pair for pair in pairs if change(*pair, random.Random(0))]
        for _ in range(round(share * len(pairs) * part / 10) if with_one else 0):
            if found := change(*draw.choice(with_one), draw):
                yield found[::-1] if turned else found

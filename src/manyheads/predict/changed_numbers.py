"""Numbers that a translation has in place of its source's."""

import re

# Up to twelve, languages write words; above it digits that are gone are rarely written out.
WORDS = 12
_GROUPED = re.compile(r"(?<=\d)[., '\u2019\u00a0\u2009\u202f](?=\d{3}(?!\d))")
_DIGITS = re.compile(r"(?<!\d)\d{1,100}(?!\d)")  # Python refuses to read thousands of digits
_HOUR = re.compile(  # "3 am Freitag" is none
    r"(?<![\d:.])(\d{1,2})(?=:\d\d|h\d\d|\s?h\b|(?:\.\d\d)?\s*(?:[ap]\.m\b|o.clock|Uhr\b"
    r"|시(?!간)|[ap]m\b(?!\s(?-i:[A-ZÄÖÜ]))))",
    re.IGNORECASE,
)
_HALF = re.compile("half|quarter|halb|viertel|demi|quart|반", re.IGNORECASE)  # of an hour
SAID_IN = ("en", "de", "fr", "ko")
# Parts of words for numbers above twelve, for shares, and for hexadecimal. Of right pairs of
# tatoeba and enko with digits, 0.1 to 2.0% lack a number and have none: most in other units.
_SAID = re.compile(
    r"teen|twent|thir|fort|fift|\bsix|seven|\beight|nine|hund(?:r|ert)|thousand|illi|dozen|douzain|half|quarter"
    r"|decade|centur|zehn|zwanzig|[zß]ig|tausend|dutzend|halb|viertel|jahrh"
    r"|quatorz|treiz|quinz|seiz|\bdix|vingt|trent|quarant|cinquant|soixant|\bcents?\b|\bmille"
    r"|nonant|septant|demi|quart|siècle|hex|octal|반|열|스물|스무|서른|마흔|쉰|예순|일흔|여든|아흔|백|천|만|억",
    re.IGNORECASE,
)


def changed_numbers(source: str, translation: str, target: str = "") -> tuple[list[str], list[str]]:
    """Return the numbers above `WORDS` that are missing, and those that are new.

    Where both texts have as many hours, in digits, others of them count, too.

    Numbers that are only new may have been words: nothing is changed then. Those that are only
    missing may be written out; where a translation into a `target` of `SAID_IN` has no number
    words, they are gone. Numbers are compared by value, without signs for thousands; '36 may be
    2036, and the hour 7 may be 19.

    Examples:
        >>> changed_numbers("It was built in 1894 and is 215 metres long.", "1894, 154 Meter")
        (['215'], ['154'])
        >>> changed_numbers("12,000 people and 30 dogs", "12.000 Menschen und dreißig Hunde")
        ([], [])
        >>> changed_numbers("The train leaves at 7:30 pm.", "Der Zug fährt um 17:30 Uhr.")
        (['7'], ['17'])
        >>> changed_numbers("The train leaves at 7:30 pm.", "Der Zug fährt um 19:30 Uhr.")
        ([], [])
        >>> changed_numbers("오늘은 11월 27일 금요일이에요.", "Today is Friday.", "en")
        (['27'], [])
    """
    ours, theirs = numbers_of(source), numbers_of(translation)
    hours, theirs_of_hours = _HOUR.findall(source), _HOUR.findall(translation)
    said = {int(hour) % 12 for hour in theirs_of_hours}  # however an hour is written
    asked = {int(hour) % 12 for hour in hours}
    halves = (15, 30, 45) if _HALF.search(source + translation) else ()
    if len(hours) == len(theirs_of_hours) and not halves:
        others = [hour for hour in hours if int(hour) % 12 not in said]
        instead = [hour for hour in theirs_of_hours if int(hour) % 12 not in asked]
        if others and instead:
            return others, instead
    known = theirs.keys() | {value % 100 for value in theirs}
    missing = [
        text
        for value, text in ours.items()
        if value > WORDS
        and value not in (*known, *halves)
        and not (text in hours and value % 12 in said)
    ]
    new = [
        text
        for value, text in theirs.items()
        if not {value, value % 100} & ours.keys()
        and not (text in theirs_of_hours and value % 12 in asked)
    ]
    if new:
        return (missing, new) if missing else ([], [])
    spells = re.split("[-_]", target.lower())[0] not in SAID_IN or _SAID.search(translation)
    return ([], []) if spells else (missing, [])


def numbers_of(text: str) -> dict[int, str]:
    """Return the numbers that a text has in digits, by their value."""
    return {int(number): number for number in _DIGITS.findall(_GROUPED.sub("", text))}

"""Numbers that a translation has in place of its source's."""

import re

# Up to twelve, languages write words; above it digits that are gone are rarely written out.
WORDS = 12
_GROUPED = re.compile(r"(?<=\d)[., '\u2019\u00a0\u2009\u202f](?=\d{3}(?!\d))")
_DIGITS = re.compile(r"(?<!\d)\d{1,100}(?!\d)")  # Python refuses to read thousands of digits


def changed_numbers(source: str, translation: str) -> tuple[list[str], list[str]]:
    """Return the numbers above `WORDS` that are missing, and those that the source does not have.

    Numbers that are only missing may be written out, and those that are only new may have been
    words: nothing is changed then. Smaller numbers count if as many are in the translation.
    Numbers are compared by value, without signs for thousands; '36 may be 2036, and 7 may be 19,
    which is another way to write an hour.

    Examples:
        >>> changed_numbers("It was built in 1894 and is 215 metres long.", "1894, 154 Meter")
        (['215'], ['154'])
        >>> changed_numbers("12,000 people and 30 dogs", "12.000 Menschen und dreißig Hunde")
        ([], [])
        >>> changed_numbers("The train leaves at 7:30 pm.", "Der Zug fährt um 17:30 Uhr.")
        (['7'], ['17'])
        >>> changed_numbers("The train leaves at 7:30 pm.", "Der Zug fährt um 19:30 Uhr.")
        ([], [])
    """
    ours, theirs = numbers_of(source), numbers_of(translation)
    known = {value for each in theirs for value in (each, each % 100, *_hours(each))}
    least = 0 if len(ours) == len(theirs) else WORDS + 1
    missing = [text for value, text in ours.items() if value not in known and value >= least]
    new = [
        text for value, text in theirs.items() if not {value, value % 100, *_hours(value)} & {*ours}
    ]
    return (missing, new) if missing and new else ([], [])


def _hours(value: int) -> list[int]:
    return [each for each in (value - 12, value + 12) if 0 <= each <= 24]


def numbers_of(text: str) -> dict[int, str]:
    """Return the numbers that a text has in digits, by their value."""
    return {int(number): number for number in _DIGITS.findall(_GROUPED.sub("", text))}

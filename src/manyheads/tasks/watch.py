"""Quality watch: signs in a model's outputs that something is wrong, whatever the score says.

References have their own rates (a name is copied, "Nov 20" and "20 November" have one translation),
so a sign is measured on them too, and only what goes beyond counts.
"""

import re
import unicodedata
import warnings
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from manyheads.data.leaks import plain

PAIRS = 100  # of fewer, a share says too little to warn of
BETTER = 0.9  # a sign that fell to this part of itself since the last validation is going away


class Signs(NamedTuple):
    """Percentages of the outputs, but for the length."""

    length_ratio: float  # characters of the outputs / characters of the references
    repeated: float  # with a phrase at least three times in a row
    copied: float  # that are mostly the source itself
    empty: float
    same: float  # that also stand for another source
    wrong_script: float  # in other letters than the reference


class Sign(NamedTuple):
    """When a sign is one, and what to say."""

    low: float  # below the references' own value by more than this
    high: float  # above it by more than this
    finding: str
    advice: str


NEVER = float("inf")
SIGNS = {
    "length_ratio": Sign(
        0.3,
        0.4,
        "the outputs are {value:.2f} times as long as the references",
        "Early in training that passes. If it stays, raise decode.length_penalty for longer "
        "outputs, lower it for shorter ones, and look for pairs that do not belong together with "
        "`manyheads check-data`.",
    ),
    "repeated": Sign(
        NEVER,
        5,
        "{value:.0f}% of the outputs repeat a phrase over and over ({usual:.0f}% of the "
        "references)",
        "The model is not trained enough, or its train.learning_rate is too high: train longer or "
        "with half the rate.",
    ),
    "copied": Sign(
        NEVER,
        10,
        "{value:.0f}% of the outputs are mostly their source ({usual:.0f}% of the references)",
        "Look for untranslated pairs in the training data with `manyheads check-data`.",
    ),
    "empty": Sign(
        NEVER,
        1,
        "{value:.0f}% of the outputs are empty",
        "Look for very short targets in the training data with `manyheads check-data`, and raise "
        "decode.length_penalty.",
    ),
    "same": Sign(
        NEVER,
        15,
        "{value:.0f}% of the outputs also stand for another source ({usual:.0f}% of the "
        "references)",
        "The model hardly looks at its source: train longer, with half the train.learning_rate or "
        "twice the train.warmup; if the sides of the data are not translations of each other, "
        "`manyheads check-data` shows it.",
    ),
    "wrong_script": Sign(
        NEVER,
        5,
        "{value:.0f}% of the outputs are written in other letters than their references",
        "Are data.source and data.target the right way round? `manyheads check-data` counts the "
        "scripts of both sides.",
    ),
}


def marked(
    sources: Sequence[str], outputs: Sequence[str], references: Sequence[str]
) -> dict[str, list[int]]:
    """Look for all signs in the outputs but their length; say by name which have them."""
    pairs = list(zip(sources, outputs, strict=True))
    meant = defaultdict(set)
    for source, output in pairs:
        meant[plain(output)].add(plain(source))
    script = _main_script("".join(references))
    found = {
        "repeated": map(_repeats, outputs),
        "copied": (_copies(source, output) for source, output in pairs),
        "empty": (not output.strip() and bool(source.strip()) for source, output in pairs),
        "same": (bool(plain(o)) and len(meant[plain(o)]) > 1 for o in outputs),
        "wrong_script": (
            _share(reference, script) >= 0.5 and 0 <= _share(output, script) < 0.25
            for output, reference in zip(outputs, references, strict=True)
        ),
    }
    return {name: [n for n, has in enumerate(each) if has] for name, each in found.items()}


def signs(sources: Sequence[str], outputs: Sequence[str], references: Sequence[str]) -> Signs:
    """Look for all signs in the outputs."""
    found = marked(sources, outputs, references)
    length = sum(map(len, outputs)) / max(1, sum(map(len, references)))
    shares = {name: 100 * len(which) / len(sources) for name, which in found.items()}
    return Signs(length, **shares)


class Watch:
    """Looks at the outputs of one validation set again and again, and warns once of each sign.

    Every model begins with outputs that repeat and collapse. So a sign is worth a warning only if
    it does not go away from one validation to the next. A resumed run looks anew: whoever resumes
    it may not have seen the first warning, and weights that stay as bad show it at the second
    validation again.
    """

    def __init__(self, sources: Sequence[str], references: Sequence[str]) -> None:
        self.sources, self.references = sources, references
        self.usual = signs(sources, references, references)
        self.before: dict[str, float] = {}  # what was beyond the references', last time
        self.warned: set[str] = set()

    def __call__(self, outputs: Sequence[str]) -> dict[str, float]:
        """Measure the outputs of a validation; warn of what stays."""
        found = signs(self.sources, outputs, self.references)
        beyond = {name: abs(getattr(found, name) - getattr(self.usual, name)) for name in SIGNS}
        for name, remark in self.remarks(found).items():
            stays = beyond[name] > BETTER * self.before.get(name, NEVER)
            if stays and name not in self.warned:
                self.warned.add(name)
                warnings.warn(f"On the validation data, {remark}", stacklevel=2)
        self.before = beyond
        return found._asdict()

    def remarks(self, found: Signs) -> dict[str, str]:
        """Say in plain words what is wrong, by the sign's name; nothing if nothing is."""
        return {name: f"{what}. {SIGNS[name].advice}" for name, what in self.found(found).items()}

    def found(self, found: Signs) -> dict[str, str]:
        """Say the same without advice."""
        if len(self.sources) < PAIRS:
            return {}
        said = {}
        for name, sign in SIGNS.items():
            value, usual = getattr(found, name), getattr(self.usual, name)
            if value < usual - sign.low or value > usual + sign.high:
                said[name] = sign.finding.format(value=value, usual=usual)
        return said


# A stretch of at most 60 characters that begins with a letter and stands three times in a row.
_LOOP = re.compile(r"(?=([^\W\d_].{0,59})\1\1)", re.DOTALL)


def _repeats(text: str) -> bool:
    # Spaces between words count once, also behind the last; "hmm" and "so so so" are no loops.
    words = " ".join(text.split()) + " "
    return any(len(match[1]) * 3 >= 12 for match in _LOOP.finditer(words))


def _copies(source: str, output: str) -> bool:
    """Say whether most of the words of the output are words of the source."""
    words, given = plain(output).split(), plain(source).split()
    if words == given:
        return bool(words)
    kept = (Counter(words) & Counter(given)).total()
    return len(words) >= 3 and kept >= 0.8 * len(words)


def _main_script(text: str) -> str:
    counted = Counter(_script(char) for char in text if char.isalpha())
    return counted.most_common(1)[0][0] if counted else ""


def _share(text: str, script: str) -> float:
    """Return the share of the letters that belong to a script; -1 if there are no letters."""
    letters = [char for char in text if char.isalpha()]
    return sum(_script(char) == script for char in letters) / len(letters) if letters else -1


@cache
def _script(char: str) -> str:
    """Name a letter's script by the first word of its Unicode name: LATIN, HANGUL, CJK, ..."""
    return unicodedata.name(char, "?").partition(" ")[0]

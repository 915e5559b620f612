"""Output monitor: warning signs in the outputs of a model that a score does not show.

References show these signs too (names are copied; "Nov 20" and "20 November" have the same
translation), so a sign counts only if it exceeds the rate of the references.
"""

import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Sequence
from importlib.resources import files
from typing import NamedTuple

from manyheads.data.checks.leakage import plain
from manyheads.data.text.scripts import main_script, script_share
from manyheads.errors import LOG

PAIRS = 100  # with fewer pairs, shares are too uncertain for a warning
BETTER = 0.9  # a sign that fell to this share of its last value is disappearing


class Signs(NamedTuple):
    """Percentages of the outputs with each sign, and the length ratio."""

    length_ratio: float  # characters of the outputs / characters of the references
    repeated: float  # with a phrase at least three times in a row
    copied: float  # with mostly words of the source
    empty: float
    same: float  # equal to the output of another source
    wrong_script: float  # in another script than the reference


class Sign(NamedTuple):
    """The thresholds of a sign, and its messages."""

    low: float  # below the references' own value by more than this
    high: float  # above it by more than this
    finding: str
    advice: str


_TABLES = files("manyheads.generation").joinpath("signs.toml").read_text(encoding="utf-8")
SIGNS = {name: Sign(**table) for name, table in tomllib.loads(_TABLES).items()}


def marked(
    sources: Sequence[str], outputs: Sequence[str], references: Sequence[str]
) -> dict[str, list[int]]:
    """Return the indices of the outputs with each sign, by the name of the sign."""
    pairs = list(zip(sources, outputs, strict=True))
    meant = defaultdict(set)
    for source, output in pairs:
        meant[plain(output)].add(plain(source))
    script = main_script("".join(references))
    signed = {
        "repeated": map(_repeats, outputs),
        "copied": (_copies(source, output) for source, output in pairs),
        "empty": (not output.strip() and bool(source.strip()) for source, output in pairs),
        "same": (bool(plain(o)) and len(meant[plain(o)]) > 1 for o in outputs),
        "wrong_script": (
            script_share(reference, script) >= 0.5 and 0 <= script_share(output, script) < 0.25
            for output, reference in zip(outputs, references, strict=True)
        ),
    }
    return {name: [n for n, has in enumerate(each) if has] for name, each in signed.items()}


def signs(sources: Sequence[str], outputs: Sequence[str], references: Sequence[str]) -> Signs:
    """Measure all signs in the outputs."""
    signed = marked(sources, outputs, references)
    length = sum(map(len, outputs)) / max(1, sum(map(len, references)))
    shares = {name: 100 * len(which) / len(sources) for name, which in signed.items()}
    return Signs(length, **shares)


class OutputMonitor:
    """Measures the outputs at every validation, and warns once of each sign.

    Early in training, the outputs of every model repeat and collapse. So a sign causes a warning
    only if it does not decrease from one validation to the next. A resumed run may warn again, at
    its second validation.
    """

    def __init__(self, sources: Sequence[str], references: Sequence[str]) -> None:
        self.sources, self.references = sources, references
        self.usual = signs(sources, references, references)
        self.before: dict[str, float] = {}  # excess over the references at the last validation
        self.warned: set[str] = set()

    def __call__(self, outputs: Sequence[str]) -> dict[str, float]:
        """Measure the outputs of a validation; warn of signs that persist."""
        measured = signs(self.sources, outputs, self.references)
        beyond = {name: abs(getattr(measured, name) - getattr(self.usual, name)) for name in SIGNS}
        for name, remark in self.remarks(measured).items():
            stays = name in self.before and beyond[name] > BETTER * self.before[name]
            if stays and name not in self.warned:
                self.warned.add(name)
                LOG.warning("On the validation data, %s", remark)
        self.before = beyond
        return measured._asdict()

    def remarks(self, measured: Signs) -> dict[str, str]:
        """Return a message with advice for each sign that exceeds its threshold."""
        return {
            name: f"{what}. {SIGNS[name].advice}" for name, what in self.found(measured).items()
        }

    def found(self, measured: Signs) -> dict[str, str]:
        """Return the same messages without advice."""
        if len(self.sources) < PAIRS:
            return {}
        messages = {}
        for name, sign in SIGNS.items():
            value, usual = getattr(measured, name), getattr(self.usual, name)
            if value < usual - sign.low or value > usual + sign.high:
                messages[name] = sign.finding.format(value=value, usual=usual)
        return messages


# At most 60 characters, beginning with a letter, three times in a row.
_LOOP = re.compile(r"(?=([^\W\d_].{0,59})\1\1)", re.DOTALL)


def _repeats(text: str) -> bool:
    # White space is normalised, with one after the last word; "hmm" and "so so so" are not loops.
    words = " ".join(text.split()) + " "
    return any(len(match[1]) * 3 >= 12 for match in _LOOP.finditer(words))


def _copies(source: str, output: str) -> bool:
    """Return whether most of the words of the output are words of the source."""
    words, given = plain(output).split(), plain(source).split()
    if words == given:
        return bool(words)
    shared = (Counter(words) & Counter(given)).total()
    return len(words) >= 3 and shared >= 0.8 * len(words)

"""Clean parallel text: repair an issue where that is safe, otherwise drop the pair.

A second pass over the pairs of a checked corpus. Every change is logged.
"""

import re
import unicodedata
from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np

from manyheads.data.checks import issue_detectors as detectors
from manyheads.data.checks.issue_types import ISSUE_TYPES
from manyheads.data.checks.text_checks import Checker
from manyheads.data.text.formats import Pair
from manyheads.data.text.lines import Problem


class Entry(NamedTuple):
    """A line of the log: the pair, the action and the reason."""

    line: int
    action: Literal["dropped", "changed"]
    reason: str
    text: str
    becomes: str = ""


_SEPARATING = re.compile("[\x0b\x0c\x1c-\x1f\x85]")  # control characters that separate words


def _repairer(language: str | None) -> Callable[[str], str]:
    """Return the repair of a text; decoded entities are repaired by its later steps."""
    spaces = detectors.unusual_spaces(language)

    def repair(text: str) -> str:
        text = detectors.unescape_entities(detectors.fix_mojibake(text) or text)
        text = detectors.INVISIBLE.sub("", text.replace("\ufeff", ""))
        text = re.sub(r"[\r\n]+", " ", text)
        text = detectors.CONTROL.sub("", _SEPARATING.sub(" ", text))
        text = re.sub("  +", " ", spaces.sub(" ", text)).strip(" ")
        return unicodedata.normalize("NFC", text)

    return repair


def repaired(text: str, language: str | None) -> str:
    """Repair a single text: mojibake, entities, control and invisible characters, spaces.

    Examples:
        >>> repaired(" Salt &amp; pepper  ", "en")
        'Salt & pepper'
    """
    repair = _repairer(language)
    for _ in range(3):
        before, text = text, repair(text)
        if text == before:
            break
    return text


class Cleaner:
    """Cleans the pairs of a checked corpus, passed again in the same order.

    Examples:
        >>> pairs = [Pair(1, "one", "eins "), Pair(2, "one", "eins")]
        >>> checker = Checker("en", "de")
        >>> for pair in pairs:
        ...     checker.add(pair)
        >>> cleaner = Cleaner(checker, "en", "de")
        >>> [cleaner(pair) for pair in pairs]
        [Pair(line=1, source='one', target='eins'), None]
        >>> [(entry.line, entry.action, entry.reason) for entry in cleaner.log]
        [(1, 'changed', 'spacing'), (2, 'dropped', 'duplicate-pair')]
    """

    def __init__(self, checker: Checker, source: str | None, target: str | None) -> None:
        self.log: list[Entry] = []  # the caller may empty it at any time
        self._checker = checker
        self._repairs = _repairer(source), _repairer(target)
        self._flagged: dict[str, np.ndarray] = {}
        for kind, indices in checker.indices().items():
            if kind != "duplicate-pair":  # decided after repair: more pairs may be equal then
                self._flagged[kind] = np.zeros(len(checker), dtype=bool)
                self._flagged[kind][indices] = True
        self._seen: set[int] = set()
        self._count = 0

    def report(self, problem: Problem) -> None:
        """Log a problem of a reader as a dropped pair."""
        if ISSUE_TYPES[problem.kind].fix == "drop":
            entry = Entry(problem.line, "dropped", problem.kind, problem.text)
            if not (self.log and self.log[-1][:3] == entry[:3]):  # reported once for each side
                self.log.append(entry)

    def __call__(self, pair: Pair) -> Pair | None:
        """Return the pair, repaired if necessary, or None if it is dropped."""
        index, self._count = self._count, self._count + 1
        first = index == 0
        issues = self._checker.kinds(pair, first=first)
        repaired, repairable = pair, _with_fix(issues, "change")
        if repairable:
            repaired = self._repair(pair, issues)
            issues = self._checker.kinds(repaired, first=first)
        why = [kind for kind, flags in self._flagged.items() if flags[index]]
        why += _with_fix(issues, "drop")
        if not (repaired.source.strip() and repaired.target.strip()):
            why.append("empty-side")
        if not why:
            key = hash((repaired.source, repaired.target))
            if key in self._seen:
                why.append("duplicate-pair")
            self._seen.add(key)
        text = f"{pair.source}\t{pair.target}"
        if why:
            self.log.append(Entry(pair.line, "dropped", ", ".join(why), text))
            return None
        if repaired != pair:
            becomes = f"{repaired.source}\t{repaired.target}"
            self.log.append(Entry(pair.line, "changed", ", ".join(repairable), text, becomes))
        return repaired

    def _repair(self, pair: Pair, issues: dict[str, str]) -> Pair:
        for _ in range(3):  # "&amp;amp;" needs two rounds
            _, source, target = pair
            if "swapped-sides" in issues:
                source, target = target, source
            pair = Pair(pair.line, self._repairs[0](source), self._repairs[1](target))
            issues = self._checker.examine(pair)
            if not _with_fix(issues, "change"):
                break
        return pair


def _with_fix(issues: dict[str, str], fix: str) -> list[str]:
    return [kind for kind in issues if ISSUE_TYPES[kind].fix == fix]

"""Check parallel text: one pass over the pairs, findings with line numbers.

File problems come from the readers (`Problem`), issues of a text or pair from `PairIssueDetector`;
issues of the whole corpus are found here. `issue_types.py` lists all issues with their remedies.
Memory: 40 bytes per pair (digests, lengths, line number).
"""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from manyheads.data.checks.issue_detectors import PairIssueDetector, numbers
from manyheads.data.checks.issue_types import ISSUE_TYPES, SEVERITIES, Severity
from manyheads.data.checks.sentence_alignment import find_shifts, unlike_lengths
from manyheads.data.text.formats import Pair
from manyheads.data.text.languages import header_words
from manyheads.data.text.lines import Problem

FEW = 5  # lines listed in a finding
MANY_TARGETS = 4


@dataclass(frozen=True, slots=True)
class Finding:
    """An issue found in a corpus: count, lines and remedy."""

    kind: str
    severity: Severity
    what: str
    remedy: str
    count: int
    lines: tuple[int, ...]  # the first few
    sides: str  # "source", "target", "both"
    example: str  # the text on the first of these lines


class HeldOut:
    """Digests of the pairs of a validation or test split, and of their sides."""

    def __init__(self, pairs: Iterable[Pair]) -> None:
        self._known = {digest for _, *sides in pairs for digest in self._digests(*sides).values()}

    @staticmethod
    def _digests(source: str, target: str) -> dict[str, int]:
        parts = {"pair": (source, target), "source": (source, ""), "target": ("", target)}
        return {part: hash((part, *key)) for part, key in parts.items()}

    def find(self, source: str, target: str) -> str | None:
        """Return which part of a pair is in the split: pair, source or target."""
        digests = self._digests(source, target).items()
        return next((part for part, digest in digests if digest in self._known), None)


@dataclass
class _Tally:
    count: int = 0
    lines: list[int] = field(default_factory=list)
    sides: set[str] = field(default_factory=set)
    example: str = ""

    def add(self, line: int, side: str, example: str) -> None:
        self.count += 1
        if len(self.lines) < FEW and line not in self.lines:
            self.lines.append(line)
        self.sides.add(side or "both")
        self.example = self.example or example


class Checker:
    """Collects the pairs and problems of a corpus one by one, then returns the findings.

    Examples:
        >>> checker = Checker("en", "de")
        >>> checker.add(Pair(1, "one", "eins "))
        >>> [(finding.kind, finding.lines) for finding in checker.findings()]
        [('spacing', (1,))]
    """

    def __init__(
        self, source: str | None, target: str | None, held_out: Mapping[str, HeldOut] | None = None
    ) -> None:
        """Prepare the detectors for the languages of both sides, if they are known.

        `held_out` are the pairs of "test" and "valid", which must not be in the training data.
        """
        self.examine = PairIssueDetector(source, target)
        self.held_out = dict(held_out or {})
        self._header = header_words(*(language for language in (source, target) if language))
        self._tallies: defaultdict[str, _Tally] = defaultdict(_Tally)
        self._lines = array("q")
        self._digests = array("q"), array("q")
        self._lengths = array("i"), array("i")
        self._numbers = array("i"), array("i")

    def __len__(self) -> int:
        return len(self._lines)

    def report(self, problem: Problem) -> None:
        """Add a problem reported by a reader."""
        kind = problem.kind
        sentences = any(len(cell.split()) > 2 for cell in problem.text.split("\t"))
        if kind == "missing-column" and problem.line == 1 and sentences:
            kind = "data-as-header"
        self._tallies[kind].add(problem.line, problem.side, problem.text or problem.message)

    def add(self, pair: Pair) -> None:
        """Add a pair."""
        for kind, side in self.kinds(pair, first=not len(self)).items():
            text = pair.target if side == "target" else pair.source
            self._tallies[kind].add(pair.line, side, text)
        self._lines.append(pair.line)
        for side_number, text in enumerate(pair[1:]):
            self._digests[side_number].append(hash(text))
            self._lengths[side_number].append(len(text))
            found = numbers(text)
            digest = hash(tuple(sorted(found))) & 0x7FFFFFFF if found else 0
            self._numbers[side_number].append(digest)

    def kinds(self, pair: Pair, *, first: bool) -> dict[str, str]:
        """Return the issues of a single pair, each with its side."""
        issues = self.examine(pair)
        if first and {pair.source.lower(), pair.target.lower()} <= self._header.keys():
            issues["header-as-data"] = "both"
        for split, held_out in self.held_out.items():
            if same := held_out.find(pair.source, pair.target):
                issues[f"{split}-overlap-{same}"] = "both" if same == "pair" else same
        return issues

    def findings(self) -> list[Finding]:
        """Return the findings, the most severe and most frequent first."""
        whole = self.indices()
        if len(many := _with_many_targets(*_arrays(self._digests))):
            whole["many-targets"] = many
        tallies = dict(self._tallies)
        for name, indices in whole.items():
            lines = [self._lines[index] for index in indices[:FEW]]
            side = "source" if name == "many-targets" else "both"
            tallies[name] = _Tally(len(indices), lines, {side})
        found = []
        for name, tally in tallies.items():
            kind = ISSUE_TYPES[name]
            swapped = name == "swapped-sides" and tally.count > len(self) / 2
            severity: Severity = "error" if swapped else kind.severity
            sides = tally.sides.pop() if len(tally.sides) == 1 else "both"
            examples = tally.count, tuple(tally.lines), sides, tally.example
            found.append(Finding(name, severity, kind.what, kind.remedy, *examples))
        return sorted(found, key=lambda each: (SEVERITIES.index(each.severity), -each.count))

    def indices(self) -> dict[str, np.ndarray]:
        """Return the issues of the whole corpus, with the indices of their pairs from 0."""
        if len(self) < 2:
            return {}
        source, target = _arrays(self._digests)
        digests = source * 31 + target
        order = np.argsort(digests, kind="stable")
        lengths = _arrays(self._lengths)
        shifts = find_shifts(lengths, _arrays(self._numbers))
        shifted = [np.arange(shift.start, shift.end) for shift in shifts]
        issues = {
            "duplicate-pair": np.sort(order[1:][digests[order][1:] == digests[order][:-1]]),
            "length-ratio": unlike_lengths(*lengths),
            "shifted-lines": np.concatenate(shifted) if shifted else np.array([], dtype=np.int64),
        }
        return {kind: indices for kind, indices in issues.items() if len(indices)}


def _arrays(sides: "tuple[array[int], array[int]]") -> tuple[np.ndarray, np.ndarray]:
    first, second = (np.frombuffer(side, dtype=side.typecode) for side in sides)
    return first, second


def _with_many_targets(source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return the first index of each source with many different targets."""
    order = np.lexsort((target, source))
    sources, targets = source[order], target[order]
    new = np.ones(len(order), dtype=bool)
    new[1:] = (sources[1:] != sources[:-1]) | (targets[1:] != targets[:-1])
    _, counts = np.unique(sources[new], return_counts=True)
    _, first = np.unique(source, return_index=True)  # both in the order of the values
    return np.sort(first[counts >= MANY_TARGETS])

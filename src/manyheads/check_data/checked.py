"""The result of a check of a data set."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from manyheads.data.checks import image_checks, text_checks


@dataclass(frozen=True)
class Checked:
    """A data set and its findings."""

    name: str
    data: str  # the files, for people
    heading: str
    counts: Mapping[str, int]  # such as of pairs, or of images and classes
    findings: Sequence[text_checks.Finding] | Sequence[image_checks.ImageFinding]

    @property
    def errors(self) -> int:
        """Number of findings that keep it from being trained on."""
        return sum(finding.severity == "error" for finding in self.findings)

    def as_json(self) -> dict[str, Any]:
        """Write it as plain values."""
        findings = [asdict(finding) for finding in self.findings]
        plain = {"name": self.name, "data": self.data, **self.counts}
        return plain | {"errors": self.errors, "findings": findings}

"""The result of a check of a data set."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from manyheads.data.checks import image_checks, text_checks
from manyheads.errors import DataError, UsageError

_KEY = re.compile(r"data\.(image|label|texts|caption|language|language_column)\b")


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


@contextmanager
def naming_parameters() -> Iterator[None]:
    """Name parameters in errors about data without a recipe: `image` in place of data.image."""
    try:
        yield
    except DataError as error:
        raise DataError(_KEY.sub(r"`\1`", str(error))) from error
    except UsageError as error:
        raise UsageError(_KEY.sub(r"`\1`", str(error))) from error

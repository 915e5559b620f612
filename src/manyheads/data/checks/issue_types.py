"""The issues that a check of parallel text can find, each with its remedy: text_issues.toml.

error: training on the file is not possible. warning: training works, but the model or its scores
get worse. note: check it; often it is correct.
"""

import tomllib
from pathlib import Path
from typing import Literal, NamedTuple

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")


class IssueType(NamedTuple):
    """A type of issue: its severity, description and remedy."""

    severity: Severity
    what: str
    remedy: str
    fix: Literal["drop", "change", ""] = ""  # what `check-data --fix` does with the pair


def issue_types(table: str, **limits: float) -> dict[str, IssueType]:
    """Read the issues of a table beside this file; `limits` fill the {names} in their texts."""
    entries = tomllib.loads(Path(__file__).with_name(table).read_text("utf-8"))
    return {
        kind: IssueType(**{name: value.format(**limits) for name, value in entry.items()})
        for kind, entry in entries.items()
    }


ISSUE_TYPES = issue_types("text_issues.toml")

"""The table of reasons why a request is not answered."""

import re
from pathlib import Path
from typing import Any

import pytest

from manyheads.web import problem_json as problems
from manyheads.web.problem_json import REFUSALS, refusal

SOURCES = "\n".join(
    path.read_text(encoding="utf-8") for path in Path(problems.__file__).parent.rglob("*.py")
)


def test_each_is_used_and_there() -> None:
    """A misspelt name would be an internal error, when a client is refused."""
    used = set(re.findall(r'refusal\(\s*"(\w+)"', SOURCES))
    assert used <= set(REFUSALS)
    assert [name for name in REFUSALS if f'"{name}"' not in SOURCES] == []


@pytest.mark.parametrize("name", REFUSALS)
def test_texts_are_filled_in(name: str) -> None:
    """Each has a status of HTTP and no placeholder is left; text of a client is not one."""
    parts = REFUSALS[name]
    fields = re.findall(r"\{(\w+)(:[^}]*)?\}", parts["detail"] + parts["remedy"])
    values: dict[str, Any] = {field: 1234 if kind else "{x}" for field, kind in fields}
    made = refusal(name, **values)
    assert 400 <= made.status < 600
    assert made.title
    assert ("{" in made.detail + made.remedy) is ("{x}" in values.values())
    assert made.retry_after == parts.get("retry_after")
    assert str(refusal("not_found", reason="{y}").detail) == "{y}"

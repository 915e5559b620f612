"""The tree of errors: each is public, and drawn where it belongs."""

import re
from pathlib import Path

import pytest

from manyheads import errors

EVERY = [
    each
    for each in vars(errors).values()
    if isinstance(each, type) and issubclass(each, errors.ManyheadsError)
]


@pytest.mark.parametrize("error", EVERY, ids=lambda each: each.__name__)
def test_every_error_is_public(error: type) -> None:
    assert error.__name__ in errors.__all__


def test_the_tree_shows_every_error_below_its_base() -> None:
    above: list[str] = []
    drawn = {}
    drawing = errors.__doc__ or ""
    for front, name in re.findall(r"^    ([│├└─ ]*)(\w+Error)\b", drawing, re.MULTILINE):
        del above[len(front) // 4 :]
        drawn[name] = above[-1] if above else "Exception"
        above.append(name)
    assert drawn == {each.__name__: each.__mro__[1].__name__ for each in EVERY}


def test_a_missing_extra_names_the_command_that_works_here(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """In a checkout the one that keeps torch as it is; the package may be on no index."""
    told = str(errors.MissingExtraError(package="babel", extra="demo"))
    assert told.endswith(f"pip install -c constraints.txt '.[demo]' in {Path(__file__).parents[1]}")
    monkeypatch.setattr(errors, "__file__", str(tmp_path / "lib" / "manyheads" / "errors.py"))
    told = str(errors.MissingExtraError(package="babel", extra="demo"))
    assert told.endswith("install it with: pip install 'manyheads[demo]'")

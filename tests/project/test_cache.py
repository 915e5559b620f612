"""The folder for what can be fetched again: one rule for all of it."""

from pathlib import Path

import pytest

from manyheads.engines.web.runtime import package_folder
from manyheads.project.cache_folder import CACHE, cache_folder
from manyheads.project.remote import _folder


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({CACHE: "/c", "XDG_CACHE_HOME": "/x"}, "/c"),
        ({CACHE: "", "XDG_CACHE_HOME": "/x"}, "/x/manyheads"),
        ({"XDG_CACHE_HOME": ""}, "/home/me/.cache/manyheads"),
        ({CACHE: "~/c"}, "/home/me/c"),
    ],
)
def test_the_first_that_is_set(
    given: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For copies of data, and for what npm gets."""
    for name in (CACHE, "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in ({"HOME": "/home/me", "USERPROFILE": "/home/me"} | given).items():
        monkeypatch.setenv(name, value)
    assert cache_folder() == Path(expected)
    assert package_folder().parent == Path(expected)
    assert _folder("s3://bucket/train").parents[1] == Path(expected)

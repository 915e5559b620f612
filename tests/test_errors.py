"""The tree of errors: each is public, and drawn where it belongs."""

import re

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

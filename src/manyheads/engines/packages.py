"""Packages that engines need, which are extras of Manyheads."""

from collections.abc import Sequence
from importlib.metadata import version
from importlib.util import find_spec

from manyheads.errors import MissingExtraError


def need(packages: Sequence[str], *, extra: str) -> dict[str, str]:
    """Check that packages are installed, and return their versions.

    Raises:
        MissingExtraError: one is not.
    """
    for package in packages:
        if find_spec(package) is None:
            raise MissingExtraError(package=package, extra=extra)
    return {package: version(package) for package in packages}

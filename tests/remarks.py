"""What is logged as a remark while something runs."""

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collected() -> Iterator[list[str]]:
    """Collect the remarks."""
    handler, found = logging.Handler(), list[str]()
    handler.emit = lambda record: found.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("manyheads.remarks")
    logger.addHandler(handler)
    try:
        yield found
    finally:
        logger.removeHandler(handler)


@contextmanager
def remarks(wanted: str) -> Iterator[None]:
    """One of the remarks must match a regular expression."""
    with collected() as found:
        yield
    assert any(re.search(wanted, each) for each in found), found

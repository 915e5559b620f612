"""Which rows a data set has, in which order: a short hash of each, beside this file.

A build collects all rows that its sources have and takes those that are listed. So a set is the
same, byte for byte, whoever builds it, and its content is not in the repository.
"""

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import TypeVar

Row = TypeVar("Row")
FOLDER = Path(__file__).parent / "rows"
SIZE = 6  # bytes a row: among a million rows, two that look the same are not to be expected


def key(*fields: str | bytes) -> bytes:
    """Hash a row.

    Examples:
        >>> key("A dog.", "Ein Hund.").hex()
        '60ddb16008bf'
    """
    parts = (each.encode() if isinstance(each, str) else each for each in fields)
    return blake2b(b"\t".join(parts), digest_size=SIZE).digest()


def listed(name: str) -> list[bytes]:
    """Read the keys of a list, in its order."""
    content = (FOLDER / f"{name}.bin").read_bytes()
    return [content[at : at + SIZE] for at in range(0, len(content), SIZE)]


def write_list(name: str, keys: Iterable[bytes]) -> None:
    """Write the keys of a list."""
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{name}.bin").write_bytes(b"".join(keys))


def in_order(name: str, rows: Mapping[bytes, Row]) -> list[Row]:
    """Return the rows that are listed, in their order; say how many the sources lack."""
    keys = listed(name)
    found = [rows[each] for each in keys if each in rows]
    if len(found) < len(keys):
        print(f"{name}: the sources lack {len(keys) - len(found):,} of {len(keys):,} rows")
    return found


def write_table(path: Path, rows: Iterable[Iterable[str]]) -> Path:
    """Write a table without quoting; return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    return path

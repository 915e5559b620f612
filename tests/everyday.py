"""Read the tables of benchmarks/everyday."""

from pathlib import Path

FOLDER = Path(__file__).parents[1] / "benchmarks" / "everyday"
COLUMNS = {
    "english": ("kind", "english", "german", "korean"),
    "korean": ("kind", "korean", "english"),
    "minimal_pairs": ("file", "line", "sentence", "word", "instead"),
}


def table(name: str) -> list[list[str]]:
    """Return the rows of a table; its header is checked."""
    header, *rows = (FOLDER / f"{name}.tsv").read_text(encoding="utf-8").splitlines()
    assert tuple(header.split("\t")) == COLUMNS[name]
    fields = [row.split("\t") for row in rows]
    assert all(len(row) == len(COLUMNS[name]) for row in fields)
    return fields

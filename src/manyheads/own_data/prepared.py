"""What `init` is asked for, and what it answers: findings, data files, a recipe, expectations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from manyheads.errors import UsageError
from manyheads.files import output_errors, reject_address, write_text

EXAMPLES = 3  # shown of a finding


@dataclass(frozen=True)
class Finding:
    """An issue of the data: how often, where, and what was done about it."""

    kind: str  # such as "duplicate-pair"
    count: int
    examples: tuple[str, ...]
    what_was_done: str


def finding_of(kind: str, places: Sequence[object], done: str) -> list[Finding]:
    """Return the finding about some places, or none if there are none."""
    examples = tuple(map(str, places[:EXAMPLES]))
    return [Finding(kind, len(places), examples, done)] if places else []


@dataclass(frozen=True, kw_only=True)
class Options:
    """What the user said; everything else follows from the data and the machine."""

    minutes: float = 30.0  # that training may take
    hardware: Literal["cpu", "gpu"] | None = None  # None: what this machine has
    columns: tuple[str, ...] = ()  # names, or numbers from 1; each may be code=NAME
    start: str | None = None  # the model to continue from
    glossary: Path | None = None  # lines of term, tab, translation


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A data set made ready for training; nothing is written yet."""

    seen: Sequence[str]  # lines about what the input is
    findings: Sequence[Finding]
    recipe: str  # commented TOML
    files: Mapping[str, str] = field(default_factory=dict)  # of the data folder: name, content
    expect: Sequence[str] = ()  # lines: minutes, what to expect, what the data are too few for


def recipe_path(out: Path) -> Path:
    """Return the path of the recipe beside the data folder `out`."""
    return out.with_name(f"{out.name}.toml")


def check_room(out: Path, source: Path, *, force: bool) -> None:
    """Refuse to write over the input, or over what is there unless `force`.

    Raises:
        UsageError: `out` or the recipe exists, or the input lies in `out`.
    """
    reject_address(out)
    if out.name in ("", ".."):
        raise UsageError(f"`out` is {str(out)!r}: give the name of a folder to make.")
    for path in (out, recipe_path(out)):
        if path.exists() and not force:
            raise UsageError(
                f"{path} exists: choose another name with `out`, or replace it with `force=True`."
            )
    if out.is_file():
        raise UsageError(f"{out} is a file: `out` is the folder of the data.")
    if source.absolute().is_relative_to(out.absolute()):
        raise UsageError(f"{source} lies in {out}, which is to be written: choose another `out`.")


def write(prepared: Prepared, out: Path) -> list[Path]:
    """Write the data folder and the recipe beside it; return the files.

    Raises:
        OutputError: a file cannot be written.
    """
    with output_errors(out):
        out.mkdir(parents=True, exist_ok=True)
    files = {out / name: content for name, content in prepared.files.items()}
    files[recipe_path(out)] = prepared.recipe
    for path, content in files.items():
        write_text(path, content)
    return list(files)

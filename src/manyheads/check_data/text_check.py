"""Check and clean corpora by their names, or those of a recipe."""

import glob
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple, cast

from manyheads.check_data.checked import Checked
from manyheads.data.checks.clean import Cleaner
from manyheads.data.checks.issue_detectors import PairIssueDetector
from manyheads.data.checks.issue_types import ISSUE_TYPES
from manyheads.data.checks.text_checks import Checker, Finding, HeldOut
from manyheads.data.text.corpus import origin
from manyheads.data.text.formats import Pair, is_one_file, read_pairs
from manyheads.data.text.lines import Report
from manyheads.data.text.rows import HUB
from manyheads.data.text.write import outputs, reject_existing_files, writing
from manyheads.errors import DataError, UsageError
from manyheads.files import expand_user
from manyheads.files import writing as open_output
from manyheads.project.base_recipe import read_recipe
from manyheads.project.paths import endings, find_data, find_recipe, here, shipped
from manyheads.recipe_data.pair_splits import find_corpus, read_corpus
from manyheads.recipe_data.text_data import PairData
from manyheads.strict_json import dumps

LOOKED_AT = 500  # pairs that tell whether the sides are the other way round

Column = str | int | None
Columns = tuple[Column, Column]


class Place(NamedTuple):
    """A corpus that can be read again and again: a path, or the name of generated data."""

    name: str
    path: str
    source: str | None  # languages; a .tsv can be read without them
    target: str | None
    columns: Columns = (None, None)
    swapped: bool = False  # the sides in the files are the other way round

    def pairs(self, report: Report) -> Iterator[Pair]:
        """Stream the pairs, turned if they are the other way round."""
        source, target = self.source or "", self.target or ""
        pairs: Iterator[Pair]
        if self.path.startswith("dates:"):
            data = PairData(train="", valid="", source=source, target=target)
            corpus = read_corpus(self.path, data)
            pairs = map(Pair, range(1, len(corpus) + 1), corpus.source, corpus.target)
        else:
            pairs = read_pairs(self.path, source, target, columns=self.columns, report=report)
        return (Pair(n, one, other) for n, other, one in pairs) if self.swapped else pairs

    @property
    def origin(self) -> str:
        """The files, for people."""
        return origin(self.path, self.source or "", self.target or "")


@dataclass(frozen=True)
class CheckedText(Checked):
    """A corpus and its findings."""

    place: Place
    checker: Checker


class Cleaned(NamedTuple):
    """The files of a cleaned corpus, and counts of pairs."""

    files: list[Path]
    log: Path
    kept: int
    changed: int
    dropped: int


Plan = list[tuple[Place, dict[str, Place]]]  # corpora, each with what it must not overlap with


def plan(
    names: Iterable[str],
    *,
    source: str | None = None,
    target: str | None = None,
    columns: Columns = (None, None),
    test: str | None = None,
    valid: str | None = None,
) -> Plan:
    """Find corpora by their names."""
    held_out = {
        split: _find(name, source, target, columns)
        for split, name in {"test": test, "valid": valid}.items()
        if name is not None
    }
    return [(_find(name, source, target, columns), held_out) for name in names]


def plan_recipe(name: str) -> Plan:
    """Find the corpora of a recipe; test must not be in valid, nor either of them in train."""
    recipe = read_recipe(find_recipe(name))
    data = cast(PairData, recipe.data)
    if not data.has_pairs:
        raise UsageError(f"The recipe {name!r} does not train on parallel text.")
    held_out: dict[str, Place] = {}
    plans: Plan = []
    for split, corpus in (("test", data.test), ("valid", data.valid), ("train", data.train)):
        if corpus is not None:
            path = corpus if corpus.startswith("dates:") else find_corpus(corpus, data)
            place = Place(corpus, path, data.source, data.target, data.columns)
            plans.insert(0, (place, held_out))
            held_out = held_out | {split: place}
    (train, before), *others = plans
    additional = [
        (train._replace(name=name, path=find_corpus(name, data)), before)
        for name in dict.fromkeys(getattr(data, "additional", ()))
    ]
    return [(train, before), *additional, *others]


def is_recipe(name: str) -> bool:
    """Tell whether a name is that of a recipe rather than of a corpus."""
    return name in shipped("recipes") or name.endswith(".toml")


def _find(name: str, source: str | None, target: str | None, columns: Columns) -> Place:
    if name.startswith((HUB, "dates:")):
        return Place(name, name, source, target, columns)
    if "*" in name:
        raise UsageError(f"{name!r} is a pattern: give the names of the corpora one by one.")
    tab_separated = name.removesuffix(".gz").endswith(".tsv")
    if (source is None or target is None) and not tab_separated and None in columns:
        raise UsageError(f"{_sides_of(name)}Set `source` and `target`, to en and de for example.")
    suffixes = endings(name, source, target)
    if not is_one_file(name) and Path(name).is_file() and Path(name).suffix in suffixes:
        raise UsageError(
            f"{name} is one side of a corpus: name it without its ending, "
            f"{name.removesuffix(Path(name).suffix)}."
        )
    (path,) = find_data(here(name, suffixes), None, suffixes)
    return Place(name, str(path), source, target, columns)


def _sides_of(name: str) -> str:
    path = expand_user(name)
    beside = path.parent.glob(f"{glob.escape(path.name)}.*") if path.name else ()
    sides = sorted(found.name for found in beside)
    return f"There are {', '.join(sides[:10])}. " if sides and not is_one_file(name) else ""


def _turned(place: Place) -> Place:
    """Turn a corpus whose first pairs are the other way round."""
    first = list(islice(place.pairs(lambda _: None), LOOKED_AT))
    detector = PairIssueDetector(place.source, place.target)
    return place._replace(swapped=detector.most_swapped(first))


def check(place: Place, held_out: Mapping[str, Place]) -> CheckedText:
    """Check a corpus, also against the splits that it must not overlap with.

    One whose sides are the other way round is one error, and otherwise checked as if turned.
    """
    # Problems of the other data are reported by a check of their own.
    others = {split: _turned(other).pairs(lambda _: None) for split, other in held_out.items()}
    splits = {split: HeldOut(pairs) for split, pairs in others.items()}
    place = _turned(place)
    checker = Checker(place.source, place.target, splits)
    for pair in place.pairs(checker.report):
        checker.add(pair)
    heading, counts = f"{place.origin}: {len(checker):,} pairs", {"pairs": len(checker)}
    found = checker.findings()
    if place.swapped:
        kind = ISSUE_TYPES["swapped-sides"]
        what = f"{kind.what} in the whole corpus; what follows is about the pairs turned round"
        one = Finding("swapped-sides", "error", what, kind.remedy, len(checker), (), "both", "")
        found.insert(0, one)
    return CheckedText(place.name, place.origin, heading, counts, found, place, checker)


def cleaned_files(place: Place, out: Path) -> tuple[list[Path], Path]:
    """Name the files for a cleaned corpus and its log; refuse those that exist."""
    if out.name in ("", "..") or out.is_dir():
        raise UsageError(
            f"`fix` is {str(out)!r}, a folder: name the corpus to write, such as {out / 'clean'}."
        )
    log = out.with_name(f"{out.name}.log.jsonl")
    files = outputs(out, place.source or "source", place.target or "target")
    reject_existing_files([*files, log])
    return files, log


def clean(checked: CheckedText, out: Path) -> Cleaned:
    """Write the repaired pairs of a checked corpus, and a log of the changes.

    Raises:
        UsageError: the files to write are there already.
        DataError: it has damage that cannot be repaired, such as a file cut off, or no pairs.
    """
    place = checked.place
    files, log = cleaned_files(place, out)
    for finding in checked.findings:
        # Cut off, empty, or its lines do not belong together: what is left is not the corpus.
        if finding.severity == "error" and not ISSUE_TYPES[finding.kind].fix:
            raise DataError(
                f"{place.origin}: {finding.what}, which `fix` cannot repair, so nothing is "
                f"written. {finding.remedy}"
            )
    if not len(checked.checker):
        raise DataError(
            f"{place.origin}: no pair can be read, so nothing is written. Repair what is listed as "
            "an error first."
        )
    cleaner = Cleaner(checked.checker, place.source, place.target)
    counts = {"kept": 0, "changed": 0, "dropped": 0}
    sides = place.source or "source", place.target or "target"
    with open_output(log) as entries, writing(out, *sides) as write:

        def drain() -> None:
            for entry in cleaner.log:
                counts[entry.action] += 1
                line = {key: value for key, value in entry._asdict().items() if value}
                entries.write(f"{dumps(line)}\n".encode())
            cleaner.log.clear()

        for pair in place.pairs(cleaner.report):
            kept = cleaner(pair)
            drain()
            if kept is not None:
                write(kept)
                counts["kept"] += 1
        drain()
        if place.swapped:
            counts["changed"] = counts["kept"]
        entries.flush()
    return Cleaned(files, log, **counts)

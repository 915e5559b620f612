"""Everyday sentences of Tatoeba, English with German and French, as manythings.org exports them.

The registered files are of exports of 2018 and 2019, which are no longer published: a newer export
gives more and partly other training pairs. Validation and test have the same English sentences, as
far as the export still has them, and no training pair is joined to them by translations.
"""

import re
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from scripts.data.rows import in_order, key, write_table
from scripts.data.sources import SourceError, Sources

HOME = "https://www.manythings.org/anki/"
FILES = {"de": "deu", "fr": "fra"}
Pair = tuple[str, str]


def build(sources: Sources, root: Path) -> Iterator[Path]:
    """Write tatoeba/{train,val,test}.en-de.tsv with references, and the same for French."""
    out = root / "tatoeba"
    for language, name in FILES.items():
        pairs = exported(sources, name)
        answers: dict[str, list[str]] = defaultdict(list)
        for english, other in pairs:
            answers[english].append(other)
        by_key = {key(english): english for english in answers}
        held: set[str] = set()
        for split in ("val", "test"):
            chosen = in_order(f"tatoeba-{split}-{language}", by_key)
            held |= set(chosen)
            stem = f"{split}.en-{language}"
            yield write_table(out / f"{stem}.tsv", ((each, answers[each][0]) for each in chosen))
            yield write_table(out / f"{stem}.refs.tsv", ((each, *answers[each]) for each in chosen))
        free = apart(pairs, held)
        yield write_table(
            out / f"train.en-{language}.tsv", sorted(free, key=lambda pair: key(*pair))
        )


def exported(sources: Sources, name: str) -> list[Pair]:
    """Read the pairs of an export: English, tab, translation, tab, whose they are.

    Raises:
        SourceError: it is no such export.
    """
    path = sources.file(f"{name}-eng.zip", f"{HOME}{name}-eng.zip")
    try:
        with zipfile.ZipFile(path) as archive:
            lines = archive.read(f"{name}.txt").decode("utf-8").splitlines()
    except (KeyError, zipfile.BadZipFile) as error:
        raise SourceError(f"{path} is no export with {name}.txt: {error}") from error
    rows = (line.split("\t") for line in lines)
    return list(dict.fromkeys((row[0], row[1]) for row in rows if len(row) >= 2))


def apart(pairs: Iterable[Pair], held: set[str]) -> list[Pair]:
    """Return the pairs that no chain of translations joins to the held English sentences.

    Sentences are compared without case and punctuation.

    Examples:
        >>> pairs = [("Hi!", "Hallo!"), ("Hello.", "Hallo."), ("Run.", "Lauf!")]
        >>> apart(pairs, {"Hi!"})
        [('Run.', 'Lauf!')]
    """
    pairs = list(pairs)
    parents: dict[str, str] = {}

    def root(name: str) -> str:
        while parents.setdefault(name, name) != name:
            parents[name] = name = parents[parents[name]]
        return name

    for english, other in pairs:
        parents[root(f"en {fold(english)}")] = root(f"xx {fold(other)}")
    taken = {root(f"en {fold(english)}") for english in held}
    return [pair for pair in pairs if root(f"en {fold(pair[0])}") not in taken]


def fold(text: str) -> str:
    """Take away case, punctuation and spaces."""
    return re.sub(r"[\W_]+", "", text.casefold())

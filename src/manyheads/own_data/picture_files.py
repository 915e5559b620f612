"""Find images with their classes or texts, in folders and tables as people keep them.

Classes are folders, or a column of a table beside or in a folder of images; texts are such a
column, or .txt files beside the images. A table may have a header or none.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from manyheads.data.images.image_file import FOREIGN, SUFFIXES, is_image
from manyheads.data.regular_files import files_below
from manyheads.data.text.encoding import is_valid_unicode
from manyheads.data.text.languages import guess, is_language_code
from manyheads.data.text.lines import lines
from manyheads.data.text.rows import LISTINGS
from manyheads.errors import DataError, UsageError, nearest
from manyheads.files import expand_user
from manyheads.own_data.columns import LANGUAGES, SURE
from manyheads.own_data.loose_table import header_finding, read_table
from manyheads.own_data.prepared import Finding, finding_of

SPLITS = {"train": "train", "training": "train", "val": "val", "valid": "val", "dev": "val"}
SPLITS |= {"validation": "val", "test": "test", "testing": "test"}
LABELS = ("label", "labels", "class", "classes", "category", "species", "target", "tag", "tags")
TEXTS = ("caption", "captions", "text", "description", "sentence", "title", "comment")
LOOKED_AT = 200  # rows by which columns are chosen
_SEVERAL = re.compile("[;|]")  # between labels of one image


@dataclass(frozen=True)
class Picture:
    """An image file, and what is known about it."""

    path: Path
    labels: tuple[str, ...] = ()
    texts: tuple[tuple[str, str], ...] = ()  # each with the code of its language
    split: str = ""  # "train", "val" or "test" where the files say so


@dataclass
class Found:
    """The images at a path."""

    pictures: list[Picture]
    seen: str  # in what form they are, for people
    captions: bool = False
    multi_label: bool = False
    findings: list[Finding] = field(default_factory=list)

    def note(self, kind: str, names: Sequence[object], done: str) -> None:
        """Add a finding, if there is anything to name."""
        self.findings += finding_of(kind, names, done)


Cells = list[tuple[str, ...]]  # of a row, for each column its texts


def names_images(path: Path) -> bool:
    """Tell whether a file is a table in which a column names image files."""
    if path.suffix.lower() not in LISTINGS:
        return False
    if path.with_suffix("").is_dir():
        return True
    _, rows, _ = _table(path)
    columns = zip(*islice(rows, LOOKED_AT), strict=False)
    return any(sum(map(_is_name, each)) * 2 > len(each) for each in columns)


def _is_name(cell: tuple[str, ...]) -> bool:
    return len(cell) == 1 and Path(cell[0]).suffix.lower() in (*SUFFIXES, *FOREIGN)


def find_pictures(path: Path, columns: Sequence[str]) -> Found:
    """Find images and their classes or texts.

    Args:
        path: a folder of images, or a table that names them.
        columns: of the images, then of the labels or texts; "code=NAME" is a text in a language.

    Raises:
        DataError: there are no images, or nothing says of what they are.
        UsageError: a table lacks a column of `columns`.
    """
    if path.is_file():
        folder = _beside(path)
        images = [each for each in files_below(folder) if is_image(each)] if folder.is_dir() else []
        return _from_table(path, folder, images, columns)
    files = [each for each in files_below(path) if not _is_hidden(each.relative_to(path))]
    images = [each for each in files if is_image(each)]
    if not images:
        raise DataError(
            f"{path} has no images ({', '.join(sorted(SUFFIXES))}): expected a folder of images "
            f"per class, such as {path / 'cat' / '1.jpg'}, or images and a table of their classes. "
            "Of texts, give one file."
        )
    stems = {each.with_suffix(""): each for each in files if each.suffix.lower() == ".txt"}
    if sum(each.with_suffix("") in stems for each in images) * 2 > len(images):
        return _with_text_files(path, images, stems)
    if len({each.parent for each in images}) == 1 or columns:
        beside = [each for each in sorted(path.parent.iterdir()) if each.is_file()]
        tables = [each for each in (*files, *beside) if each.suffix.lower() in LISTINGS]
        named = {each: _named(each, path, images) for each in tables}
        best = max(named, key=named.__getitem__, default=path)
        if best != path and named[best] * 2 >= min(len(images), LOOKED_AT):
            return _from_table(best, path, images, columns)
    return _from_folders(path, images)


def _beside(table: Path) -> Path:
    """Return the folder of a table's images: the one called like it, or whose images it names."""
    by_folder: dict[Path, list[Path]] = {}
    if not table.with_suffix("").is_dir():
        for each in filter(is_image, sorted(table.parent.glob("*/*"))):
            by_folder.setdefault(each.parent, []).append(each)
    named = {folder: _named(table, folder, images) for folder, images in by_folder.items()}
    best = max(named, key=named.__getitem__, default=table)
    return best if named.get(best) else table.with_suffix("")


def _is_hidden(path: Path) -> bool:
    return any(part.startswith((".", "__MACOSX")) for part in path.parts)


def _named(table: Path, folder: Path, images: Sequence[Path]) -> int:
    """Count the rows of a table that name images of a folder, by the column that names most."""
    try:
        _, rows, _ = _table(table)
    except DataError:
        return 0
    find, known = _finder(table, folder, images), {each.resolve() for each in images}
    some = rows[:LOOKED_AT]
    found = [[(path := find(cell)) and path.resolve() in known for cell in row] for row in some]
    most = max((sum(map(bool, each)) for each in zip(*found, strict=True)), default=0)
    # Outside, a number may name an image by chance.
    return most if folder in table.parents or most * 4 >= len(some) else 0


def _from_folders(path: Path, images: Sequence[Path]) -> Found:
    places = {each: list(each.relative_to(path).parts) for each in images}
    while len({parts[0] for parts in places.values()}) == 1 and min(map(len, places.values())) > 2:
        places = {each: parts[1:] for each, parts in places.items()}  # a folder around all
    inside = {parts[0].lower() for parts in places.values() if len(parts) > 2}
    split = bool(inside) and inside <= set(SPLITS)
    depth = 1 + split
    without = [each for each, parts in places.items() if len(parts) <= depth]
    if len(without) == len(images):
        raise DataError(
            f"{path} has {len(images):,} images, but nothing says of which class: put those of "
            f"each class into a folder of its own, such as {path / 'cat'}; or put a table beside "
            f"them, such as {path / 'labels.csv'}, with lines like {images[0].name},cat."
        )
    pictures = [
        Picture(each, (parts[depth - 1],), split=SPLITS[parts[0].lower()] if split else "")
        for each, parts in places.items()
        if len(parts) > depth
    ]
    form = "one folder a class" + (" in each of train, val, test" if split else "")
    found = Found(pictures, f"{path}: {len(images):,} images, {form}")
    used = {parent for each in images for parent in each.parents}
    unused = [each for each in path.iterdir() if each.is_dir() and not {each} & used]
    empty = [each for each in unused if not _is_hidden(each.relative_to(path))]
    found.note("empty-class", empty, "no images")
    found.note("no-label", without, "in no class folder: left out")
    return found


def _language(texts: Iterable[str]) -> str:
    """Guess the code of a language; English if nothing speaks clearly for another."""
    (best, first), (_, second), *_ = guess(" ".join(texts), LANGUAGES)
    return best if first > SURE * second else "en"


def _with_text_files(path: Path, images: Sequence[Path], texts: dict[Path, Path]) -> Found:
    own = {each: texts[stem] for each in images if (stem := each.with_suffix("")) in texts}
    known = {
        each: [line for _, text in lines(file, lambda _: None) if text and (line := text.strip())]
        for each, file in own.items()
    }
    code = _language(line for each in known.values() for line in each)
    pictures = [Picture(each, texts=tuple((code, t) for t in its)) for each, its in known.items()]
    found = Found(pictures, f"{path}: {len(images):,} images, with .txt files in {code}", True)
    found.note("no-text", [each for each in images if each not in known], "no text: left out")
    return found


# --- Tables -------------------------------------------------------------------------------------


def _from_table(table: Path, folder: Path, images: Sequence[Path], columns: Sequence[str]) -> Found:
    names, rows, findings = _table(table)
    find = _finder(table, folder, images)
    some, width = rows[:LOOKED_AT], range(len(rows[0]) if rows else 0)
    hits = [sum(find(row[n]) is not None for row in some) for n in width]
    hits = hits if any(hits) else [sum(_is_name(row[n]) for row in some) for n in width]
    likely = max(width, key=hits.__getitem__, default=0)
    if not names and any(hits) and not _is_name(rows[0][likely]) and find(rows[0][likely]) is None:
        names = [" ".join(cell) for cell in rows.pop(0)]
        findings += header_finding(names)
    names = names or [str(n + 1) for n in width]
    every = [_Column(n, name, [row[n] for row in rows]) for n, name in enumerate(names)]
    chosen = [_column(each, names, table) for each in columns]
    place = chosen[0][1] if chosen else likely
    if not hits or not (hits[place] or columns):
        raise DataError(
            f"{table}: no column names images in {folder}. Its columns are {', '.join(names)}; "
            "say which names the images, and which their classes, with `columns`."
        )
    others = [each for each in every if each.number != place]
    ones = [each.number for each in others if {*each.texts} == {"0", "1"}]
    named = any(each.name in (*LABELS, *TEXTS) for each in others)
    if len(ones) > 1 and not named and not chosen[1:]:  # a column a class, with 1 where it is so
        rows = [[*row, tuple(names[n] for n in ones if row[n] == ("1",))] for row in rows]
        names = [*names, f"{names[ones[0]]} ... {names[ones[-1]]}"]
        every.append(_Column(len(names) - 1, "classes", [row[-1] for row in rows]))
        others = [*(each for each in others if each.number not in ones), every[-1]]
    split = next((e.number for e in others if {t.lower() for t in e.texts} <= set(SPLITS)), None)
    wanted = chosen[1:] or [("", _choose(others, split, table))]
    captions = any(code for code, _ in wanted) or every[wanted[0][1]].has_texts
    if not captions and len(wanted) > 1:
        raise UsageError(f"{table}: `columns` names {len(wanted)} columns of classes: name one.")
    if captions:
        wanted = [(code or _language(every[n].texts), n) for code, n in wanted]
    form = f"{table}: {len(rows):,} rows; {names[place]!r} names the images, "
    form += ", ".join(
        f"{names[n]!r} has {f'texts in {code}' if captions else 'the classes'}"
        for code, n in wanted
    )
    multi = not captions and every[wanted[0][1]].is_multi_label
    found = Found([], form, captions, multi, findings)
    missing, empty, again, known = list[str](), list[str](), list[str](), dict[Path, Picture]()
    for row in rows:
        if (path := find(row[place])) is None:
            missing.append(row[place][0] if row[place] else "(an empty cell)")
            continue
        cells = [(code, text) for code, n in wanted for text in row[n]]
        if not cells:
            empty.append(str(path))
            continue
        before = known.get(path, Picture(path))
        labels = tuple(text for _, text in cells)
        if multi:
            labels = tuple(part for text in labels for part in _parts(text))
        part = SPLITS.get(row[split][0].lower(), "") if split is not None and row[split] else ""
        if captions:
            known[path] = Picture(path, (), tuple(dict.fromkeys((*before.texts, *cells))), part)
        else:
            if before.labels not in ((), labels):
                again.append(f"{path} ({', '.join(before.labels)} and {', '.join(labels)})")
            known[path] = Picture(path, before.labels or labels, (), part)
    found.pictures = list(known.values())
    found.note("missing-image", missing, "a row names an image that is not there: left out")
    found.note("no-text" if captions else "no-label", empty, "an empty cell: left out")
    found.note("repeated-row", again, "two rows contradict each other: the first counts")
    unlisted = [each for each in images if each not in known and str(each) not in {*empty}]
    found.note("unlisted-image", unlisted, f"not in {table.name}: left out")
    if not known:
        raise DataError(
            f"{table}: none of the images that {names[place]!r} names is there, such as "
            f"{missing[0] if missing else '(no rows)'}: looked in {table.parent} and {folder}. "
            "Give the folder of the images, with the table in it or beside it; download addresses."
        )
    return found


def _table(path: Path) -> tuple[list[str], list[Cells], list[Finding]]:
    """Read the columns and rows of a table; names of a header that is an image are a row."""
    table = read_table(path)
    rows, findings, names = [cells for _, cells in table.rows], table.findings, table.header
    if any(map(_is_name, map(_plain, names))):
        rows, names = [names, *rows], []
        findings = [each for each in findings if each.kind != "header"]
    cells = [[*map(_plain, row), *[()] * table.width][: table.width] for row in rows]
    return names, cells, findings


def _plain(cell: str) -> tuple[str, ...]:
    """Return the texts of a cell: one, those of a list, or none."""
    return tuple(text for part in cell.split("\n") if (text := part.strip()))


def _finder(
    table: Path, folder: Path, images: Sequence[Path]
) -> Callable[[tuple[str, ...]], Path | None]:
    """Return what finds the image that a cell names: by its path, its name, or without ending."""
    known: dict[str, Path | None] = {}
    for path in images:
        for name in {path.name.lower(), path.stem.lower()}:
            known[name] = None if name in known else path  # of several with one name, none

    def find(cell: tuple[str, ...]) -> Path | None:
        name = cell[0].replace("\\", "/") if len(cell) == 1 else ""
        for place in (table.parent, folder):
            path = place / expand_user(name)
            if name and is_valid_unicode(name) and path.is_file():
                return path
        return known.get(name.rpartition("/")[2].lower())

    return find


def _column(wanted: str, names: Sequence[str], table: Path) -> tuple[str, int]:
    """Return the language, or "", and the index of a column: "NAME", "2", or "en=NAME"."""
    code, _, name = wanted.rpartition("=")
    if code and not is_language_code(code):
        code, name = "", wanted
    if name in names:
        return code, names.index(name)
    if name.isdecimal() and 1 <= int(name) <= len(names):
        return code, int(name) - 1
    raise UsageError(
        f"{table} has no column {name!r}{nearest(name, names)}It has {', '.join(names)}."
    )


class _Column:
    """A column of a table; what its first cells hold."""

    def __init__(self, number: int, name: str, cells: Sequence[tuple[str, ...]]) -> None:
        self.number, self.name, self.cells = number, name.lower(), cells
        self.texts = [text for cell in cells[:LOOKED_AT] for text in cell]
        self.distinct = len({*self.texts})

    @property
    def has_texts(self) -> bool:
        """Whether it has texts about images rather than classes: by its name, or as few repeat."""
        usual, most = self.name in TEXTS, len(self.texts) / 2
        if self.distinct <= most:
            return usual and sum(" " in text for text in self.texts) > most
        phrases = sum(" " in text or not text.isascii() for text in self.texts) > most
        return usual or (phrases and self.name not in LABELS)

    @property
    def is_multi_label(self) -> bool:
        """Whether cells have several labels: lists, or texts whose parts repeat elsewhere."""
        parts = Counter(part for text in {*self.texts} for part in {*_parts(text)})
        return any(len(cell) > 1 for cell in self.cells) or max(parts.values(), default=0) > 1


def _choose(others: Sequence[_Column], split: int | None, table: Path) -> int:
    """Choose the column of classes or texts: by its name, else by what is in it."""
    words = (*LABELS, *TEXTS)
    usual = [each for each in others if each.name in words]
    usual = usual or [each for each in others if any(word in each.name for word in words)]
    rest = [each for each in others if each.number != split]
    few = [each for each in rest if 1 < each.distinct <= len(each.cells[:LOOKED_AT]) / 2]
    few.sort(key=lambda each: each.distinct)
    left = usual or [each for each in rest if each.has_texts] or few or rest
    if not left:
        raise DataError(f"{table} has one column only: the class or the text of each is missing.")
    return left[0].number


def _parts(cell: str) -> list[str]:
    """Split a cell at the marks that stand between several labels."""
    return [part for each in _SEVERAL.split(cell) if (part := each.strip())]

"""Hashes of what readers yield and of the batches that tasks make, for tests/golden/splits.json.

    MANYHEADS_DATA=FOLDER python -m tests.recorded_splits    # writes the file

In it are the splits of the shipped recipes, as far as their data are in the folder; the small files
of tests/golden/rows, which hold pairs, labelled images and images with captions in every form that
is read; and the first batches of six tasks. Of a row everything is hashed that a task learns from:
texts, lines, labels, the bytes of images, and names without the folder that they are in.
"""

import hashlib
import json
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from torch import Tensor

from manyheads.data.images.captioned_images import CaptionedImages
from manyheads.data.images.image_set import ImageSet
from manyheads.data.text.corpus import Corpus, Sentences, StreamedCorpus
from manyheads.data.text.formats import read_pairs
from manyheads.errors import NotFoundError
from manyheads.predict.task_pipeline import pipeline_of
from manyheads.project.base_recipe import Recipe, read_recipe
from manyheads.project.paths import allow, data_root, shipped
from manyheads.recipe_data.caption_data import CaptionData, ReadData
from manyheads.recipe_data.caption_splits import captioned_split, read_captioned
from manyheads.recipe_data.image_data import ImageData, LabelledImageData
from manyheads.recipe_data.image_splits import find_images, image_split
from manyheads.recipe_data.named_splits import sentences
from manyheads.recipe_data.pair_splits import corpus_split, training_corpus
from manyheads.recipe_data.text_data import PairData, SentenceData
from tests import captioned, language, squares
from tests.made import CLASSIFY, TRANSLATE, Silent, png, write_halves, write_numbers, write_recipe

GOLDEN = Path(__file__).parent / "golden" / "splits.json"
ROWS = Path(__file__).parent / "golden" / "rows"
PAIRS = [
    ('He said: "go", and went.', "Er sagte: „geh“ und ging."),
    ("null", "1e5"),
    ("나", "ich"),
    ("two\u2028lines, cafe\u0301", "  zwei "),
]

Hashes = dict[str, str]


# --- Hashes ---------------------------------------------------------------------------------------


def digest(rows: Iterable[Any]) -> str:
    """Hash rows of plain values and bytes, in order, and their number."""
    found, number = hashlib.sha256(), 0
    for number, row in enumerate(rows, 1):  # noqa: B007 - the last one is their number
        found.update(json.dumps(row, ensure_ascii=False, default=_plain).encode() + b"\n")
    return f"{number} {found.hexdigest()[:32]}"


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return hashlib.sha256(value).hexdigest()
    if isinstance(value, Tensor):
        value = value.numpy()
    array = np.ascontiguousarray(value)  # of an image that Pillow opened, too
    return [str(array.dtype), array.shape, hashlib.sha256(array.tobytes()).hexdigest()]


def rows_of(found: Any, root: Path) -> Iterator[Any]:
    """Yield what a set holds, a row at a time."""
    if isinstance(found, Corpus):
        yield from zip(found.source, found.target, strict=True)
        yield [list(found.lines), found.first_line, found.groups, found.links, found.test]
    elif isinstance(found, StreamedCorpus):
        yield from found.pairs()
    elif isinstance(found, Sentences):
        yield from found.lines
    elif isinstance(found, ImageSet):
        yield found.classes
        yield [line.replace(str(root), "") for line in found.left_out]
        for index, (name, label) in enumerate(zip(found.names, found.labels.tolist(), strict=True)):
            yield [name.replace(str(root), ""), label, found.read(index)]
    else:
        assert isinstance(found, CaptionedImages)
        # As it was recorded: pixels, and of the hub the bytes of files.
        hub = found.images.origin.startswith("hub:")
        images = found.images if hub else replace(found.images, read=found.images.open)
        yield from rows_of(images, root)
        yield from zip(found.owners.tolist(), found.languages, found.texts, strict=True)


# --- Splits of the shipped recipes ----------------------------------------------------------------


def splits() -> dict[str, Callable[[], Any]]:
    """Name each split of the shipped recipes once, with what reads it."""
    found: dict[str, Callable[[], Any]] = {}
    known = set()
    for name, path in shipped("recipes").items():
        recipe = read_recipe(path)
        table = f"{type(recipe.data).__name__} {recipe.data.model_dump_json()}"
        if table not in known:
            known.add(table)
            found |= {f"{name}: {split}": read for split, read in _splits(recipe)}
    return found


def _splits(recipe: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    data = recipe.data
    for split in ("train", "valid", "test"):
        name = getattr(data, split)
        if name is None and (split == "test" or not getattr(data, "hold_out", 0)):
            continue
        if isinstance(data, PairData):
            whole = split == "train"
            yield (
                split,
                partial(training_corpus, data) if whole else partial(corpus_split, split, data),
            )
        elif isinstance(data, ReadData):
            for column in (data.column, data.also_column):
                table = SentenceData(root=data.root, train=name, valid=name, column=column)
                yield f"{split}, column {column}", partial(sentences, name, table)
        elif isinstance(data, CaptionData):
            yield split, partial(captioned_split, split, recipe)
        elif isinstance(data, ImageData):
            yield split, partial(image_split, split, recipe)
        else:
            yield split, partial(sentences, name, data)


def hash_split(read: Callable[[], Any]) -> str:
    """Read a split and hash its rows."""
    return digest(rows_of(read(), data_root(None).absolute()))


# --- Small files in every form --------------------------------------------------------------------


class HubRows(list[dict[str, Any]]):
    """What `datasets.load_dataset` returns."""

    column_names = ("image", "label", "caption", "en", "de")
    features = {"label": SimpleNamespace(names=["left", "right"])}  # noqa: RUF012
    _fingerprint = "0"

    def cast_column(self, _: str, kind: object) -> "HubRows":
        """Leave images as bytes, as is asked for."""
        assert kind == "undecoded"
        return self

    def select_columns(self, _: object) -> "HubRows":
        """Return all columns: the reader looks at those that it asked for."""
        return self

    def __getitem__(self, key: Any) -> Any:
        """Return a row by its number, or a column by its name."""
        return [row[key] for row in self] if isinstance(key, str) else super().__getitem__(key)


@contextmanager
def hub() -> Iterator[None]:
    """Let a stand-in of the package `datasets` answer."""
    images = [
        {"bytes": (ROWS / "labels" / f"{n}.png").read_bytes(), "path": None} for n in range(3)
    ]
    rows = HubRows(
        {"image": image, "label": n % 2, "caption": f"caption {n}", "en": s, "de": t}
        for n, (image, (s, t)) in enumerate(zip(images, PAIRS, strict=False))
    )
    module: Any = ModuleType("datasets")
    module.Image = lambda decode: "decoded" if decode else "undecoded"
    module.load_dataset = lambda *_, **__: rows
    allow("hub:recorded/rows")
    before = sys.modules.get("datasets")
    sys.modules["datasets"] = module
    try:
        yield
    finally:
        del sys.modules["datasets"]
        if before is not None:
            sys.modules["datasets"] = before


def pairs() -> Hashes:
    """Hash the pairs of each file in rows/pairs, and of the hub."""
    names = {path.name: str(path) for path in sorted((ROWS / "pairs").iterdir())}
    names["hub"] = "hub:recorded/rows"
    return {form: digest(read_pairs(name, "en", "de")) for form, name in names.items()}


def labels() -> Hashes:
    """Hash the labelled images of each form in rows/labels, and of the hub."""
    forms = ("a.csv", "a.tsv", "a.jsonl", "a.tar", "*.parquet", "folders")
    tables = {name: LabelledImageData(root=str(ROWS), train=f"labels/{name}") for name in forms}
    tables["hub"] = LabelledImageData(train="hub:recorded/rows")
    for name in ("several.csv", "several.jsonl"):
        table = LabelledImageData(root=str(ROWS), train=f"labels/{name}", multi_label=True)
        tables[name] = table
    return {
        form: digest(rows_of(find_images(table.train, table), ROWS))
        for form, table in tables.items()
    }


def captions() -> Hashes:
    """Hash the captioned images of each form in rows/captions, and of the hub."""
    found = {}
    for form, make in captioned.FORMS.items():
        with tempfile.TemporaryDirectory() as folder:  # for its table
            data = make(Path(folder), captioned.PAIRS)
        root = ROWS / "captions" / form
        data = data.model_copy(update={"root": str(root)})
        found[form] = digest(rows_of(read_captioned(data.train, data), root))
    data = CaptionData(train="hub:recorded/rows")
    return found | {"hub": digest(rows_of(read_captioned(data.train, data), ROWS))}


def write_rows() -> None:
    """Write the files: once, so that they stay when what writes them changes."""
    from tests.captioned import FORMS, tar
    from tests.data.test_formats import WRITERS
    from tests.made import half

    for name, write in WRITERS.items():
        path = ROWS / "pairs" / f"a.{name}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(write(PAIRS))
    for form, make in FORMS.items():
        (ROWS / "captions" / form).mkdir(parents=True)
        make(ROWS / "captions" / form, captioned.PAIRS)
    folder = ROWS / "labels"
    folder.mkdir()
    images = [png(half(n % 2, n)) for n in range(3)]
    names = ["right", "left", "right"]  # not in the order of their names
    for number, (image, label) in enumerate(zip(images, names, strict=True)):
        (folder / f"{number}.png").write_bytes(image)
        (folder / "folders" / label).mkdir(parents=True, exist_ok=True)
        (folder / "folders" / label / f"{number}.png").write_bytes(image)
        table = pa.Table.from_pylist([{"image": image, "label": label}])
        pq.write_table(table, folder / f"{number}.parquet")
    rows = [{"image": f"{number}.png", "label": label} for number, label in enumerate(names)]
    for suffix, mark in (("csv", ","), ("tsv", "\t")):
        lines = ["image" + mark + "label", *(mark.join(row.values()) for row in rows)]
        (folder / f"a.{suffix}").write_bytes("".join(f"{line}\n" for line in lines).encode())
    (folder / "a.jsonl").write_text(
        "".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8"
    )
    several = [["red", "big"], [], ["big"]]
    lines = ["image,label", *(f"{n}.png,{'; '.join(each)}" for n, each in enumerate(several))]
    (folder / "several.csv").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    rows_of_several = [{"image": f"{n}.png", "label": each} for n, each in enumerate(several)]
    (folder / "several.jsonl").write_text(
        "".join(f"{json.dumps(r)}\n" for r in rows_of_several), encoding="utf-8"
    )
    members: dict[str, bytes] = {}
    for number, label in enumerate(names):
        members |= {f"{number}.png": images[number], f"{number}.cls": label.encode()}
    tar(folder / "a.tar", members)


# --- Batches --------------------------------------------------------------------------------------


def batches() -> Hashes:
    """Hash the first two batches of two epochs of six tasks."""
    found = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_numbers(folder)
        write_halves(folder)
        recipes = {
            "translate": write_recipe(folder / "translate.toml", TRANSLATE, folder),
            "classify": write_recipe(folder / "classify.toml", CLASSIFY, folder),
            "fill": language.recipe("fill"),
            "tag": language.recipe("tag"),
            "caption": squares.recipe("caption"),
            "match": squares.recipe("match"),
        }
        for task, path in recipes.items():
            several = [] if "max_tokens" in path.read_text("utf-8") else ["train.batch_size=5"]
            recipe: Recipe = read_recipe(path, several)
            (folder / task).mkdir()
            prepared = pipeline_of(recipe).prepare(recipe, folder / task, Silent().say)
            found[task] = digest(_batches(prepared.task))
    return found


def _batches(task: Any) -> Iterator[Any]:
    for epoch in range(2):
        plan = task.plan(epoch)
        yield [part.tolist() for part in plan]
        for batch in islice(task.load(epoch, plan[:2]), 2):
            fields = dict(sorted(vars(batch).items()))
            yield [[name, value] for name, value in fields.items()]


def small() -> dict[str, Hashes]:
    """Hash all that needs no data from elsewhere."""
    with hub():
        found = {"pairs": pairs(), "labels": labels(), "captions": captions()}
    return found | {"batches": batches()}


def main() -> None:
    """Write the golden file, and the small files where they are not there."""
    if not ROWS.exists():
        write_rows()
    found: dict[str, Hashes] = {"splits": {}}
    for name, read in splits().items():
        try:
            found["splits"][name] = hash_split(read)
        except NotFoundError as error:
            print(f"{name}: left out. {error}", file=sys.stderr)
    found |= small()
    GOLDEN.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

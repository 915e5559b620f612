"""The same images with texts in every form that is read; the tests make them for themselves."""

import csv
import io
import json
import tarfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from manyheads.data.images.captioned_images import CaptionedImages
from manyheads.recipe_data.caption_data import CaptionData
from manyheads.recipe_data.caption_splits import read_captioned
from tests.made import png

Texts = Mapping[str, Sequence[str]]  # of an image, by language


class Pair(NamedTuple):
    """An image and its texts."""

    image: Image.Image
    texts: Texts


def colour(number: int) -> Image.Image:
    """An image that differs from those of other numbers in every pixel."""
    return Image.new("RGB", (6, 4), (number * 40 % 256, number % 256, 99))


PAIRS = [
    Pair(colour(0), {"en": ["a cat", "a small cat"], "ko": ["고양이"]}),
    Pair(colour(1), {"en": ["a dog"]}),
    Pair(colour(2), {"ko": ["말", "큰 말"]}),
]


def contents(found: CaptionedImages) -> list[tuple[tuple[int, ...], list[tuple[str, str]]]]:
    """The colour of each image, and its texts with their languages, in order."""
    result = []
    for index in range(len(found)):
        texts = [(found.languages[n], found.texts[n]) for n in found.captions(index)]
        image = found.images.image(index).convert("RGB")
        pixel = image.getpixel((0, 0))
        assert isinstance(pixel, tuple)
        result.append((pixel, texts))
    return result


def expected(pairs: Sequence[Pair]) -> list[tuple[tuple[int, ...], list[tuple[str, str]]]]:
    """What every form of these pairs is read as."""
    return [
        (
            pair.image.getpixel((0, 0)),  # type: ignore[misc]
            [(language, text) for language, texts in pair.texts.items() for text in texts],
        )
        for pair in pairs
    ]


def _images(folder: Path, pairs: Sequence[Pair]) -> list[str]:
    """Write the images; return their paths in the folder."""
    (folder / "images").mkdir(parents=True, exist_ok=True)
    for number, pair in enumerate(pairs):
        pair.image.save(folder / "images" / f"{number}.png")
    return [f"images/{number}.png" for number in range(len(pairs))]


def _rows(folder: Path, pairs: Sequence[Pair]) -> list[dict[str, str]]:
    """A row for each text, with its language."""
    return [
        {"image": path, "lang": language, "caption": text}
        for path, pair in zip(_images(folder, pairs), pairs, strict=True)
        for language, texts in pair.texts.items()
        for text in texts
    ]


LISTS = {"texts": {"en": "name_en", "ko": ["name_ko"]}}
A_ROW_A_TEXT = {"language_column": "lang"}


def _lists(cells: Sequence[Any], pairs: Sequence[Pair]) -> list[dict[str, Any]]:
    """A row for each image, with lists of texts."""
    return [
        {
            "image": cell,
            "name_en": list(p.texts.get("en", [])),
            "name_ko": list(p.texts.get("ko", [])),
        }
        for cell, p in zip(cells, pairs, strict=True)
    ]


def parquet(folder: Path, pairs: Sequence[Pair]) -> CaptionData:
    """Images as bytes, lists of texts, two files."""
    rows = _lists([png(pair.image) for pair in pairs], pairs)
    schema = pa.Table.from_pylist(rows).schema
    for number, part in enumerate((rows[:1], rows[1:])):
        pq.write_table(pa.Table.from_pylist(part, schema), folder / f"{number}.parquet")
    return CaptionData(root=str(folder), train="*.parquet", **LISTS)  # type: ignore[arg-type]


def parquet_structs(folder: Path, pairs: Sequence[Pair]) -> CaptionData:
    """Hugging Face's struct: bytes and, every other time, a path."""
    paths = _images(folder, pairs)
    cells = [
        {"bytes": png(pair.image), "path": "x.png"} if n % 2 else {"bytes": None, "path": paths[n]}
        for n, pair in enumerate(pairs)
    ]
    pq.write_table(pa.Table.from_pylist(_lists(cells, pairs)), folder / "a.parquet")
    return CaptionData(root=str(folder), train="a.parquet", **LISTS)  # type: ignore[arg-type]


def parquet_rows(folder: Path, pairs: Sequence[Pair]) -> CaptionData:
    """Paths, a row for each text."""
    pq.write_table(pa.Table.from_pylist(_rows(folder, pairs)), folder / "a.parquet")
    return CaptionData(root=str(folder), train="a.parquet", **A_ROW_A_TEXT)  # type: ignore[arg-type]


def comma_separated(folder: Path, pairs: Sequence[Pair]) -> CaptionData:
    """A row for each text, quoted where it must be."""
    rows = _rows(folder, pairs)
    with (folder / "a.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return CaptionData(root=str(folder), train="a.csv", **A_ROW_A_TEXT)  # type: ignore[arg-type]


def tab_separated(folder: Path, pairs: Sequence[Pair]) -> CaptionData:
    """The same with tabs; the images are in another folder than the table."""
    rows = _rows(folder / "else", pairs)
    lines = ["\t".join(rows[0]), *("\t".join(row.values()) for row in rows)]
    (folder / "a.tsv").write_bytes("\n".join(lines).encode())
    return CaptionData(root=str(folder), train="a.tsv", images="else", **A_ROW_A_TEXT)  # type: ignore[arg-type]


def json_lines(folder: Path, pairs: Sequence[Pair]) -> CaptionData:
    """Lists of texts; behind the first row, a language without any is not there."""
    rows = _lists(_images(folder, pairs), pairs)
    kept = rows[:1] + [{key: value for key, value in row.items() if value} for row in rows[1:]]
    (folder / "a.jsonl").write_bytes("\n".join(map(json.dumps, kept)).encode())
    return CaptionData(root=str(folder), train="a.jsonl", **LISTS)  # type: ignore[arg-type]


def beside(folder: Path, pairs: Sequence[Pair]) -> CaptionData:
    """A folder of images and .txt files; English has no language in its name."""
    for path, pair in zip(_images(folder, pairs), pairs, strict=True):
        for name, content in _files(pair).items():
            (folder / path).with_suffix(name).write_bytes(content)
    return CaptionData(root=str(folder), train="images")


def _files(pair: Pair) -> dict[str, bytes]:
    return {
        ".txt" if language == "en" else f".{language}.txt": "\n".join(texts).encode()
        for language, texts in pair.texts.items()
        if texts
    }


def tar(path: Path, members: Mapping[str, bytes]) -> Path:
    """Write an archive."""
    with tarfile.open(path, "w") as archive:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return path


def shards(folder: Path, pairs: Sequence[Pair]) -> CaptionData:
    """Two archives of images and .txt files."""
    for number, part in enumerate((pairs[:1], pairs[1:])):
        members: dict[str, bytes] = {}
        for index, pair in enumerate(part):
            members[f"d/{index}.png"] = png(pair.image)
            members |= {f"d/{index}{name}": content for name, content in _files(pair).items()}
        tar(folder / f"{number}.tar", members)
    return CaptionData(root=str(folder), train="*.tar")


def shards_json(folder: Path, pairs: Sequence[Pair]) -> CaptionData:
    """An archive of images and .json files; a .txt beside them says something else."""
    members: dict[str, bytes] = {}
    for number, row in enumerate(_lists([None] * len(pairs), pairs)):
        members[f"{number}.txt"] = b"not this"
        members[f"{number}.json"] = json.dumps(row).encode()
        members[f"{number}.png"] = png(pairs[number].image)
    tar(folder / "a.tar", members)
    return CaptionData(root=str(folder), train="a.tar", **LISTS)  # type: ignore[arg-type]


def coco(folder: Path, pairs: Sequence[Pair]) -> CaptionData:
    """As COCO unpacks: annotations/captions_val.json and images/val."""
    paths = _images(folder, pairs)
    (folder / "images").rename(folder / "val")
    (folder / "images").mkdir()
    (folder / "val").rename(folder / "images" / "val")
    (folder / "annotations").mkdir()
    table = {
        "info": {"year": 2014},
        "images": [
            {"id": 100 - number, "file_name": Path(path).name, "license": 3}
            for number, path in enumerate(paths)
        ],
        "annotations": [
            {"id": 1, "image_id": 100 - number, "caption": text, "lang": language}
            for number, pair in enumerate(pairs)
            for language, texts in pair.texts.items()
            for text in texts
        ],
    }
    (folder / "annotations" / "captions_val.json").write_text(json.dumps(table))
    train = "annotations/captions_val.json"
    return CaptionData(root=str(folder), train=train, **A_ROW_A_TEXT)  # type: ignore[arg-type]


FORMS: dict[str, Callable[[Path, Sequence[Pair]], CaptionData]] = {
    form.__name__: form
    for form in (
        parquet,
        parquet_structs,
        parquet_rows,
        comma_separated,
        tab_separated,
        json_lines,
        beside,
        shards,
        shards_json,
        coco,
    )
}


def read(data: CaptionData) -> CaptionedImages:
    """Read what is trained on."""
    return read_captioned(data.train, data)

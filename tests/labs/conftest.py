"""A data root: a few images laid out as CIFAR-10's training files and as the emoji, and lines."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from tests.made import png, write_texts_to_read

CLASSES = 10
EACH = 12  # pictures of a class
PAIRS = {
    "en": ["A man rides a bicycle.", "Two dogs play.", "A girl in red sings.", "People wait."],
    "de": ["Ein Mann fährt Fahrrad.", "Zwei Hunde spielen.", "Ein Mädchen singt.", "Leute warten."],
}


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pictures of 32 pixels whose brightness is their class, more or less."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "cifar10").mkdir()
    random = np.random.default_rng(0)
    labels = np.repeat(np.arange(CLASSES), EACH)
    random.shuffle(labels)
    pictures = [
        png(Image.fromarray((20 * label + random.integers(0, 60, (32, 32, 3))).astype(np.uint8)))
        for label in labels
    ]
    for part in range(4):
        table = pa.table(
            {
                "image": [{"bytes": each} for each in pictures[part::4]],
                "label": [f"class {label}" for label in labels[part::4]],
            }
        )
        pq.write_table(table, folder / "cifar10" / f"train-{part}-of-4.parquet")
    write_emoji(folder / "emoji", random)
    write_texts_to_read(folder)
    (folder / "multi30k").mkdir()
    for language, lines in PAIRS.items():
        (folder / "multi30k" / f"val.{language}").write_text("\n".join(lines) + "\n")
    return folder


def write_emoji(folder: Path, random: np.random.Generator) -> None:
    """Write noise with a name in each of five languages, all of them different."""
    folder.mkdir()
    rows: list[dict[str, object]] = []
    for number in range(24):
        pixels = random.integers(0, 256, (16, 16, 3)).astype(np.uint8)
        names = {f"name_{code}": f"{code} {number}" for code in ("en", "ko", "de", "fr", "ja")}
        rows.append({"image": png(Image.fromarray(pixels)), "split": "train", **names})
    pq.write_table(pa.Table.from_pylist(rows), folder / "noto72.parquet")

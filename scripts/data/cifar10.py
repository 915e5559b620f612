"""CIFAR-10 from the parquet files of the hub: the same pixels as lossless WebP, reordered."""

import io
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from scripts.data.rows import in_order, key
from scripts.data.sources import Sources

HUB = "https://huggingface.co/datasets/uoft-cs/cifar10/resolve/main/plain_text/"
CLASSES = (
    *("airplane", "automobile", "bird", "cat", "deer"),
    *("dog", "frog", "horse", "ship", "truck"),
)
SHARDS = {"test": 1, "train": 4}


def build(sources: Sources, root: Path) -> Iterator[Path]:
    """Write cifar10/test-0-of-1.parquet and cifar10/train-0-of-4.parquet to 3."""
    for split, shards in SHARDS.items():
        name = f"{split}-00000-of-00001.parquet"
        table = pq.read_table(sources.file(f"cifar10-{name}", f"{HUB}{name}"))
        images = {}
        for image, number in zip(table["img"].to_pylist(), table["label"].to_pylist(), strict=True):
            pixels = Image.open(io.BytesIO(image["bytes"])).convert("RGB")
            label = CLASSES[number]
            images[key(label, pixels.tobytes())] = (pixels, label)
        rows = in_order(f"cifar10-{split}", images)
        size = -(-len(rows) // shards)
        for shard in range(shards):
            part = rows[shard * size : (shard + 1) * size]
            path = root / "cifar10" / f"{split}-{shard}-of-{shards}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            content = {
                "image": pa.array([webp(pixels) for pixels, _ in part], pa.binary()),
                "label": [label for _, label in part],
            }
            pq.write_table(pa.table(content), path, compression="none")
            yield path


def webp(image: Image.Image) -> bytes:
    """Encode without loss."""
    out = io.BytesIO()
    image.save(out, "WEBP", lossless=True)
    return out.getvalue()

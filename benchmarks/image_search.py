"""How fast an index of images is searched: invented vectors, one query at a time, all compared.

    python -m benchmarks.image_search --vectors 100000 1000000
    python -m benchmarks.image_search --vectors 100000 --usearch    # after: pip install usearch

The index is open, and a query goes through `ImageIndex.search` with a model that answers at once,
so that the figures are those of the search alone. Every answer is compared with brute force: all
scores in float64, sorted. With --usearch an approximate index (HNSW, Malkov & Yashunin 2016) of the
same vectors is built and searched for the same queries. "even" vectors point anywhere; "grouped"
ones lie around centres in a space of 32 dimensions, as vectors of a model do.

CPU time is that of the process, all its threads together, which other work changes less.
"""

import argparse
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import mkdtemp

import numpy as np

import manyheads
from manyheads.data.images.image_file import ImageContent
from manyheads.image_search.index_folder import Header, IndexedImage, IndexFolder, create
from manyheads.train.device import processor

DIM = 256
TOP = 10
CHUNK = 50_000
GROUP = 50  # vectors around a centre


class Invented:
    """A model whose vectors of texts are drawn beforehand."""

    def __init__(self, vectors: np.ndarray) -> None:
        self.folder = manyheads.load("digits").folder
        self.vectors = vectors

    def embed_texts(self, texts: Sequence[str]) -> np.ndarray:
        return self.vectors[[int(text) for text in texts]]

    def embed_images(self, images: Sequence[str | Path | ImageContent]) -> np.ndarray:
        raise NotImplementedError


def unit(vectors: np.ndarray) -> np.ndarray:
    """Divide rows by their lengths."""
    vectors = vectors.astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def draw(kind: str, count: int, random: np.random.Generator) -> np.ndarray:
    """Draw vectors of length 1."""
    if kind == "even":
        return unit(random.standard_normal((count, DIM), dtype=np.float32))
    fixed = np.random.default_rng(0)
    centres, to = fixed.standard_normal((20_000, 32)), fixed.standard_normal((32, DIM))
    chosen = centres[random.integers(0, len(centres), -(-count // GROUP))]
    near = np.repeat(chosen, GROUP, axis=0)[:count]
    return unit((near + 0.5 * random.standard_normal((count, 32))) @ to)


def write_index(path: Path, kind: str, count: int, model: Invented) -> None:
    """Write an index of so many images, which are nowhere."""
    path.mkdir()
    create(path, Header(model="digits", weights=model.folder.weights_hash, dim=DIM))
    folder = IndexFolder(path, write=True)
    random = np.random.default_rng(1)
    for first in range(0, count, CHUNK):
        rows = range(first, min(first + CHUNK, count))
        images = [IndexedImage(f"images/{row:09d}.png", None, row) for row in rows]
        folder.commit(draw(kind, len(rows), random), [f"{row:064x}" for row in rows], images)
    folder.close()


def brute_force(vectors: np.ndarray, query: np.ndarray) -> tuple[list[int], list[float]]:
    """Score everything in float64, and sort it."""
    scores = np.concatenate(
        [
            (vectors[first : first + CHUNK].astype(np.float64) * query).sum(axis=1)
            for first in range(0, len(vectors), CHUNK)
        ]
    )
    order = np.lexsort((np.arange(len(scores)), -scores))[:TOP]
    return order.tolist(), scores[order].tolist()


def times(search: Callable[[int], object], queries: int) -> str:
    """Search for each query; return median, 95th percentile and median CPU time."""
    taken, used = [], []
    for number in range(queries):
        began, cpu = time.perf_counter(), time.process_time()
        search(number)
        taken.append(time.perf_counter() - began)
        used.append(time.process_time() - cpu)
    middle, high = np.quantile(taken, [0.5, 0.95]) * 1e3
    return f"{middle:.1f} ms | {high:.1f} ms | {np.median(used) * 1e3:.1f} ms"


def measure(path: Path, kind: str, count: int, queries: int, *, usearch: bool) -> list[str]:
    """Return rows of the table for so many vectors."""
    model = Invented(draw(kind, queries, np.random.default_rng(2)))
    write_index(path, kind, count, model)
    began = time.perf_counter()
    opened = manyheads.ImageIndex(path, model=model)
    opened.search("0")
    opening = time.perf_counter() - began
    vectors = np.memmap(path / "vectors.f32", np.float32, "r", shape=(count, DIM))
    wanted = [brute_force(vectors, query) for query in model.vectors]
    for number, (rows, scores) in enumerate(wanted):
        found = opened.search(str(number), top=TOP)
        assert [int(Path(each.path).stem) for each in found] == rows
        assert [each.score for each in found] == scores
    figures = times(lambda number: opened.search(str(number), top=TOP), queries)
    lines = [f"| {count:,} {kind} | manyheads | {opening:.1f} s to open | {figures} | 100% |"]
    if usearch:
        from usearch.index import Index

        graph = Index(ndim=DIM, metric="ip", dtype="f32")
        began = time.process_time()
        graph.add(np.arange(count), np.array(vectors))
        building = time.process_time() - began
        for width in (64, 256, 1024):
            graph.expansion_search = width
            hits = sum(
                len({*graph.search(query, TOP).keys.tolist()} & {*rows})
                for query, (rows, _) in zip(model.vectors, wanted, strict=True)
            )
            figures = times(lambda number: graph.search(model.vectors[number], TOP), queries)
            lines.append(
                f"| | usearch, width {width} | {building:,.0f} CPU-s to build | {figures} | "
                f"{hits / TOP / queries:.0%} |"
            )
    opened.close()
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.image_search")
    parser.add_argument("--vectors", type=int, nargs="+", default=[100_000])
    parser.add_argument("--kinds", nargs="+", default=["even"], choices=["even", "grouped"])
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--usearch", action="store_true", help="beside an approximate index")
    parser.add_argument("--folder", help="where to write, about 1,300 bytes a vector")
    arguments = parser.parse_args()
    folder = Path(mkdtemp(prefix="manyheads-search-", dir=arguments.folder))
    rows = []
    try:
        for count in arguments.vectors:
            for kind in arguments.kinds:
                place = folder / f"{count}-{kind}"
                rows += measure(place, kind, count, arguments.queries, usearch=arguments.usearch)
                shutil.rmtree(place)
    finally:
        shutil.rmtree(folder)
    print(f"{processor()}, {DIM} numbers a vector, {arguments.queries} queries, top {TOP}\n")
    print("| vectors | | before | median | 95% | CPU | of the true top 10 |")
    print("|---|---|---|---:|---:|---:|---:|")
    print("\n".join(rows))


if __name__ == "__main__":
    main()

"""How much memory a corpus takes: train on invented pairs, and print where the memory peaks.

    python -m benchmarks.corpus_memory --pairs 500000 5000000 --folder /tmp/corpus
    python -m benchmarks.corpus_memory --ranks 2

With several ranks (torchrun), the peak of each is printed, preparation included.

The words are made of syllables and as unevenly frequent as words are (Zipf); a sentence has about
12, and its translation has a word for each. Each number of pairs is a run in a process of its own,
Linux only: the peak is VmHWM of /proc/self/status, begun anew after the preparation. Seconds are
those of the processor, which other work on the machine changes little. What is written is removed.
"""

import argparse
import multiprocessing
import os
import shutil
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from tempfile import mkdtemp
from time import process_time

import numpy as np

WORDS = 30_000
CHUNK = 100_000
RECIPE = """
task = "translate"

[data]
train = "train"
valid = "valid"
source = "xx"
target = "yy"

[tokenizer]
sampling = {sampling}

[model]
preset = "transformer-tiny"

[train]
steps = {steps}
threads = 1
log_every = 10
validate_every = {steps}

[evaluate]
metrics = ["exact"]
"""


def lexicon(random: np.random.Generator) -> np.ndarray:
    """Invent different words of one to four syllables."""
    syllables = [c + v for c in "bdfghklmnprstvz" for v in "aeiou"]
    words: dict[str, None] = {}
    while len(words) < WORDS:
        words["".join(random.choice(syllables, random.integers(1, 5)))] = None
    return np.array(list(words), dtype=object)


def write_corpus(folder: Path, name: str, pairs: int, seed: int) -> int:
    """Write name.xx and name.yy; return their size in bytes."""
    random = np.random.default_rng(0)
    sides = [lexicon(random), lexicon(random)]
    share = np.cumsum(1 / np.arange(1, WORDS + 1))
    random = np.random.default_rng(seed)
    paths = [folder / f"{name}.{language}" for language in ("xx", "yy")]
    with paths[0].open("w") as xx, paths[1].open("w") as yy:
        for first in range(0, pairs, CHUNK):
            lengths = np.exp(random.normal(2.45, 0.35, min(CHUNK, pairs - first))).round()
            ends = lengths.clip(2, 40).astype(int).cumsum()
            drawn = np.searchsorted(share, random.random(ends[-1]) * share[-1])
            for words, file in zip(sides, (xx, yy), strict=True):
                chosen, begin, lines = words[drawn].tolist(), 0, []
                for end in ends.tolist():
                    lines.append(" ".join(chosen[begin:end]))
                    begin = end
                file.write("\n".join(lines) + "\n")
    return sum(path.stat().st_size for path in paths)


class Watch:
    """An observer that notes when the steps of a run began, and the memory until then."""

    def __init__(self) -> None:
        self.begin = process_time()
        self.prepared, self.first_step, self.preparing = 0.0, 0.0, 0

    def say(self, message: str) -> None:
        seconds = process_time() - self.begin
        print(f"{seconds:7.1f} s, {peak() >> 20} MiB  {message}", flush=True)
        if "parameters" in message:  # all is prepared
            self.prepared, self.preparing = seconds, peak()
            begin_anew()

    def progress(self, step: int, steps: int, line: dict[str, float]) -> None:
        if step == 1:
            self.first_step = process_time() - self.begin

    def validated(self, step: int, metrics: dict[str, float]) -> None: ...


def peak() -> int:
    """Return the largest resident memory so far in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))


def begin_anew() -> None:
    """Forget the peak until now."""
    Path("/proc/self/clear_refs").write_text("5")


def measure(folder: Path, pairs: int, steps: int, sampling: float) -> str:
    """Train on so many pairs; return a row of the table."""
    from manyheads.fit.run_training import train
    from manyheads.project.base_recipe import read_recipe

    size = write_corpus(folder, "train", pairs, seed=1)
    write_corpus(folder, "valid", 50, seed=2)
    path = folder / "recipe.toml"
    path.write_text(RECIPE.format(steps=steps, sampling=sampling))
    recipe = read_recipe(path, [f"data.root={folder}"])
    begin_anew()
    watch = Watch()
    train(recipe, out=folder / "run", resume=False, observer=watch)
    return (
        f"| {pairs:,} | {size / 1e6:,.0f} MB | {watch.prepared:,.0f} s | "
        f"{watch.first_step - watch.prepared:,.1f} s | {watch.preparing / 2**20:,.0f} MiB | "
        f"{peak() / 2**20:,.0f} MiB |"
    )


def measure_ranks(folder: Path, pairs: int, steps: int, sampling: float, ranks: int) -> None:
    """Train on so many pairs in several processes, each of which prints its peak."""
    write_corpus(folder, "train", pairs, seed=1)
    write_corpus(folder, "valid", 50, seed=2)
    (folder / "recipe.toml").write_text(RECIPE.format(steps=steps, sampling=sampling))
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    torchrun += ["--nproc-per-node", str(ranks), "-m", "benchmarks.corpus_memory"]
    subprocess.run([*torchrun, "--folder", str(folder), "--as-rank"], check=True)


def be_rank(folder: Path) -> None:
    """Train as one of the ranks that `measure_ranks` starts."""
    from manyheads.fit.run_training import train
    from manyheads.project.base_recipe import read_recipe

    recipe = read_recipe(folder / "recipe.toml", [f"data.root={folder}"])
    train(recipe, out=folder / "run", observer=Watch())
    print(f"rank {os.environ['RANK']}: peak {peak() / 2**20:,.0f} MiB", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.corpus_memory")
    parser.add_argument("--pairs", type=int, nargs="+", default=[5_000_000])
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--sampling", type=float, default=0.0, help="tokenizer.sampling")
    parser.add_argument("--folder", help="where to write, about 250 bytes a pair")
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--as-rank", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.as_rank:
        be_rank(Path(arguments.folder))
        return
    rows = []
    for pairs in arguments.pairs:
        folder = Path(mkdtemp(prefix="manyheads-corpus-", dir=arguments.folder))
        try:
            if arguments.ranks > 1:
                given = arguments.steps, arguments.sampling, arguments.ranks
                measure_ranks(folder, pairs, *given)
                continue
            context = multiprocessing.get_context("spawn")
            with ProcessPoolExecutor(1, mp_context=context) as process:
                future = process.submit(measure, folder, pairs, arguments.steps, arguments.sampling)
                rows.append(future.result())
        finally:
            shutil.rmtree(folder)
    if not rows:
        return
    print("\n| pairs | text | preparing | first step | peak, preparing | peak, training |")
    print("|---:|---:|---:|---:|---:|---:|")
    print("\n".join(rows))


if __name__ == "__main__":
    main()

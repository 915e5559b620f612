"""Tiny runs: a healthy one of each kind, and those that are made sick on purpose."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np

from manyheads.doctor.diagnose import Diagnosis, diagnose
from manyheads.errors import NonFiniteLossError
from tests.made import (
    CLASSIFY,
    ENGLISH,
    GERMAN,
    TRANSLATE,
    run,
    write_halves,
    write_lines,
    write_recipe,
)

TRANSLATOR = (
    TRANSLATE.replace("steps = 60", "steps = 240")
    .replace("log_every = 10", "log_every = 5")
    .replace("validate_every = 30", "validate_every = 120")
    .replace("dropout = 0.1", "dropout = 0.0")
    .replace("dim = 16", "dim = 32")
    .replace("ffn_dim = 32", "ffn_dim = 64")
    .replace("learning_rate = 1e-2", "learning_rate = 8e-3")
)
CLASSIFIER = (
    CLASSIFY.replace("steps = 40", "steps = 120")
    .replace("log_every = 10", "log_every = 6")
    .replace("validate_every = 20", "validate_every = 40")
    .replace("hold_out = 8", "hold_out = 40")
    .replace("dropout = 0.1", "dropout = 0.0")
)
WRITER = """
task = "generate"

[data]
train = "numbers/train.en"
valid = "numbers/valid.en"

[tokenizer]
size = 300

[model]
preset = "gpt-tiny"
dim = 16
heads = 2
ffn_dim = 32
layers = 1
dropout = 0.0

[train]
steps = 80
max_tokens = 256
learning_rate = 1e-2
warmup = 10
threads = 1
log_every = 4
validate_every = 40
"""
TAGGER = """
task = "tag"

[data]
train = "numbers/train.en"
valid = "numbers/valid.en"

[model]
preset = "tagger-encoder"
dim = 16
heads = 2
ffn_dim = 32
layers = 1
dropout = 0.0

[train]
steps = 80
max_tokens = 512
learning_rate = 1e-2
warmup = 10
threads = 1
log_every = 4
validate_every = 40
"""

Sicken = Callable[[Path], None]


def leave(_: Path) -> None:
    """Nothing is changed."""


def write_pairs(root: Path, *, train: int = 400, valid: int = 100) -> None:
    """Write numbers and their reverse in German, none of which occurs twice."""
    random, rows = np.random.default_rng(0), dict[tuple[int, ...], None]()
    while len(rows) < train + valid:
        rows[tuple(random.integers(0, 10, random.integers(3, 5)).tolist())] = None
    for split, part in (("train", list(rows)[:train]), ("valid", list(rows)[train:])):
        source = [" ".join(ENGLISH[n] for n in row) for row in part]
        target = [" ".join(GERMAN[n] for n in row[::-1]) for row in part]
        write_lines(root / "numbers" / f"{split}.en", source)
        write_lines(root / "numbers" / f"{split}.de", target)


def make(root: Path, recipe: str, *changes: str, sicken: Sicken = leave) -> Diagnosis:
    """Write data, change them, train, and diagnose what came of it."""
    write_data(root, recipe)
    sicken(root)
    with suppress(NonFiniteLossError):
        run(write_recipe(root / "recipe.toml", recipe, root), root / "run", *changes)
    return diagnose(str(root / "run"))


def write_data(root: Path, recipe: str) -> None:
    """Write what a recipe trains on."""
    if 'task = "classify"' in recipe:
        write_halves(root, count=120)
    else:
        write_pairs(root)


def shuffle_targets(root: Path) -> None:
    """Give every source the translation of another."""
    path = root / "numbers" / "train.de"
    lines = path.read_text(encoding="utf-8").splitlines()
    np.random.default_rng(3).shuffle(lines)
    write_lines(path, lines)


def shuffle_images(root: Path) -> None:
    """Give every image a class by chance."""
    files = sorted((root / "halves").rglob("*.png"))
    contents = [path.read_bytes() for path in files]
    for path, place in zip(files, np.random.default_rng(0).permutation(len(files)), strict=True):
        path.write_bytes(contents[place])


def kinds(found: Diagnosis) -> dict[str, str]:
    """What was found, with its severity."""
    return {finding.kind: finding.severity for finding in found.findings}

"""Small language models and a tagger, trained once a test run on the German numbers."""

from functools import cache
from pathlib import Path

from tests.made import TRANSLATE, run, write_lines, write_numbers, write_recipe
from tests.shared_folders import made_once

MODEL = """
[tokenizer]
size = 320

[model]
preset = "{preset}"
dim = 16
heads = 2
ffn_dim = 32
layers = 1
dropout = 0.1
"""
TRAIN = """
[train]
steps = 60
max_tokens = 256
learning_rate = 1e-2
warmup = 10
threads = 1
log_every = 10
validate_every = 30
save_every = 10
"""
DATA = """
task = "{task}"

[data]
train = "numbers/train.de"
valid = "numbers/valid.de"
test = "numbers/test.de"
"""
VOCABULARY = 'vocabulary = ["numbers/train.en", "numbers/train.de"]\n'
TAGGER = """
[model]
preset = "tagger-gru"
dim = 16
hidden_size = 16
"""
ENCODER = """
[model]
preset = "tagger-encoder"
dim = 16
heads = 2
ffn_dim = 32
"""
TEXTS = {
    "generate": DATA + VOCABULARY + MODEL.replace("{preset}", "gpt-tiny") + TRAIN,
    "fill": DATA + VOCABULARY + MODEL.replace("{preset}", "bert-tiny") + TRAIN,
    "tag": DATA + TAGGER + TRAIN.replace("steps = 60", "steps = 200"),
    "tag-encoder": DATA.replace("{task}", "tag") + ENCODER + TRAIN,
    "translate": TRANSLATE,
}


@cache
def root() -> Path:
    """The folder of the data and of a recipe for each task: look, don't touch."""

    def make(path: Path) -> None:
        write_numbers(path)
        write_lines(path / "numbers.tsv", ["one\teins", "two\tzwei"])
        for task, text in TEXTS.items():
            write_recipe(path / f"{task}.toml", text.replace("{task}", task), path)

    return made_once("language", make)


def recipe(task: str) -> Path:
    """A recipe that finds its data."""
    return root() / f"{task}.toml"


@cache
def trained(task: str) -> Path:
    """A trained folder: look, don't touch."""
    return made_once(f"language-{task}", lambda path: run(recipe(task), path / task)) / task

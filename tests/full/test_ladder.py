"""The ladder of models: every rung is trained and measured, and a second call only reads."""

import subprocess
import sys
from pathlib import Path

import pytest

RECIPE = """
task = "translate"
seed = 1
[data]
train = "{data}"
valid = "{data}"
source = "en"
target = "de"
[tokenizer]
size = 300
[model]
preset = "transformer-tiny"
[train]
steps = 2
max_tokens = 400
learning_rate = 3e-3
warmup = 0
threads = 1
[evaluate]
metrics = ["chrf", "bleu"]
"""


@pytest.mark.full
def test_every_rung_is_in_the_table(tmp_path: Path) -> None:
    data = tmp_path / "pairs.tsv"
    words = ["one", "two", "three", "four", "five", "six"]
    pairs = [" ".join(words[: n % 6 + 1]) + f" {n}" for n in range(40)]
    data.write_text("".join(f"{pair}\t{pair.upper()}\n" for pair in pairs), encoding="utf-8")
    recipe = tmp_path / "pairs.toml"
    recipe.write_text(RECIPE.format(data=data), encoding="utf-8")
    call = [sys.executable, "examples/ladder.py", "--recipe", str(recipe), "--steps", "2"]
    call += ["--seeds", "1", "2", "--out", str(tmp_path / "ladder")]
    tables = [
        subprocess.run(call, check=True, stdout=subprocess.PIPE, text=True).stdout for _ in "ab"
    ]
    assert tables[0] == tables[1]
    head, rule, *rows = tables[0].splitlines()
    assert head.startswith("| model | chrf | bleu | chrf, 1-5 words |")
    assert len({line.count("|") for line in (head, rule, *rows)}) == 1
    assert [row.split(" | ")[0] for row in rows] == [
        "| RNN",
        "| LSTM",
        "| LSTM + attention",
        "| Transformer",
        "| Transformer, Muon",
    ]
    assert all(" ± " in cell for row in rows for cell in row.split(" | ")[1:3])

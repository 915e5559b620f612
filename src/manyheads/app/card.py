"""The model card: README.md of a run folder, generated from what the folder holds."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from manyheads.app.folder import ModelFolder, write_atomically
from manyheads.app.info import count_parameters
from manyheads.app.recipe import TranslateRecipe


def write_card(folder: ModelFolder) -> None:
    """Write README.md."""
    write_atomically(folder.path / "README.md", card(folder).encode())


def card(folder: ModelFolder) -> str:
    """Describe a model: what it is for, how it was made, what was measured, how to use it."""
    recipe = folder.recipe
    manifest = folder.manifest
    if isinstance(recipe, TranslateRecipe):
        what = f"Translates text from `{recipe.data.source}` to `{recipe.data.target}`."
        use = f'manyheads translate --model {folder.name} "..."'
    else:
        labels = folder.labels()
        named = ", ".join(labels[:20]) + (", ..." if len(labels) > 20 else "")
        what = f"Classifies pictures as one of {len(labels)} classes: {named}."
        use = f"manyheads classify --model {folder.name} picture.png"
    rows = [
        ("preset", manifest["preset"]),
        ("parameters", f"{count_parameters(recipe.config()):,}"),
        ("training data", recipe.data.train),
        ("steps", last_step(folder.path)),
        ("seed", recipe.seed),
        ("precision", recipe.train.precision),
        ("stored as", recipe.train.store),
        ("versions", ", ".join(f"{name} {value}" for name, value in manifest["versions"].items())),
        ("threads", manifest["threads"]),
    ]
    lines = [f"# {folder.name}", "", what, "", "```", use, "```", "", "| | |", "|---|---|"]
    lines += [f"| {name} | {value} |" for name, value in rows]
    lines += ["", "## Measured", ""]
    lines += [_measured(line) for line in folder.evaluations()] or ["Nothing yet."]
    lines += [
        "",
        "## Limits",
        "",
        "Trained on the data named above and nothing else; expect little on input unlike it. "
        "`recipe.toml` holds every setting, `evaluations.jsonl` every measurement.",
        "",
    ]
    return "\n".join(lines)


def last_step(path: Path) -> str:
    """Read from the metrics how far training went and how long it took."""
    log = path / "metrics.jsonl"
    if not log.exists():
        return "unknown"
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    timed = [line for line in lines if "seconds" in line]
    if not timed:
        return "unknown"
    return f"{timed[-1]['step']} in {timed[-1]['seconds'] / 60:.1f} minutes"


def _measured(line: Mapping[str, Any]) -> str:
    final = ", final" if line["final"] else ""
    text = f"- {line['data']}: {line['metric']} {line['value']:.2f} ({line['signature']}{final})"
    if line.get("groups"):
        worst = min(line["groups"], key=line["groups"].get)
        text += f"; lowest group: {worst} {line['groups'][worst]:.2f}"
    return text

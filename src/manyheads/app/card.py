"""The model card: README.md of a run folder, generated from what the folder holds."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from manyheads.app.folder import ModelFolder, write_atomically
from manyheads.app.info import count_parameters
from manyheads.app.recipe import (
    ClassifyRecipe,
    FillRecipe,
    GenerateRecipe,
    ReconstructRecipe,
    TagRecipe,
    TranslateRecipe,
)
from manyheads.train.log import whole_lines


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
    elif isinstance(recipe, GenerateRecipe):
        what = "Writes on: predicts the next token of a text from those before it."
        use = f'manyheads generate --model {folder.name} "..."'
    elif isinstance(recipe, FillRecipe):
        what = "Fills blanks: predicts hidden tokens of a text from both sides of them."
        use = f'manyheads fill --model {folder.name} "... <mask> ..."'
    elif isinstance(recipe, TagRecipe):
        what = "Spaces Korean text: says of each character whether a space follows it."
        use = f'manyheads tag --model {folder.name} "..."'
    elif isinstance(recipe, ReconstructRecipe):
        what = "Draws hidden parts of pictures: a start for a classifier, learned without labels."
        use = f"manyheads train RECIPE start.model={folder.name}"
    else:
        labels = folder.labels()
        named = ", ".join(labels[:20]) + (", ..." if len(labels) > 20 else "")
        what = f"Classifies pictures as one of {len(labels)} classes: {named}."
        use = f"manyheads classify --model {folder.name} picture.png"
    limits = "Trained on the data named above and nothing else; expect little on input unlike it."
    rows = [
        ("preset", manifest["preset"]),
        ("parameters", f"{count_parameters(recipe.config(), recipe):,}"),
        ("training data", recipe.data.train),
        ("steps", last_step(folder.path)),
        ("seed", recipe.seed),
        ("precision", recipe.train.precision),
        ("stored as", recipe.train.store),
        ("versions", ", ".join(f"{name} {value}" for name, value in manifest["versions"].items())),
        ("threads", manifest["threads"]),
    ]
    if isinstance(recipe, TranslateRecipe | ClassifyRecipe) and recipe.converted:
        origin = recipe.converted
        limits = "Trained elsewhere; its makers know on what, and what to expect."
        if isinstance(recipe, TranslateRecipe):
            limits = f"Trained elsewhere; its makers' files are in `{origin.format}/`."
        rows = [
            ("parameters", f"{count_parameters(recipe.config()):,}"),
            ("converted from", f"{origin.origin} ({origin.format})"),
            ("licence", origin.license or "not stated: ask its makers"),
        ]
    lines = [f"# {folder.name}", "", what, "", "```", use, "```", "", "| | |", "|---|---|"]
    lines += [f"| {name} | {value} |" for name, value in rows]
    lines += ["", "## Measured", ""]
    lines += [_measured(line) for line in folder.evaluations()] or ["Nothing yet."]
    lines += [
        "",
        "## Limits",
        "",
        f"{limits} `recipe.toml` holds every setting, `evaluations.jsonl` every measurement.",
        "",
    ]
    return "\n".join(lines)


def last_step(path: Path) -> str:
    """Read from the metrics how far training went and how long it took."""
    log = path / "metrics.jsonl"
    if not log.exists():
        return "unknown"
    lines = [json.loads(line) for line in whole_lines(log)]
    timed = [line for line in lines if "seconds" in line]
    if not timed:
        return "unknown"
    return f"{timed[-1]['step']} in {timed[-1]['seconds'] / 60:.1f} minutes"


def _measured(line: Mapping[str, Any]) -> str:
    final = ", final" if line["final"] else ""
    scores = (
        f"{name} {score['value']:.2f} ({score['signature']}{final})"
        for name, score in line["all"].items()
    )
    text = f"- {line['data']}: {'; '.join(scores)}"
    if line.get("groups"):
        worst = min(line["groups"], key=line["groups"].get)
        text += f"; lowest group: {worst} {line['groups'][worst]:.2f}"
    if "by_length" in line:
        bins = ", ".join(
            f"{each['first']}{'-' + str(each['last']) if each['last'] else ' and more'} "
            f"{each[line['metric']]:.2f}"
            for each in line["by_length"]["bins"]
        )
        text += f"\n  - {line['metric']} by {line['by_length']['unit']} of the source: {bins}"
    if "timing" in line:
        timing = line["timing"]
        text += (
            f"\n  - {timing['sentences_per_second']:,.0f} sentences/s together; alone a median of "
            f"{timing['median_milliseconds']:.0f} ms ({line['beams']} beams, "
            f"{timing['device']}, threads: {timing['threads']})"
        )
    return text + "".join(f"\n  - {remark}" for remark in line.get("remarks", []))

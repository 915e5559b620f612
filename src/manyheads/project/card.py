"""The model card: README.md of a run folder, generated from what the folder holds."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from manyheads.data.text.public_corpora import public_sources, training_sets
from manyheads.errors import FolderError
from manyheads.files import write_text
from manyheads.project.engine_files import read_record, stored_engines
from manyheads.project.folder import ModelFolder
from manyheads.project.model_facts import count_parameters
from manyheads.project.registry import find_task
from manyheads.train.history import metric_lines


def write_card(folder: ModelFolder) -> None:
    """Write README.md."""
    write_text(folder.path / "README.md", card(folder))


def card(folder: ModelFolder) -> str:
    """Describe a model: its use, training, measurements and limits."""
    recipe = folder.recipe
    manifest = folder.manifest
    what, use, limits = find_task(recipe.task).card(folder)
    data = recipe.data.model_dump()
    plugins = manifest.get("plugins", [])
    use += "".join(f" --plugin {name}" for name in plugins)
    rows = [
        ("preset", manifest["preset"]),
        ("parameters", f"{count_parameters(recipe.config(), recipe):,}"),
        ("training data", ", ".join(training_sets(data))),
        *(
            ("data and licence", f"{each.title} ({each.home}). Licence: {each.licence}")
            for each in public_sources(data)
        ),
        ("steps", last_step(folder.path)),
        ("seed", recipe.seed),
        ("precision", recipe.train.precision),
        ("stored as", recipe.train.save_dtype),
        ("versions", ", ".join(f"{name} {value}" for name, value in manifest["versions"].items())),
        ("threads", manifest["threads"]),
    ]
    if (origin := recipe.origin) is not None:
        rows = [
            ("parameters", f"{count_parameters(recipe.config()):,}"),
            ("converted from", f"{origin.origin} ({origin.format})"),
            *([("commit", origin.revision)] if origin.revision else []),
            ("licence", origin.license or "not stated: ask its makers"),
        ]
    rows += [("needs the plugin", name) for name in plugins]
    table = "\n".join(f"| {name} | {value} |" for name, value in rows)
    measured = "\n".join(dict.fromkeys(map(_measured, folder.evaluations()))) or "Nothing yet."
    engines = "\n".join(_engine(folder, name) for name in stored_engines(folder))
    exported = f"## Engines\n\n{engines}\n\n" if engines else ""
    return (
        f"# {folder.name}\n\n{what}\n\n```\n{use}\n```\n\n| | |\n|---|---|\n{table}\n\n"
        f"## Measured\n\n{measured}\n\n{exported}## Limits\n\n{limits} "
        "`recipe.toml` holds every setting, `evaluations.jsonl` every measurement.\n"
    )


def last_step(path: Path) -> str:
    """Read from the metrics how far training went and how long it took."""
    try:
        timed = [line for _, line in metric_lines(path / "metrics.jsonl") if "seconds" in line]
    except FolderError:  # damaged: the model itself is not
        timed = []
    if not timed:
        return "unknown"
    return f"{timed[-1]['step']} in {timed[-1]['seconds'] / 60:.1f} minutes"


def _engine(folder: ModelFolder, name: str) -> str:
    try:
        record = read_record(folder, name)
    except FolderError:  # damaged: the model itself is not
        return f"- {name}: damaged; export it again"
    if record.weights != folder.weights_hash:
        return f"- {name}: made from other weights than these; export it again"
    found = record.parity
    text = f"- {name}, {record.quantization}: on {found['inputs']:,} inputs of {found['data']}, "
    text += f"{100 * found['changed']:.1f}% of the answers differ from torch's"
    if found.get("metric"):
        text += f"; {found['metric']} {found['after']:.2f}, torch {found['before']:.2f}"
    if record.forced:
        text += f". **Fails the parity check; kept by `force`**: {'; '.join(record.failures)}"
    return text


def _measured(line: Mapping[str, Any]) -> str:
    final = ", final" if line["final"] else ""
    scores = (
        f"{name} {score['value']:.2f} ({score['signature']}{final})"
        for name, score in line["all"].items()
    )
    on = f" on {line['engine']}" if "engine" in line else ""
    text = f"- {line['data']}{on}: {'; '.join(scores)}"
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

"""manyheads models."""

from typing import Annotated

import typer


def run(json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List the shipped models, recipes and presets."""
    from manyheads.app.project.paths import shipped
    from manyheads.cli.show import print_json
    from manyheads.models.presets import PRESETS

    found = {
        "models": list(shipped("pretrained")),
        "recipes": list(shipped("recipes")),
        "presets": list(PRESETS),
    }
    if json:
        print_json(found)
        return
    for kind, names in found.items():
        print(f"{kind:<8} {', '.join(names)}")

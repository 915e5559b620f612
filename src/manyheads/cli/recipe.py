"""manyheads recipe."""

import re
from pathlib import Path


def run(name: str | None = None, json: bool = False) -> None:
    """Print a shipped recipe to start from; without a name, list them."""
    from manyheads.cli.printed_answers import print_json, warn
    from manyheads.project.paths import find_recipe, shipped
    from manyheads.project.toml_file import read_toml

    if name is None:
        lines = {each: about(path) for each, path in shipped("recipes").items()}
        if json:
            print_json(lines)
            return
        for each, line in lines.items():
            print(f"{each:<26} {line}")
        return
    path = find_recipe(name)
    if json:
        print_json(read_toml(path))
        return
    print(path.read_text(encoding="utf-8"), end="")
    warn(f"to train your own: manyheads recipe {name} > mine.toml; manyheads train mine.toml")


def about(path: Path) -> str:
    """Return the first sentence of the comment that a recipe begins with."""
    lines = path.read_text(encoding="utf-8").splitlines()
    begin = [line.removeprefix("#").strip() for line in lines[: lines.index("#")]]
    return re.split(r"(?<!\bal)\. ", " ".join(begin))[0].rstrip(".") + "."

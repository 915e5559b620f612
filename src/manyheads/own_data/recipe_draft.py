"""A recipe while it is made: first to be timed, then with the steps that the minutes allow."""

import math
import shlex
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from manyheads.own_data.prepared import recipe_path
from manyheads.own_data.speed import Speed
from manyheads.strict_json import dumps

VALIDATIONS = 10
FULL = 0.9  # of the minutes: the rest is for reading, checkpoints and the last measurement


@dataclass(kw_only=True)
class Draft:
    """What every recipe is made of; a template beside this file says the rest."""

    out: Path
    speed: Speed | None = None
    steps: int = 1000
    every: int = 100  # steps between validations
    minutes: float = math.nan

    def fill(self, template: str, root: str, **values: Any) -> str:
        """Fill the {names} of a template; its comments say why a value is what it is.

        A line "@name ..." stands only where this value is true, "@!name ..." where it is not.
        """
        values |= {"draft": self, "speed": self.speed, "root": dumps(root)}
        values |= {"path": shlex.quote(str(recipe_path(self.out)))}
        values |= {"warmup": max(1, self.steps // 10), "times": self.steps // self.every}
        values |= {"precision": self.speed.precision if self.speed else "auto"}
        text = files("manyheads.own_data").joinpath(template).read_text(encoding="utf-8")
        lines = []
        for line in text.splitlines():
            condition, _, rest = line.partition(" ") if line[:1] == "@" else ("", "", line)
            name = condition.lstrip("@!")
            if not name or bool(values[name]) != ("!" in condition):
                lines.append(f"{rest.format(**values)}\n")
        return "".join(lines)

    def expected(self, units: str, minutes: str, passes: str) -> str:
        """Say how long the steps take here, and how often they see the data."""
        speed = self.speed
        if speed is None:
            return "nothing was timed: this machine has no GPU. Train where there is one."
        return (
            f"{speed.parameters:,} parameters, {speed.units:,.0f} {units} a second here "
            f"({speed.device}, {speed.precision}): {self.steps:,} steps are about {minutes} "
            f"minutes and {passes}"
        )

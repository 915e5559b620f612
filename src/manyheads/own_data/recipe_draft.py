"""A recipe while it is made: first to be timed, then with the steps that the minutes allow."""

import math
import shlex
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from manyheads.own_data.prepared import recipe_path
from manyheads.own_data.speed import Speed

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

    def fill(self, template: str, **values: Any) -> list[str]:
        """Return the lines of a template beside this file, its {names} filled.

        A line "@name ..." stands only where this value is true, "@!name ..." where it is not.
        """
        values |= {"draft": self, "speed": self.speed, "times": self.steps // self.every}
        values |= {"precision": self.speed.precision if self.speed else "auto"}
        values |= {"path": shlex.quote(str(recipe_path(self.out)))}
        values |= {"warmup": max(1, self.steps // 10)}
        text = files("manyheads.own_data").joinpath(template).read_text(encoding="utf-8")
        lines = []
        for line in text.splitlines():
            condition, _, rest = line.partition(" ") if line[:1] == "@" else ("", "", line)
            name = condition.lstrip("@!")
            if not name or bool(values[name]) != ("!" in condition):
                lines.append(rest.format(**values))
        return lines

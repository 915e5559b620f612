"""How long a command takes from the prompt, in a process of its own."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.protocol import Case, Contender
from manyheads.errors import ManyheadsError

TITLE = "Starting up"
VERBS = ("train", "translate", "classify", "evaluate", "look", "info", "models")


class CommandFailedError(ManyheadsError):
    """A measured command did not answer."""


def cases() -> Iterator[Case]:
    yield _case(["--help"], "0.3 s")
    for verb in VERBS:
        yield _case([verb, "--help"], "0.5 s")
    yield _case(["translate", "Friday, 20 November 2026"], "3 s")


def _case(arguments: list[str], bar: str) -> Case:
    line = " ".join(f'"{word}"' if " " in word else word for word in arguments)
    contender = Contender("manyheads", "", _command(arguments))
    return Case(title=f"`manyheads {line}`", unit="s", bar=bar, contenders=[contender])


def _command(arguments: list[str]) -> Callable[[], None]:
    command = [str(Path(sys.executable).with_name("manyheads")), *arguments]
    # As everywhere, bytecode is kept from the first run: the warm-up.
    environment = {key: os.environ[key] for key in os.environ if key != "PYTHONDONTWRITEBYTECODE"}

    def work() -> None:
        try:
            subprocess.run(
                command,
                check=True,
                capture_output=True,
                text=True,
                encoding="utf-8",
                env=environment,
            )
        except FileNotFoundError as error:
            raise CommandFailedError(
                f"There is no command {command[0]}: `make bench` installs it."
            ) from error
        except subprocess.CalledProcessError as error:
            raise CommandFailedError(
                f"`{' '.join(command)}` left with {error.returncode}: {error.stderr[-2000:]}"
            ) from error

    return work

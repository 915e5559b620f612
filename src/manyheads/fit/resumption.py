"""How a run goes on: by itself if torchrun starts it again, else with some changes of its recipe.

The learning rate is a pure function of the step and of train.steps, so a run that is made longer
goes on at the rate that a run of the new length has at the next step. "inverse-sqrt" and "constant"
do not depend on the length: nothing changes. "cosine" and "linear" are drawn anew over the new
length: the rate rises at the next step, most where the run had ended at 0. A warm-up is asked for
with train.restart.
"""

import os
import socket
from pathlib import Path

import tomli_w

from manyheads.errors import RecipeError
from manyheads.files import write_text
from manyheads.predict.task_pipeline import Say
from manyheads.project.base_recipe import differences, read_recipe
from manyheads.project.folder import write_json
from manyheads.project.migrate import migrate
from manyheads.project.toml_file import read_toml
from manyheads.strict_json import loads
from manyheads.train import checkpoint
from manyheads.train.schedule import learning_rate
from manyheads.train.train_config import TrainConfig

MAY_CHANGE = (
    *("train.steps", "train.restart", "train.early_stop", "train.validate_every"),
    *("train.log_every", "train.save_every", "train.tensorboard", "evaluate.metrics"),
)
LAUNCH = ".manyheads-launch"  # in the run folder, until training has finished


def store_recipe(out: Path, text: str, config: TrainConfig, say: Say) -> bool:
    """Write the resolved recipe, or check that a resumed run may go on with it.

    Returns whether a recipe was written anew: one of an older version, whose keys were renamed, or
    one with changes.

    Raises:
        RecipeError: a change of another key, or of what lies behind the run.
    """
    path = out / "recipe.toml"
    if not path.exists():
        write_text(path, text)
        return False
    before = read_toml(path)
    renamed = bool(migrate(before))
    changed = differences(tomli_w.dumps(before), text)
    keys = {line.split()[1] for line in changed}
    if any(".".join(key.split(".")[:2]) not in MAY_CHANGE for key in keys):
        listed = "\n".join(changed)
        raise RecipeError(
            f"The run in {out} was started with another recipe:\n{listed}\nA resumed run may "
            f"change {', '.join(MAY_CHANGE)}, and no other key: leave the others as they were, or "
            "start another run with another `out`."
        )
    if changed:
        notes = _compared(out, config, read_recipe(path, stored=True).train, keys)
        say("\n".join(["resuming with changes:", *changed, *notes]))
    if changed or renamed:
        write_text(path, text)
    return bool(changed or renamed)


def _compared(out: Path, config: TrainConfig, before: TrainConfig, keys: set[str]) -> list[str]:
    """Refuse changes of what lies behind a run; say how its learning rate goes on."""
    newest = checkpoint.newest(out / "state")
    done = 0 if newest is None else newest.step
    if config.steps < done:
        raise RecipeError(
            f"train.steps is {config.steps:,}, but the run in {out} has made {done:,} steps: give "
            "at least as many."
        )
    restarts = [each.step for each in (before.restart, config.restart) if each is not None]
    if before.restart != config.restart and min(restarts) < done:
        raise RecipeError(
            f"train.restart changes the learning rate from step {min(restarts):,} on, but the run "
            f"in {out} has made {done:,} steps: let it restart at step {done:,} or later."
        )
    if newest is None or done == config.steps:
        return []
    if newest.stopped and not any(key.startswith("train.early_stop") for key in keys):
        return ["early stopping has ended this run: change train.early_stop to go on"]
    then, now = learning_rate(max(done, 1), before), learning_rate(done + 1, config)
    how = "goes on" if learning_rate(done + 1, before) == now else "is drawn anew"
    if config.restart is not None and config.restart.step == done:
        how = "restarts with a warm-up"
    return [
        f"the schedule {how}: learning rate {then:.2g} at step {done:,}, {now:.2g} at the next, as "
        f"in a run of {config.steps:,} steps"
    ]


def launched_before(out: Path) -> bool:
    """Tell whether the same torchrun has worked in a run folder: then a rank was lost."""
    try:
        return bool(loads((out / LAUNCH).read_text(encoding="utf-8")) in _names())
    except (OSError, ValueError):
        return False


def note_launch(out: Path) -> None:
    """Write into a run folder which torchrun works there; without torchrun, nothing."""
    if names := _names():
        write_json(out / LAUNCH, names[0])


def _names() -> list[str]:
    """Name the torchrun that has started this process: by its id, and as the parent process.

    All jobs that are started without an id have the id "none".
    """
    job = os.environ.get("TORCHELASTIC_RUN_ID")
    if job is None:
        return []
    return [job] if job != "none" else [f"{socket.gethostname()}, process {os.getppid()}"]

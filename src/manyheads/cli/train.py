"""manyheads train."""

from pathlib import Path

# A smoke run: whether a recipe goes all the way, not what comes of it.
FAST = (
    *("train.steps=20", "train.warmup=5", "train.restart=", "train.log_every=5"),
    *("train.validate_every=10", "train.save_every=20", "evaluate.limit=50"),
)


def run(
    recipe: str,
    overrides: list[str] | None = None,
    out: Path | None = None,
    resume: bool = False,
    fast: bool = False,
    seeds: int = 1,
    json: bool = False,
) -> None:
    """Train a recipe; the run folder is then a model folder.

    Several processes, on one host or more, train together: torchrun --nproc-per-node 2 -m manyheads
    train ...
    """
    from contextlib import nullcontext

    from manyheads.cli.printed_answers import print_evaluation, print_runs
    from manyheads.cli.progress import ProgressBar
    from manyheads.cli.terminal import ReaderGoneError
    from manyheads.errors import InterruptedRunError
    from manyheads.fit.observer import SilentObserver
    from manyheads.fit.run_training import train
    from manyheads.project.base_recipe import read_recipe
    from manyheads.project.paths import find_recipe
    from manyheads.train.ranks import launch

    path = find_recipe(recipe)
    changes = [*(FAST if fast else ()), *(overrides or ())]
    parsed = [read_recipe(path, changes)]
    folder = out or Path("runs") / (f"{path.stem}-fast" if fast else path.stem)
    folders = [folder]
    if seeds > 1:
        numbers = range(1, seeds + 1)
        folders = [folder.with_name(f"{folder.name}-{number}") for number in numbers]
        seed = parsed[0].seed
        parsed = [read_recipe(path, [*changes, f"seed={seed + n - 1}"]) for n in numbers]
    lines = []
    try:
        first = launch().first
        for each, place in zip(parsed, folders, strict=True):
            with ProgressBar() if first else nullcontext(SilentObserver()) as observer:
                if seeds > 1:
                    observer.say(f"seed {each.seed}: {place}")
                lines.append(train(each, out=place, resume=resume, observer=observer))
    except ReaderGoneError:
        raise InterruptedRunError("Stopped before the first step: nobody reads on.") from None
    if first and seeds > 1:
        print_runs(lines, folders, as_json=json)
    elif first:
        print_evaluation(lines[0], folder, as_json=json)

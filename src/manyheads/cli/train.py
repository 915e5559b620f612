"""manyheads train."""

from pathlib import Path


def run(
    recipe: str,
    overrides: list[str] | None = None,
    out: Path | None = None,
    resume: bool = False,
    json: bool = False,
) -> None:
    """Train a recipe; the run folder is then a model folder.

    Several processes, on one host or more, train together: torchrun --nproc-per-node 2 -m manyheads
    train ...
    """
    from contextlib import nullcontext

    from manyheads.cli.progress import ProgressBar
    from manyheads.cli.show import print_evaluation
    from manyheads.cli.terminal import ReaderGoneError
    from manyheads.errors import InterruptedRunError
    from manyheads.fit.observer import SilentObserver
    from manyheads.fit.run_training import train
    from manyheads.project.base_recipe import read_recipe
    from manyheads.project.paths import find_recipe
    from manyheads.train.ranks import launch

    path = find_recipe(recipe)
    parsed = read_recipe(path, overrides or [])
    folder = out or Path("runs") / path.stem
    try:
        first = launch().first
        with ProgressBar() if first else nullcontext(SilentObserver()) as observer:
            line = train(parsed, out=folder, resume=resume, observer=observer)
    except ReaderGoneError:
        raise InterruptedRunError("Stopped before the first step: nobody reads on.") from None
    if first:
        print_evaluation(line, folder, as_json=json)

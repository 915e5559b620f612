"""manyheads convert: a command for each format."""

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import typer

from manyheads.cli.printed_answers import warn

if TYPE_CHECKING:
    from manyheads.convert.classifiers import Library
    from manyheads.convert.marian_folder import Conversion

app = typer.Typer(
    help="Make model folders of other libraries' models, and the other way round.",
    no_args_is_help=True,
    add_completion=False,
)


@app.command()
def timm(source: str, out: Path, arch: str | None = None, image_size: str | None = None) -> None:
    """Make a model folder of a classifier or encoder of timm, as --arch vit_base_patch16_224."""
    _convert_images("timm", source, out, arch, image_size)


@app.command()
def hf(source: str, out: Path, image_size: str | None = None) -> None:
    """Make a model folder of a classifier, encoder, CLIP, SigLIP or captioner of Hugging Face."""
    _convert_images("hf", source, out, None, image_size)


@app.command()
def torchvision(
    source: str, out: Path, arch: str | None = None, image_size: str | None = None
) -> None:
    """Make a model folder of a classifier of torchvision, as --arch resnet50."""
    _convert_images("torchvision", source, out, arch, image_size)


@app.command()
def google(source: str, out: Path, image_size: str | None = None) -> None:
    """Make a model folder of Google's npz checkpoints of ViT, R+ViT and BiT."""
    _convert_images("google", source, out, None, image_size)


@app.command()
def marian(
    source: str,
    out: Path,
    source_language: str | None = None,
    target_language: str | None = None,
    prefix: str = "",
) -> None:
    """Make a model folder of a Hugging Face Marian model."""
    from manyheads.convert.marian_folder import from_marian

    made = from_marian(
        source, out, source_language=source_language, target_language=target_language, prefix=prefix
    )
    _report(made)
    print(f'Translate with: manyheads translate --model {made.folder} "..."')


@app.command()
def to_marian(model: str, out: Path) -> None:
    """Write a translator as a folder that Hugging Face's MarianMTModel loads."""
    from manyheads.convert.marian_folder import to_marian as write

    _report(write(model, out))


def _convert_images(
    library: "Library", source: str, out: Path, arch: str | None, image_size: str | None
) -> None:
    from manyheads.cli.options import read_image_size
    from manyheads.convert.classifiers import from_images
    from manyheads.predict.task_pipeline import pipeline_of
    from manyheads.project.folder import ModelFolder

    size = None if image_size is None else read_image_size(image_size)
    made = from_images(library, source, out, architecture=arch, image_size=size)
    for remark in made.remarks:
        warn(remark)
    what = f"{made.classes} classes" if made.classes else f"for the task {made.task}"
    print(
        f"{made.folder}: {what}, images of {made.size[0]} x {made.size[1]}, "
        f"{made.parameters:,} parameters"
    )
    folder = ModelFolder(made.folder)
    use = pipeline_of(folder.recipe).card(folder).use
    for option in ("--model ", "start.model="):  # found by its path from here
        use = use.replace(f"{option}{folder.name}", f"{option}{quote(str(made.folder))}")
    print(f"Use it with: {use}")


def _report(made: "Conversion") -> None:
    for remark in made.remarks:
        warn(remark)
    print(f"{made.folder}: {made.source} to {made.target}, {made.parameters:,} parameters")

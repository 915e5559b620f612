"""Images as predictors take them: paths, Pillow images or arrays."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor

from manyheads.asks.load_options import LoadOptions
from manyheads.data.images.image_file import ImageContent, naming, open_image
from manyheads.data.images.image_set import Preprocessing
from manyheads.errors import ManyheadsError, UsageError
from manyheads.predict.base_predictor import Predictor
from manyheads.predict.unusual_images import unlike
from manyheads.project.domain import stored_image_domain
from manyheads.project.folder import ModelFolder

ImageInput = str | Path | ImageContent
# Of several images in a list: `list[str]` is not a `list[ImageInput]`.
AnImage = TypeVar("AnImage", bound=ImageInput)

A = TypeVar("A")
R = TypeVar("R")
T = TypeVar("T")


def opened(image: ImageInput) -> ImageContent:
    """Open the file that a path names; return an image or an array as it is.

    Raises:
        UsageError: something else.
        NotFoundError: no such file.
        UnreadableError: the file is not an image, or damaged.
    """
    if isinstance(image, str | Path):
        return open_image(Path(image))
    if not isinstance(image, ImageContent):
        raise UsageError(
            f"The image is {image!r:.80}: give the path of a file, a Pillow image (of bytes: "
            "`Image.open(io.BytesIO(content))`), or an array (height, width, channel)."
        )
    return image


def named(image: ImageInput) -> str:
    """Name an image for messages and pages: its path, if it is known."""
    path = image if isinstance(image, str | Path) else getattr(image, "filename", "")
    return str(path) or "The image"


def answer_images(
    images: Sequence[ImageInput],
    read: Callable[[ImageInput], T],
    run: Callable[[list[T]], Iterable[R]],
    answer: Callable[[str, R], A],
    failed: Callable[..., A],
) -> list[A]:
    """Answer images together; what cannot be read is told in its place.

    Args:
        images: paths, Pillow images or arrays.
        read: prepares one image.
        run: runs the model on the prepared images: a result for each.
        answer: writes the answer of one, from its name and the result.
        failed: writes the answer of one that cannot be read, from `path` and `error`.
    """
    prepared: list[T] = []
    errors: list[str | None] = []
    for image in images:
        try:
            prepared.append(read(image))
            errors.append(None)
        except ManyheadsError as error:
            errors.append(str(error))
    results = iter(run(prepared) if prepared else ())
    return [
        failed(path=named(image), error=error) if error else answer(named(image), next(results))
        for image, error in zip(images, errors, strict=True)
    ]


class ImagePredictor(Predictor):
    """A predictor whose model reads preprocessed pixels."""

    @classmethod
    def image_input(cls, folder: ModelFolder) -> Preprocessing:
        """That of its folder."""
        return folder.preprocessing()

    def __init__(self, folder: ModelFolder, options: LoadOptions = LoadOptions()) -> None:
        super().__init__(folder, options)
        self.preprocessing = self.image_input(folder)
        self.image_domain = stored_image_domain(folder)  # what is usual for its images
        if (size := options.image_size) is not None:
            stored = self.preprocessing
            self.preprocessing = replace(stored, height=size[0], width=size[1])
            if self.preprocessing != stored:
                self.image_domain = None  # set at another size

    def pixels(self, image: ImageInput) -> Tensor:
        """Preprocess an image as in training: (channel, height, width), 0..255."""
        content = opened(image)
        with naming(named(image)):  # other channels than the model's
            return torch.from_numpy(self.preprocessing.pixels(content).copy())

    def unlike(self, pixels: Iterable[Tensor]) -> Iterator[str | None]:
        """Say of each preprocessed image what is most unusual about it; None if nothing is."""
        return unlike(self.folder.name, pixels, self.image_domain)

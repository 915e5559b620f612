"""The [data] table of images, and what recipes of image models share."""

from typing import Literal, Self

from pydantic import Field, model_validator

from manyheads.data.augment.augment import Augmentation
from manyheads.data.images.image_set import Preprocessing
from manyheads.project.base_recipe import DataTable, Recipe


class ImageData(DataTable):
    """Images.

    Folders, tables (.csv, .tsv, .jsonl), .parquet and .tar files (a pattern with *), a name on the
    hub, or "digits". Without labels, a folder needs no class folders.
    """

    has_images = True

    valid: str | None = None  # else hold_out images of train
    hold_out: int = Field(default=0, ge=0)
    random_state: int = Field(default=0, ge=0)
    image: str = "image"  # column of a table
    label: str = "label"
    # What to do about an image that cannot be read: stop there, or leave it out. To leave them out
    # every image is opened once at the beginning.
    on_error: Literal["stop", "skip"] = "stop"

    def split_name(self, split: str) -> str | None:
        """Name a split; images held out of the training data have no name of their own."""
        if split == "valid" and self.valid is None:
            return f"{self.hold_out:,} images of {self.train}"
        return super().split_name(split)


class LabelledImageData(ImageData):
    """Images with their classes."""

    multi_label: bool = False  # any number of classes per image
    separator: str = Field(default=";", min_length=1)  # between them, in a text


class ImageRecipe(Recipe):
    """Fields that recipes of image models share."""

    data: ImageData
    image: Preprocessing = Preprocessing()
    augment: Augmentation = Augmentation()

    @model_validator(mode="after")
    def _shifts_within_the_image(self) -> Self:
        side = min(self.image.height, self.image.width)
        if self.augment.shift >= side:
            raise ValueError(
                f"augment.shift is {self.augment.shift}, but the images have only {side} pixels in "
                "a direction: choose fewer"
            )
        return self

    @model_validator(mode="after")
    def _mixes_classes(self) -> Self:
        if self.augment.mixes and not isinstance(self.data, LabelledImageData):
            raise ValueError("mixup and cutmix mix classes, and there are none: leave them out")
        return self

    def derived(self) -> dict[str, int]:
        """Size and channels of the images."""
        return {name: getattr(self.image, name) for name in ("channels", "height", "width")}

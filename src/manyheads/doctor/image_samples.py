"""Images that the doctor looks at."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import nn

from manyheads.data.images.image_set import ImageSet, Preprocessing
from manyheads.data.images.pixels import predict_all_logits
from manyheads.doctor import image_leakage
from manyheads.doctor.run_batches import Examined, Predictions, Samples, random_sample
from manyheads.recipe_data.image_data import ImageRecipe
from manyheads.recipe_data.image_splits import image_splits
from manyheads.train.training_task import Task

IMAGES = 500


@dataclass(frozen=True, kw_only=True)
class ImageSamples(Samples):
    """Of an image model; one without labels has no classes to predict."""

    images: tuple[ImageSet, ImageSet]
    few: tuple[ImageSet, ImageSet]
    preprocessing: Preprocessing
    held_out: bool  # the validation images were drawn from the training images

    remedy: ClassVar[tuple[str, dict[str, object]]] = (
        "; where one class is most of the data, weigh the classes.",
        {"train.class_weights": "balanced"},
    )

    def predictions(self, model: nn.Module, task: Any) -> Predictions | None:
        """Return logits of classes; None of several classes per image, or without labels."""
        if not self.labelled or task.train.multi_label:
            return None
        return predict_all_logits(model, task.pixels), torch.from_numpy(task.train.labels)

    def examples(self) -> list[str]:
        """Show names of images with their classes."""
        images = self.few[0]
        if images.multi_label:
            return []
        first = zip(images.names[:3], images.labels[:3], strict=True)
        return [f"{name} is {images.classes[int(label)]}" for name, label in first]

    def class_name(self, number: int) -> str:
        """Name a class."""
        return repr(self.few[1].classes[number])

    def leaks(self) -> Examined:
        """Look for copies, series, marks and properties of files that tell the class."""
        sample = image_leakage.ImageSample(*self.images)
        findings = list(image_leakage.images_seen_before(sample))
        if sample.has_classes:
            if self.labelled and self.held_out:
                findings += image_leakage.series(sample)
            if self.labelled:
                findings += image_leakage.mark(sample, self.preprocessing)
            findings += image_leakage.file_properties(sample)
        looked_at = (
            f"leaks: {len(sample.train):,} training and {len(sample.valid):,} validation images: "
            "copies, series, marks, files"
        )
        return Examined(findings, [looked_at])


def sample_images(
    recipe: ImageRecipe, make: Callable[[ImageSet], Task[Any]], *, labelled: bool
) -> ImageSamples:
    """Take some images of both splits."""
    images = image_splits(recipe)
    train, valid = (each.select(random_sample(len(each), IMAGES)) for each in images)
    return ImageSamples(
        train=make(train),
        valid=make(valid),
        sizes=(len(train), len(valid)),
        validation=len(images[1]),
        images=images,
        few=(train, valid),
        preprocessing=recipe.image,
        held_out=recipe.data.hold_out > 0,
        labelled=labelled,
    )

"""What the doctor looks at."""

from dataclasses import replace

import numpy as np

from manyheads.data.augment.augment import Augmentation
from manyheads.data.checks.dependence import Sides
from manyheads.data.images.image_set import ImageSet
from manyheads.data.images.pixels import Pixels
from manyheads.doctor.image_samples import IMAGES, ImageSamples, sample_images
from manyheads.doctor.run_batches import random_sample
from manyheads.doctor.run_inspection import RunInspection
from manyheads.tasks.classify.recipe import ClassifyRecipe
from manyheads.tasks.classify.task import ClassifyTask

SMALL = 8  # pixels a side, to compare images with their classes


def sides(task: ClassifyTask) -> Sides:
    """Compare small copies of some training images with their classes."""
    few = task.train.select(random_sample(len(task.train), IMAGES))
    pixels = Pixels(few, replace(task.preprocessing, height=SMALL, width=SMALL))
    flat, labels = pixels[np.arange(len(few))].flatten(1).numpy(), few.labels
    wanted = labels if few.multi_label else labels[:, None] == np.arange(len(few.classes))
    contents = [row.tobytes() for row in flat], [row.tobytes() for row in np.atleast_1d(labels)]
    return Sides(("images", "labels"), (flat, wanted), contents)


def samples(recipe: ClassifyRecipe, run: RunInspection) -> ImageSamples:
    """Take some images of both splits."""
    config = replace(recipe.train, label_smoothing=0.0, class_weights=None)

    def task(some: ImageSet) -> ClassifyTask:
        return ClassifyTask(some, some, recipe.image, Augmentation(), config, seed=recipe.seed)

    return sample_images(recipe, task, labelled=True)

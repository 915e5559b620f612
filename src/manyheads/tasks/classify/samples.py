"""What the doctor looks at."""

from dataclasses import replace

from manyheads.data.augment.augment import Augmentation
from manyheads.data.images.image_set import ImageSet
from manyheads.doctor.image_samples import ImageSamples, sample_images
from manyheads.doctor.run_inspection import RunInspection
from manyheads.tasks.classify.recipe import ClassifyRecipe
from manyheads.tasks.classify.task import ClassifyTask


def samples(recipe: ClassifyRecipe, run: RunInspection) -> ImageSamples:
    """Take some images of both splits."""
    config = replace(recipe.train, label_smoothing=0.0, class_weights=None)

    def task(some: ImageSet) -> ClassifyTask:
        return ClassifyTask(some, some, recipe.image, Augmentation(), config, seed=recipe.seed)

    return sample_images(recipe, task, labelled=True)

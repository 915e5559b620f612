"""What the doctor looks at."""

from manyheads.data.augment.augment import Augmentation
from manyheads.data.images.image_set import ImageSet
from manyheads.doctor.image_samples import ImageSamples, sample_images
from manyheads.doctor.run_inspection import RunInspection
from manyheads.tasks.reconstruct.recipe import ReconstructRecipe
from manyheads.tasks.reconstruct.task import ReconstructTask


def samples(recipe: ReconstructRecipe, run: RunInspection) -> ImageSamples:
    """Take some images of both splits."""

    def task(some: ImageSet) -> ReconstructTask:
        return ReconstructTask(
            some, some, recipe.image, Augmentation(), recipe.train, recipe.patch, seed=recipe.seed
        )

    return sample_images(recipe, task, labelled=False)

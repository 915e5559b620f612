"""Between which limits the pixels of nearly all training images are; kept with the model."""

import logging
from collections.abc import Callable

import numpy as np

from manyheads.asks.evaluate_request import EvaluateRequest
from manyheads.data.even_sample import limited
from manyheads.data.images.image_set import ImageSet, Preprocessing
from manyheads.data.images.pixels import ROWS, Pixels
from manyheads.errors import DataError, NotFoundError, OutputError
from manyheads.predict.image_inputs import ImagePredictor
from manyheads.predict.unusual_images import ImageMeasures, measure_images
from manyheads.project.domain import ImageDomain, store_image_domain

LOG = logging.getLogger("manyheads")
LEAST, MOST = 100, 2000  # images that limits are set from
BEYOND = 0.0025  # share of them below, and above, the limits
MARGIN = 0.1  # of the distance between the limits, by which each is moved outwards
LEAST_MARGIN = 1.0  # of 255


def image_domain(images: ImageSet, preprocessing: Preprocessing, data: str) -> ImageDomain | None:
    """Set the limits from images, called `data`, or a sample of them; None if there are too few."""
    pixels = Pixels(limited(images, MOST), preprocessing)
    if (count := len(pixels.images)) < LEAST:
        return None
    parts = np.split(np.arange(count), range(ROWS, count, ROWS))
    measured = np.array([each for part in parts for each in measure_images(pixels[part])])
    low, high = np.quantile(measured, [BEYOND, 1 - BEYOND], axis=0)
    margin = np.maximum(MARGIN * (high - low), LEAST_MARGIN)
    limits = np.stack([low - margin, high + margin], axis=1).round(2)
    named = zip(ImageMeasures._fields, map(tuple, limits.tolist()), strict=True)
    return ImageDomain(data=data, images=count, limits=dict(named))


def keep_image_limits(
    predictor: ImagePredictor, request: EvaluateRequest, train: Callable[[], ImageSet]
) -> None:
    """Set the limits of a model that has none yet, when its own validation images are measured.

    Args:
        predictor: the model; a shipped one keeps what it came with.
        request: what is measured.
        train: reads the training images. If one is damaged, nothing is set.
    """
    folder, preprocessing = predictor.folder, predictor.preprocessing
    own = request.data is None and request.split == "valid"
    own = own and preprocessing == folder.preprocessing()  # not of another size
    if not own or folder.shipped or predictor.image_domain is not None:
        return
    try:
        if domain := image_domain(train(), preprocessing, folder.recipe.data.train):
            predictor.image_domain = domain
            store_image_domain(folder, domain)
    except (DataError, NotFoundError, OutputError) as error:
        LOG.warning("What images are usual was not stored with the model: %s", error)

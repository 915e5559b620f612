"""Classifiers: a stored image model, called with images or their paths."""

from collections.abc import Sequence
from typing import Any, NamedTuple, overload

import torch

from manyheads.asks.classify_request import ClassifyAnswer, ClassifyRequest, ClassProbability
from manyheads.asks.load_options import LoadOptions
from manyheads.data.images.pixels import predict_logits
from manyheads.errors import UsageError
from manyheads.predict.base_predictor import OutputClasses
from manyheads.predict.image_inputs import AnImage, ImageInput, ImagePredictor, answer_images
from manyheads.predict.unusual import unsure_of_class
from manyheads.project.folder import ModelFolder


class Prediction(NamedTuple):
    """One class and its probability."""

    label: str
    probability: float


class Classifier(ImagePredictor):
    """Call it with an image, a path, or a list of either."""

    request = ClassifyRequest
    page = "classify"

    @classmethod
    def output_classes(cls, folder: ModelFolder) -> OutputClasses:
        """The labels of its folder."""
        data: Any = folder.recipe.data
        return OutputClasses(folder.labels(), data.multi_label)

    def __init__(self, folder: ModelFolder, options: LoadOptions = LoadOptions()) -> None:
        super().__init__(folder, options)
        self.labels, self.multi_label = self.output_classes(folder)

    @overload
    def __call__(self, image: ImageInput) -> str: ...
    @overload
    def __call__(self, image: list[AnImage] | tuple[AnImage, ...]) -> list[str]: ...
    def __call__(self, image: AnImage | list[AnImage] | tuple[AnImage, ...]) -> str | list[str]:
        """Name the most probable class of one image, or of several."""
        if not isinstance(image, list | tuple):
            return self.classify([image])[0][0].label
        return [best.label for best, *_ in self.classify(image)]

    def respond(self, request: ClassifyRequest) -> list[ClassifyAnswer]:
        """Answer a request: one answer for each image; what cannot be read is told in its place."""
        if request.labels or request.templates:
            raise UsageError(
                f"{self.folder.name} has classes of its own: leave out `labels` and `templates`, "
                "or take a model that matches images and texts, such as emoji-search."
            )
        return answer_images(
            request.images,
            self.pixels,
            lambda pixels: zip(
                self.guesses(torch.stack(pixels), top=request.top),
                self.unlike(pixels),
                strict=True,
            ),
            self._answer,
            ClassifyAnswer,
        )

    def _answer(self, path: str, found: tuple[Sequence[Prediction], str | None]) -> ClassifyAnswer:
        predictions, strange = found
        classes = tuple(ClassProbability(**each._asdict()) for each in predictions)
        notes = self.notes(predictions[0], strange)
        return ClassifyAnswer(path=path, classes=classes, notes=notes or None)

    def notes(self, best: Prediction, strange: str | None) -> tuple[str, ...]:
        """Say whether the best class is unsure; `strange` says what is unusual in the image."""
        # Where several classes may apply, none may.
        unsure = None if self.multi_label else unsure_of_class(self.folder.name, *best)
        return tuple(filter(None, (unsure, strange)))

    def classify(
        self, images: list[AnImage] | tuple[AnImage, ...], *, top: int = 5
    ) -> list[list[Prediction]]:
        """Return the `top` most probable classes of each image with their probabilities.

        Where several classes may apply to an image, each has a probability of its own.
        """
        if not isinstance(images, list | tuple):
            raise UsageError(f"The images are {images!r:.80}: give a list, also for one alone.")
        if not images:
            return []
        return self.guesses(torch.stack([self.pixels(image) for image in images]), top=top)

    def guesses(self, pixels: torch.Tensor, *, top: int = 5) -> list[list[Prediction]]:
        """The same for images that are `pixels` already: (image, channel, height, width)."""
        with self.engine.running():
            logits = predict_logits(self.model, self.preprocessing, pixels)
            if self.multi_label:
                probabilities = logits.sigmoid()
            else:
                probabilities = logits.log_softmax(dim=-1).exp()
        values, classes = probabilities.topk(min(top, len(self.labels)))
        return [
            [Prediction(self.labels[c], p) for c, p in zip(row_classes, row_values, strict=True)]
            for row_classes, row_values in zip(classes.tolist(), values.tolist(), strict=True)
        ]

"""Classification of images."""

from typing import Annotated, ClassVar

from manyheads.asks.option import Option, separated
from manyheads.asks.request import Answer, ImageRequest, Limited, Several, estimate_tokens
from manyheads.bounded_numbers import Count


class ClassifyRequest(ImageRequest):
    """Classify images."""

    limited: ClassVar[Limited] = {"top": "top"}

    top: Annotated[Count, Option("Number of classes per image.")] = 5
    # Of matchers only:
    labels: Annotated[
        Several[str],
        Option(
            "Classes in words, separated by commas, for a model of images and texts; such as "
            "cat,dog,house.",
            read=separated,
        ),
    ] = ()
    templates: Annotated[
        Several[str],
        Option(
            'With labels: sentence around a class, "a photo of {}". Repeatable.', name="--template"
        ),
    ] = ()

    def cost_of(self, count: int) -> int:
        """Tokens of so many images, and of each class in each sentence."""
        labels, templates = estimate_tokens(self.labels), estimate_tokens(self.templates)
        written = labels * max(1, len(self.templates)) + templates * len(self.labels)
        return super().cost_of(count) + written

    @property
    def all_texts(self) -> tuple[str, ...]:
        """The classes, and the sentences around them."""
        return (*self.labels, *self.templates)


class ClassProbability(Answer):
    """A class and its probability."""

    label: str
    probability: float


class ClassifyAnswer(Answer):
    """The most probable classes of one image, or why it could not be read."""

    path: str
    classes: tuple[ClassProbability, ...] | None = None
    notes: tuple[str, ...] | None = None  # that the model is unsure; None: nothing
    error: str | None = None

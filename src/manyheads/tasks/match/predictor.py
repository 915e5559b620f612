"""Matchers: a stored model that puts images and texts into one space of vectors."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from manyheads.asks.classify_request import ClassifyAnswer, ClassifyRequest, ClassProbability
from manyheads.asks.load_options import LoadOptions
from manyheads.data.images.pixels import predict_logits
from manyheads.errors import UsageError
from manyheads.predict.base_predictor import text_positions
from manyheads.predict.image_inputs import ImageInput, ImagePredictor, answer_images
from manyheads.predict.text_reader import check_texts
from manyheads.predict.unusual import unsure_of_class
from manyheads.project.folder import ModelFolder
from manyheads.tasks.match.task import embed_texts, image_tower

AT_ONCE = 256  # images in memory
OTHER = "CLIP is for images of all kinds: hf:openai/clip-vit-base-patch32."


class Matcher(ImagePredictor):
    """Call it with images and texts: the cosine of every pair.

    It classifies by words, too: a request to classify names the classes.
    """

    request = ClassifyRequest
    zero_shot = True

    @classmethod
    def positions(cls, recipe: Any) -> int:
        """Those of texts longer than in training."""
        return text_positions(recipe.train.max_length)

    def __init__(self, folder: ModelFolder, options: LoadOptions = LoadOptions()) -> None:
        super().__init__(folder, options)
        recipe: Any = folder.recipe
        self.tokenizer = folder.tokenizers().target
        config: Any = recipe.config()
        own = folder.recipe.origin is not None  # then as many as it learned positions
        self.longest = config.max_length if own else int(recipe.train.max_length)  # tokens

    def __call__(self, images: Sequence[ImageInput], texts: Sequence[str] = (), /) -> np.ndarray:
        """Return the cosines (image, text)."""
        return self.embed_images(images) @ self.embed_texts(texts).T

    def embed_images(self, images: Sequence[ImageInput]) -> np.ndarray:
        """Return the unit vectors of images: (image, dim), float32."""
        if not isinstance(images, list | tuple):
            raise UsageError(f"The images are {images!r:.80}: give a list, also for one alone.")
        parts = [images[first : first + AT_ONCE] for first in range(0, len(images), AT_ONCE)]
        vectors = [self.embed_pixels([self.pixels(image) for image in part]) for part in parts]
        return np.concatenate(vectors) if vectors else np.empty((0, self.dim), dtype=np.float32)

    def embed_pixels(self, pixels: Sequence[Tensor]) -> np.ndarray:
        """The same for images that are preprocessed already."""
        with self.engine.running():
            tower = image_tower(self.model)
            return predict_logits(tower, self.preprocessing, torch.stack([*pixels])).numpy()

    def embed_texts(self, texts: Sequence[str]) -> np.ndarray:
        """Return the unit vectors of texts: (text, dim), float32."""
        check_texts(texts)
        if not texts:
            return np.empty((0, self.dim), dtype=np.float32)
        with self.engine.running():
            return embed_texts(self.model, self.tokenizer, texts, self.longest).numpy()

    @property
    def dim(self) -> int:
        """The width of the common space."""
        config: Any = self.folder.recipe.config()
        return int(config.embedding)

    def respond(self, request: ClassifyRequest) -> list[ClassifyAnswer]:
        """Classify images by words: one answer for each; what cannot be read is told in its place.

        Each class is the mean vector of its templates, as in CLIP (section 3.1.4). Probabilities
        are a softmax over the classes that were given.

        Raises:
            UsageError: no classes, one alone, the same twice, or one without letters.
        """
        classes = request.labels
        alone = len(classes) < 2 or len(set(classes)) < len(classes)
        if alone or not all(map(str.strip, classes)):
            raise UsageError(
                f"`labels` is {', '.join(classes) or 'empty'}: {self.folder.name} classifies by "
                "words, so give two classes or more, each once and none of them empty, such as "
                "cat,dog,house."
            )
        if wrong := [each for each in request.templates if "{}" not in each]:
            raise UsageError(f"`templates` has {wrong[0]!r}: write {{}} where the class stands.")
        templates = request.templates or ("{}",)
        written = [template.replace("{}", name) for name in classes for template in templates]
        vectors = self.embed_texts(written).reshape(len(classes), len(templates), -1).mean(axis=1)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        device = next(self.model.parameters()).device
        model: Any = self.model
        most = min(request.top, len(classes))

        def answer(path: str, read: tuple[np.ndarray, str | None]) -> ClassifyAnswer:
            image, strange = read
            with torch.inference_mode():
                vector = torch.from_numpy(image).to(device)
                scores = model.scores(vector, torch.from_numpy(vectors).to(device))[0]
            found = scores.float().log_softmax(dim=0).exp().topk(most)
            values, order = (each.tolist() for each in found)
            best = tuple(
                ClassProbability(label=classes[number], probability=value)
                for value, number in zip(values, order, strict=True)
            )
            unsure = unsure_of_class(self.folder.name, best[0].label, best[0].probability)
            notes = tuple(filter(None, (unsure, strange and f"{strange} {OTHER}")))
            return ClassifyAnswer(path=path, classes=best, notes=notes or None)

        return answer_images(
            request.images,
            self.pixels,
            lambda pixels: zip(
                (self.embed_pixels([each]) for each in pixels),
                self.unlike(pixels),
                strict=True,
            ),
            answer,
            ClassifyAnswer,
        )

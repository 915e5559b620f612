"""A multilayer perceptron on pixels (Rumelhart et al. 1986), without a prior for images."""

from dataclasses import dataclass
from itertools import pairwise

from jaxtyping import Float
from torch import Tensor, nn

from manyheads.errors import UsageError
from manyheads.models.components import ACTIVATIONS, Activation
from manyheads.models.model_config import ImageConfig
from manyheads.nn.layers.dropout import Dropout
from manyheads.nn.layers.head import Head
from manyheads.nn.layers.linear import Linear
from manyheads.nn.recording.tracking import start_image
from manyheads.nn.shapes import ClassScores, Images


@dataclass(frozen=True, kw_only=True)
class MlpConfig(ImageConfig):
    """Shape of a perceptron: the image's values in, one hidden layer after the other, classes."""

    height: int = 32
    width: int = 32
    hidden_sizes: tuple[int, ...] = (512, 512)
    classes: int = 10
    activation: Activation = "relu"
    dropout: float = 0.0

    def build(self) -> "Mlp":
        """Build the model with fresh weights."""
        return Mlp(self)


class Mlp(nn.Module):
    """Images in, logits over classes out."""

    def __init__(self, config: MlpConfig) -> None:
        super().__init__()
        self.config = config
        sizes = (config.channels * config.height * config.width, *config.hidden_sizes)
        activation = ACTIVATIONS[config.activation]
        layers = (
            nn.Sequential(Linear(inputs, outputs), activation(), Dropout(config.dropout))
            for inputs, outputs in pairwise(sizes)
        )
        self.layers = nn.Sequential(*layers)
        self.head = Head(sizes[-1], config.classes)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weights for ReLU (He et al. 2015); a zero head: all classes equally likely."""
        for part in self.layers.modules():
            if isinstance(part, nn.Linear):
                nn.init.kaiming_normal_(part.weight, nonlinearity="relu")
                nn.init.zeros_(part.bias)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, images: Images) -> ClassScores:
        """Score every class for every image."""
        return self.head(self.features(images))

    def features(self, images: Images) -> Float[Tensor, "batch dim"]:
        """Return the vector before the head for every image.

        Raises:
            UsageError: images of another size; every pixel has weights of its own.
        """
        start_image(images)
        expected = (self.config.channels, self.config.height, self.config.width)
        if tuple(images.shape[1:]) != expected:
            raise UsageError(
                f"Images of {' x '.join(map(str, images.shape[1:]))} (channels, height, width), "
                f"but this perceptron has weights for {' x '.join(map(str, expected))}: resize "
                "the images, or train one for their size."
            )
        return self.layers(images.flatten(1))

"""A model of one's own in a recipe: an MLP-Mixer, which mixes patches without attention.

    python examples/extend/own_model.py
    manyheads train RECIPE model.preset=mixer-tiny --plugin examples/extend/own_model.py

Tolstikhin et al. 2021, "MLP-Mixer: An all-MLP Architecture for Vision", section 2.
"""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from PIL import Image
from torch import Tensor, nn

import manyheads
from manyheads.models import ModelConfig
from manyheads.nn import FeedForward, Head, LinearPatches


@dataclass(frozen=True, kw_only=True)
class MixerConfig(ModelConfig):
    """Shape of the model: the recipe's [image] table and the data fill in the first four."""

    tasks: ClassVar[tuple[str, ...]] = ("classify",)

    height: int = 8
    width: int = 8
    channels: int = 1
    classes: int = 10
    patch: int = 2
    dim: int = 32
    layers: int = 2

    def build(self) -> "Mixer":
        """Build the model with fresh weights."""
        return Mixer(self)


class MixerBlock(nn.Module):
    """Mix tokens, channel by channel; then channels, token by token (equation 1)."""

    def __init__(self, tokens: int, dim: int) -> None:
        super().__init__()
        self.token_norm, self.channel_norm = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.mix_tokens = FeedForward(tokens, 2 * tokens, nn.GELU())
        self.mix_channels = FeedForward(dim, 4 * dim, nn.GELU())

    def forward(self, x: Tensor) -> Tensor:
        """Keep the shape (image, token, dim)."""
        x = x + self.mix_tokens(self.token_norm(x).transpose(1, 2)).transpose(1, 2)
        return x + self.mix_channels(self.channel_norm(x))


class Mixer(nn.Module):
    """Images in, logits over classes out."""

    def __init__(self, config: MixerConfig) -> None:
        super().__init__()
        tokens = (config.height // config.patch) * (config.width // config.patch)
        self.patches = LinearPatches(config.channels, config.patch, config.dim)
        blocks = [MixerBlock(tokens, config.dim) for _ in range(config.layers)]
        self.blocks = nn.Sequential(*blocks)
        self.norm = nn.LayerNorm(config.dim)
        self.head = Head(config.dim, config.classes)

    def forward(self, images: Tensor) -> Tensor:
        """Score the classes: (image, channel, height, width) -> (image, class)."""
        return self.head(self.norm(self.blocks(self.patches(images))).mean(dim=1))


manyheads.register_preset("mixer-tiny", MixerConfig())

RECIPE = """
task = "classify"

[data]
train = "stripes/train"
valid = "stripes/valid"

[image]
height = 8
width = 8
mode = "L"

[model]
preset = "mixer-tiny"

[train]
steps = 60
batch_size = 16
learning_rate = 1e-2
warmup = 10
validate_every = 30
threads = 1
"""


def write_stripes(folder: Path) -> Path:
    """Write grey images of flat or upright stripes, in a folder a class, and the recipe."""
    random = np.random.default_rng(1)
    for split, count in (("train", 80), ("valid", 40)):
        for number in range(count):
            name, flat = ("flat", True) if number % 2 else ("upright", False)
            stripe = (np.arange(8) // random.integers(1, 4) + random.integers(2)) % 2 * 155
            pixels = random.integers(0, 100, (8, 8)) + (stripe[:, None] if flat else stripe)
            path = folder / "stripes" / split / name / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(pixels.astype(np.uint8)).save(path)
    recipe = folder / "stripes.toml"
    recipe.write_text(RECIPE, encoding="utf-8")
    return recipe


def main() -> None:
    """Train, measure and use the model."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        recipe = write_stripes(folder)
        line = manyheads.train(recipe, f"data.root={folder}", out=folder / "run")
        print(f"accuracy on other images: {line['value']:.0f}%")
        classifier = manyheads.load(folder / "run")
        print(f"an upright one is {classifier(folder / 'stripes' / 'valid' / 'upright' / '0.png')}")


if __name__ == "__main__":
    main()

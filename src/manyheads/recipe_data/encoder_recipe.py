"""Recipes of models with an image encoder inside: any image preset, changed by [model.image]."""

from collections.abc import Sequence
from typing import Any

from manyheads.errors import RecipeError, nearest
from manyheads.models.model_config import ModelConfig
from manyheads.models.presets import PRESETS, preset
from manyheads.project.base_recipe import Converted, configure
from manyheads.recipe_data.caption_data import CaptionRecipe


class EncoderRecipe(CaptionRecipe):
    """A recipe whose model has the fields `encoder`, a preset's name, and `image`, its Config."""

    converted: Converted | None = None

    def tables_not_written(self) -> Sequence[str]:
        """The training and the tokenizer of a converted model are elsewhere."""
        return ("augment", "train", "tokenizer") if self.converted else ()

    def config(self, **derived: Any) -> ModelConfig:
        """Resolve the image encoder, then the model around it.

        Raises:
            RecipeError: as for any recipe; or the encoder is no image model.
        """
        model = dict(self.model)
        own: Any = preset(str(model["preset"])) if "preset" in model else None
        if not hasattr(getattr(own, "image", None), "feature_dim"):
            return super().config(**derived)  # which refuses it
        name, table = model.get("encoder", own.encoder), model.get("image", {})
        if not isinstance(table, dict):
            raise RecipeError(f"model.image = {table!r}: it must be a table of keys and values.")
        base = own.image if name == own.encoder else preset(name)
        if not hasattr(base, "feature_dim"):
            fitting = [each for each, config in PRESETS.items() if hasattr(config, "feature_dim")]
            raise RecipeError(
                f"model.encoder is {name!r}{nearest(str(name), fitting)}Presets of image models: "
                f"{', '.join(fitting)}."
            )
        image = configure(base, table, super().derived(), "model.image")
        without = {key: value for key, value in model.items() if key != "image"}
        plain = self.model_copy(update={"model": without})
        return super(EncoderRecipe, plain).config(image=image, **derived)

    def derived(self) -> dict[str, Any]:
        """Nothing: the size of the images is the encoder's."""
        return {}

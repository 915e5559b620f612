"""The recipe of the task "caption"."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Literal

from manyheads.asks.decode_config import DecodeConfig
from manyheads.data.tokenizers.tokenizer import END, PAD, START, TokenizerConfig
from manyheads.errors import RecipeError
from manyheads.project.base_recipe import Start
from manyheads.project.folder import ModelFolder
from manyheads.project.paths import find_model
from manyheads.recipe_data.encoder_recipe import EncoderRecipe
from manyheads.tasks.caption.task import CaptionEvaluateConfig, CaptionTrainConfig

OF_THE_DATA = ("vocabulary", "pad", "start", "end")  # keys of a model
OF_THE_IMAGE = ("height", "width", "channels")


class CaptionRecipe(EncoderRecipe):
    """A recipe with task = "caption"."""

    task: Literal["caption"]
    # The [start] table: a trained captioner that is continued, with its vocabulary.
    start: Start | None = None
    tokenizer: TokenizerConfig = TokenizerConfig()
    train: CaptionTrainConfig = CaptionTrainConfig()
    decode: DecodeConfig = DecodeConfig()
    evaluate: CaptionEvaluateConfig = CaptionEvaluateConfig()

    @classmethod
    def complete(cls, table: dict[str, Any]) -> None:
        """Take [model], [image] and [tokenizer] of the captioner that is continued, in place."""
        start = table.get("start")
        name = start.get("model") if isinstance(start, dict) else None
        if not isinstance(name, str) or "model" in table:
            return
        folder = ModelFolder(find_model(name))
        theirs = folder.recipe
        if not isinstance(theirs, cls) or theirs.origin is not None:
            raise RecipeError(
                f"start.model: {folder.path} is not a captioner that was trained here, and only "
                "such a one can be continued. `manyheads models` lists those shipped."
            )
        image = theirs.model.get("image", {})
        table["model"] = {k: value for k, value in theirs.model.items() if k not in OF_THE_DATA}
        table["model"]["image"] = {k: image[k] for k in image if k not in OF_THE_IMAGE}
        table["image"] = asdict(folder.preprocessing()) | table.get("image", {})
        table["tokenizer"] = asdict(theirs.tokenizer)

    @property
    def metrics(self) -> Sequence[str]:
        """Means over languages; with several, each language has its own too."""
        languages = list(self.data.texts)
        each = [f"{name}_{code}" for name in self.evaluate.metrics for code in languages]
        return [*self.evaluate.metrics, *(each if len(languages) > 1 else [])]

    def derived(self) -> dict[str, Any]:
        """Special ids; a converted model has its own."""
        return {} if self.converted else {"pad": PAD, "start": START, "end": END}

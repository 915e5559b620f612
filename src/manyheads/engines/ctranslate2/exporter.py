"""Write a stored translator for CTranslate2."""

from pathlib import Path
from typing import Any, cast

from manyheads.data.tokenizers.tokenizer import TextTokenizer
from manyheads.engines.exporter import Exported, ExportOptions, Target
from manyheads.errors import UsageError
from manyheads.models.convert.ctranslate2 import library, to_ctranslate2
from manyheads.models.transformer import TransformerConfig
from manyheads.project.folder import ModelFolder, read_weights

NAME = "ctranslate2"
PREFIX = 1024  # tokens that an output may have besides those that its source allows
Names = tuple[list[str], list[str]]  # tokens of the source, of the target: all different


def export(folder: ModelFolder, out: Path, options: ExportOptions) -> Exported:
    """Write an encoder-decoder Transformer and its vocabularies.

    Raises:
        MissingExtraError: CTranslate2 is not installed.
        UsageError: it has no equivalent of a part of the model.
    """
    config = exportable(folder)
    package = library()
    folder.model()  # weights that are damaged, or do not fit, are refused
    weights = read_weights(folder.path / "model.safetensors")
    names, most = token_names(folder), positions(folder, config)
    spec = to_ctranslate2(config, weights, *names, positions=most)
    spec.optimize(None if options.quantization == "float32" else options.quantization)
    spec.save(str(out))
    computes = package.get_supported_compute_types("cpu")
    remarks: tuple[str, ...] = ()
    if options.quantization == "bfloat16" and "bfloat16" not in computes:
        remarks = (
            "this build of CTranslate2 does not compute in bfloat16 on a CPU: the weights take "
            "half the room on the disk, and computing is float32.",
        )
    return Exported({"ctranslate2": package.__version__}, remarks)


def positions(folder: ModelFolder, config: TransformerConfig) -> int:
    """Choose how many positions are written where they are a formula: more than outputs have."""
    recipe: Any = folder.recipe
    return 2 * min(2 * int(recipe.train.max_length), config.token_limit) + PREFIX


def exportable(folder: ModelFolder) -> TransformerConfig:
    """Return the Config of a model that CTranslate2 can express.

    Raises:
        UsageError: it cannot.
    """
    config = folder.recipe.config()
    if NAME not in config.exports:
        raise UsageError(
            f"{folder.name} cannot be exported to CTranslate2, which runs translators with a "
            f"Transformer's encoder and decoder: its preset is {folder.recipe.model['preset']!r}."
        )
    return cast(TransformerConfig, config)


def token_names(folder: ModelFolder) -> Names:
    """Name the tokens of both sides as their tokenizers do."""
    config, (source, target) = exportable(folder), folder.tokenizers()
    size = config.vocabulary
    return _names(source, size), _names(target, config.target_vocabulary or size)


def _names(tokenizer: TextTokenizer, size: int) -> list[str]:
    """Name each token; one that has no name of its own gets one with its number."""
    names: dict[str, None] = {}
    for token in range(size):
        name = tokenizer.piece(token) if token < len(tokenizer) else ""
        while not name or name in names:
            name = f"{name or '<none>'}#{token}"
        names[name] = None
    return list(names)


EXPORTER = Target(NAME, NAME, ("float32", "bfloat16", "int8"), export)

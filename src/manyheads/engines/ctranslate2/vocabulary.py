"""Names of tokens in CTranslate2's vocabularies, which are lists of different texts."""

from manyheads.data.tokenizers.tokenizer import TextTokenizer
from manyheads.project.folder import ModelFolder

Names = tuple[list[str], list[str]]  # of the source, of the target


def token_names(folder: ModelFolder) -> Names:
    """Name the tokens of both sides as their tokenizers do."""
    config, both = folder.recipe.config(), folder.tokenizers()
    sizes: list[int] = [getattr(config, key, None) for key in ("vocabulary", "target_vocabulary")]  # type: ignore[misc]
    sides = zip(both, sizes, strict=True)
    source, target = (_names(tokenizer, size or sizes[0]) for tokenizer, size in sides)
    return source, target


def _names(tokenizer: TextTokenizer, size: int) -> list[str]:
    """Name each token; one that has no name of its own gets one with its number."""
    names: dict[str, None] = {}
    for token in range(size):
        name = tokenizer.piece(token) if token < len(tokenizer) else ""
        while not name or name in names:
            name = f"{name or '<none>'}#{token}"
        names[name] = None
    return list(names)

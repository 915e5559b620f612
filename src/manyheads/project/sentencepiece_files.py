"""The sentencepiece models of a folder: tokenizer.model for both sides, or one for each."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from manyheads.data.tokenizers.tagged_tokenizer import TaggedTokenizer
from manyheads.data.tokenizers.tokenizer import (
    PairTokenizerConfig,
    Tokenizer,
    TokenizerConfig,
    Tokenizers,
)
from manyheads.errors import FolderError

SHARED, SOURCE, TARGET = "tokenizer.model", "source.model", "target.model"

# By the name of its file: one of SHARED, or two of SOURCE and TARGET, in this order.
Vocabularies = Mapping[str, Tokenizer]


def load_vocabularies(folder: Path) -> Vocabularies:
    """Load the sentencepiece models of a folder; none if one is missing."""
    names = [SHARED] if (folder / SHARED).exists() else [SOURCE, TARGET]
    if not all((folder / name).exists() for name in names):
        return {}
    return {name: Tokenizer((folder / name).read_bytes(), name=name) for name in names}


def need_vocabularies(folder: Path) -> Vocabularies:
    """Load the sentencepiece models of a folder, which must be there."""
    found = load_vocabularies(folder)
    if not found:
        raise FolderError(f"{folder} has no tokenizer.model. Copy the whole folder again.")
    return found


def learn_vocabularies(
    sources: Sequence[str], targets: Sequence[str], config: PairTokenizerConfig
) -> Vocabularies:
    """Learn one vocabulary from both sides, or one from each."""
    if config.shared:
        return {SHARED: learn_tokenizer([*sources, *targets], config)}
    return {SOURCE: learn_tokenizer(sources, config), TARGET: learn_tokenizer(targets, config)}


def learn_tokenizer(
    lines: Iterable[str], config: TokenizerConfig, languages: Sequence[str] = ()
) -> Tokenizer:
    """Learn one vocabulary; of several ranks the first learns it, for all."""
    # Here, since who reads a vocabulary needs no ranks.
    from manyheads.train.ranks import on_first, rank_and_world

    if rank_and_world()[1] == 1:
        return Tokenizer.train(lines, config, languages)
    return Tokenizer(on_first(lambda: Tokenizer.train(lines, config, languages).model))


def tokenizers(vocabularies: Vocabularies, config: TokenizerConfig | None = None) -> Tokenizers:
    """Return the tokenizer of each side; sources may begin with a tag that `config` names."""
    source, *_ = found = list(vocabularies.values())
    if isinstance(config, PairTokenizerConfig) and config.tag:
        source = TaggedTokenizer(source.model, config.symbols, config.tag)
    return Tokenizers(source, found[-1])


def sizes(vocabularies: Vocabularies) -> dict[str, int]:
    """Return the keys of a model's Config that depend on the vocabularies."""
    keys = ("vocabulary", "target_vocabulary")
    return {key: len(found) for key, found in zip(keys, vocabularies.values(), strict=False)}

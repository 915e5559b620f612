"""The sentencepiece models of a folder: tokenizer.model for both sides, or one for each."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from manyheads.data.tokenizer import PairTokenizerConfig, Tokenizer, Tokenizers

SHARED, SOURCE, TARGET = "tokenizer.model", "source.model", "target.model"

# By the name of its file: one of SHARED, or two of SOURCE and TARGET, in this order.
Vocabularies = Mapping[str, Tokenizer]


def load_vocabularies(folder: Path) -> Vocabularies:
    """Load what is in a folder; nothing if there is none.

    Raises:
        FolderError: a file is not a sentencepiece model.
    """
    names = [SHARED] if (folder / SHARED).exists() else [SOURCE, TARGET]
    if not all((folder / name).exists() for name in names):
        return {}
    return {name: Tokenizer((folder / name).read_bytes(), name=name) for name in names}


def learn_vocabularies(
    sources: Sequence[str], targets: Sequence[str], config: PairTokenizerConfig
) -> Vocabularies:
    """Learn one vocabulary from both sides, or one from each.

    Raises:
        DataError: the text cannot support a vocabulary of this size.
    """
    if config.shared:
        return {SHARED: Tokenizer.train([*sources, *targets], config)}
    return {
        SOURCE: Tokenizer.train(sources, config),
        TARGET: Tokenizer.train(targets, config),
    }


def tokenizers(vocabularies: Vocabularies) -> Tokenizers:
    """Say which tokenizer belongs to which side."""
    source, *_ = found = list(vocabularies.values())
    return Tokenizers(source, found[-1])


def sizes(vocabularies: Vocabularies) -> dict[str, int]:
    """Say what the vocabularies make of a model's Config."""
    keys = ("vocabulary", "target_vocabulary")
    return {key: len(found) for key, found in zip(keys, vocabularies.values(), strict=False)}

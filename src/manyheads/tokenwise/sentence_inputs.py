"""Sentences that a language model learns from."""

from pathlib import Path

from manyheads.data.split_register import reject_test_split
from manyheads.data.text.corpus import Sentences
from manyheads.data.tokenizers.tokenizer import Tokenizer, TokenizerConfig
from manyheads.fit.inputs import Say
from manyheads.project.sentencepiece_files import learn_tokenizer
from manyheads.recipe_data.sentence_splits import sentences, training_sentences
from manyheads.recipe_data.text_data import LanguageData
from manyheads.tokenwise.token_task import Examples


def language_splits(
    data: LanguageData, tokenizer: TokenizerConfig, out: Path, say: Say
) -> tuple[Sentences, Sentences, Tokenizer]:
    """Read training and validation sentences; load the vocabulary from `out`, or learn it."""
    train, valid = training_sentences(data)
    stored = out / "tokenizer.model"
    if stored.exists():
        return train, valid, Tokenizer(stored.read_bytes())
    parts = [sentences(name, data) for name in data.vocabulary] or [train]
    for part in parts:
        reject_test_split(part.hashes, part.origin)
    say(f"learning a vocabulary from {sum(map(len, parts)):,} lines")
    lines = [line for part in parts for line in part.lines]
    return train, valid, learn_tokenizer(lines, tokenizer)


def say_left_out(examples: Examples, max_length: int, say: Say) -> None:
    """Report texts that are longer than the recipe allows."""
    if examples.left_out:
        say(
            f"left out {examples.left_out:,} of {len(examples.sentences):,} lines, longer than "
            f"train.max_length = {max_length} tokens"
        )

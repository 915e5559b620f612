"""Subword regularisation: other pieces of the same text, and never by accident."""

from functools import cache
from typing import Any

import numpy as np
import pytest

from manyheads.data.tokenizers.subword_sampling import SubwordSampler
from manyheads.data.tokenizers.token_store import TokenStore, encode_in_memory
from manyheads.data.tokenizers.tokenizer import Tokenizer, TokenizerConfig, Tokenizers
from manyheads.errors import RecipeError
from tests.made import numbers

SOURCES, TARGETS = numbers(30, 1)
EVERY = np.arange(30)


@cache
def tokenizers() -> Tokenizers:
    sides = (Tokenizer.train(lines, TokenizerConfig(size=300)) for lines in numbers(100, 0))
    return Tokenizers(*sides)


@cache
def store() -> TokenStore:
    return encode_in_memory(zip(SOURCES, TARGETS, strict=True), tokenizers(), texts=True)


def sampler(alpha: float = 0.1, **changes: Any) -> SubwordSampler:
    arguments = {"max_length": 100, "seed": 1, "epoch": 0} | changes
    return SubwordSampler(store(), tokenizers(), alpha, **arguments)


def test_the_text_stays() -> None:
    """Other pieces, the same sentences, on both sides."""
    source, target = sampler()(EVERY)
    assert (source, target) != store().tokens(EVERY)
    assert tokenizers().source.decode(source) == SOURCES
    assert tokenizers().target.decode(target) == TARGETS


def test_a_draw_belongs_to_its_example() -> None:
    """Whatever batch it comes in, and whatever was drawn before: so a run can be resumed."""
    source, target = sampler()(EVERY)
    shuffled = np.random.default_rng(0).permutation(30)
    for batch in (shuffled[:7], shuffled[7:], shuffled[:7]):
        assert sampler()(batch) == ([source[i] for i in batch], [target[i] for i in batch])


def test_other_draws_each_epoch_and_seed() -> None:
    """And other draws for two examples with the same text."""
    first = sampler()(EVERY)
    assert sampler(epoch=1)(EVERY) != first
    assert sampler(seed=2)(EVERY) != first
    twins = encode_in_memory([(SOURCES[0], TARGETS[0])] * 20, tokenizers(), texts=True)
    drawn = SubwordSampler(twins, tokenizers(), 0.1, max_length=100, seed=1, epoch=0)
    assert len({str(tokens) for tokens in drawn(np.arange(20))[0]}) > 2


def test_none_is_longer_than_allowed() -> None:
    """What is drawn with more tokens than train.max_length gives way to the best segmentation."""
    best = store().tokens(EVERY)
    longest = max(len(tokens) for side in best for tokens in side)
    limited = sampler(max_length=longest)(EVERY)
    free = sampler()(EVERY)
    assert any(len(tokens) > longest for side in free for tokens in side)
    for found, drawn, kept in zip(limited, free, best, strict=True):
        assert found == [d if len(d) <= longest else k for d, k in zip(drawn, kept, strict=True)]


def test_a_tokenizer_that_cannot() -> None:
    """Says which key to leave out."""

    class Fixed:
        def __len__(self) -> int:
            return 300

        encode = decode = piece = pieces = None

    with pytest.raises(RecipeError, match=r"tokenizer\.sampling"):
        SubwordSampler(
            store(),
            Tokenizers(Fixed(), Fixed()),  # type: ignore[arg-type]
            0.1,
            max_length=9,
            seed=1,
            epoch=0,
        )


def test_noise_comes_before_segmentation() -> None:
    """Without sampling, changed texts get their best segmentation; a draw is its example's."""

    def noise(source: str, target: str, seed: int) -> tuple[str, str]:
        return (source.upper(), target) if seed % 2 else (source, target)

    drawn = sampler(0.0, noise=noise)
    source, target = drawn(EVERY)
    best = store().tokens(EVERY)
    assert target == best[1]
    texts = tokenizers().source.decode(source)
    assert {text.upper() for text in texts} == {text.upper() for text in SOURCES}
    assert 0 < sum(text != text.upper() for text in texts) < 30
    assert drawn(EVERY[7:9]) == (source[7:9], target[7:9])
    assert sampler(0.0, noise=noise, epoch=1)(EVERY) != (source, target)

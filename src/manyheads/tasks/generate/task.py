"""Continuing texts: the next token."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import torch
import torch.nn.functional as F

from manyheads.data.batching.batches import length_batches, pad
from manyheads.data.text.corpus import Sentences
from manyheads.data.tokenizers.tokenizer import END, PAD, START, UNKNOWN, TextTokenizer, byte_pieces
from manyheads.decode.beam import beam_search
from manyheads.decode.constraints import Rule, SuppressTokens
from manyheads.decode.sampling import Sampling, sample
from manyheads.decode.utf8 import WholeCharacters
from manyheads.errors import UsageError
from manyheads.models.causal_lm import CausalConfig, CausalLanguageModel
from manyheads.streams import stream
from manyheads.tokenwise.token_task import Examples

ROWS = 64  # texts per batch in prediction


class NextToken(Examples):
    """Every token is trained to predict the next, up to the end (Radford et al. 2018, eq. 1)."""

    padding = PAD

    def __init__(
        self, sentences: Sentences, tokenizer: TextTokenizer, max_length: int | None = None
    ) -> None:
        encoded = tokenizer.encode(sentences.lines)
        super().__init__(sentences, [[START, *ids] for ids in encoded], max_length)

    def example(self, index: int, epoch: int) -> tuple[list[int], list[int]]:
        """Return the tokens, and the same tokens shifted by one as targets."""
        tokens = list(self.sequences[index])
        return tokens, [*tokens[1:], END]


class ScoredToken(NamedTuple):
    """A token of a text, and its log-probability given the tokens before it."""

    piece: str
    log_probability: float


@dataclass(frozen=True, slots=True)
class Completion:
    """A prompt with its generated continuation."""

    text: str  # prompt and continuation
    tokens: list[int]  # of the continuation
    log_probability: float  # of the continuation
    finished: bool  # False: cut off at the length limit


@torch.inference_mode()
def complete(
    model: CausalLanguageModel,
    tokenizer: TextTokenizer,
    prompts: Sequence[str],
    *,
    tokens: int = 64,
    beams: int = 1,
    sampling: Sampling | None = None,
    n_best: int = 1,
    seed: int = 1,
) -> list[list[Completion]]:
    """Continue each prompt up to an end token or `tokens` tokens; in the order of the prompts.

    Prompts of equal length are batched. The arguments are those of `Generator.complete`.

    Raises:
        UsageError: a number is too small, or a prompt is longer than the model's positions.
    """
    for name, number in (("tokens", tokens), ("beams", beams), ("n_best", n_best)):
        if number < 1:
            raise UsageError(f"{name} is {number}: it must be at least 1.")
    device, config = next(model.parameters()).device, model.config
    encoded = [[config.start, *ids] for ids in tokenizer.encode(prompts)]
    order = sorted(range(len(prompts)), key=lambda i: len(encoded[i]))
    # Special tokens are never text; a trained model avoids them, but sampling may draw any token.
    no_text = [SuppressTokens([config.pad, config.start, UNKNOWN])]
    completions: dict[int, list[Completion]] = {}
    for length, group in groupby(order, key=lambda i: len(encoded[i])):
        alike = list(group)
        limit = min(tokens, remaining_positions(config, length))
        for first in range(0, len(alike), ROWS):
            chosen = alike[first : first + ROWS]
            batch = torch.tensor([encoded[i] for i in chosen], device=device)
            limits = [limit] * len(chosen)
            rules: list[Rule] = [*no_text, WholeCharacters(byte_pieces(tokenizer), limits)]
            if sampling is not None:
                seeds = [stream(seed, "prompt", *encoded[i]) for i in chosen]
                hypotheses = sample(
                    model,
                    batch,
                    limits,
                    seeds,
                    start=config.start,
                    end=config.end,
                    sampling=sampling,
                    samples=n_best,
                    rules=rules,
                )
            else:
                hypotheses = beam_search(
                    model,
                    batch,
                    limits,
                    beams=max(beams, n_best),
                    start=config.start,
                    end=config.end,
                    n_best=n_best,
                    rules=rules,
                    same=lambda tokens: tokenizer.decode([tokens])[0],
                )
            for i, best in zip(chosen, hypotheses, strict=True):
                texts = tokenizer.decode([encoded[i] + each.tokens for each in best])
                completions[i] = [
                    Completion(text, each.tokens, each.log_probability, each.finished)
                    for text, each in zip(texts, best, strict=True)
                ]
    return [completions[i] for i in range(len(prompts))]


def remaining_positions(config: CausalConfig, length: int) -> int:
    """Return how many tokens fit after a prompt; the last one needs no position.

    Raises:
        UsageError: the prompt is longer than the model's positions.
    """
    most = config.token_limit
    if length > most:
        raise UsageError(
            f"The prompt has {length} tokens, its start token included, but the model has learned "
            f"only {most} positions. Shorten the prompt."
        )
    return most - length + 1


@torch.inference_mode()
def token_scores(
    model: CausalLanguageModel, tokenizer: TextTokenizer, texts: Sequence[str]
) -> list[list[ScoredToken]]:
    """Return the log-probability of every token of each text, end token included."""
    device, config = next(model.parameters()).device, model.config
    encoded = tokenizer.encode(texts)
    scored: list[list[ScoredToken]] = [[] for _ in texts]
    for chosen in length_batches(range(len(texts)), lambda i: len(encoded[i]), ROWS):
        tokens = pad([[config.start, *encoded[i]] for i in chosen], config.pad).to(device)
        log_probabilities = F.log_softmax(model(tokens).float(), dim=-1)
        for row, i in enumerate(chosen):
            wanted = torch.tensor([*encoded[i], config.end], device=device)
            values = log_probabilities[row, : len(wanted)].gather(1, wanted[:, None])[:, 0]
            scored[i] = [
                ScoredToken(tokenizer.piece(token), value)
                for token, value in zip(wanted.tolist(), values.tolist(), strict=True)
            ]
    return scored

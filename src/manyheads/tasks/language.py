"""Language models: predict the next token (GPT), or masked tokens from both sides (BERT)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Annotated, NamedTuple

import torch
import torch.nn.functional as F
from annotated_types import Gt, Lt

from manyheads.data.batching.batches import pad
from manyheads.data.text.sentences import Sentences
from manyheads.data.tokenizers.byte_pieces import byte_pieces
from manyheads.data.tokenizers.tokenizer import END, PAD, START, UNKNOWN, Piece, TextTokenizer
from manyheads.decode.beam import beam_search
from manyheads.decode.constraints import Rule, SuppressTokens
from manyheads.decode.sampling import Sampling, sample
from manyheads.decode.utf8 import WholeCharacters
from manyheads.errors import UsageError
from manyheads.models.causal_lm import CausalConfig, CausalLanguageModel
from manyheads.models.masked_lm import MaskedLanguageModel
from manyheads.streams import generator, stream
from manyheads.tasks.token_details import behind_space
from manyheads.tasks.tokenwise import IGNORED, Examples, TokenTrainConfig

MASK = UNKNOWN  # unknown text is encoded as bytes, so the unknown token can serve as mask token
BLANK = "<mask>"  # the mask in texts of users
ROWS = 64  # texts per batch in prediction


@dataclass(frozen=True, kw_only=True)
class FillTrainConfig(TokenTrainConfig):
    """The [train] table of a masked-token model."""

    masked: Annotated[float, Gt(0), Lt(1)] = 0.15  # share of tokens to predict


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


class MaskedToken(Examples):
    """Masked language modelling: the targets are the masked tokens (Devlin et al. 2019, 3.1).

    Of the chosen tokens, 80% are replaced by the mask, 10% by a random token, and 10% stay, so that
    the model represents every token, not only masks. Each epoch chooses other tokens; the choice
    is a pure function of (seed, epoch, example).
    """

    padding = PAD

    def __init__(
        self,
        sentences: Sentences,
        tokenizer: TextTokenizer,
        max_length: int | None = None,
        *,
        masked: float = 0.15,
        seed: int = 0,
    ) -> None:
        encoded = tokenizer.encode(sentences.lines)
        # A line of only invisible characters has no tokens to mask.
        sequences = [[*ids, END] if ids else [] for ids in encoded]
        super().__init__(sentences, sequences, max_length)
        self.masked = masked
        self.seed = seed
        self.vocabulary = len(tokenizer)

    def example(self, index: int, epoch: int) -> tuple[list[int], list[int]]:
        """Mask some tokens, at least one, never the end token."""
        tokens = list(self.sequences[index])
        wanted = [IGNORED] * len(tokens)
        random = generator(self.seed, "mask", epoch, index)
        real = len(tokens) - 1
        chosen = random.permutation(real)[: max(1, round(self.masked * real))]
        for position, luck in zip(
            chosen.tolist(), random.random(len(chosen)).tolist(), strict=True
        ):
            wanted[position] = tokens[position]
            if luck < 0.8:
                tokens[position] = MASK
            elif luck < 0.9:
                tokens[position] = int(random.integers(UNKNOWN + 1, self.vocabulary))
        return tokens, wanted


class ScoredToken(NamedTuple):
    """A token of a text, and its log-probability given the tokens before it."""

    piece: str
    log_probability: float


class Filling(NamedTuple):
    """A token for a mask: the token, its probability, and the filled text."""

    token: str
    probability: float
    text: str


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

    Prompts of equal length are batched. An empty prompt starts a new text.

    Args:
        model: the language model.
        tokenizer: the tokenizer of the model.
        prompts: raw texts.
        tokens: the maximum number of generated tokens.
        beams: of the beam search, 1 is greedy; raised to n_best if necessary.
        sampling: sample from this distribution instead of searching.
        n_best: number of continuations per prompt: samples, or the best beams.
        seed: of sampling; the sample of a prompt depends only on the seed and the prompt.

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
    found: dict[int, list[Completion]] = {}
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
                found[i] = [
                    Completion(text, each.tokens, each.log_probability, each.finished)
                    for text, each in zip(texts, best, strict=True)
                ]
    return [found[i] for i in range(len(prompts))]


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
    found: list[list[ScoredToken]] = [[] for _ in texts]
    order = sorted(range(len(texts)), key=lambda i: len(encoded[i]))
    for first in range(0, len(order), ROWS):
        chosen = order[first : first + ROWS]
        tokens = pad([[config.start, *encoded[i]] for i in chosen], config.pad).to(device)
        log_probabilities = F.log_softmax(model(tokens).float(), dim=-1)
        for row, i in enumerate(chosen):
            wanted = torch.tensor([*encoded[i], config.end], device=device)
            values = log_probabilities[row, : len(wanted)].gather(1, wanted[:, None])[:, 0]
            found[i] = [
                ScoredToken(tokenizer.piece(token), value)
                for token, value in zip(wanted.tolist(), values.tolist(), strict=True)
            ]
    return found


@torch.inference_mode()
def fill(
    model: MaskedLanguageModel, tokenizer: TextTokenizer, text: str, *, top: int = 5
) -> list[list[Filling]]:
    """Return the top-k tokens for every <mask> of a text, the most likely first.

    Masks are predicted independently; in a filled text, the other masks are replaced by their most
    likely tokens.

    Raises:
        UsageError: there is no <mask>, or `top` is less than 1.
    """
    if top < 1:
        raise UsageError(f"top is {top}: it must be at least 1.")
    config = model.config
    tokens = encode_masked(tokenizer, text, mask=config.mask)
    masked = [index for index, token in enumerate(tokens) if token == config.mask]
    if not masked:
        raise UsageError(f"There is no mask in {text!r}: write {BLANK} for the token to predict.")
    device = next(model.parameters()).device
    logits = model(torch.tensor([[*tokens, config.end]], device=device))[0, masked]
    no_text = [config.pad, config.start, config.end, config.mask]
    logits[:, no_text] = -torch.inf
    log_softmax = F.log_softmax(logits.float(), dim=-1)
    parts = [token for token, byte in byte_pieces(tokenizer) if byte >= 0x80]  # of a character
    log_softmax[:, parts] = -torch.inf
    proposed = min(top, logits.shape[1] - len(no_text) - len(parts))
    values, candidates = log_softmax.topk(proposed)
    best = list(tokens)
    for index, choice in zip(masked, candidates[:, 0].tolist(), strict=True):
        best[index] = choice
    found = []
    for index, row, log_probabilities in zip(
        masked, candidates.tolist(), values.tolist(), strict=True
    ):
        variants = [[*best[:index], choice, *best[index + 1 :]] for choice in row]
        found.append(
            [
                Filling(tokenizer.piece(choice), probability, filled)
                for choice, probability, filled in zip(
                    row,
                    torch.tensor(log_probabilities).exp().tolist(),
                    tokenizer.decode(variants),
                    strict=True,
                )
            ]
        )
    return found


def encode_masked(tokenizer: TextTokenizer, text: str, *, mask: int = MASK) -> list[int]:
    """Encode a text, with the token `mask` for each <mask>."""
    return [piece.id for piece in masked_pieces(tokenizer, text, mask=mask)]


def masked_pieces(tokenizer: TextTokenizer, text: str, *, mask: int = MASK) -> list[Piece]:
    """Split a text into tokens with their characters, with the token `mask` for each <mask>.

    The text is encoded as a whole, with a character of the private use area for each <mask>;
    encoded in parts, the text after a <mask> would begin a new word. The mask replaces a whole
    token, with its leading space.
    """
    sign, spelled = _placeholder(tokenizer, text)
    pieces: list[Piece] = []
    longer = 0  # difference in length of the masks so far and their placeholders
    for found in tokenizer.pieces(text.replace(BLANK, sign)):
        begin = behind_space(text, found.begin + longer, found.end + longer)
        pieces.append(replace(found, begin=begin, end=found.end + longer))
        if [piece.id for piece in pieces[-len(spelled) :]] == spelled:
            begin = min(piece.begin for piece in pieces[-len(spelled) :])
            del pieces[-len(spelled) :]
            if pieces and pieces[-1].text == "▁":
                pieces.pop()
            pieces.append(Piece(BLANK, mask, begin, begin + len(BLANK)))
            longer += len(BLANK) - len(sign)
    return pieces


def _placeholder(tokenizer: TextTokenizer, text: str) -> tuple[str, list[int]]:
    """Choose a private use character that is not in the text; return it and its tokens.

    The tokenizer must encode it as bytes: a character in the vocabulary could be merged with its
    neighbours into one token.
    """
    for sign in map(chr, range(0xE000, 0xF900)):
        wanted = [f"<0x{byte:02X}>" for byte in sign.encode()]
        spelled = tokenizer.encode([sign])[0][-len(wanted) :]
        if sign not in text and [tokenizer.piece(token) for token in spelled] == wanted:
            return sign, spelled
    raise UsageError(
        f"The text or the vocabulary contains every private use character (U+E000 to U+F8FF), but "
        f"one is needed in place of {BLANK}: remove one from the text."
    )

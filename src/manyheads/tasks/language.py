"""Language models: predict the next token (GPT), or the hidden one from both sides (BERT)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Annotated, NamedTuple

import torch
import torch.nn.functional as F
from annotated_types import Gt, Lt

from manyheads.data.batches import pad
from manyheads.data.monolingual import Sentences
from manyheads.data.tokenizer import END, PAD, START, UNKNOWN, Piece, TextTokenizer
from manyheads.decode.beam import beam_search
from manyheads.decode.constraints import Banned
from manyheads.decode.sample import Sampling, sample
from manyheads.errors import UsageError
from manyheads.models.causal_lm import CausalConfig, CausalLanguageModel
from manyheads.models.masked_lm import MaskedLanguageModel
from manyheads.models.reach import reach
from manyheads.streams import generator, stream
from manyheads.tasks.details import behind_space
from manyheads.tasks.tokenwise import NOTHING, Examples, TokenTrainConfig

MASK = UNKNOWN  # bytes stand in for unknown text, so the unknown token is free to hide others
BLANK = "<mask>"  # what people write for it
ROWS = 64  # texts a batch when answering


@dataclass(frozen=True, kw_only=True)
class FillTrainConfig(TokenTrainConfig):
    """The [train] table of a masked-token model."""

    masked: Annotated[float, Gt(0), Lt(1)] = 0.15  # share of tokens to be predicted


class NextToken(Examples):
    """At every token, the next one: Radford et al. 2018, equation 1. The end is one, too."""

    padding = PAD

    def __init__(
        self, sentences: Sentences, tokenizer: TextTokenizer, max_length: int | None = None
    ) -> None:
        encoded = tokenizer.encode(sentences.lines)
        super().__init__(sentences, [[START, *ids] for ids in encoded], max_length)

    def example(self, index: int, epoch: int) -> tuple[list[int], list[int]]:
        """Shift by one: what is to be predicted at a token stands behind it."""
        tokens = list(self.sequences[index])
        return tokens, [*tokens[1:], END]


class MaskedToken(Examples):
    """At some tokens, what they were before they were hidden: Devlin et al. 2019, section 3.1.

    Of the tokens chosen, 80% are replaced by the mask, 10% by any token, and 10% stay, so that the
    model has to know every token, not only masks. The choice is another one each epoch and a pure
    function of (seed, epoch, example).
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
        # Of a line that is nothing but invisible characters no token is left to hide.
        sequences = [[*ids, END] if ids else [] for ids in encoded]
        super().__init__(sentences, sequences, max_length)
        self.masked = masked
        self.seed = seed
        self.vocabulary = len(tokenizer)

    def example(self, index: int, epoch: int) -> tuple[list[int], list[int]]:
        """Hide some tokens, at least one, never the end."""
        tokens = list(self.sequences[index])
        wanted = [NOTHING] * len(tokens)
        random = generator(self.seed, "mask", epoch, index)
        real = len(tokens) - 1
        chosen = random.permutation(real)[: max(1, round(self.masked * real))]
        for place, luck in zip(chosen.tolist(), random.random(len(chosen)).tolist(), strict=True):
            wanted[place] = tokens[place]
            if luck < 0.8:
                tokens[place] = MASK
            elif luck < 0.9:
                tokens[place] = int(random.integers(UNKNOWN + 1, self.vocabulary))
        return tokens, wanted


class ScoredToken(NamedTuple):
    """A token of a text, and how likely the model finds it after those before it."""

    piece: str
    log_probability: float


class Filling(NamedTuple):
    """One way to fill a text's blank: the token, its probability, and the text with it."""

    token: str
    probability: float
    text: str


@dataclass(frozen=True, slots=True)
class Completion:
    """A prompt and what a model wrote behind it."""

    text: str  # of both
    tokens: list[int]  # of what was written
    log_probability: float  # of what was written
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
    """Continue each prompt up to an end token, or by as many tokens; in the order of the prompts.

    Prompts of equal length are continued together. An empty prompt begins a text of its own.

    Args:
        model: writes.
        tokenizer: that it was trained with.
        prompts: raw texts.
        tokens: the most that are written.
        beams: of a search for the likeliest continuation, 1 is greedy; at least n_best.
        sampling: draw from this distribution instead of searching.
        n_best: continuations a prompt: so many draws, or the best of the beams.
        seed: of the draws; what is drawn for a prompt depends on this and the prompt alone.

    Raises:
        UsageError: a number is too small, or a prompt is longer than the positions learned.
    """
    for name, number in (("tokens", tokens), ("beams", beams), ("n_best", n_best)):
        if number < 1:
            raise UsageError(f"{name} is {number}: it must be at least 1.")
    device, config = next(model.parameters()).device, model.config
    encoded = [[config.start, *ids] for ids in tokenizer.encode(prompts)]
    order = sorted(range(len(prompts)), key=lambda i: len(encoded[i]))
    # What is no text: a model knows, but a draw may hit anything.
    rules = [Banned([config.pad, config.start, UNKNOWN])]
    found: dict[int, list[Completion]] = {}
    for length, group in groupby(order, key=lambda i: len(encoded[i])):
        alike = list(group)
        limit = min(tokens, room(config, length))
        for first in range(0, len(alike), ROWS):
            chosen = alike[first : first + ROWS]
            batch = torch.tensor([encoded[i] for i in chosen], device=device)
            limits = [limit] * len(chosen)
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
                )
            for i, best in zip(chosen, hypotheses, strict=True):
                texts = tokenizer.decode([encoded[i] + each.tokens for each in best])
                found[i] = [
                    Completion(text, each.tokens, each.log_probability, each.finished)
                    for text, each in zip(texts, best, strict=True)
                ]
    return [found[i] for i in range(len(prompts))]


def room(config: CausalConfig, length: int) -> int:
    """Say how many tokens a model can write behind so many; the last is not read again.

    Raises:
        UsageError: there are more than it has positions for.
    """
    most = reach(config)
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
    """Say how likely a model finds every token of each text, its end included."""
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
    """Propose tokens for every <mask> of a text, the likeliest first.

    Several blanks are filled independently of each other; in the text of a proposal, the others
    hold their own likeliest token.

    Raises:
        UsageError: there is no <mask>, or the proposals asked for are not 1 or more.
    """
    if top < 1:
        raise UsageError(f"top is {top}: it must be at least 1.")
    config = model.config
    tokens = blanked(tokenizer, text, mask=config.mask)
    places = [place for place, token in enumerate(tokens) if token == config.mask]
    if not places:
        raise UsageError(
            f"There is nothing to fill in {text!r}: write {BLANK} for the token to be proposed."
        )
    device = next(model.parameters()).device
    logits = model(torch.tensor([[*tokens, config.end]], device=device))[0, places]
    no_text = [config.pad, config.start, config.end, config.mask]
    logits[:, no_text] = -torch.inf
    proposed = min(top, logits.shape[1] - len(no_text))
    values, candidates = F.log_softmax(logits.float(), dim=-1).topk(proposed)
    best = list(tokens)
    for place, choice in zip(places, candidates[:, 0].tolist(), strict=True):
        best[place] = choice
    found = []
    for place, row, log_probabilities in zip(
        places, candidates.tolist(), values.tolist(), strict=True
    ):
        variants = [[*best[:place], choice, *best[place + 1 :]] for choice in row]
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


def blanked(tokenizer: TextTokenizer, text: str, *, mask: int = MASK) -> list[int]:
    """Encode a text with the token `mask` where it has a <mask>."""
    return [piece.id for piece in blanked_pieces(tokenizer, text, mask=mask)]


def blanked_pieces(tokenizer: TextTokenizer, text: str, *, mask: int = MASK) -> list[Piece]:
    """Split a text with the token `mask` where it has a <mask>; say which characters are whose.

    The text is encoded as one, with a character from the private use area in the blanks: encoded
    in parts, what follows a blank would begin a new word. The mask stands for a whole token, the
    space in front of it included.
    """
    sign, spelled = _sign(tokenizer, text)
    pieces: list[Piece] = []
    longer = 0  # what the blanks so far are longer than their sign
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


def _sign(tokenizer: TextTokenizer, text: str) -> tuple[str, list[int]]:
    """Choose a private character that the text does not have; return it and its tokens.

    It is one that the vocabulary spells in bytes, wherever it stands: what is learned could become
    one token with its neighbours.
    """
    for sign in map(chr, range(0xE000, 0xF900)):
        wanted = [f"<0x{byte:02X}>" for byte in sign.encode()]
        spelled = tokenizer.encode([sign])[0][-len(wanted) :]
        if sign not in text and [tokenizer.piece(token) for token in spelled] == wanted:
            return sign, spelled
    raise UsageError(
        f"The text or the vocabulary has every private character (U+E000 to U+F8FF), so that none "
        f"is left to stand for {BLANK}: leave one out of the text."
    )

"""Language models: predict the next token (GPT), or masked tokens from both sides (BERT)."""

from dataclasses import dataclass, replace
from typing import Annotated, NamedTuple

import torch
import torch.nn.functional as F
from annotated_types import Gt, Lt

from manyheads.data.text.corpus import Sentences
from manyheads.data.tokenizers.tokenizer import END, PAD, UNKNOWN, Piece, TextTokenizer, byte_pieces
from manyheads.errors import UsageError
from manyheads.generation.token_details import behind_space
from manyheads.models.masked_lm import MaskedLanguageModel
from manyheads.streams import generator
from manyheads.tokenwise.token_task import IGNORED, Examples, TokenTrainConfig

MASK = UNKNOWN  # unknown text is encoded as bytes, so the unknown token can serve as mask token
BLANK = "<mask>"  # the mask in texts of users


@dataclass(frozen=True, kw_only=True)
class FillTrainConfig(TokenTrainConfig):
    """The [train] table of a masked-token model."""

    masked: Annotated[float, Gt(0), Lt(1)] = 0.15  # share of tokens to predict


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
        # A line of only invisible characters has no tokens to mask.
        sequences = [[*ids, END] if ids else [] for ids in tokenizer.encode(sentences.lines)]
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
        lucks = random.random(len(chosen)).tolist()
        for position, luck in zip(chosen.tolist(), lucks, strict=True):
            wanted[position] = tokens[position]
            if luck < 0.8:
                tokens[position] = MASK
            elif luck < 0.9:
                tokens[position] = int(random.integers(UNKNOWN + 1, self.vocabulary))
        return tokens, wanted


class Filling(NamedTuple):
    """A token for a mask: the token, its probability, and the filled text."""

    token: str
    probability: float
    text: str


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
    values, candidates = log_softmax.topk(min(top, logits.shape[1] - len(no_text) - len(parts)))
    best = list(tokens)
    for index, choice in zip(masked, candidates[:, 0].tolist(), strict=True):
        best[index] = choice
    found = []
    for index, row, terms in zip(masked, candidates.tolist(), values.tolist(), strict=True):
        probabilities = torch.tensor(terms).exp().tolist()
        texts = tokenizer.decode([[*best[:index], choice, *best[index + 1 :]] for choice in row])
        found.append(
            [
                Filling(tokenizer.piece(choice), probability, filled)
                for choice, probability, filled in zip(row, probabilities, texts, strict=True)
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

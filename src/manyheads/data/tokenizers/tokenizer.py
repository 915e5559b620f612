"""Raw text to token ids and back, with sentencepiece; the tokenizer is stored with its model.

Characters that were not in the training text are encoded as bytes, so there is no unknown token.
`decode(encode(text))` changes only white space: repeated spaces become one, spaces at both ends
are removed, and sentencepiece's space symbol (U+2581) becomes a space.
"""

import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Protocol

import sentencepiece
from annotated_types import Ge, Le

from manyheads.data.text.encoding import reject_surrogates
from manyheads.errors import DataError, FolderError

PAD, START, END, UNKNOWN = 0, 1, 2, 3


@dataclass(frozen=True, kw_only=True)
class TokenizerConfig:
    """The [tokenizer] table: what to train from raw text."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    kind: Literal["unigram", "bpe"] = "unigram"
    # Unigram uses a smaller size if the text is too small.
    size: Annotated[int, Ge(1), Le(10**6)] = 8000
    split_digits: bool = False  # one token per digit, so that numbers are always split alike
    # Share of the text's characters with their own token; the others are encoded as bytes.
    character_coverage: Annotated[float, Ge(0.98), Le(1)] = 1.0
    symbols: tuple[str, ...] = ()  # never split, such as tags that a source begins with


@dataclass(frozen=True, kw_only=True)
class PairTokenizerConfig(TokenizerConfig):
    """The [tokenizer] table of a translator."""

    shared: bool = True  # one vocabulary for both languages, or one of this size for each
    # Train on another random segmentation of each sentence in each epoch; 0: always the best one.
    # unigram: the alpha of Kudo 2018, section 3.2; the smaller, the more varied.
    # bpe: the share of dropped merges, Provilkov et al. 2020; the larger, the more varied.
    # On Multi30k, 0.2 and 0.1 make sentences about a third longer, batches and memory with them.
    sampling: Annotated[float, Ge(0), Le(1)] = 0.0
    tag: str = ""  # of the symbols, that of a source that begins with none of them

    def __post_init__(self) -> None:
        """Refuse a tag that the vocabulary would not have."""
        if self.tag and self.tag not in self.symbols:
            raise ValueError(f"tag is {self.tag!r}: it must be one of symbols, {self.symbols}")


@dataclass(frozen=True, slots=True)
class Piece:
    """One token: its text, its id, and the characters [begin, end) of the text that it covers."""

    text: str
    id: int
    begin: int
    end: int


class SentencePieces:
    """The pieces of a sentencepiece model."""

    def __init__(self, model: bytes, name: str, remedy: str) -> None:
        """Load a serialised model; its file `name` and a `remedy` are for errors.

        Raises:
            FolderError: the bytes are not a sentencepiece model, or its pieces are not UTF-8.
        """
        self._processor = sentencepiece.SentencePieceProcessor()
        try:
            self._processor.LoadFromSerializedProto(model)
            self._processor.IdToPiece(list(range(self._processor.GetPieceSize())))  # decodes each
        except (RuntimeError, UnicodeDecodeError) as error:
            raise FolderError(
                f"{name} ({len(model)} bytes) is not a valid sentencepiece model. {remedy}"
            ) from error

    def __len__(self) -> int:
        """Count the vocabulary, special tokens included."""
        return int(self._processor.GetPieceSize())

    def piece(self, token: int) -> str:
        """Return the text of one token; sentencepiece writes a leading space as U+2581."""
        return str(self._processor.IdToPiece(token))

    def pieces(self, text: str) -> list[Piece]:
        """Split a text into tokens, each with the characters that it covers."""
        reject_surrogates([text])
        found = self._processor.EncodeAsOffsetMapping(text)
        pieces = zip(found["pieces"], found["ids"], found["offsets"], strict=True)
        return [Piece(text, token, *span) for text, token, span in pieces]


class Tokenizer(SentencePieces):
    """A trained sentencepiece model; `model` is its serialised form."""

    def __init__(self, model: bytes, *, name: str = "tokenizer.model") -> None:
        """Load a serialised model; `name` is its file name, for errors.

        Raises:
            FolderError: the bytes are not a sentencepiece model.
        """
        self.model = model
        super().__init__(model, name, "Copy the model's folder again.")

    @classmethod
    def train(
        cls, lines: Iterable[str], config: TokenizerConfig, languages: Sequence[str] = ()
    ) -> "Tokenizer":
        """Learn a vocabulary from raw text, with a token for each of some languages.

        Raises:
            DataError: the text is too small for a vocabulary of this size.
        """
        model = io.BytesIO()
        try:
            sentencepiece.SentencePieceTrainer.Train(
                sentence_iterator=iter(lines),
                model_writer=model,
                model_type=config.kind,
                vocab_size=config.size,
                character_coverage=config.character_coverage,
                split_digits=config.split_digits,
                normalization_rule_name="identity",  # raw text in, raw text out
                byte_fallback=True,
                hard_vocab_limit=False,
                pad_id=PAD,
                bos_id=START,
                eos_id=END,
                unk_id=UNKNOWN,
                control_symbols=[f"<{code}>" for code in languages],
                user_defined_symbols=list(config.symbols),
                num_threads=1,  # the same vocabulary on every machine
                minloglevel=2,
            )
        except RuntimeError as error:
            if needed := re.search(r"required_chars. \d+ vs (\d+)", str(error)):
                reason = f"the 256 bytes and the characters of the text need {needed[1]} tokens"
            else:
                reason = str(error).rpartition("] ")[2].strip(" .") or "it is too small"
            raise DataError(
                f"No {config.kind} vocabulary of {config.size} could be learned: {reason}. "
                "Raise tokenizer.size, or lower tokenizer.character_coverage."
            ) from error
        return cls(model.getvalue())

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Turn texts into token ids, without start and end."""
        reject_surrogates(texts)
        if len(texts) == 1:  # a list starts threads, which takes longer than a sentence
            return [self._processor.EncodeAsIds(texts[0])]
        ids: list[list[int]] = self._processor.EncodeAsIds(list(texts))
        return ids

    def sample(self, text: str, alpha: float, seed: int) -> list[int]:
        """Draw one of the segmentations of a text: a pure function of its arguments.

        Args:
            text: raw text.
            alpha: unigram: a segmentation is drawn with probability ~ p ** alpha (Kudo 2018,
                equation 8, over all of them); bpe: each merge is left out with this probability
                (Provilkov et al. 2020, section 3).
            seed: below 2 ** 32. sentencepiece has one global generator: it is seeded for each text.
        """
        # To sentencepiece the largest seed means one that nobody knows.
        sentencepiece.set_random_generator_seed(seed % (2**32 - 1))
        ids: list[int] = self._processor.EncodeAsIds(
            text, enable_sampling=True, nbest_size=-1, alpha=alpha
        )
        return ids

    def decode(self, sequences: Sequence[Sequence[int]]) -> list[str]:
        """Turn token ids back into text; special tokens are skipped."""
        plain = [[token for token in sequence if token > UNKNOWN] for sequence in sequences]
        texts: list[str] = self._processor.DecodeIds(plain)
        return texts

    @property
    def languages(self) -> dict[str, int]:
        """The languages that have a token of their own, in their order, and its id."""
        found = {}
        for token in range(UNKNOWN + 1, len(self)):
            if not self._processor.IsControl(token):
                break
            found[self.piece(token)[1:-1]] = token
        return found

    def score(self, token: int) -> float:
        """Return the score of a piece: a log-probability (unigram), or minus its rank (bpe)."""
        return float(self._processor.GetScore(token))


class SpecialTokens(NamedTuple):
    """The ids of the padding, start and end tokens of a translator."""

    pad: int = PAD
    start: int = START
    end: int = END


OURS = SpecialTokens()


class TextTokenizer(Protocol):
    """The interface of a tokenizer, independent of its library."""

    def __len__(self) -> int:
        """Return the size of the vocabulary, special tokens included."""

    def __hash__(self) -> int:
        """Tell tokenizers apart, for tables that are computed once for each."""

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Turn texts into token ids, without start and end."""

    def decode(self, sequences: Sequence[Sequence[int]]) -> list[str]:
        """Turn token ids back into text; special tokens are skipped."""

    def piece(self, token: int) -> str:
        """Return the text of one token."""

    def pieces(self, text: str) -> list[Piece]:
        """Split a text into tokens, each with the characters that it covers."""


class Tokenizers(NamedTuple):
    """The source and target tokenizers; the same object twice if the vocabulary is shared."""

    source: TextTokenizer
    target: TextTokenizer


_BYTE = re.compile("<0x([0-9A-F]{2})>")


@lru_cache(maxsize=8)
def byte_pieces(tokenizer: TextTokenizer) -> tuple[tuple[int, int], ...]:
    """List the byte pieces of a vocabulary as (token, byte); computed once per tokenizer."""
    pieces = ((token, _BYTE.fullmatch(tokenizer.piece(token))) for token in range(len(tokenizer)))
    found = [(token, int(match[1], 16)) for token, match in pieces if match]
    # Without byte fallback, a piece may be spelled like one and yet be text.
    texts = tokenizer.decode([[token] for token, _ in found])
    return tuple(each for each, text in zip(found, texts, strict=True) if not _BYTE.match(text))

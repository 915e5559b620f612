"""The tokenizer of Hugging Face's Marian models: two sentencepiece models and a vocabulary.

Sentencepiece only splits the text; vocab.json (both languages) or target_vocab.json (target) maps
pieces to ids. Hugging Face's tokenizer reads a literal "</s>" in a text as the end token; this one
reads it as four characters.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from manyheads.data.text.encoding import is_valid_unicode, reject_surrogates
from manyheads.data.tokenizers.tokenizer import Piece, SentencePieces, Tokenizers
from manyheads.errors import FolderError, UsageError, nearest
from manyheads.strict_json import loads

PAD, END, UNKNOWN = "<pad>", "</s>", "<unk>"
CODE = re.compile(r">>.*?<<", re.DOTALL)  # the target language, at the start of a text


class MarianTokenizer(SentencePieces):
    """The tokenizer of one language: a sentencepiece model and the ids of its pieces."""

    def __init__(self, model: bytes, vocabulary: Mapping[str, int], *, prefix: str = "") -> None:
        """Load a serialised sentencepiece model.

        Args:
            model: the content of source.spm or target.spm.
            vocabulary: the content of vocab.json or target_vocab.json.
            prefix: the language code, such as ">>kor<<", for texts that do not begin with one.

        Raises:
            FolderError: not a sentencepiece model, or a vocabulary without the special tokens.
            UsageError: the vocabulary does not have this prefix.
        """
        super().__init__(model, "The .spm file", "Download the model again.")
        if missing := [token for token in (END, UNKNOWN, PAD) if token not in vocabulary]:
            raise FolderError(
                f"The vocabulary has no {' and no '.join(missing)}: it is not the vocabulary of a "
                "Marian model, or it is damaged. Download the model again."
            )
        self.codes = [piece for piece in vocabulary if CODE.fullmatch(piece)]
        if prefix and prefix not in self.codes:
            known = ", ".join(self.codes[:20]) + (", ..." if len(self.codes) > 20 else "")
            raise UsageError(
                f"The vocabulary has no language code {prefix!r}{nearest(prefix, self.codes)}"
                f"It has {known or 'none'}."
            )
        self.model = model
        self.prefix = prefix
        self.vocabulary = vocabulary
        self._pieces = {number: piece for piece, number in vocabulary.items()}
        self._special = {vocabulary[token] for token in (END, UNKNOWN, PAD)}

    def __len__(self) -> int:
        """Return one more than the largest id: ids may have gaps."""
        return max(self._pieces) + 1

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Turn texts into token ids, without the end token."""
        reject_surrogates(texts)
        split = [self._split(text) for text in texts]
        cut = self._processor.EncodeAsPieces([text for _, text in split])
        return [
            [self._number(piece) for piece in ([code] if code else []) + pieces]
            for (code, _), pieces in zip(split, cut, strict=True)
        ]

    def decode(self, sequences: Sequence[Sequence[int]]) -> list[str]:
        """Turn token ids back into text; special tokens are skipped."""
        kept = ([token for token in each if token not in self._special] for each in sequences)
        pieces = [list(map(self.piece, tokens)) for tokens in kept]
        # Pieces that are only in the other language's model are returned unchanged.
        return [self._processor.DecodePieces(each).replace("▁", " ").strip() for each in pieces]

    def piece(self, token: int) -> str:
        """Return the text of one token; sentencepiece writes a leading space as U+2581."""
        return self._pieces.get(token, UNKNOWN)

    def score(self, token: int) -> float:
        """Return the score of a piece in the sentencepiece model; 0 if it has none."""
        return float(self._processor.GetScore(self._processor.PieceToId(self.piece(token))))

    def pieces(self, text: str) -> list[Piece]:
        """Split a text into tokens, each with the characters that it covers."""
        reject_surrogates([text])
        code, rest = self._split(text)
        first = len(text) - len(rest)
        front = [Piece(code, self._number(code), 0, first)] if code else []
        return front + [
            Piece(each.text, self._number(each.text), first + each.begin, first + each.end)
            for each in super().pieces(rest)
        ]

    def _split(self, text: str) -> tuple[str, str]:
        """Split a text into its language code and the rest."""
        code = CODE.match(text)
        return (code[0], text[code.end() :]) if code else (self.prefix, text)

    def _number(self, piece: str) -> int:
        return self.vocabulary.get(piece, self.vocabulary[UNKNOWN])


def read_marian(folder: Path, *, prefix: str = "") -> Tokenizers:
    """Read both sides from the files of a Hugging Face folder."""
    settings = folder / "tokenizer_config.json"
    separate = settings.exists() and _read_json(settings).get("separate_vocabs", False)
    source = read_vocabulary(folder / "vocab.json")
    target = read_vocabulary(folder / "target_vocab.json") if separate else source
    return Tokenizers(
        MarianTokenizer(_read(folder / "source.spm"), source, prefix=prefix),
        MarianTokenizer(_read(folder / "target.spm"), target),
    )


def read_vocabulary(path: Path) -> dict[str, int]:
    """Read vocab.json, of a Marian model or of a byte-pair encoding.

    Raises:
        FolderError: it is damaged.
    """
    vocabulary = _read_json(path)
    numbers = vocabulary.values()
    if not all(type(number) is int and number >= 0 for number in numbers) or not vocabulary:
        raise FolderError(f"{path} does not map pieces to ids. Download it again.")
    if not is_valid_unicode("".join(vocabulary)):
        raise FolderError(f"{path} has pieces that are not UTF-8. Download it again.")
    return vocabulary


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise FolderError(
            f"{path} cannot be read ({error.strerror}): a Marian model has source.spm, target.spm "
            "and vocab.json. Download the whole folder again."
        ) from error


def _read_json(path: Path) -> dict[str, Any]:
    try:
        value = loads(_read(path))
    except ValueError as error:
        raise FolderError(f"{path} is not JSON: {error}. Download it again.") from error
    if not isinstance(value, dict):
        raise FolderError(f"{path} is not a JSON object. Download it again.")
    return value

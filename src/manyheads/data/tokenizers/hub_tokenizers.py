"""Tokenizers of Hugging Face's models of images and texts, from the files of their folders.

A tokenizer.json is read by the package `tokenizers` (an extra); where a folder has only the two
tables of a byte-pair encoding, one is made of them. Sentencepiece models are read as everywhere.
Special tokens written out in a text are read as plain characters.
"""

import re
import string
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from manyheads.data.text.encoding import reject_surrogates
from manyheads.data.tokenizers.tokenizer import Piece, SentencePieces
from manyheads.errors import FolderError, optional_import

FAST, SIGLIP, XLM = "tokenizer.json", "siglip.model", "xlm-roberta.model"
FILES = (FAST, SIGLIP, XLM)  # of a converted folder; one of them
SUFFIX = "</w>"  # of words' last pieces, in CLIP's vocabulary
# How CLIP cuts a text before its byte pairs: English endings, letters, single digits, the rest.
CLIP_WORDS = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"


def read_hub(folder: Path) -> "HubTokenizer | SiglipTokenizer":
    """Read the tokenizer of a converted folder.

    Raises:
        FolderError: there is none, or it is damaged.
        MissingExtraError: the package that reads it is not installed.
    """
    for name in FILES:
        path = folder / name
        if path.is_file():
            return read_tokenizer(name, path.read_bytes())
    raise FolderError(
        f"{folder} has no tokenizer: looked for {', '.join(FILES)}. Copy the whole folder again."
    )


def read_tokenizer(name: str, content: bytes) -> "HubTokenizer | SiglipTokenizer":
    """Read the content of one of FILES."""
    if name == FAST:
        return HubTokenizer(content, name=name)
    return (SiglipTokenizer if name == SIGLIP else XlmTokenizer)(content, name=name)


class HubTokenizer:
    """What a tokenizer.json describes, without the special tokens that it puts around a text."""

    languages: ClassVar[dict[str, int]] = {}  # none has a token of its own

    def __init__(self, content: bytes, *, name: str = FAST) -> None:
        """Load the content of a tokenizer.json; `name` is its file, for errors.

        Raises:
            FolderError: it is damaged.
            MissingExtraError: the package `tokenizers` is not installed.
        """
        library = tokenizers_library()
        try:
            self._inner = library.Tokenizer.from_str(content.decode())
        except Exception as error:  # of its own
            raise FolderError(f"{name} is no tokenizer.json: {error}. Get it again.") from error
        self._inner.no_padding()
        self._inner.no_truncation()
        self._inner.encode_special_tokens = True
        added = self._inner.get_added_tokens_decoder().items()
        self._special = {number for number, token in added if token.special}
        self._largest = max(self._inner.get_vocab(with_added_tokens=True).values(), default=-1)

    def __len__(self) -> int:
        """Return one more than the largest id: ids may have gaps."""
        return int(self._largest) + 1

    def number(self, token: str) -> int | None:
        """Return the id of a token, special ones included; None if there is no such token."""
        found: int | None = self._inner.token_to_id(token)
        return found

    def around(self) -> tuple[list[int], list[int]]:
        """Return the special tokens that it puts in front of a text and behind it."""
        inside = self._inner.encode("a", add_special_tokens=False).ids
        whole = self._inner.encode("a", add_special_tokens=True).ids
        if len(whole) == len(inside):
            return [], []
        first = next(n for n in range(len(whole)) if whole[n : n + len(inside)] == inside)
        return whole[:first], whole[first + len(inside) :]

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Turn texts into token ids, without start and end."""
        reject_surrogates(texts)
        found = self._inner.encode_batch(list(texts), add_special_tokens=False)
        return [list(each.ids) for each in found]

    def decode(self, sequences: Sequence[Sequence[int]]) -> list[str]:
        """Turn token ids back into text; special tokens are skipped."""
        kept = [[t for t in each if t not in self._special] for each in sequences]
        texts = [str(self._inner.decode(each)) for each in kept]
        # What marks the end of a word is no text.
        mark = getattr(self._inner.model, "end_of_word_suffix", None)
        return [(text.replace(mark, " ") if mark else text).strip() for text in texts]

    def piece(self, token: int) -> str:
        """Return the text of one token as the vocabulary has it, such as "Ġword"."""
        return str(self._inner.id_to_token(token) or "")

    def pieces(self, text: str) -> list[Piece]:
        """Split a text into tokens, each with the characters that it covers."""
        reject_surrogates([text])
        found = self._inner.encode(text, add_special_tokens=False)
        pieces = zip(found.tokens, found.ids, found.offsets, strict=True)
        return [Piece(text, token, *span) for text, token, span in pieces]


class SiglipTokenizer(SentencePieces):
    """SigLIP's: lower case, no punctuation, then a sentencepiece model."""

    languages: ClassVar[dict[str, int]] = {}

    def __init__(self, model: bytes, *, name: str = SIGLIP) -> None:
        """Load a serialised sentencepiece model; `name` is its file, for errors.

        Raises:
            FolderError: the bytes are not a sentencepiece model.
        """
        super().__init__(model, name, "Get it again.")

    def number(self, token: str) -> int | None:
        """Return the id of a piece; None if there is no such piece."""
        found = int(self._processor.PieceToId(token))
        return found if self._processor.IdToPiece(found) == token else None

    def around(self) -> tuple[list[int], list[int]]:
        """Return no special tokens: a model of sentencepiece knows none around a text."""
        return [], []

    def plain(self, text: str) -> str:
        """Return what of a text the model reads."""
        bare = text.lower().translate(str.maketrans("", "", string.punctuation))
        return re.sub(r"\s+", " ", bare).strip()

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Turn texts into token ids, without the end."""
        reject_surrogates(texts)
        found: list[list[int]] = self._processor.EncodeAsIds([self.plain(each) for each in texts])
        return found

    def decode(self, sequences: Sequence[Sequence[int]]) -> list[str]:
        """Turn token ids back into text; special tokens are skipped."""
        kept = [[self.piece(t) for t in each if not self._is_special(t)] for each in sequences]
        return [str(self._processor.DecodePieces(each)) for each in kept]

    def pieces(self, text: str) -> list[Piece]:
        """Split a text into tokens, each with the characters of the plain text that it covers."""
        return super().pieces(self.plain(text))

    def _is_special(self, token: int) -> bool:
        known = self._processor
        return bool(known.IsControl(token) or known.IsUnknown(token))


class XlmTokenizer(SiglipTokenizer):
    """XLM-RoBERTa's, as fairseq numbers the pieces: four special tokens, then the rest."""

    SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
    OFFSET = 1  # of a piece's id to that of sentencepiece, whose first three are special too

    def __len__(self) -> int:
        """Count the vocabulary, special tokens and the mask behind it included."""
        return super().__len__() + self.OFFSET + 1

    def number(self, token: str) -> int | None:
        """Return the id of a token; None if there is no such token."""
        if token in self.SPECIAL:
            return self.SPECIAL.index(token)
        found = super().number(token)
        return None if found is None else found + self.OFFSET

    def plain(self, text: str) -> str:
        """Return the text: all of it is read."""
        return text

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Turn texts into token ids, without start and end."""
        return [[self._shifted(each) for each in tokens] for tokens in super().encode(texts)]

    def piece(self, token: int) -> str:
        """Return the text of one token."""
        if token < len(self.SPECIAL):
            return self.SPECIAL[token]
        inner = token - self.OFFSET
        return super().piece(inner) if inner < super().__len__() else "<mask>"

    def pieces(self, text: str) -> list[Piece]:
        """Split a text into tokens, each with the characters that it covers."""
        return [replace(each, id=self._shifted(each.id)) for each in super().pieces(text)]

    def _shifted(self, token: int) -> int:
        unknown = self._processor.unk_id()
        return self.SPECIAL.index("<unk>") if token == unknown else token + self.OFFSET

    def _is_special(self, token: int) -> bool:
        return token < len(self.SPECIAL) or token == len(self) - 1


# --- Making a tokenizer.json --------------------------------------------------------------------


def byte_pairs(
    vocabulary: dict[str, int], merges: str, special: Sequence[str], *, prefix_space: bool
) -> bytes:
    """Make a tokenizer.json of GPT-2's and RoBERTa's two tables."""
    library = tokenizers_library()
    made = library.Tokenizer(library.models.BPE(vocab=vocabulary, merges=_merges(merges)))
    made.pre_tokenizer = library.pre_tokenizers.ByteLevel(add_prefix_space=prefix_space)
    made.decoder = library.decoders.ByteLevel()
    return _finished(made, special)


def clip_byte_pairs(vocabulary: dict[str, int], merges: str, special: Sequence[str]) -> bytes:
    """Make a tokenizer.json of CLIP's two tables: lower case, and words that end with a mark."""
    library = tokenizers_library()
    before, normal = library.pre_tokenizers, library.normalizers
    marks = {"end_of_word_suffix": SUFFIX, "unk_token": "<|endoftext|>"}
    model = library.models.BPE(vocab=vocabulary, merges=_merges(merges), **marks)
    made = library.Tokenizer(model)
    one_space = normal.Replace(library.Regex(r"\s+"), " ")
    made.normalizer = normal.Sequence([normal.NFC(), one_space, normal.Lowercase()])
    words = before.Split(library.Regex(CLIP_WORDS), behavior="removed", invert=True)
    made.pre_tokenizer = before.Sequence([words, before.ByteLevel(add_prefix_space=False)])
    made.decoder = library.decoders.ByteLevel()
    return _finished(made, special)


def _merges(text: str) -> list[tuple[str, str]]:
    """Read merges.txt: a pair on each line, the best first; the first line tells the version."""
    pairs = (line.split(" ") for line in text.split("\n") if not line.startswith("#version"))
    return [(pair[0], pair[1]) for pair in pairs if len(pair) == 2]


def _finished(made: Any, special: Sequence[str]) -> bytes:
    made.add_special_tokens([token for token in special if made.token_to_id(token) is not None])
    return str(made.to_str()).encode()


def tokenizers_library() -> Any:
    """Import the package that reads a tokenizer.json.

    Raises:
        MissingExtraError: it is not installed.
    """
    with optional_import("tokenizers", extra="tokenizers"):
        import tokenizers
        import tokenizers.decoders
        import tokenizers.models
        import tokenizers.normalizers
        import tokenizers.pre_tokenizers
    return tokenizers

"""Byte pieces: tokens that stand for one byte of a character that the vocabulary does not have."""

import re
from functools import lru_cache

from manyheads.data.tokenizers.tokenizer import TextTokenizer

_BYTE = re.compile("<0x([0-9A-F]{2})>")


@lru_cache(maxsize=8)
def byte_pieces(tokenizer: TextTokenizer) -> tuple[tuple[int, int], ...]:
    """List the byte pieces of a vocabulary as (token, byte); computed once per tokenizer."""
    pieces = ((token, _BYTE.fullmatch(tokenizer.piece(token))) for token in range(len(tokenizer)))
    found = [(token, int(match[1], 16)) for token, match in pieces if match]
    # Without byte fallback, a piece may be spelled like one and yet be text.
    texts = tokenizer.decode([[token] for token, _ in found])
    return tuple(each for each, text in zip(found, texts, strict=True) if not _BYTE.match(text))

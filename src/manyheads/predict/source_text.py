"""A source as a translator's model reads it: not too long, and in a case that it knows.

And its end: a translation has no full stop where the source has none, alone or in a document.
"""

from typing import NamedTuple

from manyheads.data.text.capitals import sentence_case
from manyheads.data.tokenizers.piece_costs import piece_costs
from manyheads.data.tokenizers.tokenizer import TextTokenizer

WIDEST = 64  # characters of a token, more than any vocabulary has


class SourceText(NamedTuple):
    """A source, and what was changed; the characters that are left stay where they are."""

    text: str
    left_out: int = 0  # characters at the end
    capitals: bool = False  # the source was written in capitals


def read_source(text: str, tokenizer: TextTokenizer, longest: int, *, recase: bool) -> SourceText:
    """Shorten a source to `longest` tokens, its end included, and write capitals in sentence case.

    Args:
        text: raw text.
        tokenizer: of the source.
        longest: the most tokens.
        recase: whether to change the case of a text in capitals.
    """
    kept = _shortened(text, tokenizer, longest)
    costs = piece_costs(tokenizer) if recase else None
    changed = None if costs is None else sentence_case(kept, costs)
    return SourceText(changed or kept, len(text) - len(kept), changed is not None)


def same_end(source: str, translation: str) -> str:
    """Remove a full stop at the end of a translation if the source ends in a word or a number."""
    text = translation.rstrip()
    if source.rstrip()[-1:].isalnum() and text.endswith((".", "。")) and not text.endswith(".."):
        return text[:-1].rstrip()
    return translation


def _shortened(text: str, tokenizer: TextTokenizer, longest: int) -> str:
    if len(text.encode(errors="replace")) + 2 <= longest:  # a byte a token, a space, and the end
        return text
    read = text[: WIDEST * longest]  # what lies behind cannot be among the first tokens
    pieces = tokenizer.pieces(read)
    if len(pieces) < longest:
        return text if len(read) == len(text) else read
    cut = read[: pieces[longest - 2].end]
    space = max(cut.rfind(" "), cut.rfind("\t"))
    return cut[:space] if space > len(cut) // 2 else cut

"""Raw text in, raw text out: no unknown token, every character accounted for."""

import re
from functools import cache
from itertools import pairwise
from typing import Literal

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from manyheads.data.tokenizers.tokenizer import END, PAD, START, UNKNOWN, Tokenizer, TokenizerConfig
from manyheads.errors import DataError, FolderError

LINES = [
    "The quick brown fox jumps over the lazy dog.",
    "Two dogs run in the park; 25 cats look on.",
    "Ein Mann mit einem Hut steht in der Küche.",
    "Der Hund läuft im Park, die Katze schläft.",
] * 3

# Any text but lone surrogates; often words and spaces, now and then what an imitation of a special
# token looks like.
TEXTS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"])),
    st.text("ab Küche  .\t\n"),
    st.lists(st.sampled_from(["<s>", "<pad>", "<0x41>", "한국어", "🙂", "the", " "])).map(" ".join),
)


KINDS: tuple[Literal["bpe", "unigram"], ...] = ("bpe", "unigram")


@cache
def tokenizer(kind: str = "unigram") -> Tokenizer:
    return Tokenizer.train(LINES, TokenizerConfig(kind=kind, size=330))  # type: ignore[arg-type]


def spaces_made_one(text: str) -> str:
    """What sentencepiece keeps of spaces; its own sign for a space, ▁, is one."""
    return re.sub(" +", " ", text.replace("▁", " ")).strip(" ")


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
@given(text=TEXTS)
@settings(deadline=None)
def test_text_comes_back(kind: str, text: str) -> None:
    """decode(encode(text)) is the text with runs of spaces made one; nothing is unknown."""
    (ids,) = tokenizer(kind).encode([text])
    assert not {PAD, START, END, UNKNOWN} & set(ids)
    assert tokenizer(kind).decode([ids]) == [spaces_made_one(text)]


@given(text=TEXTS)
@settings(deadline=None)
def test_pieces_cover_the_text(text: str) -> None:
    """Spans lie side by side in order; only spaces at the ends are not covered."""
    pieces = tokenizer().pieces(text)
    assert [piece.id for piece in pieces] == tokenizer().encode([text])[0]
    for before, after in pairwise(pieces):
        assert before.begin <= before.end == after.begin <= after.end
    covered = text[pieces[0].begin : pieces[-1].end] if pieces else ""
    assert covered.strip(" ▁") == text.strip(" ▁")


def test_pieces_of_a_sentence() -> None:
    """A piece knows its characters; the space in front of a word belongs to its piece."""
    text = "The dog runs"
    pieces = tokenizer().pieces(text)
    assert "".join(piece.text for piece in pieces) == "▁The▁dog▁runs"
    for piece in pieces:
        assert text[piece.begin : piece.end].strip() == piece.text.replace("▁", " ").strip()


@pytest.mark.parametrize(("character", "size"), [("é", 2), ("한", 3), ("🙂", 4)])
def test_characters_never_seen_are_spelled_in_bytes(character: str, size: int) -> None:
    """A token a byte; the character's span is that of its last byte, the others are empty."""
    pieces = tokenizer().pieces(character)[1:]  # behind the space in front of the word
    assert [piece.text for piece in pieces] == [f"<0x{byte:02X}>" for byte in character.encode()]
    assert [(piece.begin, piece.end) for piece in pieces] == [(0, 0)] * (size - 1) + [(0, 1)]
    assert tokenizer().decode([[piece.id for piece in pieces]]) == [character]


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
@given(text=TEXTS, alpha=st.floats(0, 1), seed=st.integers(0, 2**32 - 1))
@example(text="<pad> the", alpha=0.5, seed=2**32 - 1)
@settings(deadline=None)
def test_sampled_pieces_spell_the_same_text(kind: str, text: str, alpha: float, seed: int) -> None:
    """Emoji, unseen scripts and imitations of special tokens included; drawn again, the same."""
    ids = tokenizer(kind).sample(text, alpha, seed)
    assert not {PAD, START, END, UNKNOWN} & set(ids)
    assert tokenizer(kind).decode([ids]) == [spaces_made_one(text)]
    tokenizer(kind).sample("something else", alpha, seed + 1 & 0xFFFFFFFF)
    assert tokenizer(kind).sample(text, alpha, seed) == ids


def test_all_merges_dropped_leaves_characters() -> None:
    """BPE-dropout at its ends: 0 is plain BPE, 1 is a token a character."""
    text = "Der Hund"
    assert tokenizer("bpe").sample(text, 0.0, 1) == tokenizer("bpe").encode([text])[0]
    spelled = [tokenizer("bpe").piece(token) for token in tokenizer("bpe").sample(text, 1.0, 1)]
    assert spelled == list("▁Der▁Hund")


def test_a_small_alpha_levels_the_segmentations() -> None:
    """Unigram: p ** alpha. By 1 the best is drawn most often, by 0 all are as likely."""
    text = "The dog"
    (best,) = tokenizer().encode([text])

    def drawn(alpha: float) -> list[list[int]]:
        return [tokenizer().sample(text, alpha, seed) for seed in range(300)]

    assert drawn(1.0).count(best) > 200
    assert drawn(0.0).count(best) < 60


def test_special_tokens_are_silent() -> None:
    """Start, end and padding of a batch do not show in its text."""
    (ids,) = tokenizer().encode(["The dog"])
    assert tokenizer().decode([[START, *ids, END, PAD, PAD]]) == ["The dog"]


def test_the_same_text_gives_the_same_model() -> None:
    """A run can be repeated: no chance and no number of threads in training a tokenizer."""
    config = TokenizerConfig(size=330)
    assert Tokenizer.train(LINES, config).model == Tokenizer.train(LINES, config).model


def test_a_stored_model_is_the_model() -> None:
    """What is stored with a model is all there is."""
    copy = Tokenizer(tokenizer().model)
    assert copy.encode(LINES) == tokenizer().encode(LINES)
    assert len(copy) == len(tokenizer())


def test_digits_can_be_tokens_of_their_own() -> None:
    """So that numbers are spelled alike everywhere."""
    lines = ["in 2026 and 2027", "on 20 and 27"] * 8
    split = Tokenizer.train(lines, TokenizerConfig(size=330, split_digits=True))
    assert [piece.text for piece in split.pieces("2026")] == ["▁", "2", "0", "2", "6"]


def test_unigram_takes_fewer_tokens_where_the_text_has_no_more() -> None:
    """tokenizer.size is a limit: a small text supports a small vocabulary."""
    small = Tokenizer.train(LINES, TokenizerConfig(size=5000))
    assert len(small) < 1000
    with_more = Tokenizer.train([*LINES, "Completely other words"], TokenizerConfig(size=5000))
    assert len(with_more) > len(small)


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
@pytest.mark.parametrize("size", [1, 100])
def test_a_vocabulary_too_small_for_the_characters(kind: str, size: int) -> None:
    """Says what was asked for, how many are needed at least, and which key to change."""
    with pytest.raises(DataError) as caught:
        Tokenizer.train(LINES, TokenizerConfig(kind=kind, size=size))  # type: ignore[arg-type]
    message = str(caught.value)
    assert f"{kind} vocabulary of {size}" in message
    assert "tokenizer.size" in message
    assert "trainer_spec" not in message  # words of a library's source code say nothing to users


@pytest.mark.parametrize("model", [b"", b"not a model", tokenizer().model[:300]])
def test_a_damaged_model(model: bytes) -> None:
    """Neither an empty file nor a piece of one passes for a tokenizer."""
    with pytest.raises(FolderError, match="tokenizer"):
        Tokenizer(model)


def test_a_piece_that_is_not_utf8() -> None:
    """It would only be noticed at the first text that needs the piece."""
    tokenizer = Tokenizer.train(["ababab cdcd"] * 9, TokenizerConfig(size=300, kind="bpe"))
    piece = max((tokenizer.piece(n) for n in range(260, len(tokenizer))), key=len).encode()
    damaged = tokenizer.model.replace(piece, b"\xff" * len(piece))
    assert damaged != tokenizer.model
    with pytest.raises(FolderError, match="not a valid sentencepiece model"):
        Tokenizer(damaged)


def test_pairs_are_merged_from_the_most_frequent() -> None:
    """Sennrich et al. 2016: pieces rank by when they were merged; others by probability."""
    lines = ["abab abab abc abc ab"] * 5
    bpe, unigram = (Tokenizer.train(lines, TokenizerConfig(kind=k, size=268)) for k in KINDS)
    merged = [token for token in range(len(bpe)) if re.fullmatch("▁?[abc]{2,}", bpe.piece(token))]
    assert "ab" in bpe.piece(merged[0])
    assert [bpe.score(token) for token in merged] == [-float(rank) for rank in range(len(merged))]
    assert any(unigram.score(token) % 1 for token in range(len(unigram)))

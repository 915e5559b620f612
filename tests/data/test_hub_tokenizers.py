"""Tokenizers of Hugging Face's models of images and texts."""

import json
import sys
from pathlib import Path

import pytest

from manyheads.data.tokenizers import hub_tokenizers as hub
from manyheads.data.tokenizers.hub_tokenizers import (
    FAST,
    SIGLIP,
    XLM,
    HubTokenizer,
    SiglipTokenizer,
    XlmTokenizer,
    byte_pairs,
    clip_byte_pairs,
    read_hub,
)
from manyheads.data.tokenizers.marian_tokenizer import read_vocabulary
from manyheads.errors import DataError, FolderError, MissingExtraError
from tests.hub_tokenizers import write_clip, write_gpt2, write_siglip, write_xlm

TEXTS = ["a photo of two dogs", "the red house", "고양이", ""]


def siglip(folder: Path) -> SiglipTokenizer:
    write_siglip(folder)
    return SiglipTokenizer((folder / "spiece.model").read_bytes())


def xlm(folder: Path) -> XlmTokenizer:
    write_xlm(folder)
    return XlmTokenizer((folder / "sentencepiece.bpe.model").read_bytes())


def clip(folder: Path) -> HubTokenizer:
    pytest.importorskip("tokenizers")
    write_clip(folder)
    merges = (folder / "merges.txt").read_text()
    special = ["<|startoftext|>", "<|endoftext|>"]
    vocabulary = read_vocabulary(folder / "vocab.json")
    return HubTokenizer(clip_byte_pairs(vocabulary, merges, special))


def gpt2(folder: Path) -> HubTokenizer:
    pytest.importorskip("tokenizers")
    write_gpt2(folder)
    merges = (folder / "merges.txt").read_text()
    vocabulary = read_vocabulary(folder / "vocab.json")
    return HubTokenizer(byte_pairs(vocabulary, merges, ["<|endoftext|>"], prefix_space=False))


def test_siglip_reads_no_punctuation_and_no_capitals(tmp_path: Path) -> None:
    tokenizer = siglip(tmp_path)
    plain, loud = tokenizer.encode(["a red cat", "  A red,\n CAT!! "])
    assert plain == loud
    assert tokenizer.decode([plain]) == ["a red cat"]
    assert tokenizer.number("</s>") == 1
    assert tokenizer.number("no such piece") is None
    pieces = tokenizer.pieces("A red")
    assert [each.id for each in pieces] == tokenizer.encode(["A red"])[0]
    assert pieces[-1].end == len("a red")


def test_xlm_roberta_counts_pieces_as_fairseq(tmp_path: Path) -> None:
    """Its four special tokens come first; sentencepiece's own three have other numbers."""
    tokenizer = xlm(tmp_path)
    names = ["<s>", "<pad>", "</s>", "<unk>"]
    assert [tokenizer.piece(number) for number in range(4)] == names
    assert [tokenizer.number(name) for name in names] == [0, 1, 2, 3]
    inner = tokenizer._processor
    for text in TEXTS[:2]:
        (tokens,) = tokenizer.encode([text])
        assert tokens == [3 if n == 0 else n + 1 for n in inner.EncodeAsIds(text)]
        assert tokenizer.decode([[0, *tokens, 2, 1]]) == [text]
        assert [each.id for each in tokenizer.pieces(text)] == tokens
    assert 3 in tokenizer.encode(["고양이"])[0]
    assert tokenizer.piece(len(tokenizer) - 1) == "<mask>"
    assert tokenizer.number("<mask>") is None


def test_clip_by_hand(tmp_path: Path) -> None:
    """Lower case, no spaces; the last piece of a word is marked."""
    tokenizer = clip(tmp_path)
    (tokens,) = tokenizer.encode(["A  red\ncats"])
    assert [tokenizer.piece(each) for each in tokens] == ["a</w>", "red</w>", "ca", "t", "s</w>"]
    assert tokenizer.decode([tokens]) == ["a red cats"]
    start, end = tokenizer.number("<|startoftext|>"), tokenizer.number("<|endoftext|>")
    assert start is not None
    assert end == len(tokenizer) - 1
    assert tokenizer.decode([[start, *tokens, end]]) == ["a red cats"]
    covered = [(each.begin, each.end) for each in tokenizer.pieces("a red")]
    assert covered == [(0, 1), (2, 5)]


def test_gpt2_by_hand(tmp_path: Path) -> None:
    """A space belongs to the word behind it; bytes stand for what is not in the vocabulary."""
    tokenizer = gpt2(tmp_path)
    (tokens,) = tokenizer.encode(["red cat"])
    assert [tokenizer.piece(each) for each in tokens] == ["r", "e", "d", "Ġcat"]
    assert len(tokenizer.encode(["고"])[0]) == 3
    assert tokenizer.decode(tokenizer.encode(TEXTS)) == TEXTS


def test_special_tokens_in_a_text_are_characters(tmp_path: Path) -> None:
    """Else a text could end itself."""
    tokenizer = gpt2(tmp_path)
    (tokens,) = tokenizer.encode(["a <|endoftext|> b"])
    assert tokenizer.number("<|endoftext|>") not in tokens
    assert tokenizer.decode([tokens]) == ["a <|endoftext|> b"]


def test_what_a_tokenizer_puts_around_a_text(tmp_path: Path) -> None:
    library = pytest.importorskip("tokenizers")
    tokenizer = clip(tmp_path)
    assert tokenizer.around() == ([], [])
    made = library.Tokenizer.from_str((clip_content(tmp_path)).decode())
    start, end = tokenizer.number("<|startoftext|>"), tokenizer.number("<|endoftext|>")
    made.post_processor = library.processors.RobertaProcessing(
        ("<|endoftext|>", end), ("<|startoftext|>", start)
    )
    made.enable_truncation(3)
    made.enable_padding(length=9)
    framed = HubTokenizer(made.to_str().encode())
    assert framed.around() == ([start], [end])
    assert framed.encode(["a red cat a red cat"]) == tokenizer.encode(["a red cat a red cat"])


def clip_content(folder: Path) -> bytes:
    merges = (folder / "merges.txt").read_text()
    special = ["<|startoftext|>", "<|endoftext|>"]
    return clip_byte_pairs(read_vocabulary(folder / "vocab.json"), merges, special)


@pytest.mark.parametrize("make", [siglip, xlm, clip, gpt2])
def test_half_of_a_surrogate_pair_is_refused(make: object, tmp_path: Path) -> None:
    tokenizer = make(tmp_path)  # type: ignore[operator]
    for function in (lambda text: tokenizer.encode([text]), tokenizer.pieces):
        with pytest.raises(DataError):
            function("\ud800")
    assert tokenizer.languages == {}


@pytest.mark.parametrize("name", [SIGLIP, XLM, FAST])
@pytest.mark.parametrize("content", [b"", b"{}", b"\xff\xfe", b"[1]"])
def test_damaged_files_are_refused(name: str, content: bytes, tmp_path: Path) -> None:
    if name == FAST:
        pytest.importorskip("tokenizers")
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FolderError, match="Get it again"):
        read_hub(tmp_path)


def test_a_folder_without_a_tokenizer() -> None:
    with pytest.raises(FolderError, match="has no tokenizer"):
        read_hub(Path("nowhere"))


@pytest.mark.parametrize("content", ["", "[]", '{"a": -1}', '{"a": "b"}'])
def test_a_damaged_vocabulary_is_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "vocab.json").write_text(content)
    with pytest.raises(FolderError, match=r"vocab\.json"):
        read_vocabulary(tmp_path / "vocab.json")


def test_without_the_package_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    (tmp_path / FAST).write_text(json.dumps({}))
    with pytest.raises(MissingExtraError, match=r"manyheads\[tokenizers\]"):
        hub.read_hub(tmp_path)

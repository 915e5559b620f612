"""The tokenizer of Marian's models gives the numbers and texts that Hugging Face's gave."""

import base64
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyheads.data.tokenizers.marian_tokenizer import MarianTokenizer, read_marian
from manyheads.errors import FolderError, UsageError
from tests.opus import CODES, ENGLISH, write_tokenizers

GOLDEN = Path(__file__).parents[1] / "golden" / "hf-marian-tokenizer.json"


@cache
def golden() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(GOLDEN.read_text(encoding="utf-8"))
    return found


def model(side: str) -> bytes:
    return base64.b64decode(golden()["models"][f"{side}.spm"])


def tokenizer(side: str = "source", prefix: str = "") -> MarianTokenizer:
    return MarianTokenizer(model(side), golden()["vocabulary"], prefix=prefix)


# --- As theirs ----------------------------------------------------------------------------------


@pytest.mark.parametrize("side", ["source", "target"])
def test_the_ids_are_theirs(side: str) -> None:
    """Whole sentences, language codes, unknown characters, spaces, an empty text."""
    assert tokenizer(side).encode(golden()["texts"]) == golden()[side]


def test_the_texts_are_theirs() -> None:
    assert tokenizer("target").decode(golden()["target"]) == golden()["decoded"]


def test_the_golden_texts_could_tell_a_difference() -> None:
    """Some pieces of the models have no number, and the two models cut differently."""
    unknown = golden()["vocabulary"]["<unk>"]
    assert sum(unknown in row for row in golden()["source"]) > 5
    assert golden()["source"] != golden()["target"]
    assert golden()["vocabulary"][">>kor<<"] in {row[0] for row in golden()["source"] if row}


# --- Language codes -----------------------------------------------------------------------------


def test_a_code_is_one_token() -> None:
    """Only in front; one that the vocabulary does not have is unknown."""
    code, unknown = (golden()["vocabulary"][piece] for piece in (">>kor<<", "<unk>"))
    (bare, coded, strange) = tokenizer().encode(["a dog", ">>kor<< a dog", ">>xyz<< a dog"])
    assert coded == [code, *bare]
    assert strange == [unknown, *bare]
    assert code not in tokenizer().encode(["a dog >>kor<<"])[0]


def test_a_prefix_is_for_texts_without_a_code() -> None:
    with_prefix = tokenizer(prefix=">>kor<<")
    texts = ["a dog", ">>deu<< a dog"]
    assert with_prefix.encode(texts) == tokenizer().encode([">>kor<< a dog", texts[1]])
    assert with_prefix.codes == CODES


def test_an_unknown_prefix_is_refused() -> None:
    with pytest.raises(UsageError, match=r"'>>kro<<': did you mean '>>kor<<'\? It has >>kor<<, >>"):
        tokenizer(prefix=">>kro<<")


# --- Pieces -------------------------------------------------------------------------------------


def test_pieces_by_hand() -> None:
    """A code stands for itself, and what follows is counted from the text's beginning."""
    text = ">>kor<< the dog"
    pieces = tokenizer().pieces(text)
    assert (pieces[0].text, pieces[0].begin, pieces[0].end) == (">>kor<<", 0, 7)
    assert "".join(text[piece.begin : piece.end] for piece in pieces).replace(" ", "") == (
        ">>kor<<thedog"
    )
    assert tokenizer(prefix=">>deu<<").pieces("dog")[0].text == ">>deu<<"


@given(st.sampled_from(["", ">>kor<<", ">>deu<< "]), st.text(max_size=20))
def test_pieces_are_the_encoded_ones(code: str, text: str) -> None:
    """In order, within the text, whatever the text is."""
    found = tokenizer().pieces(code + text)
    assert [piece.id for piece in found] == tokenizer().encode([code + text])[0]
    ends = [0] + [end for piece in found for end in (piece.begin, piece.end)]
    assert ends == sorted(ends)
    assert ends[-1] <= len(code + text)


def test_special_words_in_a_text_are_text() -> None:
    """ "</s>" is how a text strikes words out: it must not end a sentence."""
    end = golden()["vocabulary"]["</s>"]
    assert end not in tokenizer().encode(["the <s>dog</s> runs"])[0]


def test_special_tokens_are_silent() -> None:
    vocabulary = golden()["vocabulary"]
    ids = tokenizer().encode(["The dog"])[0]
    special = [vocabulary[piece] for piece in ("<pad>", "</s>", "<unk>")]
    assert tokenizer().decode([[*special, *ids, *special], []]) == tokenizer().decode([ids, []])
    assert tokenizer().piece(vocabulary["<pad>"]) == "<pad>"
    assert tokenizer().piece(10_000) == "<unk>"  # a hole in the numbers


# --- Folders ------------------------------------------------------------------------------------


def test_vocabularies_of_their_own(tmp_path: Path) -> None:
    source, target = write_tokenizers(tmp_path, separate=True)
    found = read_marian(tmp_path)
    assert (len(found.source), len(found.target)) == (len(source), max(target.values()) + 1)
    pieces = [found.source.piece(token) for token in found.source.encode(ENGLISH[:1])[0]]
    assert "".join(pieces).replace("▁", " ").strip() == ENGLISH[0]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("source.spm", None, r"source\.spm cannot be read .*source\.spm, target\.spm and vocab"),
        (
            "target.spm",
            b"not a model",
            r"\.spm file \(11 bytes\) is not a valid sentencepiece model",
        ),
        ("vocab.json", b"{", r"vocab\.json is not JSON"),
        ("vocab.json", b"[]", r"vocab\.json is not a JSON object"),
        ("vocab.json", b'{"</s>": "0"}', "does not map pieces to ids"),
        ("vocab.json", b'{"</s>": 0}', "no <unk> and no <pad>"),
    ],
)
def test_damaged_files_are_named(
    tmp_path: Path, name: str, content: bytes | None, message: str
) -> None:
    write_tokenizers(tmp_path)
    if content is None:
        (tmp_path / name).unlink()
    else:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(FolderError, match=message):
        read_marian(tmp_path)


def test_scores_are_sentencepieces() -> None:
    """Log-probabilities of pieces; a code has none."""
    (tokens,) = tokenizer().encode([">>deu<< the dog"])
    code, *rest = [tokenizer().score(token) for token in tokens]
    assert code == 0
    assert min(rest) < 0

"""Tiny tokenizers as the folders of Hugging Face's models have them."""

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import sentencepiece

WORDS = ["a", "red", "cat", "on", "the", "left", "photo", "of", "two", "dogs", "house", "don't"]


def _byte_symbols() -> list[str]:
    """GPT-2's printable characters for the 256 bytes, in the order of the bytes."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    names = {byte: chr(byte) for byte in plain}
    names |= {byte: chr(256 + place) for place, byte in enumerate(others)}
    return [names[byte] for byte in range(256)]


def _pairs(words: Sequence[str], end: str = "") -> list[tuple[str, str]]:
    """Merges that put each word together from the left."""
    found: dict[tuple[str, str], None] = {}
    for word in words:
        symbols = [*word[:-1], word[-1] + end]
        while len(symbols) > 1:
            found[symbols[0], symbols[1]] = None
            symbols[:2] = ["".join(symbols[:2])]
    return list(found)


def _write(folder: Path, vocabulary: Sequence[str], merges: list[tuple[str, str]]) -> None:
    table = {token: number for number, token in enumerate(dict.fromkeys(vocabulary))}
    (folder / "vocab.json").write_text(json.dumps(table))
    lines = ["#version: 0.2", *(" ".join(pair) for pair in merges)]
    (folder / "merges.txt").write_text("\n".join(lines) + "\n")


def write_clip(folder: Path) -> int:
    """Write CLIP's two tables and its settings; return the size of the vocabulary."""
    symbols, merges = _byte_symbols(), _pairs([w for w in WORDS if w.isalpha()], "</w>")
    special = ["<|startoftext|>", "<|endoftext|>"]
    made = ["".join(pair) for pair in merges]
    vocabulary = [*symbols, *(symbol + "</w>" for symbol in symbols), *made, *special]
    _write(folder, vocabulary, merges)
    settings: dict[str, Any] = {
        "tokenizer_class": "CLIPTokenizer",
        "bos_token": {"__type": "AddedToken", "content": special[0], "special": True},
        "eos_token": special[1],
        "pad_token": special[1],
        "unk_token": special[1],
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return len(dict.fromkeys(vocabulary))


def write_gpt2(folder: Path) -> int:
    """Write GPT-2's two tables and its settings; return the size of the vocabulary."""
    symbols = _byte_symbols()
    merges = _pairs([f"\u0120{word}" for word in WORDS if word.isalpha()])
    vocabulary = [*symbols, *("".join(pair) for pair in merges), "<|endoftext|>"]
    _write(folder, vocabulary, merges)
    end = "<|endoftext|>"
    settings = {"tokenizer_class": "GPT2Tokenizer", "bos_token": end, "eos_token": end}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return len(dict.fromkeys(vocabulary))


def _sentencepiece(**arguments: Any) -> bytes:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.Train(
        sentence_iterator=iter([" ".join(WORDS), "a photo of a red house", "two cats"] * 20),
        model_writer=model,
        hard_vocab_limit=False,
        minloglevel=2,
        **arguments,
    )
    return model.getvalue()


def write_siglip(folder: Path) -> int:
    """Write SigLIP's sentencepiece model and its settings; return the size of the vocabulary."""
    model = _sentencepiece(vocab_size=48, pad_id=-1, eos_id=1, bos_id=-1, unk_id=2)
    (folder / "spiece.model").write_bytes(model)
    settings = {
        "tokenizer_class": "SiglipTokenizer",
        "eos_token": "</s>",
        "pad_token": "</s>",
        "unk_token": "<unk>",
        "model_input_names": ["input_ids"],
        "model_max_length": 7,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    processor = sentencepiece.SentencePieceProcessor()
    processor.LoadFromSerializedProto(model)
    return int(processor.GetPieceSize())


def write_xlm(folder: Path) -> int:
    """Write XLM-RoBERTa's sentencepiece model and settings; return the size of the vocabulary."""
    model = _sentencepiece(vocab_size=48, unk_id=0, bos_id=1, eos_id=2, pad_id=-1)
    (folder / "sentencepiece.bpe.model").write_bytes(model)
    settings = {
        "tokenizer_class": "XLMRobertaTokenizer",
        "bos_token": "<s>",
        "eos_token": "</s>",
        "pad_token": "<pad>",
        "unk_token": "<unk>",
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    processor = sentencepiece.SentencePieceProcessor()
    processor.LoadFromSerializedProto(model)
    return int(processor.GetPieceSize()) + 2

"""Folders like those of OPUS-MT on the Hugging Face hub, made on the spot and tiny.

Two are enough: `write_letters` around weights that were trained (see test_marian.py), whose words
are single letters, and `write_random` with real sentences, language codes and random weights.
"""

import io
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import sentencepiece
import torch
from safetensors.torch import save_file
from torch import Tensor

from manyheads.models.convert import marian_weights as marian
from manyheads.models.transformer import Transformer, TransformerConfig
from manyheads.nn.layers.positions import sinusoid_halves
from manyheads.train.model_tensors import tensors
from tests.small import randomise

LETTERS = "abcdefghij"
ENGLISH = """
The cat sits on the mat and looks at the dog.
A dog runs across the green field behind the house.
Two children are playing football in the park today.
She reads a long letter from her brother in Seoul.
We drink tea every morning before we go to work.
The train to the city leaves at half past nine.
He bought three apples, two pears and a loaf of bread.
It was raining, so they stayed at home and played cards.
My sister's new bicycle is red - mine is blue!
"Where are you going?" asked the old man in the shop.
Nobody knows how many stars there are in the sky.
The teacher wrote the answer on the board: 42.
I would like a cup of coffee with a little milk.
In winter the lake is frozen and people skate on it.
""".strip().splitlines()
KOREAN = """
고양이가 매트 위에 앉아서 개를 바라본다.
개 한 마리가 집 뒤의 푸른 들판을 달려간다.
오늘 두 아이가 공원에서 축구를 하고 있다.
그녀는 서울에 있는 오빠의 긴 편지를 읽는다.
우리는 출근하기 전에 매일 아침 차를 마신다.
도시로 가는 기차는 아홉 시 반에 출발한다.
그는 사과 세 개와 배 두 개와 빵 한 덩이를 샀다.
비가 와서 그들은 집에 머물며 카드놀이를 했다.
내 여동생의 새 자전거는 빨간색이고 내 것은 파란색이다!
"어디 가세요?" 가게에 있던 노인이 물었다.
하늘에 별이 얼마나 많은지 아무도 모른다.
선생님이 칠판에 답을 적었다: 42.
저는 우유를 조금 넣은 커피 한 잔을 원합니다.
겨울에는 호수가 얼어서 사람들이 그 위에서 스케이트를 탄다.
""".strip().splitlines()
# What a search of ours would change: capitals, and outputs that repeat themselves.
HARD = [line.upper() for line in ENGLISH[:4]] + ENGLISH[4:10] + ["x " * 40, "DOG " * 30]
CODES = [">>kor<<", ">>deu<<"]


def sentencepieces(
    lines: Iterable[str], size: int, *, kind: str = "unigram", normalise: bool = False
) -> bytes:
    """Train a sentencepiece model; OPUS-MT's normalise, which takes 240 kB in the model."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.Train(
        sentence_iterator=iter(lines),
        model_writer=model,
        model_type=kind,
        vocab_size=size,
        normalization_rule_name="nmt_nfkc" if normalise else "identity",
        hard_vocab_limit=False,
        num_threads=1,
        minloglevel=2,
    )
    return model.getvalue()


def vocabulary(models: Sequence[bytes], *, codes: Sequence[str] = ()) -> dict[str, int]:
    """Number the pieces of the models: the end first, the padding last; a few are left out."""
    pieces = ["</s>", "<unk>", *codes]
    for model in models:
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        all_pieces = [processor.IdToPiece(n) for n in range(3, processor.GetPieceSize())]
        pieces += [piece for n, piece in enumerate(all_pieces) if not codes or n % 17]
    return {piece: n for n, piece in enumerate(dict.fromkeys([*pieces, "<pad>"]))}


def write_tokenizers(
    folder: Path, *, separate: bool = False, normalise: bool = False
) -> tuple[dict[str, int], dict[str, int]]:
    """Write tokenizers that learned from the sentences above; return their vocabularies."""
    models = {
        "source": sentencepieces(ENGLISH, 120, normalise=normalise),
        "target": sentencepieces(KOREAN, 200, normalise=normalise),
    }
    for side, model in models.items():
        (folder / f"{side}.spm").write_bytes(model)
    if separate:  # the padding has one number on both sides
        source = vocabulary([models["source"]])
        pieces = [piece for piece in vocabulary([models["target"]]) if piece != "<pad>"]
        pieces.insert(source["<pad>"], "<pad>")
        target = {piece: n for n, piece in enumerate(pieces)}
        write_json(folder / "target_vocab.json", target)
    else:
        source = target = vocabulary(list(models.values()), codes=CODES)
    write_json(folder / "vocab.json", source)
    write_json(
        folder / "tokenizer_config.json",
        {
            "source_lang": "eng",
            "target_lang": "kor",
            "separate_vocabs": separate,
            "tokenizer_class": "MarianTokenizer",
        },
    )
    return source, target


def write_random(
    folder: Path, *, separate: bool = False, pickled: bool = False, max_length: int = 12
) -> None:
    """Write a whole model with random weights, in the older form if pickled."""
    folder.mkdir(parents=True, exist_ok=True)
    source, target = write_tokenizers(folder, separate=separate)
    config = TransformerConfig(
        vocabulary=len(source),
        target_vocabulary=len(target) if separate else None,
        dim=16,
        heads=2,
        ffn_dim=32,
        encoder_layers=2,
        decoder_layers=1,
        activation="silu",
        positions="sinusoidal-halves",
        output_bias=True,
        pad=source["<pad>"],
        start=source["<pad>"],
        end=source["</s>"],
    )
    about, weights = marian.write(config, tensors(randomise(Transformer(config))))
    about |= {"normalize_before": False, "static_position_embeddings": True, "dtype": "float16"}
    weights = {name: tensor.half() for name, tensor in weights.items()}
    write_model(folder, about, weights, beams=3, max_length=max_length, pickled=pickled)


def write_letters(folder: Path, about: Mapping[str, Any], weights: Mapping[str, Tensor]) -> None:
    """Write a whole model whose words are letters around these weights."""
    folder.mkdir(parents=True, exist_ok=True)
    # Often ones first, so that the pieces are in the order of the alphabet.
    lines = [" ".join(LETTERS[: count + 1]) for count in range(len(LETTERS))]
    model = sentencepieces(lines, len(LETTERS) + 3, kind="word")
    for side in ("source", "target"):
        (folder / f"{side}.spm").write_bytes(model)
    pieces = ["</s>", "<unk>", *(f"▁{letter}" for letter in LETTERS), "<pad>"]
    write_json(folder / "vocab.json", {piece: n for n, piece in enumerate(pieces)})
    write_json(folder / "tokenizer_config.json", {"source_lang": "abc", "target_lang": "cba"})
    write_model(folder, about, weights, beams=4, max_length=10)


def write_model(
    folder: Path,
    about: Mapping[str, Any],
    weights: Mapping[str, Tensor],
    *,
    beams: int,
    max_length: int,
    pickled: bool = False,
) -> None:
    """Write what is not the tokenizers'."""
    pad, end = about["pad_token_id"], about["eos_token_id"]
    write_json(folder / "config.json", about)
    write_json(
        folder / "generation_config.json",
        {
            "bad_words_ids": [[pad]],
            "bos_token_id": end,
            "decoder_start_token_id": pad,
            "eos_token_id": end,
            "forced_eos_token_id": end,
            "max_length": max_length,
            "num_beams": beams,
            "pad_token_id": pad,
            "renormalize_logits": True,
        },
    )
    (folder / "README.md").write_text(
        "---\nlanguage: en\nlicense: cc-by-4.0\n---\n\n# opus-mt\n", encoding="utf-8"
    )
    if pickled:  # as older files were: with what the newer leave out
        shared = weights["model.shared.weight"]
        names = ["lm_head", "model.encoder.embed_tokens", "model.decoder.embed_tokens"]
        old = dict(weights) | {f"{name}.weight": shared for name in names}
        table = sinusoid_halves(12, shared.shape[1])
        old |= {f"model.{side}.embed_positions.weight": table for side in ("encoder", "decoder")}
        torch.save(old, folder / "pytorch_model.bin")
    else:
        save_file(dict(weights), folder / "model.safetensors", metadata={"format": "pt"})


def write_json(path: Path, value: Any) -> None:
    """Write JSON in their way, which is not ours."""
    path.write_text(json.dumps(value, indent=4), encoding="utf-8")

"""Hugging Face's folders of CLIP, SigLIP and captioners become folders that answer the same.

The models are the recorded ones (tests/golden/image-text) with more rows in their vocabularies;
`make parity` compares whole folders with the library, from pixels and words to answers.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from torch import Tensor

from manyheads.asks.classify_request import ClassifyRequest
from manyheads.convert.classifiers import from_images
from manyheads.decode.beam import beam_search
from manyheads.decode.greedy import greedy_search
from manyheads.errors import FolderError, UsageError
from manyheads.models.convert.families import IMAGE_TEXT
from manyheads.models.presets import build
from manyheads.picture_translation import read
from manyheads.predict.image_inputs import ImageInput
from manyheads.predict.load import load
from manyheads.project.folder import ModelFolder
from manyheads.project.model_facts import describe
from manyheads.tasks.caption.predictor import Captioner
from manyheads.tasks.match.predictor import Matcher
from manyheads.train.model_tensors import restore
from tests.hub_tokenizers import write_clip, write_gpt2, write_siglip, write_xlm
from tests.made import trained
from tests.models.test_golden_image_text import load as golden

TEXTS = ["a red cat", "two dogs on the left", "house"]
IMAGES: list[ImageInput] = [
    Image.new("RGB", (20, 12), colour) for colour in ("red", "green", "blue")
]
EMBEDDINGS = (
    "text_model.embeddings.token_embedding.weight",
    "decoder.model.decoder.embed_tokens.weight",
    "decoder.output_projection.weight",
    "decoder.transformer.wte.weight",
    "decoder.lm_head.weight",
)


def grown(tensors: dict[str, Tensor], words: int) -> dict[str, Tensor]:
    """Give a model a vocabulary of this size: equal tables stay equal."""
    generator = torch.Generator().manual_seed(0)
    found = dict(tensors)
    for name in EMBEDDINGS:
        if name in found:
            table = found[name]
            generator.manual_seed(0)
            more = 0.3 * torch.randn(words - len(table), table.shape[1], generator=generator)
            found[name] = torch.cat((table, more))
    return found


def write(name: str, folder: Path, tokenizer: Callable[[Path], int], **config: Any) -> Path:
    """Write a folder as Hugging Face does."""
    of = golden(name)
    folder.mkdir()
    words = tokenizer(folder)
    settings = json.loads(json.dumps(of.settings))
    if "text_config" in settings:
        settings["text_config"]["eos_token_id"] = words - 1
    save_file(grown(of.tensors, words), folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(settings | config))
    return folder


def bare(source: Path) -> Any:
    """The converted model, without a folder."""
    from safetensors.torch import load_file

    about = json.loads((source / "config.json").read_text())
    tensors = load_file(source / "model.safetensors")
    config, state = IMAGE_TEXT[about["model_type"]](about, tensors)
    model = build(config).eval()
    restore(model, state, source)
    return model


def converted(source: Path, out: Path) -> Any:
    from_images("hf", str(source), out)
    return load(out)


def test_siglip_whole(tmp_path: Path) -> None:
    """Texts end with </s> and are padded with it to the length that was learned."""
    source = write("hf-siglip", tmp_path / "theirs", write_siglip)
    made = from_images("hf", str(source), tmp_path / "out")
    assert (made.task, made.classes, made.size) == ("match", 0, (8, 8))
    matcher = load(tmp_path / "out")
    assert isinstance(matcher, Matcher)
    config: Any = matcher.folder.recipe.config()
    assert (config.start, config.end, config.pad, matcher.longest) == (None, 1, 1, 7)
    model = bare(source)
    pixels = torch.stack([matcher.pixels(each) for each in IMAGES])
    rows = [row[:6] + [1] * (7 - len(row[:6])) for row in matcher.tokenizer.encode(TEXTS)]
    with torch.inference_mode():
        images, texts = model(matcher.preprocessing.normalise(pixels), torch.tensor(rows))
    np.testing.assert_allclose(matcher.embed_images(IMAGES), images, atol=1e-6)
    np.testing.assert_allclose(matcher.embed_texts(TEXTS), texts, atol=1e-6)
    answer = matcher.respond(ClassifyRequest(images=(), labels=("cat", "dog")))
    assert answer == []
    assert describe(str(tmp_path / "out"))["task"] == "match"
    assert (tmp_path / "out" / "hf" / "siglip.model").is_file()
    assert "Puts images and texts into one space" in (tmp_path / "out" / "README.md").read_text()


def test_clip_whole(tmp_path: Path) -> None:
    """Texts begin and end with tokens of their own, and are cut to what was learned."""
    pytest.importorskip("tokenizers")
    source = write("hf-clip", tmp_path / "theirs", write_clip)
    matcher = converted(source, tmp_path / "out")
    config: Any = matcher.folder.recipe.config()
    words = config.vocabulary
    assert (config.start, config.end, matcher.longest) == (words - 2, words - 1, 7)
    model = bare(source)
    rows = [
        [words - 2, *row[:5], words - 1] for row in matcher.tokenizer.encode(["a red", TEXTS[1]])
    ]
    with torch.inference_mode():
        alone = [model.encode_texts(torch.tensor([row]))[0] for row in rows]
    found = matcher.embed_texts(["a red", TEXTS[1]])
    np.testing.assert_allclose(found, torch.stack(alone), atol=1e-6)
    assert matcher(IMAGES, TEXTS).shape == (3, 3)


def test_what_a_converted_reader_reads_is_translated(tmp_path: Path) -> None:
    """Its language is not known, so the translator has to be named."""
    reader = converted(write("hf-trocr", tmp_path / "theirs", write_xlm), tmp_path / "out")
    path = tmp_path / "a.png"
    Image.new("RGB", (20, 12), "red").save(path)
    (found,) = read([path], model=reader, translator=str(trained("translator")))
    assert (found.error, found.to) == (None, "de")
    with pytest.raises(UsageError, match="does not say which language it reads"):
        read([path], model=reader, to="de")


@pytest.mark.parametrize(
    ("name", "tokenizer"),
    [("hf-trocr", write_xlm), ("hf-trocr-deit-wide", write_xlm), ("hf-gpt2", write_gpt2)],
)
def test_captioners_whole(name: str, tokenizer: Callable[[Path], int], tmp_path: Path) -> None:
    """They write what the bare model writes with the same search."""
    if tokenizer is write_gpt2:
        pytest.importorskip("tokenizers")
    source = write(name, tmp_path / "theirs", tokenizer)
    generation = {"num_beams": 2, "max_length": 6, "eos_token_id": 2, "pad_token_id": 1}
    generation["decoder_start_token_id"] = 2
    (source / "generation_config.json").write_text(json.dumps(generation))
    captioner = converted(source, tmp_path / "out")
    assert isinstance(captioner, Captioner)
    assert (captioner.decode.beams, captioner.decode.max_length) == (2, 5)
    model = bare(source)
    pixels = torch.stack([captioner.pixels(each) for each in IMAGES])
    images = captioner.preprocessing.normalise(pixels)
    found = beam_search(model, images, [5] * 3, beams=2, start=2, end=2)
    tokens = [best.tokens for best, *_ in found]
    assert captioner(IMAGES) == captioner.tokenizer.decode(tokens)
    assert captioner.languages == []
    with pytest.raises(UsageError, match="does not know languages"):
        captioner(IMAGES[0], "ko")


def test_a_captioner_that_repeats_itself(tmp_path: Path) -> None:
    """Theirs goes on to its limit."""
    long = json.loads(json.dumps(golden("hf-trocr-sinusoidal").settings))["decoder"]
    long["max_position_embeddings"] = 64
    source = write("hf-trocr-sinusoidal", tmp_path / "theirs", write_xlm, decoder=long)
    generation = {"num_beams": 1, "max_length": 61, "decoder_start_token_id": 2}
    (source / "generation_config.json").write_text(json.dumps(generation))
    captioner = converted(source, tmp_path / "out")
    model = bare(source)
    pixels = torch.stack([captioner.pixels(each) for each in IMAGES])
    images = captioner.preprocessing.normalise(pixels)
    found = greedy_search(model, images, [60] * 3, start=2, end=2)
    assert max(len(each.tokens) for each in found) == 60
    assert captioner(IMAGES) == captioner.tokenizer.decode([each.tokens for each in found])


def test_a_captioner_at_another_size(tmp_path: Path) -> None:
    """Positions are interpolated as by its library."""
    source = write("hf-trocr", tmp_path / "theirs", write_xlm)
    made = from_images("hf", str(source), tmp_path / "out", image_size=(12, 16))
    assert made.size == (12, 16)
    folder = ModelFolder(tmp_path / "out")
    assert folder.preprocessing().height == 12
    assert folder.model().state_dict()["encoder.positions.table"].shape == (1 + 3 * 4, 8)


def test_a_clip_without_texts_is_an_encoder(tmp_path: Path) -> None:
    source = write("hf-clip", tmp_path / "theirs", write_siglip)
    own = ("vision_model.", "visual_projection.")
    tensors = {n: t for n, t in golden("hf-clip").tensors.items() if n.startswith(own)}
    save_file(tensors, source / "model.safetensors")
    assert from_images("hf", str(source), tmp_path / "out").task == "embed"


def test_other_captioners_are_refused(tmp_path: Path) -> None:
    source = write("hf-trocr", tmp_path / "theirs", write_xlm, encoder={"model_type": "swin"})
    with pytest.raises(UsageError, match=r"encoder 'swin'.*Understood are the encoders"):
        from_images("hf", str(source), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"spiece.model": None}, FolderError, "no tokenizer that is understood"),
        ({"spiece.model": b"damaged"}, FolderError, "not a valid sentencepiece model"),
        ({"tokenizer_config.json": b"{}"}, FolderError, "no tokenizer that is understood"),
    ],
)
def test_folders_without_a_tokenizer(
    change: dict[str, bytes | None], error: type[Exception], message: str, tmp_path: Path
) -> None:
    source = write("hf-siglip", tmp_path / "theirs", write_siglip)
    for name, content in change.items():
        if content is None:
            (source / name).unlink()
        else:
            (source / name).write_bytes(content)
    with pytest.raises(error, match=message):
        from_images("hf", str(source), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_special_tokens_must_be_in_the_vocabulary(tmp_path: Path) -> None:
    source = write("hf-siglip", tmp_path / "theirs", write_siglip)
    told = json.loads((source / "tokenizer_config.json").read_text())
    told["pad_token"] = "<nothing>"
    (source / "tokenizer_config.json").write_text(json.dumps(told))
    with pytest.raises(FolderError, match="pad_token = '<nothing>'"):
        from_images("hf", str(source), tmp_path / "out")


def test_a_tokenizer_that_hides_padding_is_remarked(tmp_path: Path) -> None:
    source = write("hf-siglip", tmp_path / "theirs", write_siglip)
    told = json.loads((source / "tokenizer_config.json").read_text())
    told["model_input_names"] = ["input_ids", "attention_mask"]
    (source / "tokenizer_config.json").write_text(json.dumps(told))
    made = from_images("hf", str(source), tmp_path / "out")
    assert any("mask of padding" in remark for remark in made.remarks)


def test_a_tokenizer_with_more_tokens_than_the_model(tmp_path: Path) -> None:
    of = golden("hf-siglip")
    source = write("hf-siglip", tmp_path / "theirs", write_siglip)
    save_file(of.tensors, source / "model.safetensors")
    with pytest.raises(FolderError, match="tokens, the model 12"):
        from_images("hf", str(source), tmp_path / "out")


def test_a_file_alone_has_no_tokenizer(tmp_path: Path) -> None:
    source = write("hf-siglip", tmp_path / "theirs", write_siglip)
    with pytest.raises(UsageError, match=r"config\.json"):
        from_images("hf", str(source / "model.safetensors"), tmp_path / "out")


def test_the_tokenizer_is_a_part_of_the_folder(tmp_path: Path) -> None:
    """Its hash is in the manifest: another one is refused."""
    converted(write("hf-siglip", tmp_path / "theirs", write_siglip), tmp_path / "out")
    path = tmp_path / "out" / "hf" / "siglip.model"
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(FolderError, match=r"siglip\.model is not the file"):
        load(tmp_path / "out")

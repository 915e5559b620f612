"""Repositories as makers write them, by their names: the whole way, from the hub to the answer.

transformers and timm save tiny models with random weights, a stand-in of the hub serves them, and
`manyheads.load("hf:...")` fetches, converts and asks them: from images and texts to what they
answer. Kinds that cannot be converted have to be refused before their weights are asked for.
"""

import json
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

import manyheads
from benchmarks.image_models import randomise
from benchmarks.marian import translated
from benchmarks.peers import import_peer, transformers_library
from manyheads.errors import UsageError
from manyheads.predict.image_inputs import ImageInput
from manyheads.tasks.caption.predictor import Captioner
from manyheads.tasks.embed.predictor import Embedder
from manyheads.tasks.match.predictor import Matcher
from manyheads.tasks.translate.predictor import Translator
from tests.hub import serving
from tests.hub_tokenizers import write_clip, write_gpt2, write_siglip, write_xlm
from tests.opus import HARD, write_random

SIDE, CLASSES = 32, 5
SHAPE: dict[str, Any] = {
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "image_size": SIDE,
    "patch_size": 8,
}
TEXTS = ["a red cat", "two dogs on the left", "house"]
Answer = np.ndarray | list[str]
Write = Callable[[Path], Answer]  # a repository; its maker's answer


def images() -> list[ImageInput]:
    """Noise, of three sizes."""
    generator = np.random.default_rng(0)
    shapes = ((40, 56, 3), (32, 32, 3), (70, 33, 3))
    return [Image.fromarray(generator.integers(0, 256, s, dtype=np.uint8)) for s in shapes]


def converted() -> dict[str, Write]:
    """List what has to answer as its maker."""
    swin = {"embed_dim": 8, "depths": [1, 1], "num_heads": [2, 2], "window_size": 2}
    cvt = {"embed_dim": [8, 16, 16], "num_heads": [1, 2, 2], "depth": [1, 2, 3]}
    resnet = {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1]}
    bit = {"embedding_size": 8, "hidden_sizes": [16, 32], "depths": [1, 1], "num_groups": 4}
    dino = {key: value for key, value in SHAPE.items() if key != "intermediate_size"}
    return {
        "google/vit": lambda at: _hf(at, "ViTForImageClassification", **SHAPE),
        "google/vit-in21k": lambda at: _hf(at, "ViTModel", **SHAPE),
        "facebook/deit": lambda at: _hf(at, "DeiTForImageClassification", **SHAPE),
        "facebook/deit-distilled": lambda at: _hf(
            at, "DeiTForImageClassificationWithTeacher", **SHAPE
        ),
        "facebook/dinov2": lambda at: _hf(at, "Dinov2Model", **dino),
        "facebook/dinov2-imagenet1k": lambda at: _hf(at, "Dinov2ForImageClassification", **dino),
        "facebook/dinov2-with-registers": lambda at: _hf(
            at, "Dinov2WithRegistersForImageClassification", **dino
        ),
        "microsoft/swin": lambda at: _hf(
            at, "SwinForImageClassification", image_size=SIDE, patch_size=4, **swin
        ),
        "microsoft/cvt": lambda at: _hf(at, "CvtForImageClassification", **cvt),
        "microsoft/resnet": lambda at: _hf(at, "ResNetForImageClassification", **resnet),
        "google/bit": lambda at: _hf(at, "BitForImageClassification", **bit),
        "openai/clip-vision": lambda at: _hf(at, "CLIPVisionModelWithProjection", **SHAPE),
        "google/siglip-vision": lambda at: _hf(at, "SiglipVisionModel", **SHAPE),
        "openai/clip": _clip,
        "google/siglip": _siglip,
        "microsoft/trocr": lambda at: _captioner(at, write_xlm, "TrOCRConfig"),
        "nlpconnect/vit-gpt2": lambda at: _captioner(at, write_gpt2, "GPT2Config"),
        "Helsinki-NLP/opus-mt-en-ko": lambda at: _marian(at, pickled=False),
        "Helsinki-NLP/opus-mt-en-ko-old": lambda at: _marian(at, pickled=True),
        "Helsinki-NLP/opus-mt-en-ko-two": lambda at: _marian(at, pickled=False, separate=True),
        "timm/vit": lambda at: _timm(at, "vit_tiny_patch16_224", embed_dim=24, depth=2),
        "timm/vit-clip": lambda at: _timm(
            at, "vit_base_patch16_clip_quickgelu_224", embed_dim=24, depth=2, num_heads=3
        ),
        "timm/dinov2": lambda at: _timm(
            at, "vit_small_patch14_reg4_dinov2", 28, embed_dim=24, depth=2, num_heads=3
        ),
        "timm/deit3": lambda at: _timm(
            at, "deit3_small_patch16_224", embed_dim=24, depth=2, num_heads=3
        ),
        "timm/resnet": lambda at: _timm(at, "resnet18", 0),
        "timm/swin": lambda at: _timm(
            at, "swin_tiny_patch4_window7_224", 56, embed_dim=12, depths=(1, 1), num_heads=(2, 4)
        ),
    }


def refused() -> dict[str, Write]:
    """List what has no equivalent here."""
    tiny = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    t5 = {"d_model": 16, "d_kv": 8, "d_ff": 24, "num_layers": 1, "num_heads": 2}
    return {
        "google-bert/bert": lambda at: _saved(at, "BertModel", **tiny),
        "google-t5/t5": lambda at: _saved(at, "T5ForConditionalGeneration", **t5),
        "openai-community/gpt2": lambda at: _saved(
            at, "GPT2LMHeadModel", n_embd=16, n_layer=1, n_head=2
        ),
        "Salesforce/blip": _blip,
        "facebook/convnext": lambda at: _saved(
            at, "ConvNextForImageClassification", hidden_sizes=[8] * 4, depths=[1] * 4
        ),
        "facebook/bart": lambda at: _saved(
            at, "BartModel", d_model=16, encoder_layers=1, decoder_layers=1, vocab_size=99
        ),
        "timm/efficientnet": lambda at: _timm(at, "efficientnet_lite0", 0),
        "timm/vit-relpos": lambda at: _timm(at, "vit_relpos_small_patch16_224", embed_dim=24),
        "timm/gelu": lambda at: _timm(at, "resnet18", 0, act_layer="silu"),
    }


def differences() -> Iterator[tuple[str, float]]:
    """Compare every repository; what is refused differs by 0 if its weights were left alone."""
    for name, write in converted().items():
        with _hub(name, write) as (asked, theirs):
            ours = _ours(manyheads.load(f"hf:{name}"))
            weights = [each for each in asked if each.startswith(("model.", "pytorch_"))]
            title = f"hf:{name}, {len(asked)} files"
            if len(weights) != 1:
                yield f"{title}: {weights}", float("inf")
            elif isinstance(theirs, list):
                yield title, float(ours != theirs or len(set(theirs)) == 1)
            elif np.ptp(theirs, axis=0).max() < 0.01 * np.abs(theirs).max():
                yield f"{title}: one answer for all", float("inf")
            else:
                yield title, float(np.abs(ours - theirs).max() / np.abs(theirs).max())
    for name, write in refused().items():
        with _hub(name, write) as (asked, _):
            try:
                manyheads.load(f"hf:{name}")
            except UsageError as error:
                early = asked == ["config.json"]
                yield f"hf:{name}, refused: {str(error)[:60]}...", 0.0 if early else float("inf")
            else:
                yield f"hf:{name}, which is to be refused", float("inf")


@contextmanager
def _hub(name: str, write: Write) -> Iterator[tuple[list[str], Any]]:
    before = dict(os.environ)
    with tempfile.TemporaryDirectory() as place, serving() as hub, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        hub.repositories[name] = Path(place) / "theirs"
        hub.repositories[name].mkdir()
        theirs = write(hub.repositories[name])
        os.environ |= {"HF_ENDPOINT": hub.address, "MANYHEADS_CACHE": f"{place}/cache"}
        try:
            yield hub.asked, theirs
        finally:
            os.environ.clear()
            os.environ.update(before)


def _ours(found: Any) -> Answer:
    """Ask a predictor of whichever task."""
    if isinstance(found, Translator):
        return [str(text) for text in found(HARD)]
    if isinstance(found, Captioner):
        return [str(text) for text in found(images())]
    if isinstance(found, Matcher):
        return found(images(), TEXTS)
    if isinstance(found, Embedder):
        return found(images())
    pixels = torch.stack([found.pixels(image) for image in images()])
    with torch.inference_mode():
        logits: Tensor = found.model(found.preprocessing.normalise(pixels))
    return logits.numpy()


# --- transformers -------------------------------------------------------------------------------


def _saved(folder: Path, kind: str, **arguments: Any) -> Any:
    """Save a model with random weights, and return it."""
    library = transformers_library()
    model = getattr(library, kind)
    config = model.config_class(**arguments)
    if "Classification" in kind:
        config.num_labels = CLASSES
    made: Any = randomise(model(config))
    made.save_pretrained(folder)
    return made


def _hf(folder: Path, kind: str, **arguments: Any) -> Answer:
    model = _saved(folder, kind, **arguments)
    found = _outputs(model, _pixels(folder, model.config.model_type))
    return found.numpy()


def _outputs(model: Any, pixels: Tensor) -> Tensor:
    with torch.inference_mode():
        found = model(pixel_values=pixels)
    names = ("logits", "image_embeds", "pooler_output")
    output: Tensor = next(found[name] for name in names if name in found)
    return output


def _pixels(folder: Path, kind: str) -> Tensor:
    """Save how images are prepared, as models of this kind are published; prepare them so."""
    values = {"image_mean": [0.4, 0.5, 0.6], "image_std": [0.2, 0.3, 0.25]}
    crop = {"do_center_crop": True, "crop_size": {"height": SIDE, "width": SIDE}}
    kinds = {"cvt": "ConvNext", "resnet": "ConvNext", "deit": "DeiT", "swin": "ViT", "vit": "ViT"}
    names = {"clip": "CLIP", "siglip": "Siglip", "dinov2": "Bit", "bit": "Bit"}
    name = next(name for part, name in (kinds | names).items() if kind.startswith(part))
    told: dict[str, Any] = values | {"size": {"height": SIDE, "width": SIDE}}
    told |= {"image_processor_type": f"{name}ImageProcessor", "resample": 3}
    if kind in ("cvt", "resnet"):
        told |= {"size": {"shortest_edge": SIDE}, "crop_pct": 0.875}
    elif kind.startswith(("dinov2", "bit", "clip")):
        told |= {"size": {"shortest_edge": SIDE + 4}, **crop}
    elif kind == "deit":
        told |= {"size": {"height": SIDE + 4, "width": SIDE + 4}, **crop}
    (folder / "preprocessor_config.json").write_text(json.dumps(told))
    processors = transformers_library().AutoImageProcessor
    processor = processors.from_pretrained(folder, backend="pil")
    pixels: Tensor = processor(images(), return_tensors="pt").pixel_values
    return pixels.float()


def _two(library: Any, name: str, words: int, **of_text: Any) -> Any:
    """Configure CLIP or SigLIP whole."""
    sizes = {key: SHAPE[key] for key in SHAPE if key not in ("image_size", "patch_size")}
    text = {**sizes, "vocab_size": words, "max_position_embeddings": 12, **of_text}
    return getattr(library, f"{name}Config")(text_config=text, vision_config=SHAPE)


def _clip(folder: Path) -> Answer:
    words = write_clip(folder)
    library = transformers_library()
    special = {"bos_token_id": words - 2, "eos_token_id": words - 1, "pad_token_id": words - 1}
    model: Any = randomise(library.CLIPModel(_two(library, "CLIP", words, **special)))
    model.save_pretrained(folder)
    tokenizer = library.CLIPTokenizer.from_pretrained(folder)
    return _cosines(model, _pixels(folder, "clip"), tokenizer(TEXTS, padding=True))


def _siglip(folder: Path) -> Answer:
    words = write_siglip(folder)
    library = transformers_library()
    special = {"pad_token_id": 1, "eos_token_id": 1, "bos_token_id": 1, "projection_size": 16}
    model: Any = randomise(library.SiglipModel(_two(library, "Siglip", words, **special)))
    model.save_pretrained(folder)
    tokenizer = library.SiglipTokenizer.from_pretrained(folder)
    told = tokenizer(TEXTS, padding="max_length", max_length=12, truncation=True)
    return _cosines(model, _pixels(folder, "siglip"), {"input_ids": told["input_ids"]})


def _cosines(model: Any, pixels: Tensor, texts: Any) -> np.ndarray:
    with torch.inference_mode():
        told = {key: torch.tensor(value) for key, value in texts.items()}
        found = model(pixel_values=pixels, **told)
    cosines: np.ndarray = (found.image_embeds @ found.text_embeds.T).numpy()
    return cosines


def _captioner(folder: Path, tokenizer: Callable[[Path], int], writer: str) -> Answer:
    words = tokenizer(folder)
    library = transformers_library()
    sizes = {"d_model": 16, "decoder_layers": 2, "decoder_attention_heads": 2}
    sizes |= {"decoder_ffn_dim": 24, "max_position_embeddings": 40}
    if writer == "GPT2Config":
        sizes = {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 40}
    special = {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
    if writer == "GPT2Config":  # one token for all
        special = dict.fromkeys(special, words - 1)
    both = library.VisionEncoderDecoderConfig(
        encoder=library.ViTConfig(**SHAPE).to_dict(),
        decoder=getattr(library, writer)(
            vocab_size=words, is_decoder=True, add_cross_attention=True, **sizes, **special
        ).to_dict(),
    )
    special["decoder_start_token_id"] = special["eos_token_id"]
    for key, value in special.items():
        setattr(both, key, value)
    model: Any = randomise(library.VisionEncoderDecoderModel(both))
    model.generation_config = library.GenerationConfig(num_beams=3, max_length=10, **special)
    model.save_pretrained(folder)
    pixels = _pixels(folder, "vit")
    with torch.inference_mode():
        ids = model.generate(pixels, do_sample=False)
    reader = library.AutoTokenizer.from_pretrained(folder)
    return [text.strip() for text in reader.batch_decode(ids, skip_special_tokens=True)]


def _marian(folder: Path, *, pickled: bool, separate: bool = False) -> Answer:
    write_random(folder, separate=separate, max_length=64)
    theirs = translated(folder, HARD)
    if pickled:  # with positions in it, for which theirs wants another size today
        (folder / "model.safetensors").unlink()
        write_random(folder, pickled=True, separate=separate, max_length=64)
    return theirs


def _blip(folder: Path) -> Answer:
    library = transformers_library()
    text = {"vocab_size": 40, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = library.BlipConfig(text_config=text, vision_config=SHAPE)
    library.BlipForConditionalGeneration(config).save_pretrained(folder)
    return []


# --- timm ---------------------------------------------------------------------------------------


def _timm(folder: Path, name: str, side: int = SIDE, **arguments: Any) -> Answer:
    """Save a model as `push_to_hf_hub` does; 0 for those without an image size of their own."""
    timm, data, hub = (import_peer(f"timm{part}") for part in ("", ".data", ".models._hub"))
    if side:
        arguments["img_size"] = side
    model: Any = timm.create_model(
        name,
        num_classes=CLASSES,
        pretrained_cfg_overlay={"input_size": (3, side or SIDE, side or SIDE)},
        **arguments,
    )
    randomise(model)
    hub.save_for_hf(model, str(folder), model_args=arguments, safe_serialization="both")
    transform = data.create_transform(**data.resolve_data_config(model=model))
    with torch.inference_mode():
        logits: Tensor = model(torch.stack([transform(image) for image in images()]))
    return logits.numpy()

"""Tiny models of images and texts of Hugging Face, with random weights.

CLIP and SigLIP whole: the scores of every pair. VisionEncoderDecoder with TrOCR's and GPT-2's
decoders: the logits of given texts, and what a search writes.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from benchmarks.image_encoders import SHAPE
from benchmarks.image_models import randomise
from benchmarks.peers import transformers_library
from benchmarks.references import stored
from manyheads.decode.beam import beam_search
from manyheads.models.convert.families import IMAGE_TEXT
from manyheads.models.presets import build
from manyheads.train.model_tensors import restore

SEED = 0
WORDS = 12  # in the vocabulary
PAD, START, END = 1, 0, 2
LENGTH = 7
BEAMS = 3


@dataclass(frozen=True)
class ImageTextReference:
    """A model as its library stores it, images, texts, and what it makes of them."""

    kind: str  # a key of IMAGE_TEXT
    settings: Mapping[str, Any]
    tensors: dict[str, Tensor]
    images: Tensor
    tokens: Tensor  # texts, or what a decoder is given
    scores: Tensor  # (image, text), or logits
    searched: dict[str, Tensor]  # by the number of beams: the tokens behind the first, padded

    def difference(self) -> float:
        """Convert the model; return the largest difference, relative to the largest number.

        It is infinite if a search finds something else.
        """
        config, state = IMAGE_TEXT[self.kind](self.settings, self.tensors)
        model: Any = build(config).eval()
        restore(model, state, Path(self.kind))
        with torch.inference_mode():
            found = scores(model, self.images, self.tokens)
        for beams, expected in self.searched.items():
            if search(model, self.images, int(beams)) != expected.tolist():
                return float("inf")
        return ((found - self.scores).abs().max() / self.scores.abs().max()).item()


def scores(model: Any, images: Tensor, tokens: Tensor) -> Tensor:
    """Score every pair, or every next token."""
    if hasattr(model, "scores"):
        found: Tensor = model.scores(*model(images, tokens))
        return found
    logits: Tensor = model(images, tokens)
    return logits


def search(model: Any, images: Tensor, beams: int) -> list[list[int]]:
    """Write texts of a limited length, as rows that are padded."""
    limits = [LENGTH] * len(images)
    ids = {"start": model.config.start, "end": model.config.end}
    found = beam_search(model, images, limits, beams=beams, **ids)
    rows = [best.tokens + [model.config.end] * best.finished for best, *_ in found]
    return [row + [PAD] * (LENGTH - len(row)) for row in rows]


def references() -> dict[str, Callable[[], ImageTextReference]]:
    """List the references; each is built when it is called."""
    wide = {"cross_attention_hidden_size": 8, "d_model": 12}
    sinusoidal = {
        "use_learned_position_embeddings": False,
        "layernorm_embedding": False,
        "activation_function": "relu",
        "scale_embedding": True,
    }
    return {
        "hf-clip": _clip,
        "hf-clip-old-end": lambda: _clip(eos_token_id=2),
        "hf-siglip": _siglip,
        "hf-trocr": lambda: _captioner("ViT", "trocr"),
        "hf-trocr-deit-wide": lambda: _captioner("DeiT", "trocr", **wide),
        "hf-trocr-sinusoidal": lambda: _captioner("ViT", "trocr", **sinusoidal),
        "hf-trocr-projected": lambda: _captioner("ViT", "trocr", d_model=12),
        "hf-gpt2": lambda: _captioner("ViT", "gpt2"),
        "hf-gpt2-projected-untied": lambda: _captioner(
            "DeiT", "gpt2", n_embd=12, tie_word_embeddings=False
        ),
    }


def _images(count: int = 2) -> Tensor:
    return torch.randn(count, 3, 8, 8, generator=torch.Generator().manual_seed(SEED))


def _text(**arguments: Any) -> dict[str, Any]:
    shape = {name: SHAPE[name] for name in ("num_hidden_layers", "num_attention_heads")}
    sizes = {"hidden_size": 12, "intermediate_size": 16, "vocab_size": WORDS}
    specials = {"pad_token_id": PAD, "bos_token_id": START, "eos_token_id": WORDS - 1}
    return shape | sizes | specials | {"max_position_embeddings": LENGTH} | arguments


def _pairs(kind: str, model: Any, tokens: Tensor, mask: Tensor | None) -> ImageTextReference:
    randomise(model)
    with torch.no_grad():
        model.logit_scale.fill_(5.0)  # larger than CLIP lets it become
    settings, tensors = stored(model)
    images = _images()
    given = {} if mask is None else {"attention_mask": mask}
    with torch.inference_mode():
        found = model(pixel_values=images, input_ids=tokens, **given).logits_per_image.clone()
    return ImageTextReference(kind, settings, tensors, images, tokens, found, {})


def _clip(**arguments: Any) -> ImageTextReference:
    library = transformers_library()
    image = library.CLIPVisionConfig(**SHAPE, image_size=8, intermediate_size=16)
    text = library.CLIPTextConfig(**_text(**arguments))
    both = library.CLIPConfig(
        text_config=text.to_dict(), vision_config=image.to_dict(), projection_dim=6
    )
    tokens = torch.tensor([[0, 3, 4, 5, 11, 1], [0, 7, 11, 1, 1, 1], [0, 4, 3, 9, 8, 11]])
    return _pairs("clip", library.CLIPModel(both), tokens, (tokens != PAD).long())


def _siglip() -> ImageTextReference:
    library = transformers_library()
    image = library.SiglipVisionConfig(**SHAPE, image_size=8, intermediate_size=12)
    text = library.SiglipTextConfig(**_text(projection_size=8, hidden_size=12))
    both = library.SiglipConfig(text_config=text.to_dict(), vision_config=image.to_dict())
    tokens = torch.tensor([[3, 4, 5, 11, 1, 1, 1], [7, 11, 1, 1, 1, 1, 1], [4, 3, 9, 8, 5, 6, 11]])
    return _pairs("siglip", library.SiglipModel(both), tokens, None)


def captioner(seer: str, writer: str, **arguments: Any) -> Any:
    """Build a VisionEncoderDecoderModel with random weights."""
    library = transformers_library()
    image = getattr(library, f"{seer}Config")(**SHAPE, image_size=8, intermediate_size=16)
    specials = {"pad_token_id": PAD, "bos_token_id": START, "eos_token_id": END}
    if writer == "trocr":
        text = library.TrOCRConfig(
            **{
                "vocab_size": WORDS,
                "d_model": 8,
                "decoder_layers": 1,
                "decoder_attention_heads": 2,
                "decoder_ffn_dim": 16,
                "max_position_embeddings": LENGTH + 1,
                "decoder_start_token_id": END,
                "is_decoder": True,
                "add_cross_attention": True,
            }
            | specials
            | arguments
        )
    else:
        text = library.GPT2Config(
            **{
                "vocab_size": WORDS,
                "n_embd": 8,
                "n_layer": 1,
                "n_head": 2,
                "n_inner": 16,
                "n_positions": LENGTH + 1,
                "is_decoder": True,
                "add_cross_attention": True,
            }
            | specials
            | arguments
        )
    both = library.VisionEncoderDecoderConfig(encoder=image.to_dict(), decoder=text.to_dict())
    both.decoder_start_token_id, both.pad_token_id, both.eos_token_id = END, PAD, END
    model: Any = library.VisionEncoderDecoderModel(both)
    randomise(model)
    return model


def _captioner(seer: str, writer: str, **arguments: Any) -> ImageTextReference:
    model = captioner(seer, writer, **arguments)
    settings, tensors = stored(model)
    images = _images()
    tokens = torch.tensor([[END, 3, 4, 5, 6], [END, 7, 8, 3, 9]])
    searched = {}
    with torch.inference_mode():
        logits = model(pixel_values=images, decoder_input_ids=tokens).logits.clone()
        for beams in (1, BEAMS):
            found = model.generate(
                images,
                num_beams=beams,
                max_new_tokens=LENGTH,
                do_sample=False,
                decoder_start_token_id=END,
                pad_token_id=PAD,
                eos_token_id=END,
            )[:, 1:]
            rest = torch.full((len(found), LENGTH - found.shape[1]), PAD)
            searched[str(beams)] = torch.cat((found, rest), dim=1)
    kind = "vision-encoder-decoder"
    return ImageTextReference(kind, settings, tensors, images, tokens, logits, searched)


def differences() -> Iterator[tuple[str, float]]:
    """Compare every model."""
    for name, make in references().items():
        yield f"{name}, images and texts", make().difference()


def record(folder: Path) -> Iterator[Path]:
    """Write every model with its answers."""
    folder.mkdir(exist_ok=True)
    for name, make in references().items():
        reference = make()
        path = folder / f"{name}.safetensors"
        weights = {f"weights.{key}": each for key, each in reference.tensors.items()}
        found = {
            "images": reference.images,
            "tokens": reference.tokens,
            "scores": reference.scores,
            **{f"searched.{beams}": each for beams, each in reference.searched.items()},
        }
        about = {
            "kind": reference.kind,
            "version": version("transformers"),
            "torch": torch.__version__,
            "seed": str(SEED),
            "settings": json.dumps(dict(reference.settings)),
        }
        everything = {key: each.contiguous() for key, each in (weights | found).items()}
        save_file(everything, path, about)
        yield path

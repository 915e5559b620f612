"""Tiny image encoders of timm and Hugging Face: CLIP, SigLIP, DINOv2 and DeiT III, random weights.

With a head and without: compared are the final answer, which is logits or the pooled vector, and
the vector of every token.
"""

import functools
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from benchmarks.image_models import PACKAGES, randomise
from benchmarks.peers import import_peer, transformers_library
from benchmarks.references import stored
from manyheads.errors import UsageError
from manyheads.models.convert import families
from manyheads.models.convert import vit_weights as ours
from manyheads.models.convert.families import CONVERTERS
from manyheads.models.convert.names import understand
from manyheads.models.presets import build
from manyheads.models.resize import resize
from manyheads.models.sized_tables import Size

SEED = 0
SHAPE: dict[str, Any] = {
    "patch_size": 4,
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
}
CLASSES = 5


@dataclass(frozen=True)
class EncoderReference:
    """An encoder as its library stores it, images, and what it makes of them."""

    kind: str  # a key of CONVERTERS
    settings: Mapping[str, Any]
    tensors: dict[str, Tensor]
    images: Tensor
    answer: Tensor  # logits, or the pooled vector
    tokens: Tensor

    @property
    def package(self) -> str:
        library = self.kind.partition(" ")[0]
        return PACKAGES.get(library, library)

    def difference(self) -> float:
        """Convert the model; return the largest difference, relative to the largest number."""
        config, state = CONVERTERS[self.kind](self.settings, self.tensors)
        size: Size = (self.images.shape[2], self.images.shape[3])
        if size != (config.height, config.width):
            config, state = resize(config, state, size, self.kind.partition(" ")[0])
        model: Any = build(config).eval()
        model.load_state_dict(state)
        with torch.inference_mode():
            pairs = (
                (model(self.images), self.answer),
                (model.features(self.images), self.tokens),
            )
            return max(((a - b).abs().max() / b.abs().max()).item() for a, b in pairs)


def references() -> dict[str, Callable[[], EncoderReference]]:
    """List the references; each is built when it is called."""
    clip: dict[str, Any] = {
        "pre_norm": True,
        "norm_layer": functools.partial(nn.LayerNorm, eps=1e-5),
        "act_layer": "quick_gelu",
    }
    siglip: dict[str, Any] = {"class_token": False, "act_layer": "gelu_tanh"}
    dino: dict[str, Any] = {"init_values": 1e-5, "num_classes": 0}
    dinos: dict[str, Any] = {"reg_tokens": 2, "no_embed_class": True} | dino
    return {
        "timm-clip": lambda: _timm(**clip),
        "timm-siglip": lambda: _timm(**siglip, global_pool="map", num_classes=0, mlp_ratio=3),
        "timm-siglip-mean": lambda: _timm(**siglip, global_pool="avg", fc_norm=False),
        "timm-dinov2": lambda: _timm(**dino),
        "timm-dinov2-registers": lambda: _timm(**dinos),
        "timm-dinov2-resized": lambda: _timm(made_for=(16, 16), **dinos),
        "timm-dinov2-swiglu": lambda: _timm(swiglu=True, **dinos),
        "timm-deit3": lambda: _timm(init_values=1e-6, no_embed_class=True),
        "timm-registers-mean": lambda: _timm(class_token=False, reg_tokens=2, global_pool="avg"),
        "hf-clip": lambda: _clip("CLIPVisionModel"),
        "hf-clip-projection": lambda: _clip("CLIPVisionModelWithProjection"),
        "hf-clip-resized": lambda: _clip("CLIPVisionModel", size=(12, 8)),
        "hf-clip-classifier": lambda: _clip("CLIPForImageClassification"),
        "hf-siglip": lambda: _siglip("SiglipVisionModel"),
        "hf-siglip-resized": lambda: _siglip("SiglipVisionModel", size=(12, 8)),
        "hf-siglip-mean": lambda: _siglip("SiglipVisionModel", vision_use_head=False),
        "hf-siglip-classifier": lambda: _siglip("SiglipForImageClassification"),
        "hf-dinov2": lambda: _dino("Dinov2Model"),
        "hf-dinov2-resized": lambda: _dino("Dinov2Model", size=(12, 20)),
        "hf-dinov2-swiglu": lambda: _dino("Dinov2ForImageClassification", use_swiglu_ffn=True),
        "hf-dinov2-registers": lambda: _dino("Dinov2WithRegistersForImageClassification"),
        "hf-dinov2-registers-resized": lambda: _dino("Dinov2WithRegistersModel", size=(4, 12)),
        "hf-vit-encoder": lambda: _vit("ViTModel"),
        "hf-deit-encoder": lambda: _vit("DeiTModel"),
        "hf-deit-one-head": lambda: _vit("DeiTForImageClassification"),
    }


def _images(size: Size) -> Tensor:
    return torch.randn(2, 3, *size, generator=torch.Generator().manual_seed(SEED))


# --- timm ---------------------------------------------------------------------------------------


def _timm(made_for: Size = (8, 12), *, swiglu: bool = False, **arguments: Any) -> EncoderReference:
    size = (8, 12)
    vits = import_peer("timm.models.vision_transformer")
    shape: dict[str, Any] = {
        "patch_size": 4,
        "embed_dim": 8,
        "depth": 1,
        "num_heads": 2,
        "mlp_ratio": 2,
    }
    shape |= {"num_classes": CLASSES} | arguments
    if swiglu:
        shape |= {"mlp_layer": import_peer("timm.layers").SwiGLUPacked, "act_layer": "silu"}
    model = randomise(vits.VisionTransformer(img_size=made_for, **shape))
    asked = vits.VisionTransformer(img_size=made_for, **shape, dynamic_img_size=True).eval()
    asked.load_state_dict(model.state_dict())
    settings: dict[str, Any] = {"img_size": made_for, "num_heads": 2}
    said = ("act_layer", "global_pool", "pre_norm")
    settings |= {key: arguments[key] for key in said if key in arguments}
    settings |= {"norm_eps": 1e-5} if "norm_layer" in arguments else {}
    tensors = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    images = _images(size)
    with torch.inference_mode():
        answer, tokens = asked(images).clone(), asked.forward_features(images).clone()
    return EncoderReference("timm vit", settings, tensors, images, answer, tokens)


def misread() -> float:
    """Return the share of timm's architectures that are accepted by name and read otherwise."""
    timm = import_peer("timm")
    count = wrong = 0
    for name in timm.list_models(["vit*", "deit*"]):
        try:
            family, said = understand(name, families.TIMM)
        except UsageError:
            continue
        if family.convert not in (ours.vit_of_timm, ours.deit_of_timm):
            continue
        with torch.device("meta"):
            model = timm.create_model(name)
        count += 1
        wrong += _reads(model) != _says(said, model)
    return wrong / count


def _reads(model: Any) -> tuple[object, ...]:
    block = model.blocks[0]
    activation = type(block.mlp.act).__name__
    kinds = type(block).__name__, type(block.attn).__name__
    return (
        model.embed_dim,
        block.attn.num_heads,
        block.norm1.eps,
        activation,
        model.global_pool,
        kinds,
    )


def _says(said: Mapping[str, Any], model: Any) -> tuple[object, ...]:
    activations = {"quick_gelu": "QuickGELU", "gelu_tanh": "GELUTanh"}
    activation = activations.get(said.get("act_layer", ""), "GELU")
    if hasattr(model.blocks[0].mlp, "gate_last"):  # which the tensors show
        activation = "SiLU"
    state = model.state_dict()
    shown = "cls_token" in state, "fc_norm.weight" in state, "attn_pool.latent" in state
    pool = ours.pool_name(said.get("global_pool"), *shown)
    name = {"class": "token", "map": "map", "mean": "avg", "patch-mean": "avg"}[pool]
    eps = said.get("norm_eps", 1e-6)
    kinds = "Block", "Attention"
    return said["embed_dim"], said["num_heads"], eps, activation, name, kinds


# --- Hugging Face -------------------------------------------------------------------------------


def _hf(model: Any, size: Size, inner: str = "", **asked: Any) -> EncoderReference:
    randomise(model)
    settings, tensors = stored(model)
    images = _images(size)
    with torch.inference_mode():
        found = model(pixel_values=images, **asked)
        within = getattr(model, inner) if inner else model
        hidden = within(pixel_values=images, **asked).last_hidden_state.clone()
    answers = ("logits", "image_embeds", "pooler_output")
    given = (getattr(found, name, None) for name in answers)
    answer = next((each for each in given if each is not None), hidden.mean(dim=1))
    kind = f"hf {settings['model_type']}"
    return EncoderReference(kind, settings, tensors, images, answer.clone(), hidden)


def _clip(name: str, size: Size = (8, 8)) -> EncoderReference:
    library = transformers_library()
    image = library.CLIPVisionConfig(**SHAPE, image_size=8, intermediate_size=16, projection_dim=6)
    asked: dict[str, Any] = {"interpolate_pos_encoding": True} if size != (8, 8) else {}
    if name != "CLIPForImageClassification":
        inner = "vision_model" if name.endswith("Projection") else ""
        return _hf(getattr(library, name)(image), size, inner, **asked)
    both = library.CLIPConfig(vision_config=image.to_dict(), num_labels=CLASSES)
    return _hf(library.CLIPForImageClassification(both), size, "vision_model", **asked)


def _siglip(name: str, size: Size = (8, 8), **arguments: Any) -> EncoderReference:
    library = transformers_library()
    image = library.SiglipVisionConfig(**SHAPE, image_size=8, intermediate_size=12, **arguments)
    asked: dict[str, Any] = {"interpolate_pos_encoding": True} if size != (8, 8) else {}
    if name == "SiglipVisionModel":
        return _hf(library.SiglipVisionModel(image), size, **asked)
    both = library.SiglipConfig(vision_config=image.to_dict(), num_labels=CLASSES)
    return _hf(library.SiglipForImageClassification(both), size, "vision_model", **asked)


def _dino(name: str, size: Size = (8, 8), **arguments: Any) -> EncoderReference:
    library = transformers_library()
    registers = "WithRegisters" in name
    kind = library.Dinov2WithRegistersConfig if registers else library.Dinov2Config
    config = kind(**SHAPE, image_size=8, mlp_ratio=2, num_labels=CLASSES, **arguments)
    inner = "" if name.endswith("Model") else kind.model_type
    return _hf(getattr(library, name)(config), size, inner)


def _vit(name: str) -> EncoderReference:
    library = transformers_library()
    kind = library.ViTConfig if name.startswith("ViT") else library.DeiTConfig
    config = kind(**SHAPE, image_size=(8, 12), intermediate_size=16, num_labels=CLASSES)
    return _hf(getattr(library, name)(config), (8, 12), "" if name.endswith("Model") else "deit")


def differences() -> Iterator[tuple[str, float]]:
    """Compare every encoder, and how every name of timm's is understood."""
    for name, make in references().items():
        yield name, make().difference()
    yield "timm's architectures by name", misread()


def record(folder: Path) -> Iterator[Path]:
    """Write every encoder with its answers."""
    folder.mkdir(exist_ok=True)
    for name, make in references().items():
        reference = make()
        path = folder / f"{name}.safetensors"
        weights = {f"weights.{key}": each.contiguous() for key, each in reference.tensors.items()}
        found = {
            "images": reference.images,
            "answer": reference.answer,
            "tokens": reference.tokens,
        }
        about = {
            "kind": reference.kind,
            "version": version(reference.package),
            "torch": torch.__version__,
            "seed": str(SEED),
            "settings": json.dumps(dict(reference.settings)),
        }
        save_file(weights | {key: each.contiguous() for key, each in found.items()}, path, about)
        yield path

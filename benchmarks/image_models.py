"""Tiny classifiers of other libraries beside ViT, and ViTs at other sizes than their own.

Every weight and every statistic of a batch norm is random, so that nothing can hide a mistake.
"""

import functools
import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from benchmarks.peers import import_peer, transformers_library
from manyheads.models.convert.families import CONVERTERS
from manyheads.models.presets import build
from manyheads.models.resize import resize
from manyheads.models.sized_tables import Size

SEED = 0
PACKAGES = {"hf": "transformers", "google": "timm"}  # where it is not the library's own name


@dataclass(frozen=True)
class ImageReference:
    """A model as its library stores it, images and the answer."""

    kind: str  # a key of CONVERTERS
    settings: Mapping[str, Any]
    tensors: dict[str, Tensor]
    images: Tensor
    logits: Tensor
    resized: bool = False  # whether the images have another size than the model was made for

    @property
    def library(self) -> str:
        return self.kind.partition(" ")[0]

    @property
    def version(self) -> str:
        return version(PACKAGES.get(self.library, self.library))

    def difference(self) -> float:
        """Convert the model; return the largest difference, relative to the largest logit."""
        logits = answer(self.kind, self.settings, self.tensors, self.images, self.resized)
        return ((logits - self.logits).abs().max() / self.logits.abs().max()).item()


@torch.inference_mode()
def answer(
    kind: str,
    settings: Mapping[str, Any],
    tensors: Mapping[str, Tensor],
    images: Tensor,
    resized: bool,
) -> Tensor:
    """Return what the converted model says."""
    config, state = CONVERTERS[kind](settings, tensors)
    if resized:
        size: Size = (images.shape[2], images.shape[3])
        config, state = resize(config, state, size, kind.partition(" ")[0])
    model = build(config).eval()
    model.load_state_dict(state)
    logits: Tensor = model(images)
    return logits


# Small enough to be kept with the tests.
RECORDED = (
    "timm-vit-patch-mean",
    "timm-vit-mean-normed-after",
    "timm-vit-resized",
    "timm-hybrid",
    "timm-hybrid-stem-only",
    "timm-resnet-basic",
    "timm-resnet-bottleneck",
    "timm-bit-odd",
    "timm-vgg-batch-norm-large",
    "hf-vit-resized",
    "hf-resnet-basic",
    "hf-resnet-bottleneck",
    "hf-bit",
    "torchvision-vit-representation",
    "torchvision-vit-resized",
    "torchvision-vgg-batch-norm-small",
    "google-vit",
    "google-hybrid",
    "google-bit",
)


def references() -> dict[str, Callable[[], ImageReference]]:
    """List the references; each is built when it is called."""
    return {
        "timm-vit-patch-mean": lambda: _timm_vit((8, 12), global_pool="avg"),
        "timm-vit-mean-normed-after": lambda: _timm_vit(
            (8, 12), global_pool="avg", class_token=False
        ),
        "timm-vit-resized": lambda: _timm_vit((16, 12), made_for=(8, 12)),
        "timm-vit-resized-smaller": lambda: _timm_vit((8, 8), made_for=(16, 24)),
        "timm-hybrid": lambda: _timm_hybrid((16, 24), (1, 1)),
        "timm-hybrid-stem-only": lambda: _timm_hybrid((32, 48), (), patch=2),
        "timm-hybrid-four-stages": lambda: _timm_hybrid((64, 32), (1, 1, 1, 1)),
        "timm-resnet-basic": lambda: _timm_resnet((16, 24), "BasicBlock"),
        "timm-resnet-bottleneck": lambda: _timm_resnet((17, 30), "Bottleneck"),
        "timm-resnet-grouped": lambda: _timm_resnet(
            (16, 24), "Bottleneck", cardinality=4, base_width=16
        ),
        "timm-bit": lambda: _timm_bit((16, 24)),
        "timm-bit-odd": lambda: _timm_bit((19, 33)),
        "timm-vgg": lambda: _timm_vgg((224, 224), normed=False),
        "timm-vgg-batch-norm-large": lambda: _timm_vgg((36, 32), normed=True, halvings=2),
        "timm-vgg-small": lambda: _timm_vgg((32, 40), normed=False),
        "hf-vit-resized": lambda: _hf_vit((16, 12), made_for=(8, 8)),
        "hf-vit-resized-smaller": lambda: _hf_vit((8, 12), made_for=(16, 16)),
        "hf-resnet-basic": lambda: _hf_resnet((16, 24), "basic"),
        "hf-resnet-bottleneck": lambda: _hf_resnet((17, 30), "bottleneck"),
        "hf-bit": lambda: _hf_bit((16, 24)),
        "torchvision-vit": lambda: _torchvision_vit(8),
        "torchvision-vit-representation": lambda: _torchvision_vit(8, representation_size=6),
        "torchvision-vit-resized": lambda: _torchvision_vit(16, made_for=8),
        "torchvision-resnet-18-wide": lambda: _torchvision_resnet((32, 48), "BasicBlock"),
        "torchvision-resnet-grouped": lambda: _torchvision_resnet(
            (33, 40), "Bottleneck", groups=4, width_per_group=8
        ),
        "torchvision-vgg": lambda: _torchvision_vgg((224, 224), normed=False),
        "torchvision-vgg-batch-norm-small": lambda: _torchvision_vgg((32, 40), normed=True),
        "google-vit": lambda: _google_vit((8, 8), hybrid=False),
        "google-hybrid": lambda: _google_vit((32, 32), hybrid=True),
        "google-bit": lambda: _google_bit((16, 24)),
    }


def randomise(model: nn.Module) -> nn.Module:
    """Draw every parameter and statistic anew, of a size that keeps answers finite."""
    generator = torch.Generator().manual_seed(SEED)
    with torch.no_grad():
        for parameter in model.parameters():
            scale = parameter[0].numel() ** -0.5 if parameter.ndim > 1 else 0.2
            parameter.copy_(scale * torch.randn(parameter.shape, generator=generator))
        for part in model.modules():
            if isinstance(part, nn.LayerNorm | nn.GroupNorm | nn.BatchNorm2d):
                part.weight.add_(1.0)
        for name, buffer in model.named_buffers():
            if name.endswith("running_mean"):
                buffer.copy_(0.2 * torch.randn(buffer.shape, generator=generator))
            if name.endswith("running_var"):
                buffer.copy_(0.5 + torch.rand(buffer.shape, generator=generator))
    return model.eval()


def _images(size: Size, channels: int = 3) -> Tensor:
    return torch.randn(2, channels, *size, generator=torch.Generator().manual_seed(SEED))


def _refer(
    kind: str,
    model: nn.Module,
    size: Size,
    settings: Mapping[str, Any],
    *,
    channels: int = 3,
    asked: nn.Module | None = None,
    resized: bool = False,
) -> ImageReference:
    """Store a model and its answer, or that of `asked`, which is the same model for a size."""
    images = _images(size, channels)
    tensors = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with torch.inference_mode():
        logits = (asked or model)(images).clone()
    return ImageReference(kind, settings, tensors, images, logits, resized)


# --- timm ---------------------------------------------------------------------------------------


def _timm_vit(size: Size, made_for: Size | None = None, **arguments: Any) -> ImageReference:
    height, width = made_for or size
    settings: dict[str, Any] = {"img_size": (height, width), "num_heads": 2}
    classes = import_peer("timm.models.vision_transformer").VisionTransformer
    shared = settings | {
        "patch_size": 4,
        "embed_dim": 8,
        "depth": 2,
        "mlp_ratio": 2,
        "num_classes": 5,
    }
    model = randomise(classes(**shared, **arguments))
    if made_for is None:
        return _refer("timm vit", model, size, settings)
    asked = classes(**shared, **arguments, dynamic_img_size=True).eval()
    asked.load_state_dict(model.state_dict())
    return _refer("timm vit", model, size, settings, asked=asked, resized=True)


def _timm_backbone(depths: tuple[int, ...]) -> nn.Module:
    v2, layers = import_peer("timm.models.resnetv2"), import_peer("timm.layers")
    parts = {
        "conv_layer": functools.partial(layers.StdConv2dSame, eps=1e-8),
        "norm_layer": functools.partial(layers.GroupNormAct, num_groups=4),
        "stem_type": "same",
        "preact": False,
    }
    if not depths:
        stem: nn.Module = v2.create_resnetv2_stem(3, 8, **parts)
        return stem
    channels = tuple(32 * 2**stage for stage in range(len(depths)))
    built: nn.Module = v2.ResNetV2(
        depths, channels=channels, stem_chs=8, num_classes=0, global_pool="", **parts
    )
    return built


def _timm_hybrid(size: Size, depths: tuple[int, ...], patch: int = 1) -> ImageReference:
    layers = import_peer("timm.layers")
    settings = {"img_size": size, "num_heads": 2, "num_groups": 4}
    model = import_peer("timm.models.vision_transformer").VisionTransformer(
        img_size=size,
        patch_size=patch,
        embed_dim=8,
        depth=1,
        num_heads=2,
        num_classes=5,
        embed_layer=functools.partial(layers.HybridEmbed, backbone=_timm_backbone(depths)),
    )
    return _refer("timm vit", randomise(model), size, settings)


def _timm_resnet(size: Size, block: str, **arguments: Any) -> ImageReference:
    resnets = import_peer("timm.models.resnet")
    model = resnets.ResNet(
        getattr(resnets, block),
        [1, 1, 1, 2],
        channels=(4, 4, 8, 8),
        num_classes=5,
        in_chans=1,
        **arguments,
    )
    return _refer("timm resnet", randomise(model), size, {"img_size": size}, channels=1)


def _timm_bit(size: Size) -> ImageReference:
    layers = import_peer("timm.layers")
    model = import_peer("timm.models.resnetv2").ResNetV2(
        [1, 2],
        channels=(32, 64),
        stem_chs=8,
        num_classes=5,
        stem_type="fixed",
        conv_layer=functools.partial(layers.StdConv2d, eps=1e-8),
        norm_layer=functools.partial(layers.GroupNormAct, num_groups=4),
    )
    return _refer("timm bit", randomise(model), size, {"img_size": size, "num_groups": 4})


def _timm_vgg(size: Size, *, normed: bool, halvings: int = 5) -> ImageReference:
    vggs, layers = import_peer("timm.models.vgg"), import_peer("timm.layers")
    shape = [4, 4, "M", 8, "M", 4, "M", 4, "M", 4, "M"][: 2 * halvings + 1]
    with torch.device("meta"):  # its classifier is 4096 wide: made anew below
        model = vggs.VGG(shape, 5, norm_layer=nn.BatchNorm2d if normed else None)
    model.features = vggs.VGG(shape, 5, norm_layer=nn.BatchNorm2d if normed else None).features
    channels = [value for value in shape if isinstance(value, int)][-1]
    model.pre_logits = vggs.ConvMlp(channels, 8, 7)
    model.head = layers.ClassifierHead(8, 5)
    return _refer("timm vgg", randomise(model), size, {"img_size": size})


# --- Hugging Face -------------------------------------------------------------------------------


class _Logits(nn.Module):
    """Their model, answering with a tensor."""

    def __init__(self, model: nn.Module, **arguments: Any) -> None:
        super().__init__()
        self.model = model
        self.arguments = arguments

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.model(pixel_values=images, **self.arguments).logits
        return logits


def _hf(
    kind: str, model: Any, size: Size, *, resized: bool = False, **asked: Any
) -> ImageReference:
    randomise(model)
    with tempfile.TemporaryDirectory() as name:  # names in files are not those in memory
        model.save_pretrained(name)
        folder = Path(name)
        settings = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        tensors = {name: t.clone() for name, t in load_file(folder / "model.safetensors").items()}
    images = _images(size)
    with torch.inference_mode():
        logits = _Logits(model, **asked)(images).clone()
    return ImageReference(kind, settings, tensors, images, logits, resized)


def _hf_vit(size: Size, made_for: Size) -> ImageReference:
    library = transformers_library()
    shape = library.ViTConfig(
        image_size=made_for[0],
        patch_size=4,
        num_labels=5,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
    )
    model = library.ViTForImageClassification(shape)
    return _hf("hf vit", model, size, resized=True, interpolate_pos_encoding=True)


def _hf_resnet(size: Size, layer: str) -> ImageReference:
    library = transformers_library()
    shape = library.ResNetConfig(
        embedding_size=4, hidden_sizes=[8, 16], depths=[1, 2], layer_type=layer, num_labels=5
    )
    return _hf("hf resnet", library.ResNetForImageClassification(shape), size)


def _hf_bit(size: Size) -> ImageReference:
    library = transformers_library()
    shape = library.BitConfig(
        embedding_size=8, hidden_sizes=[32, 64], depths=[1, 2], num_groups=4, num_labels=5
    )
    return _hf("hf bit", library.BitForImageClassification(shape), size)


# --- torchvision --------------------------------------------------------------------------------


def _torchvision_vit(side: int, made_for: int | None = None, **arguments: Any) -> ImageReference:
    vits = import_peer("torchvision.models.vision_transformer")
    shape = {"patch_size": 4, "num_layers": 2, "num_heads": 2, "hidden_dim": 8, "mlp_dim": 16}
    shape |= {"num_classes": 5} | arguments
    model = randomise(vits.VisionTransformer(image_size=made_for or side, **shape))
    settings = {"num_heads": 2, "img_size": made_for or side}
    if made_for is None:
        return _refer("torchvision vit", model, (side, side), settings)
    asked = vits.VisionTransformer(image_size=side, **shape).eval()
    state = dict(model.state_dict())
    asked.load_state_dict(vits.interpolate_embeddings(side, 4, state))
    return _refer("torchvision vit", model, (side, side), settings, asked=asked, resized=True)


def _torchvision_resnet(size: Size, block: str, **arguments: Any) -> ImageReference:
    resnets = import_peer("torchvision.models.resnet")
    model = resnets.ResNet(getattr(resnets, block), [1, 1, 1, 1], num_classes=5, **arguments)
    return _refer("torchvision resnet", randomise(model), size, {})


def _torchvision_vgg(size: Size, *, normed: bool) -> ImageReference:
    vggs = import_peer("torchvision.models.vgg")
    shape = [4, 4, "M", 8, "M", 4, "M", 4, "M", 4, "M"]
    with torch.device("meta"):
        model = vggs.VGG(nn.Identity(), num_classes=5, init_weights=False)
    model.features = vggs.make_layers(shape, batch_norm=normed)
    model.classifier = nn.Sequential(  # theirs, less wide
        nn.Linear(4 * 7 * 7, 8),
        nn.ReLU(),
        nn.Dropout(),
        nn.Linear(8, 8),
        nn.ReLU(),
        nn.Dropout(),
        nn.Linear(8, 5),
    )
    return _refer("torchvision vgg", randomise(model), size, {})


# --- Google, as timm reads its files ------------------------------------------------------------


def _google(arrays: Mapping[str, np.ndarray], model: Any, size: Size, **settings: Any) -> Any:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "weights.npz"
        np.savez(path, **arrays)  # type: ignore[arg-type]
        model.eval().load_pretrained(str(path))
    tensors = {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}
    images = _images(size)
    with torch.inference_mode():
        logits = model(images).clone()
    return ImageReference("google", settings, tensors, images, logits)


class _Arrays(dict[str, np.ndarray]):
    """Random arrays by their names in Google's files."""

    def __init__(self) -> None:
        super().__init__()
        self.generator = np.random.default_rng(SEED)

    def draw(self, name: str, *shape: int, mean: float = 0.0) -> None:
        fan = max(int(np.prod(shape[:-1])), 1)
        values = mean + self.generator.standard_normal(shape) * min(fan**-0.5, 0.3)
        self[name] = values.astype(np.float32)

    def linear(self, name: str, inputs: int, outputs: int) -> None:
        self.draw(f"{name}/kernel", inputs, outputs)
        self.draw(f"{name}/bias", outputs)

    def norm(self, name: str, *shape: int, weight: str = "scale", bias: str = "bias") -> None:
        self.draw(f"{name}/{weight}", *shape, mean=1.0)
        self.draw(f"{name}/{bias}", *shape)


def _google_vit(size: Size, *, hybrid: bool) -> ImageReference:
    dim, heads, patch = 8, 2, 1 if hybrid else 4
    arrays = _Arrays()
    grid = 4 if hybrid else 2
    arrays.draw("cls", 1, 1, dim)
    arrays.draw("Transformer/posembed_input/pos_embedding", 1, 1 + grid * grid, dim)
    channels = 64 if hybrid else 3
    arrays.draw("embedding/kernel", patch, patch, channels, dim)
    arrays.draw("embedding/bias", dim)
    arrays.norm("Transformer/encoder_norm", dim)
    arrays.linear("head", dim, 5)
    block = "Transformer/encoderblock_0"
    arrays.norm(f"{block}/LayerNorm_0", dim)
    arrays.norm(f"{block}/LayerNorm_2", dim)
    arrays.linear(f"{block}/MlpBlock_3/Dense_0", dim, 4 * dim)
    arrays.linear(f"{block}/MlpBlock_3/Dense_1", 4 * dim, dim)
    for part in ("query", "key", "value"):
        name = f"{block}/MultiHeadDotProductAttention_1/{part}"
        arrays.draw(f"{name}/kernel", dim, heads, dim // heads)
        arrays.draw(f"{name}/bias", heads, dim // heads)
    arrays.draw(f"{block}/MultiHeadDotProductAttention_1/out/kernel", heads, dim // heads, dim)
    arrays.draw(f"{block}/MultiHeadDotProductAttention_1/out/bias", dim)
    arguments: dict[str, Any] = {}
    if hybrid:
        arrays.draw("conv_root/kernel", 7, 7, 3, 8)
        arrays.norm("gn_root", 1, 1, 1, 8)
        inputs = 8
        for stage, width in enumerate((8, 16), start=1):
            unit = f"block{stage}/unit1"
            shapes = ((1, inputs, width), (3, width, width), (1, width, 4 * width))
            for number, (side, given, made) in enumerate(shapes, start=1):
                arrays.draw(f"{unit}/conv{number}/kernel", side, side, given, made)
                arrays.norm(f"{unit}/gn{number}", 1, 1, 1, made)
            arrays.draw(f"{unit}/conv_proj/kernel", 1, 1, inputs, 4 * width)
            arrays.norm(f"{unit}/gn_proj", 1, 1, 1, 4 * width)
            inputs = 4 * width
        embed = import_peer("timm.layers").HybridEmbed
        arguments["embed_layer"] = functools.partial(embed, backbone=_timm_backbone((1, 1)))
    model = import_peer("timm.models.vision_transformer").VisionTransformer(
        img_size=size,
        patch_size=patch,
        embed_dim=dim,
        depth=1,
        num_heads=heads,
        num_classes=5,
        **arguments,
    )
    reference: ImageReference = _google(arrays, model, size, num_groups=4)
    return reference


def _google_bit(size: Size) -> ImageReference:
    arrays = _Arrays()
    arrays.draw("resnet/root_block/standardized_conv2d/kernel", 7, 7, 3, 8)
    arrays.norm("resnet/group_norm", 64, weight="gamma", bias="beta")
    arrays.draw("resnet/head/conv2d/kernel", 1, 1, 64, 5)
    arrays.draw("resnet/head/conv2d/bias", 5)
    inputs = 8
    for stage, width in enumerate((8, 16), start=1):
        for index in range(1, stage + 1):
            unit = f"resnet/block{stage}/unit{index:02d}"
            shapes = {
                "a": (1, inputs, width),
                "b": (3, width, width),
                "c": (1, width, 4 * width),
            }
            for part, (side, given, made) in shapes.items():
                kernel = f"{unit}/{part}/standardized_conv2d/kernel"
                arrays.draw(kernel, side, side, given, made)
                arrays.norm(f"{unit}/{part}/group_norm", given, weight="gamma", bias="beta")
            if index == 1:
                kernel = f"{unit}/a/proj/standardized_conv2d/kernel"
                arrays.draw(kernel, 1, 1, inputs, 4 * width)
            inputs = 4 * width
    layers = import_peer("timm.layers")
    model = import_peer("timm.models.resnetv2").ResNetV2(
        [1, 2],
        channels=(32, 64),
        stem_chs=8,
        num_classes=5,
        stem_type="fixed",
        conv_layer=functools.partial(layers.StdConv2d, eps=1e-8),
        norm_layer=functools.partial(layers.GroupNormAct, num_groups=4),
    )
    reference: ImageReference = _google(arrays, model, size, num_groups=4)
    return reference

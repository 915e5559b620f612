"""Preset sizes, counted exactly, with the papers' own figures beside."""

import inspect
import sys
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
import torch

from manyheads.errors import UsageError
from manyheads.models import presets
from manyheads.models.mlp import MlpConfig
from manyheads.models.model_config import ModelConfig
from manyheads.models.presets import PRESETS, build, preset, register_preset
from manyheads.models.resize import at_size, reads_images
from manyheads.models.seq2seq import Seq2SeqConfig
from manyheads.models.swin import SwinConfig
from manyheads.models.transformer import Transformer, TransformerConfig
from manyheads.models.vit import Vit, VitConfig
from manyheads.project import base_recipe as recipe_module
from manyheads.project.base_recipe import read_recipe

# For transformers: one tied vocabulary of 37,000. For ViTs: 224 x 224 pixels, 1000 classes.
#
# Base, by hand, with d = 512 and f = 2048:
#   embedding        37,000 d                                             18,944,000
#   encoder layer    attention 4d^2 + 4d, feed-forward 2df + f + d, 2 norms of 2d
#                    1,050,624 + 2,099,712 + 2,048 = 3,152,384; six of them 18,914,304
#   decoder layer    two attentions, feed-forward, 3 norms
#                    2,101,248 + 2,099,712 + 3,072 = 4,204,032; six of them 25,224,192
#                                                                   sum 63,082,496
# The paper says 65M for base and 213M for big. It does not say how it counts; its vocabulary is
# "about 37000" and its sinusoids have no parameters, so the difference stays the paper's own.
# The ViT paper rounds and counts a head of another size (JFT has 18k classes, ImageNet-21k 21k).
TABLE = [
    # preset              parameters   the paper's figure
    ("transformer-tiny", 6_061_056, None),
    ("transformer-small", 16_844_800, None),
    ("transformer-base", 63_082_496, "65M"),
    ("transformer-big", 214_245_376, "213M"),
    ("transformer-deep", 60_976_640, None),
    ("seq2seq-rnn", 8_434_368, None),
    ("seq2seq-lstm", 8_461_504, None),
    ("seq2seq-gru", 8_447_040, None),
    ("seq2seq-lstm-attention", 8_440_512, None),
    ("seq2seq-gru-attention", 8_463_808, None),
    ("gpt-tiny", 6_963_072, None),
    ("bert-tiny", 4_436_992, None),
    ("gpt2-small", 124_439_808, None),
    ("bert-base", 108_888_576, "110M"),
    # Captioner: a CCT without pool and head 1,347,648, the bridge 192 * 192 + 192, two decoder
    # layers of 445,632 (counted as above) and a norm of 384, the embedding 8,000 * 192.
    ("captioner-tiny", 3_812_352, None),
    ("captioner-vit-ti", 10_782_656, None),
    ("matcher-tiny", 3_576_833, None),
    ("matcher-vit-ti", 10_846_913, None),
    ("tagger-rnn", 322_562, None),
    ("tagger-gru", 454_658, None),
    ("tagger-lstm", 520_706, None),
    ("tagger-encoder", 521_474, None),
    ("vit-ti/16", 5_717_416, "5.7M"),
    ("vit-s/16", 22_050_664, "22.1M"),
    ("vit-b/16", 86_567_656, "86M"),
    ("vit-b/32", 88_224_232, None),
    ("vit-l/16", 304_326_632, "307M"),
    ("vit-h/14", 632_045_800, "632M"),
    # With a second token, its position and its head.
    ("deit-ti/16", 5_910_800, "6M"),
    ("deit-s/16", 22_436_432, "22M"),
    ("deit-b/16", 87_338_192, "87M"),
    # One less than the authors' code, whose sequence pooling has a bias that softmax cancels.
    ("cct-2/3x2", 283_722, "0.28M"),
    ("cct-4/3x2", 482_122, "0.48M"),
    ("cct-6/3x1", 3_233_802, None),
    ("cct-6/3x2", 3_326_922, "3.33M"),
    ("cct-7/3x1", 3_760_138, "3.76M"),
    ("cct-7/3x2", 3_853_258, "3.85M"),
    ("vit-lite-7/4", 3_716_874, "3.72M"),
    ("compact-vit-7/4", 3_716_618, "3.72M"),
    # Shifted and plain windows have the same parameters; a table of 13 x 13 distances a head.
    ("swin-t", 28_288_354, "29M"),
    ("swin-s", 49_606_258, "50M"),
    ("swin-b", 87_768_224, "88M"),
    ("cvt-13", 19_997_480, "20M"),
    ("cvt-21", 31_622_696, "32M"),
    # The paper does not tell the widths of the stem's and the squeezed layers.
    ("coatnet-0", 24_446_228, "25M"),
    ("coatnet-1", 41_635_184, "42M"),
    ("coatnet-2", 73_635_144, "75M"),
    ("coatnet-3", 164_605_432, "168M"),
    ("hybrid-r-ti", 6_337_704, None),
    ("hybrid-r26-s", 36_431_912, None),
    ("hybrid-r50-b", 98_659_112, None),
    ("hybrid-r50-l", 328_994_856, None),
    # By hand, with d = 192: the stem's 313,632 weights and norms of 832, columns of 2 d^2 + d,
    # three layers of 297,024 each, a norm of 2 d, an output of 256 (d + 1)
    ("line-reader", 1_329_248, None),
    ("mlp", 1_841_162, None),  # by hand: 512 (3072 + 512) + 10 * 512 weights, 1034 biases
    ("vgg-16", 138_357_544, "138M"),
    ("vgg-16-bn", 138_365_992, None),  # two numbers more for each of 4224 channels
    # By hand: 9 (24 * 64 + 64^2 + 64 * 256 + 3 * 256^2) weights of convolutions, norms of
    # 2 (24 + 2 (64 + 256 + 256)), a head of 2,570; the 12 * 24 first weights do not learn
    ("airbench94", 1_972_538, "1.97M"),
    # torchvision's own counts of its weights, to the unit; the papers print none for these.
    ("resnet-18", 11_689_512, None),
    ("resnet-34", 21_797_672, None),
    ("resnet-50", 25_557_032, None),
    ("resnet-101", 44_549_160, None),
    ("resnet-152", 60_192_808, None),
    # With a convolution where the paper's shortcut pads channels (option A): 1% more at most.
    ("resnet-20", 272_474, "0.27M"),
    ("resnet-32", 466_906, "0.46M"),
    ("resnet-56", 855_770, "0.85M"),
    # timm's counts, in millions: 25.55, 217.32, 44.54, 387.93, 236.34, 936.53
    ("bit-50x1", 25_549_352, None),
    ("bit-50x3", 217_319_080, None),
    ("bit-101x1", 44_541_480, None),
    ("bit-101x3", 387_934_888, None),
    ("bit-152x2", 236_335_208, None),
    ("bit-152x4", 936_533_224, None),
]


@pytest.mark.parametrize(("name", "parameters", "paper"), TABLE, ids=[row[0] for row in TABLE])
def test_parameter_counts(name: str, parameters: int, paper: str | None) -> None:
    """V8: exact counts, built without memory; close to what the papers print."""
    with torch.device("meta"):
        model = build(preset(name))
    counted = sum(parameter.numel() for parameter in model.parameters())
    print(f"{name:18} {counted:12,} parameters; the paper says {paper or 'nothing'}")
    assert counted == parameters
    if paper:
        assert counted / 1e6 == pytest.approx(float(paper.rstrip("M")), rel=0.031)


def test_every_preset_is_counted() -> None:
    """V8: a preset that is added belongs in the table."""
    named = {name if name in PRESETS else name.partition("/")[0] for name, *_ in TABLE}
    assert named == set(PRESETS)


def test_one_budget_from_the_rnn_to_the_transformer() -> None:
    """T1-T4: with one vocabulary of 8,000, 2.875M parameters, within 2% of each other.

    With d = 192, h = 320, and LSTM gates of 4 rows a unit, by hand:
      embedding        8,000 d                                              1,536,000
      encoder          two directions of h/2: 8 (h/2) (d + h/2 + 2)           453,120
      decoder          4 h (d + h + 2)                                        657,920
      attention        score h^2, combination 2h d + d                        225,472
                                                                     sum 2,872,512
    """
    counts = {}
    for name in (*(name for name in PRESETS if name.startswith("seq2seq-")), "transformer-tiny"):
        config = PRESETS[name]
        if isinstance(config, TransformerConfig):
            config = replace(config, ffn_dim=512)
        assert isinstance(config, TransformerConfig | Seq2SeqConfig)
        with torch.device("meta"):
            model = build(replace(config, vocabulary=8000))
        counts[name] = sum(parameter.numel() for parameter in model.parameters())
    assert counts == {
        "seq2seq-rnn": 2_866_368,
        "seq2seq-lstm": 2_893_504,
        "seq2seq-gru": 2_879_040,
        "seq2seq-lstm-attention": 2_872_512,
        "seq2seq-gru-attention": 2_895_808,
        "transformer-tiny": 2_875_392,
    }
    assert max(counts.values()) / min(counts.values()) < 1.02


def test_heads_do_not_change_the_count() -> None:
    """E9: equal width costs the same, whatever the number of heads."""
    counts = set()
    for heads in (1, 4, 16):
        with torch.device("meta"):
            model = build(TransformerConfig(heads=heads))
        counts.add(sum(parameter.numel() for parameter in model.parameters()))
    assert counts == {63_082_496}


def test_widths_of_the_papers() -> None:
    """T9, V4: every preset's heads are 64 wide but ViT-H's (80) and the tiny one's (32)."""
    widths = {
        name: config.dim // config.heads
        for name, config in PRESETS.items()
        if isinstance(config, TransformerConfig | VitConfig)
    }
    assert widths.pop("vit-h") == 80
    assert widths.pop("transformer-tiny") == 32
    assert set(widths.values()) == {64}
    for name, config in PRESETS.items():
        if isinstance(config, VitConfig):
            ratio = 2 if config.height == 32 else 4  # V4: MLP ratio 4; Hassani et al. take 2
            assert config.ffn_dim == ratio * config.dim, name


def test_any_patch_size() -> None:
    """V1: a ViT's patch size follows a slash."""
    config = preset("vit-b/32")
    assert isinstance(config, VitConfig)
    assert config.patch == 32
    assert config.grid == (7, 7)
    assert preset("vit-b/16") == preset("vit-b")
    assert preset("vit-h") == preset("vit-h/14")


@pytest.mark.parametrize("name", ["vit-b/x", "vit-b/-4", "transformer-base/16", "vit-x", "", "/16"])
def test_an_unknown_preset_is_refused(name: str) -> None:
    """The message names what was given and what there is."""
    with pytest.raises(UsageError, match=r"transformer-tiny.*vit-b/32") as error:
        preset(name)
    assert repr(name) in str(error.value)


def test_a_mistyped_preset_gets_a_suggestion() -> None:
    """The nearest name is offered."""
    with pytest.raises(UsageError, match="did you mean 'transformer-base'"):
        preset("transformer-bass")


def test_a_patch_that_does_not_divide_is_refused() -> None:
    """V1: 224 is no multiple of 15."""
    with pytest.raises(UsageError, match=r"224 x 224 pixels .* 15 x 15"):
        preset("vit-b/15")


def test_a_config_or_the_name_of_a_preset_is_built() -> None:
    """The Config decides the class of the model; a name may choose a variant."""
    with torch.device("meta"):
        assert isinstance(build(PRESETS["transformer-tiny"]), Transformer)
        assert isinstance(build(PRESETS["vit-ti"]), Vit)
        model = build("vit-b/32")
    assert isinstance(model, Vit)
    assert model.config == PRESETS["vit-b"].variant("32")
    with pytest.raises(UsageError, match="no preset 'vit-b/large'"):
        build("vit-b/large")


# --- What a Config says of its model ------------------------------------------------------------


def test_tasks_of_every_preset() -> None:
    """The first word of a preset's name decides, but for ViTs under other names."""
    tasks = {
        "transformer": ("translate",),
        "seq2seq": ("translate",),
        "gpt": ("generate",),
        "gpt2": ("generate",),
        "bert": ("fill",),
        "tagger": ("tag",),
        "line": ("read",),
        "captioner": ("caption",),
        "matcher": ("match",),
        "vit": ("classify", "reconstruct", "embed"),
        "compact": ("classify", "reconstruct", "embed"),
    }
    for name, config in PRESETS.items():
        assert config.tasks == tasks.get(name.partition("-")[0], ("classify",)), name


def test_only_learned_positions_limit_a_text() -> None:
    """GPT-2 has learned 1,024 positions and BERT 512; formulas and recurrence have no end."""
    limits = {
        name: config.token_limit
        for name, config in PRESETS.items()
        if config.token_limit < sys.maxsize
    }
    assert limits == {"gpt2-small": 1024, "bert-base": 512}
    assert TransformerConfig(positions="learned", max_length=7).token_limit == 7
    assert TransformerConfig(positions="rotary", max_length=7).token_limit == sys.maxsize


@pytest.mark.parametrize("name", PRESETS)
def test_sized_tables_are_those_whose_shape_changes(name: str) -> None:
    """Every parameter whose shape depends on the image size is listed, and no other."""
    config = PRESETS[name]
    if not reads_images(config) or isinstance(config, MlpConfig):  # which has one size only
        assert config.sized_tables == {}
        return
    with torch.device("meta"):
        small = config.build().state_dict()
        image: Any = getattr(config, "image", config)
        large = at_size(config, (2 * image.height, 3 * image.width)).build()
    patterns = config.sized_tables
    listed = {n for n in small if any(fnmatchcase(n, pattern) for pattern in patterns)}
    changed = {n for n, tensor in large.state_dict().items() if tensor.shape != small[n].shape}
    assert changed <= listed
    assert changed == listed or isinstance(config, SwinConfig)  # windows that fit do not change


def test_only_a_transformer_starts_from_language_models() -> None:
    """Its layers and its embedding are theirs (Rothe et al. 2020); recurrent layers are not."""
    starting = {name for name, config in PRESETS.items() if config.starts_from}
    assert starting == {name for name in PRESETS if name.startswith("transformer-")}
    assert PRESETS["transformer-tiny"].starts_from == ("generate", "fill", "translate")


# --- Presets from outside -----------------------------------------------------------------------


class Mean(torch.nn.Module):
    """The smallest classifier: a linear map of the mean colour."""

    def __init__(self, config: "MeanConfig") -> None:
        super().__init__()
        self.config = config
        self.head = torch.nn.Linear(config.channels, config.classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.head(images.mean(dim=(2, 3)))


@dataclass(frozen=True, kw_only=True)
class MeanConfig(ModelConfig):
    """Its Config."""

    tasks = ("classify",)

    height: int = 8
    width: int = 8
    channels: int = 3
    classes: int = 10

    def build(self) -> Mean:
        """Build it."""
        return Mean(self)


@dataclass(kw_only=True)
class Unfrozen(ModelConfig):
    """A Config that could change after its model was built."""

    tasks = ("classify",)

    def build(self) -> torch.nn.Module:
        """Build nothing."""
        return torch.nn.Identity()


@pytest.fixture
def mean(monkeypatch: pytest.MonkeyPatch) -> str:
    """A preset that is registered for one test only."""
    monkeypatch.setattr(presets, "PRESETS", dict(PRESETS))
    for module in (recipe_module,):
        monkeypatch.setattr(module, "PRESETS", presets.PRESETS)
    register_preset("mean/rgb", MeanConfig())
    return "mean/rgb"


def test_a_registered_preset_is_looked_up_and_built(mean: str) -> None:
    assert preset(mean) == MeanConfig()
    assert isinstance(build(mean), Mean)
    with pytest.raises(UsageError, match="no preset 'mean/cmyk'"):
        preset("mean/cmyk")


@pytest.mark.usefixtures("mean")
@pytest.mark.parametrize("name", ["mean/rgb", "vit-b", "vit-b/32"])
def test_a_preset_is_registered_once(name: str) -> None:
    """Neither a preset nor a variant of one can be replaced."""
    before = preset(name)
    with pytest.raises(UsageError, match=f"There is a preset '{name}' already"):
        register_preset(name, MeanConfig(classes=3))
    assert preset(name) == before


def test_a_preset_needs_a_name() -> None:
    with pytest.raises(UsageError, match="name of a preset is ''"):
        register_preset("", MeanConfig())


@pytest.mark.parametrize(
    ("config", "lacks"),
    [
        (Unfrozen(), "it lacks being an instance of a frozen dataclass"),
        (MeanConfig, "it lacks being an instance of a frozen dataclass"),
        (
            {"dim": 4},
            "it lacks being an instance of a frozen dataclass, build, exports, sized_tables",
        ),
    ],
)
def test_a_preset_is_a_model_config(config: Any, lacks: str) -> None:
    """Without the check of argument types, which only tests switch on."""
    with pytest.raises(UsageError, match=lacks):
        inspect.unwrap(register_preset)("wrong", config)
    assert "wrong" not in PRESETS


def test_a_registered_preset_works_in_a_recipe(mean: str, tmp_path: Path) -> None:
    """The recipe's own keys change it, and the image table fixes its size."""
    path = tmp_path / "recipe.toml"
    path.write_text(
        'task = "classify"\n'
        f'[model]\npreset = "{mean}"\n'
        '[data]\ntrain = "digits"\nvalid = "digits"\n'
        "[image]\nheight = 4\nwidth = 6\n"
    )
    config = read_recipe(path).config(classes=5)
    assert config == MeanConfig(height=4, width=6, classes=5)

"""Where tokens stand: the arithmetic of receptive fields against pixels that are really changed."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from manyheads.models.cct import Cct
from manyheads.models.coatnet import Coatnet
from manyheads.models.cvt import Cvt
from manyheads.models.hybrid import Hybrid
from manyheads.models.swin import Swin
from manyheads.models.transformer import Transformer
from manyheads.models.vit import Vit
from manyheads.nn.attention.attention import MultiHeadAttention
from manyheads.nn.attention.conv import ConvProjectedAttention
from manyheads.nn.attention.softmax import SoftmaxRecord
from manyheads.nn.blocks.pool import TwoTokens
from manyheads.nn.recording.token_grid import Axis, TokenGrid
from manyheads.nn.recording.trace import record
from manyheads.nn.recording.tracking import (
    current_grid,
    prepend_tokens,
    start_image,
    start_text,
    track_modules,
)
from manyheads.nn.vision.mbconv import SqueezeExcitation
from manyheads.nn.vision.merge import PatchMerging
from manyheads.nn.vision.patch import ConvPatches, LinearPatches, OverlappingPatches, pad_to_patches
from manyheads.nn.vision.stem import ConvStem
from tests.small import CCTS, HYBRIDS, STAGED, TRANSFORMERS, VITS, inputs, randomise


def test_patches_tile_the_side() -> None:
    """V1: 12 pixels in patches of 4 have their edges where one cuts."""
    axis = Axis(12).through(4, 4, count=3)
    assert axis == Axis(3, first=0, stride=4, receptive_field=4)
    assert axis.edges(12) == [0, 4, 8, 12]


def test_a_convolution_by_hand() -> None:
    """3 wide, stride 2, one zero in front, 8 pixels: centres on pixels 0, 2, 4 and 6."""
    axis = Axis(8).through(3, 2, 1, count=4)
    assert axis == Axis(4, first=-1, stride=2, receptive_field=3)
    assert axis.edges(8) == [0, 1.5, 3.5, 5.5, 8]  # the pixel 2 lies from 2 to 3, its centre at 2.5


def test_two_convolutions_by_hand() -> None:
    """Fields grow by the step below (Araujo et al. 2019): 3, then 3 + 2 * 2."""
    axis = Axis(8).through(3, 2, 1, count=4).through(3, 2, 1, count=2)
    assert axis == Axis(2, first=-3, stride=4, receptive_field=7)


def test_padding_behind_the_image_has_no_cell_of_its_own() -> None:
    """11 pixels in patches of 4, padded to 12: the last cell ends with the image."""
    assert Axis(11).through(4, 4, count=3).edges(11) == [0, 4, 8, 11]


def test_nothing_happens_without_a_recorder() -> None:
    start_image(torch.zeros(1, 3, 4, 4))
    prepend_tokens(("class token",))
    assert current_grid() is None


def test_texts_stand_nowhere() -> None:
    """A model of text in the same recorder does not inherit the grid of an image."""
    vit, transformer = VITS["vit-b"], TRANSFORMERS["transformer-base"]
    with record() as trace:
        Vit(vit)(*inputs(vit))
        Transformer(transformer)(*inputs(transformer))
        start_image(torch.zeros(1, 3, 4, 4))
        start_text()
        assert current_grid() is None
    seen = [entry.query_grid is not None for entry in trace if isinstance(entry, SoftmaxRecord)]
    assert seen == [True] * vit.layers + [False] * (len(seen) - vit.layers)


def test_extra_tokens_stand_in_front() -> None:
    with record():
        start_image(torch.zeros(1, 3, 4, 6))
        tokens = TwoTokens(4).prepend(LinearPatches(3, 2, 4)(torch.zeros(1, 3, 4, 6)))
        grid = current_grid()
    assert grid is not None
    assert grid.extra == ("class token", "distillation token")
    assert grid.shape == (2, 3)
    assert grid.count == tokens.shape[1]


# --- The truth: which tokens change when a pixel does -------------------------------------------

Embed = Callable[[Tensor], tuple[Tensor, TokenGrid]]


def _plain(module: nn.Module) -> nn.Module:
    """Leave a module only what is local and never falls: a large pixel then is seen or is not.

    Norms over the image and squeeze-and-excitation see everything; they are no part of where a
    token stands.
    """
    for name, part in list(module.named_modules()):
        if isinstance(part, nn.GroupNorm | SqueezeExcitation):
            module.get_submodule(name.rpartition(".")[0]).add_module(
                name.rpartition(".")[2], nn.Identity()
            )
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.uniform_(0.1, 1.0)
    return module.eval()


def _to_here(part: nn.Module, channels: int = 1) -> Embed:
    _plain(part)

    def embed(images: Tensor) -> tuple[Tensor, TokenGrid]:
        with record(), torch.no_grad():
            start_image(images)
            found = part(images)
            grid = current_grid()
        assert grid is not None
        tokens = found[0] if isinstance(found, tuple) else found
        return (tokens.flatten(2).transpose(1, 2) if tokens.ndim == 4 else tokens), grid

    return embed


class Merged(nn.Module):
    """Patches, then merging, as before the second stage of Swin."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = ConvPatches(1, 2, 3)
        self.merge = PatchMerging(3)

    def forward(self, images: Tensor) -> tuple[Tensor, tuple[int, int]]:
        padded = pad_to_patches(images, 2)
        grid = (padded.shape[2] // 2, padded.shape[3] // 2)
        return self.merge(self.patches(padded), grid)


class Keys(nn.Module):
    """The strided keys of a CvT."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = OverlappingPatches(1, 4, kernel=7, stride=4, padding=2)
        self.key = ConvProjectedAttention(4, 1).key

    def forward(self, images: Tensor) -> Tensor:
        tokens, grid = self.embed(images)
        track_modules([self.key.convolve])
        return self.key(tokens, grid)


class Blocks(nn.Module):
    """What stands before the first attention of a CoAtNet: a stem, and blocks of convolutions."""

    def __init__(self) -> None:
        super().__init__()
        model = Coatnet(STAGED["coatnet-0"])  # type: ignore[arg-type]
        self.stem, self.blocks = model.stem, nn.Sequential(*model.stages[0].children())

    def forward(self, images: Tensor) -> Tensor:
        track_modules(self.stem)
        x = self.stem(images)
        return self.blocks(x)


class PooledBlocks(Blocks):
    """The same as timm trains it: halved by a pool, in front of the convolutions."""

    def __init__(self) -> None:
        nn.Module.__init__(self)
        model = Coatnet(STAGED["coatnet as timm trains"])  # type: ignore[arg-type]
        self.stem, self.blocks = model.stem, nn.Sequential(*model.stages[0].children())


PARTS: dict[str, tuple[Callable[[], nn.Module], int]] = {
    "patches": (lambda: ConvPatches(1, 4, 3), 1),
    "stem of CCT, one": (lambda: ConvStem(1, [3]), 1),
    "stem of CCT, two of 5": (lambda: ConvStem(1, [3, 4], kernel=5), 1),
    "overlapping patches": (lambda: OverlappingPatches(1, 3, kernel=7, stride=4, padding=2), 1),
    "merged patches": (Merged, 1),
    "strided keys": (Keys, 1),
    "CoAtNet": (Blocks, 3),
    "CoAtNet as timm trains": (PooledBlocks, 3),
    "ResNet without stages": (lambda: Hybrid(HYBRIDS["hybrid-r-ti"]).patches, 3),
    "ResNet of three stages": (lambda: Hybrid(HYBRIDS["hybrid-r50-b"]).patches, 3),
}


@pytest.mark.parametrize("name", PARTS)
def test_tokens_are_made_of_the_pixels_they_are_said_to_be_made_of(name: str) -> None:
    """V1, V14, V17: change one pixel; exactly the tokens whose field it lies in change."""
    torch.manual_seed(0)
    build, channels = PARTS[name]
    embed = _to_here(build())
    height, width = (36, 44) if "Merged" not in name else (14, 18)
    height, width = (32, 16) if "ResNet" in name else (height, width)
    images = torch.rand(1, channels, height, width)
    before, grid = embed(images)
    assert grid.count == before.shape[1]
    for row, column in [(0, 0), (1, 2), (7, 9), (8, 3), (17, 11), (height - 1, width - 1)]:
        changed = images.clone()
        changed[0, :, row, column] += 1000
        after, _ = embed(changed)
        seen = (after != before).any(dim=-1)[0].unflatten(0, grid.shape)
        for down in range(grid.rows.count):
            for across in range(grid.columns.count):
                expected = _in(grid.rows, down, row) and _in(grid.columns, across, column)
                assert seen[down, across] == expected, (row, column, down, across)


def _in(axis: Axis, token: int, pixel: int) -> bool:
    first = axis.first + token * axis.stride
    return first <= pixel < first + axis.receptive_field


# --- Whole models -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "grids"),
    [
        (lambda: Vit(VITS["vit-b"]), [(2, 3)]),
        (lambda: Cct(CCTS["cct-7/3x2"]), [(2, 2)]),
        (lambda: Swin(STAGED["swin-t"]), [(6, 7), (3, 4)]),  # type: ignore[arg-type]
        (lambda: Cvt(STAGED["cvt-13"]), [(4, 4), (2, 2)]),  # type: ignore[arg-type]
        (lambda: Coatnet(STAGED["coatnet-0"]), [(2, 3)]),  # type: ignore[arg-type]
    ],
    ids=["vit", "cct", "swin", "cvt", "coatnet"],
)
def test_every_attention_knows_where_it_is(
    model: Callable[[], Vit | Cct | Swin | Cvt | Coatnet], grids: list[tuple[int, int]]
) -> None:
    """V16, V17: the grids of all stages; a second pass begins on the pixels again."""
    built = randomise(model()).eval()
    images = inputs(built.config)
    with record() as trace:
        built(*images)
        built(*images)
    entries = [entry for entry in trace if isinstance(entry, SoftmaxRecord)]
    half = len(entries) // 2
    found = [entry.query_grid.shape for entry in entries if entry.query_grid is not None]
    for entry in entries:
        assert entry.key_grid is not None
        assert (entry.query_grid is None) == (entry.layer_id.stack == "pool")  # a learned query
    assert list(dict.fromkeys(found)) == grids
    assert [entry.query_grid for entry in entries[:half]] == [
        entry.query_grid for entry in entries[half:]
    ]


def test_strided_keys_have_grid_of_their_own() -> None:
    """V17: a CvT's keys are fewer; the class token, which stands nowhere, is among them."""
    config = STAGED["cvt-13"]
    with record() as trace:
        Cvt(config)(*inputs(config))  # type: ignore[arg-type]
    last = [entry for entry in trace if isinstance(entry, SoftmaxRecord)][-1]
    assert last.query_grid is not None
    assert last.key_grid is not None
    assert last.key_grid.extra == last.query_grid.extra == ("class token",)
    assert (last.query_grid.count, last.key_grid.count) == (last.q.shape[2], last.k.shape[2])
    assert last.key_grid.rows.stride == 2 * last.query_grid.rows.stride


def test_attention_alone_needs_no_grid() -> None:
    with record() as trace:
        MultiHeadAttention(4, 2)(torch.zeros(1, 3, 4))
    (entry,) = trace
    assert isinstance(entry, SoftmaxRecord)
    assert entry.query_grid is None

"""Grad-CAM and integrated gradients of captum on tiny models of ours, to compare with.

captum sees modules only: a model, a part of it, and which of its answers to explain.
"""

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from benchmarks.peers import import_peer
from manyheads.models.presets import build
from manyheads.models.vgg import Vgg
from manyheads.nn.layers.grid import to_map, to_tokens
from manyheads.nn.recording.trace import record
from tests.attributions import CONFIGS, STEPS, TARGET, difference, explained
from tests.small import inputs, randomise

SEED = 5
ABSENT = 2  # no input has this token; its vector is made zero, so that texts of it are the baseline


@dataclass(frozen=True, slots=True)
class Case:
    """One model with its input, and how captum explains the answer."""

    name: str
    model: nn.Module
    given: tuple[Tensor, ...]
    expected: dict[str, Tensor]

    def difference(self) -> float:
        """Compare with ours."""
        return difference(explained(self.model, self.given), self.expected)


class Laid(nn.Module):
    """A block in front of which tokens are laid out as a map, for Grad-CAM to look at."""

    def __init__(self, block: nn.Module, grid: tuple[int, int], extra: int) -> None:
        super().__init__()
        self.block = block
        self.map = nn.Identity()
        self.grid, self.extra = grid, extra

    def forward(self, x: Tensor, mask: Tensor | None = None, bias: Tensor | None = None) -> Tensor:
        tokens, _ = to_tokens(self.map(to_map(x[:, self.extra :], self.grid)))
        answer: Tensor = self.block(torch.cat((x[:, : self.extra], tokens), dim=1), mask, bias)
        return answer


def references() -> dict[str, Callable[[], Case]]:
    """Every comparison by its name."""
    return {f"captum {name}": partial(_case, name) for name in CONFIGS}


def record_cases(folder: Path) -> Iterator[Path]:
    """Write every case to a file that tests read."""
    version = import_peer("captum").__version__
    (folder / "captum").mkdir(exist_ok=True)
    for name in CONFIGS:
        case = _case(name)
        tensors = {f"weights.{key}": x for key, x in case.model.state_dict().items()}
        tensors |= {f"given.{number}": x for number, x in enumerate(case.given)}
        tensors |= {f"expected.{key}": x for key, x in case.expected.items()}
        path = folder / "captum" / f"{name}.safetensors"
        save_file(
            {key: x.detach().clone().contiguous() for key, x in tensors.items()},
            path,
            {"library": "captum", "version": version, "torch": torch.__version__},
        )
        yield path


def _case(name: str) -> Case:
    config = CONFIGS[name]
    model = randomise(build(config), SEED).eval()
    given = tuple(x[:1] for x in inputs(config, SEED))
    attr = import_peer("captum.attr")
    first, *rest = given
    if not first.is_floating_point():
        table = next(part for part in model.modules() if isinstance(part, nn.Embedding))
        with torch.no_grad():
            table.weight[ABSENT] = 0
        found = attr.LayerIntegratedGradients(model, table).attribute(
            first,
            torch.full_like(first, ABSENT),
            target=(-1, TARGET),
            additional_forward_args=tuple(rest) or None,
            n_steps=STEPS,
            method="gausslegendre",
        )
        return Case(name, model, given, {"integrated": found[0].detach()})
    integrated = attr.IntegratedGradients(model).attribute(
        first, torch.zeros_like(first), target=TARGET, n_steps=STEPS, method="gausslegendre"
    )
    looked_at = deepcopy(model)
    cam = attr.LayerGradCam(looked_at, _features(looked_at, first)).attribute(
        first, TARGET, relu_attributions=True
    )
    expected = {"grad_cam": cam[0, 0].detach(), "integrated": integrated[0].detach()}
    return Case(name, model, given, expected)


def _features(model: nn.Module, images: Tensor) -> nn.Module:
    """Find the part whose answer are the last features; tokens are laid out as a map first."""
    if isinstance(model, Vgg):
        return model.layers[-2]
    if "stages" in dict(model.named_children()):
        return model.get_submodule("stages")
    with record() as trace:
        model(images)
    assert trace.current_grid is not None
    blocks = model.get_submodule("encoder.blocks")
    assert isinstance(blocks, nn.ModuleList)
    laid = Laid(blocks[-1], trace.current_grid.shape, len(trace.current_grid.extra))
    blocks[-1] = laid
    return laid.map

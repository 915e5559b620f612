"""Grad-CAM and integrated gradients equal captum's, as recorded; `make parity` compares live."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from manyheads.models.presets import build
from tests.attributions import CONFIGS, difference, explained

GOLDEN = Path(__file__).parents[1] / "golden" / "captum"


def part(tensors: dict[str, torch.Tensor], prefix: str) -> dict[str, torch.Tensor]:
    return {key.removeprefix(prefix): x for key, x in tensors.items() if key.startswith(prefix)}


@pytest.mark.parametrize("name", CONFIGS)
def test_explanations_equal_captums(name: str) -> None:
    """Within 1e-4 of the largest number: convolutions, tokens, source embeddings."""
    tensors = load_file(GOLDEN / f"{name}.safetensors")
    model = build(CONFIGS[name]).eval()
    model.load_state_dict(part(tensors, "weights."))
    expected = part(tensors, "expected.")
    assert all(x.abs().max() > 1e-4 for x in expected.values())
    assert difference(explained(model, tuple(part(tensors, "given.").values())), expected) < 1e-4

"""Matrices in eight bits: a whole number for each weight, and a scale for each row.

Why, and what it costs: docs/decisions/eight-bits.md. In a file of weights, an int8 matrix NAME of
shape (row, column) stands for NAME * NAME_scale, whose shape is (row, 1): the names and the layout
of compressed-tensors.
"""

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from manyheads.errors import FolderError

SCALE = "_scale"
LARGEST = 127  # symmetric: -128 is not used
SMALLEST = 16  # rows and columns of a matrix: in a smaller one there is little to save


def quantize(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Round each matrix to int8, to nearest; return the matrices (int8) and scales (float32).

    Left out are other tensors, and matrices with fewer than 16 rows or columns, or beside whose
    NAME the model has a NAME_scale of its own.
    """
    quantized = {}
    for name, tensor in state.items():
        is_matrix = tensor.is_floating_point() and tensor.dim() == 2
        if is_matrix and min(tensor.shape) >= SMALLEST and name + SCALE not in state:
            scale = tensor.float().abs().amax(1, keepdim=True) / LARGEST
            steps = (tensor.float() / torch.where(scale == 0, 1, scale)).round()
            quantized[name] = steps.clamp(-LARGEST, LARGEST).to(torch.int8).contiguous()
            quantized[name + SCALE] = scale
    return quantized


def dequantize(stored: Mapping[str, Tensor], path: Path) -> dict[str, Tensor]:
    """Return the tensors of a file without scales, its int8 matrices and other floats in float32.

    int8 tensors without a scale are left as they are, and so is a file without int8 matrices.

    Raises:
        FolderError: a scale does not fit its matrix.
    """
    matrices = scaled({name: str(each.dtype) for name, each in stored.items()}, "torch.int8")
    plain = {
        name: each.float() if matrices and each.is_floating_point() else each
        for name, each in stored.items()
    }
    for name in matrices:
        steps, scale = stored[name], stored[name + SCALE]
        if not scale.is_floating_point() or scale.shape != (*steps.shape[:1], 1):
            raise FolderError(
                f"{path} is damaged: {name}{SCALE} is {tuple(scale.shape)} of {scale.dtype}; the "
                f"scales of {name}, {tuple(steps.shape)}, must be floats, one for each row. Copy "
                "the folder again."
            )
        plain[name] = steps.float().mul_(plain.pop(name + SCALE))
    return plain


def scaled(dtypes: Mapping[str, str], int8: str) -> list[str]:
    """Name the int8 matrices among tensors, which have a scale; `int8` is that type's name."""
    return [name for name, dtype in dtypes.items() if dtype == int8 and name + SCALE in dtypes]

"""The one linear layer of the house: torch's own, with packed weights where nothing is learned.

Why: docs/decisions/packed-weights.md.
"""

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

# A product of fewer multiplications than this costs more to prepare than it gains in fp32.
WORTHWHILE = 2**20
PACKABLE: set[torch.dtype] = set()
if torch.backends.mkldnn.is_available():
    PACKABLE.add(torch.float32)
    if torch.ops.mkldnn._is_mkldnn_bf16_supported():
        PACKABLE.add(torch.bfloat16)


class Packed(NamedTuple):
    """A weight in oneDNN's own order, and what it is a copy of."""

    weight: Tensor
    origin: tuple[int, int]  # where the original lies, and how often it has been written to


class Linear(nn.Linear):
    """y = x W^T + b. Parameters and initial values are those of torch's layer.

    Without gradients and on a CPU, the weight is copied once into the order that oneDNN reads best:
    products in fp32 take half the time or less where MKL, torch's usual choice, does not know the
    processor. When the weight has changed, so does the copy.
    """

    def __init__(self, inputs: int, outputs: int, *, bias: bool = True) -> None:
        super().__init__(inputs, outputs, bias=bias)
        self._packed: dict[tuple[int, int], Packed] = {}

    def forward(self, x: Float[Tensor, "*batch input"]) -> Float[Tensor, "*batch output"]:
        """Compute all outputs."""
        return self.part(x, 0, self.out_features)

    def part(
        self, x: Float[Tensor, "*batch input"], first: int, last: int
    ) -> Float[Tensor, "*batch part"]:
        """Compute the outputs from first up to last, as if the layer had no others."""
        weight = self.weight
        bias: Tensor | None = self.bias
        whole = last - first == self.out_features
        if bias is not None and not whole:
            bias = bias[first:last]
        if _packing_pays(x, weight, last - first):
            packed = self._pack(weight, first, last)
            return torch.ops.mkldnn._linear_pointwise(x, packed, bias, "none", [], "")
        return F.linear(x, weight if whole else weight[first:last], bias)

    def _pack(self, weight: Tensor, first: int, last: int) -> Tensor:
        origin = weight.data_ptr(), weight._version
        packed = self._packed.get((first, last))
        if packed is None or packed.origin != origin:
            reordered = torch.ops.mkldnn._reorder_linear_weight(weight.detach()[first:last], None)
            packed = self._packed[first, last] = Packed(reordered, origin)
        return packed.weight

    def __getstate__(self) -> dict[str, Any]:
        """Leave the packed weights behind: they cannot be stored, and are quickly made."""
        return self.__dict__ | {"_packed": {}}


def _packing_pays(x: Tensor, weight: Tensor, outputs: int) -> bool:
    return (
        not torch.is_grad_enabled()
        and x.is_cpu
        and x.dtype is weight.dtype
        and x.dtype in PACKABLE
        and (x.dtype is not torch.float32 or x.numel() * outputs >= WORTHWHILE)
        and not torch.is_autocast_enabled("cpu")
        and not torch.compiler.is_compiling()
        and not weight.is_inference()  # it does not count how often it is written to
    )

"""The one linear layer of Manyheads: torch's own, with packed weights in models that are only used.

Why: docs/decisions/packed-weights.md.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

# Rows x weights^2: less gains less in fp32 than a call costs, and the kernel that is compiled for
# each number of rows, which a large weight repays sooner.
WORTHWHILE = 2**38


def packable() -> set[torch.dtype]:
    """Return the types that oneDNN multiplies faster than torch: none where torch has no MKL.

    On ARM torch's own products are other kernels, which packing has not been measured against.
    """
    if not (torch.backends.mkldnn.is_available() and torch.backends.mkl.is_available()):
        return set()
    if torch.ops.mkldnn._is_mkldnn_bf16_supported():
        return {torch.float32, torch.bfloat16}
    return {torch.float32}


PACKABLE = packable()

M = TypeVar("M", bound=nn.Module)
L = TypeVar("L", bound="Linear")


class Packed(NamedTuple):
    """A weight in oneDNN's own order, and what it is a copy of."""

    weight: Tensor
    origin: tuple[int, int]  # where the original lies, and how often it has been written to


class Linear(nn.Linear):
    """y = x W^T + b. Parameters and initial values are those of torch's layer.

    After `pack`, without gradients and on a CPU, it reads a copy of its weight in oneDNN's order.
    """

    def __init__(self, inputs: int, outputs: int, *, bias: bool = True) -> None:
        super().__init__(inputs, outputs, bias=bias)
        self._packed: dict[tuple[int, int], Packed] | None = None

    def forward(self, x: Float[Tensor, "*batch input"]) -> Float[Tensor, "*batch output"]:
        """Compute all outputs."""
        return self.forward_slice(x, 0, self.out_features)

    def forward_slice(
        self, x: Float[Tensor, "*batch input"], first: int, last: int
    ) -> Float[Tensor, "*batch part"]:
        """Compute the outputs from first up to last, as if the layer had no others."""
        weight = self.weight
        bias: Tensor | None = self.bias
        whole = last - first == self.out_features
        if bias is not None and not whole:
            bias = bias[first:last]
        if self._packed is not None and _packing_pays(x, weight, last - first):
            packed = _reordered(self._packed, weight, first, last)
            return torch.ops.mkldnn._linear_pointwise(x, packed, bias, "none", [], "")
        return F.linear(x, weight if whole else weight[first:last], bias)

    def train(self: L, mode: bool = True) -> L:
        """Change between training, which unpacks for good, and use."""
        if mode:
            self._packed = None
        return super().train(mode)

    def _apply(self: L, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> L:
        """Move or change the type, which may put other numbers at the same place in memory."""
        if self._packed is not None:
            self._packed = {}
        return super()._apply(fn, recurse)  # type: ignore[no-untyped-call]

    def __getstate__(self) -> dict[str, Any]:
        """Leave the packed weights behind: they cannot be stored."""
        return self.__dict__ | {"_packed": None}


def pack(model: M) -> M:
    """Make a model that is only used faster on a CPU, at the cost of a second copy of its weights.

    Products in fp32 take half the time or less where MKL, torch's usual choice, does not know the
    processor. `model.train()` unpacks. A weight that is written to in place is packed anew, unless
    it was written to behind torch's back (`weight.data`, a fused optimizer): then pack again.
    """
    for layer in model.modules():
        if isinstance(layer, Linear):
            layer._packed = {}
    return model


def _reordered(
    packed: dict[tuple[int, int], Packed], weight: Tensor, first: int, last: int
) -> Tensor:
    """Return some rows of a weight in oneDNN's order, from the copy if it is still true."""
    origin = weight.data_ptr(), weight._version
    found = packed.get((first, last))
    if found is None or found.origin != origin:
        reordered = torch.ops.mkldnn._reorder_linear_weight(weight.detach()[first:last], None)
        found = packed[first, last] = Packed(reordered, origin)
    return found.weight


def _packing_pays(x: Tensor, weight: Tensor, outputs: int) -> bool:
    return (
        not torch.compiler.is_compiling()  # first: a graph must not depend on the number of rows
        and (x.dtype is not torch.float32 or x.numel() * x.shape[-1] * outputs**2 >= WORTHWHILE)
        and not torch.is_grad_enabled()
        and x.is_cpu
        and x.dtype is weight.dtype
        and x.dtype in PACKABLE
        and not torch.is_autocast_enabled("cpu")
        and not weight.is_inference()  # it does not count how often it is written to
    )

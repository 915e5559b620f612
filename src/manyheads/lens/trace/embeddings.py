"""The vectors that tokens enter a model with: read, or replaced by others.

A table of embeddings is found by what it is asked for: the very ids that the caller hands to the
model. So no name of a part and no class of a model is needed, and of a table that source and target
share only the source's own look-up is touched.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from jaxtyping import Float, Int
from torch import Tensor, nn

from manyheads.errors import UsageError

Change = Callable[[Float[Tensor, "batch token dim"]], Float[Tensor, "batch token dim"]]


@contextmanager
def changed(model: nn.Module, ids: Int[Tensor, "batch token"], change: Change) -> Iterator[None]:
    """Put `change` behind the embedding of these ids, while the model is called with them.

    Raises:
        UsageError: the model was called without looking them up.
    """
    asked = 0

    def hook(_: nn.Module, given: tuple[Any, ...], vectors: Tensor) -> Tensor:
        nonlocal asked
        if given[0] is not ids:
            return vectors
        asked += 1
        return change(vectors)

    with ExitStack() as hooks:
        for part in model.modules():
            if isinstance(part, nn.Embedding):
                hooks.callback(part.register_forward_hook(hook).remove)
        yield
    if not asked:
        raise UsageError(
            f"{type(model).__name__} did not look up these token ids in any embedding: call it "
            "with the same tensor."
        )


def embeddings(
    model: nn.Module, ids: Int[Tensor, "batch token"], run: Callable[[], object]
) -> Float[Tensor, "batch token dim"]:
    """Call `run`, which calls the model with these ids, and return their embeddings."""
    kept: list[Tensor] = []

    def keep(vectors: Tensor) -> Tensor:
        kept.append(vectors.detach())
        return vectors

    with changed(model, ids, keep):
        run()
    return kept[0]

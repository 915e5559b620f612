"""Time measurement on a busy machine: candidates alternate, and the best round counts."""

import time
from collections.abc import Callable, Iterable, Mapping

import torch


def best_of(rounds: int, work: Mapping[str, Callable[[], object]]) -> dict[str, float]:
    """Time functions in alternation; return the minimum seconds of each.

    The minimum, not the median: other load on the machine can only add time. The first round is
    warm-up.
    """
    seconds: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(rounds + 1):
        for name, once in work.items():
            began = time.perf_counter()
            once()
            if torch.cuda.is_available():
                torch.cuda.synchronize()  # wait for the GPU
            seconds[name].append(time.perf_counter() - began)
    return {name: min(times[1:]) for name, times in seconds.items()}


def saved_bytes(forward: Callable[[], object], weights: Iterable[torch.Tensor] = ()) -> int:
    """Count the bytes that a forward pass saves for its gradients, each storage once.

    Weights are saved, too, but not counted: the result is the memory that grows with the input. It
    does not depend on the machine.
    """
    storages: dict[int, int] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        storages[storage.data_ptr()] = storage.nbytes()
        alive.append(tensor)  # otherwise its address would be reused
        return tensor

    alive: list[torch.Tensor] = []
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        forward()
    known = {weight.untyped_storage().data_ptr() for weight in weights}
    return sum(size for address, size in storages.items() if address not in known)

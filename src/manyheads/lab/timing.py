"""Fair times on a machine that may be busy: contenders take turns, and the best round counts."""

import time
from collections.abc import Callable, Iterable, Mapping

import torch


def best_of(rounds: int, work: Mapping[str, Callable[[], object]]) -> dict[str, float]:
    """Time each piece of work in turns; return the least seconds of each.

    The least, not the median: whatever else the machine does only ever adds time. The first round
    warms up.
    """
    seconds: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(rounds + 1):
        for name, once in work.items():
            began = time.perf_counter()
            once()
            if torch.cuda.is_available():
                torch.cuda.synchronize()  # a GPU works on in the background
            seconds[name].append(time.perf_counter() - began)
    return {name: min(times[1:]) for name, times in seconds.items()}


def saved_bytes(forward: Callable[[], object], weights: Iterable[torch.Tensor] = ()) -> int:
    """Count the bytes that a forward pass keeps for its gradients, each storage once.

    Weights are kept too, but they are there without it: what is counted is the memory that grows
    with the input. It does not depend on the machine.
    """
    storages: dict[int, int] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        storages[storage.data_ptr()] = storage.nbytes()
        alive.append(tensor)  # or its address would be used again
        return tensor

    alive: list[torch.Tensor] = []
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        forward()
    known = {weight.untyped_storage().data_ptr() for weight in weights}
    return sum(size for place, size in storages.items() if place not in known)

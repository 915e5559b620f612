"""Our Transformer in CTranslate2, the engine that sets the mark for translation on a CPU."""

import tempfile
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch
from torch import nn

from benchmarks.peers import import_peer
from manyheads.models.convert.ctranslate2 import to_ctranslate2
from manyheads.models.transformer import Transformer
from manyheads.train.model_tensors import tensors


def ctranslate2(model: Transformer, compute: str, *, workers: int) -> Any:
    """Export a Transformer and load it, on `workers` single threads; tokens are ids as text."""
    library = import_peer("ctranslate2")
    config = model.config
    sides = (config.vocabulary, config.target_vocabulary or config.vocabulary)
    names = [[str(token) for token in range(size)] for size in sides]
    spec = to_ctranslate2(config, tensors(model), *names, positions=config.max_length)
    spec.optimize(quantization=None if compute == "float32" else compute)
    with tempfile.TemporaryDirectory() as folder:
        spec.save(str(Path(folder)))
        return library.Translator(
            folder, device="cpu", compute_type=compute, inter_threads=workers, intra_threads=1
        )


def fingerprint(model: nn.Module) -> str:
    """Return a hash of all weights: what contenders share, none may change."""
    found = sha256()
    for name, tensor in sorted(model.state_dict().items()):
        found.update(name.encode())
        found.update(tensor.detach().float().numpy().tobytes())
    return found.hexdigest()


def cpu_threads() -> int:
    """As many single-threaded workers as torch takes threads: better than one with them all."""
    return torch.get_num_threads()

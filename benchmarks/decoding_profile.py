"""Where the time of a search with torch goes: shares of the kinds of operators.

    python -m benchmarks.decoding_profile --beams 4

One batch of `translation_decoding`, transformer-tiny in fp32 with packed weights, one thread. The
profiler makes each operator slower by about a microsecond, so the many small ones look larger.
"""

import argparse
from collections import Counter
from dataclasses import replace
from time import perf_counter
from typing import cast

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks.translation_decoding import Scripted, prepare_batches, search_batch
from manyheads.models.presets import PRESETS
from manyheads.models.transformer import Transformer, TransformerConfig
from manyheads.nn.layers.linear import pack

ROUNDS = 12
KINDS = {
    "mkldnn::_linear_pointwise": "output layer (packed)",
    "aten::addmm": "products of layers",
    "aten::mm": "products of layers",
    "aten::bmm": "products of attention",
    "aten::_scaled_dot_product_flash_attention_for_cpu": "products of attention",
    "aten::_log_softmax": "log-softmax over the vocabulary",
    "aten::topk": "best tokens",
    "aten::index_select": "caches in the order of beams",
}


def main() -> None:
    """Print milliseconds a step, and the shares."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--beams", type=int, default=1)
    beams = parser.parse_args().beams
    torch.set_num_threads(1)
    config = replace(cast(TransformerConfig, PRESETS["transformer-tiny"]), vocabulary=10_000)
    model = pack(Transformer(config).eval())
    batches = prepare_batches(config)
    batch = batches[len(batches) // 2]
    scripted = Scripted(model, batch.lengths)

    def seconds() -> float:
        begun = perf_counter()
        search_batch(scripted, batch, config, beams)
        return perf_counter() - begun

    best = min(seconds() for _ in range(ROUNDS))
    with profile(activities=[ProfilerActivity.CPU]) as found:
        seconds()
    shares: Counter[str] = Counter()
    for each in found.key_averages():
        shares[KINDS.get(each.key, "everything else")] += each.self_cpu_time_total
    print(f"{1000 * best / max(batch.lengths):.2f} ms a step of {len(batch.lengths)} sentences")
    for kind, time in shares.most_common():
        print(f"{time / shares.total():6.1%}  {kind}")


if __name__ == "__main__":
    main()

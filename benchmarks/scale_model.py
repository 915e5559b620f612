"""A small model of training on many devices: memory, communication and the time of a step.

    python -m benchmarks scale_model                       # predictions for 8, 64 and 512 H200
    python -m benchmarks scale_model measure --ranks 2 4   # predicted and measured, gloo, this CPU

The predictions are arithmetic on published speeds and a stated share of them: no H200 was measured.
`measure` holds the same functions against this machine: it times all-reduce, all-gather and
reduce-scatter between processes and one step on one rank, predicts a step on more ranks from these
alone, then times that step.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch
from torch import distributed, nn
from torch.multiprocessing.spawn import spawn

from benchmarks import flops
from benchmarks.protocol import BUSY, machine, others_while_idle
from manyheads.models.model_config import ModelConfig
from manyheads.models.presets import PRESETS
from manyheads.models.transformer import TransformerConfig
from manyheads.models.vit import VitConfig
from manyheads.nn.blocks.block import DecoderBlock, EncoderBlock
from manyheads.strict_json import dumps

Parallel = Literal["ddp", "fsdp"]

# --- The machine ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Link:
    """What a device sends, and receives at the same time, over one kind of connection."""

    bandwidth: float  # bytes a second, in one direction
    latency: float  # seconds of one message

    def exchange(self, size: float, members: int) -> float:
        """Predict half an all-reduce: a ring's reduce-scatter or all-gather of `size` bytes.

        Each member sends `members - 1` times one of `members` equal parts.
        """
        if members < 2:
            return 0.0
        return (members - 1) * (size / members / self.bandwidth + self.latency)


@dataclass(frozen=True)
class Cluster:
    """Devices in hosts; inside a host one link, between hosts another for each device."""

    devices: int
    per_host: int
    inside: Link
    between: Link

    @property
    def local(self) -> int:
        """Devices of a host that take part."""
        return min(self.devices, self.per_host)

    @property
    def hosts(self) -> int:
        """Hosts that take part."""
        return -(-self.devices // self.per_host)

    def exchange(self, size: float) -> float:
        """Predict a reduce-scatter or all-gather of `size` bytes among all devices.

        In two levels, as NCCL does it where each device has a port of its own: inside each host,
        then, with the part that each device holds, between the hosts.
        """
        part = size / self.local
        return self.inside.exchange(size, self.local) + self.between.exchange(part, self.hosts)


@dataclass(frozen=True)
class Device:
    """One accelerator."""

    memory: float  # bytes
    peak: float  # floating-point operations a second
    achieved: float  # share of the peak that training reaches
    stream: float  # bytes a second from and to its memory


# --- The work -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Work:
    """What a device does in a step, whatever the number of devices."""

    name: str
    parameters: int
    largest_block: int  # parameters of the largest part that is gathered at a time
    layers: int
    width: int
    tokens: int  # of a device's batch, in all layers
    forward: float  # operations of the forward pass of this batch
    blocks: int = 1  # parts that are gathered one after the other


@dataclass(frozen=True)
class Numbers:
    """Bytes of a number, as the trainer keeps it; the defaults are those of mixed precision."""

    weight: float = 4  # what the optimizer changes
    gradient: float = 4
    moments: float = 8  # Adam's two
    gathered: float = 2  # a weight as FSDP2 sends it: bf16
    reduced: float = 4  # a gradient as it is summed
    activation: float = 34  # a token, a layer and a channel: see `activations`


def state_bytes(parameters: int, devices: int, parallel: Parallel, numbers: Numbers) -> float:
    """Predict the bytes of weights, gradients and moments on one device."""
    each = numbers.weight + numbers.gradient + numbers.moments
    return parameters * each / (devices if parallel == "fsdp" else 1)


def gathered_bytes(work: Work, devices: int, parallel: Parallel, numbers: Numbers) -> float:
    """Predict the most bytes of whole blocks: two gathered, and the gradient of one before its sum.

    DDP has whole weights anyway, and keeps a gradient where it is sent from.
    """
    if parallel == "ddp" or devices == 1:
        return 0.0
    return work.largest_block * (2 * numbers.gathered + numbers.reduced)


def activations(work: Work, numbers: Numbers, *, checkpoint: bool) -> float:
    """Predict the bytes kept for the backward pass.

    34 bytes a token, layer and channel in 16 bits, and 2 if only a block's input is kept
    (Korthikanti et al. 2022, tables 1 and 2: without the attention map, which the fused kernel
    does not keep), plus one block that is computed again.
    """
    one = work.tokens * work.width
    if checkpoint:
        return one * (2 * work.layers + numbers.activation)
    return one * work.layers * numbers.activation


def memory_bytes(
    work: Work, devices: int, parallel: Parallel, numbers: Numbers, *, checkpoint: bool
) -> float:
    """Predict the memory of one device."""
    return (
        state_bytes(work.parameters, devices, parallel, numbers)
        + gathered_bytes(work, devices, parallel, numbers)
        + activations(work, numbers, checkpoint=checkpoint)
    )


def sent_bytes(parameters: int, devices: int, parallel: Parallel, numbers: Numbers) -> float:
    """Predict the bytes that one device sends in a step, by rings over all devices.

    DDP sums gradients: a reduce-scatter and an all-gather. FSDP2 gathers the weights for the
    forward pass, again for the backward pass, and reduce-scatters gradients.
    """
    share = (devices - 1) / devices
    each = 2 * numbers.reduced if parallel == "ddp" else 2 * numbers.gathered + numbers.reduced
    return parameters * share * each


def communication(work: Work, cluster: Cluster, parallel: Parallel, numbers: Numbers) -> float:
    """Predict the seconds that a step's communication takes by itself."""
    size = work.parameters / work.blocks
    if parallel == "ddp":
        once = 2 * cluster.exchange(size * numbers.reduced)
    else:
        once = 2 * cluster.exchange(size * numbers.gathered)
        once += cluster.exchange(size * numbers.reduced)
    return work.blocks * once


def compute(work: Work, device: Device, *, checkpoint: bool) -> float:
    """Predict the seconds of forward and backward pass; with checkpoints, a second forward pass."""
    passes = 4 if checkpoint else 3
    return passes * work.forward / (device.peak * device.achieved)


def update(work: Work, devices: int, parallel: Parallel, device: Device, numbers: Numbers) -> float:
    """Predict the seconds of Adam: reads weight, gradient and moments, writes all but gradients."""
    own = work.parameters / (devices if parallel == "fsdp" else 1)
    touched = 2 * (numbers.weight + numbers.moments) + numbers.gradient
    return own * touched / device.stream


@dataclass(frozen=True)
class Step:
    """A predicted step, in seconds."""

    compute: float
    communication: float
    exposed: float  # communication that nothing hides
    update: float

    @property
    def seconds(self) -> float:
        """All of it."""
        return self.compute + self.exposed + self.update

    def efficiency(self, alone: "Step") -> float:
        """Compare its rate for each device with that of one device."""
        return alone.seconds / self.seconds


def step(
    work: Work,
    cluster: Cluster,
    parallel: Parallel,
    device: Device,
    numbers: Numbers,
    *,
    checkpoint: bool = False,
    overlap: float = 1.0,
) -> Step:
    """Predict a step.

    Communication runs beside the computation, but for the first and the last of the blocks: the
    first to be gathered and the last whose gradient is summed have nothing to hide behind.
    `overlap` is the share of the computation that may hide the others: 0 where the processor that
    computes also sends.
    """
    work_seconds = compute(work, device, checkpoint=checkpoint)
    sent = communication(work, cluster, parallel, numbers)
    # DDP sends only while the backward pass runs, two thirds of the three passes.
    hiding = overlap * work_seconds * (2 / 3 if parallel == "ddp" else 1)
    ends = sent / work.blocks if overlap > 0 else 0.0
    exposed = max(sent - hiding, ends)
    own = update(work, cluster.devices, parallel, device, numbers)
    return Step(work_seconds, sent, exposed, own)


def hidden_tokens(cluster: Cluster, device: Device, numbers: Numbers) -> float:
    """Predict how many tokens a device needs for DDP to hide its sums, however large the model is.

    A token costs 6 operations a parameter, 4 of them in the backward pass, which hides the sums.
    Without latencies, the embeddings and attention's own products.
    """
    without = Cluster(
        cluster.devices,
        cluster.per_host,
        replace(cluster.inside, latency=0.0),
        replace(cluster.between, latency=0.0),
    )
    seconds = 2 * without.exchange(numbers.reduced)  # of one parameter
    return seconds * device.peak * device.achieved / 4


# --- Predictions for H200 -------------------------------------------------------------------------

# NVIDIA's data sheet of the H200 SXM: 141 GB at 4.8 TB/s; bf16 1,979 TFLOP/s with sparsity, so 989
# without; NVLink 900 GB/s, 450 in each direction. DGX H200: eight ports of 400 Gb/s InfiniBand.
# Assumed: 40% of the peak, 80% of the bandwidths, the latencies.
H200 = Device(memory=141e9, peak=989e12, achieved=0.40, stream=0.8 * 4.8e12)
NVLINK = Link(bandwidth=0.8 * 450e9, latency=3e-6)
INFINIBAND = Link(bandwidth=0.8 * 50e9, latency=6e-6)
DEVICES = (1, 8, 64, 512)


def h200(devices: int) -> Cluster:
    """Describe hosts of eight H200."""
    return Cluster(devices, 8, NVLINK, INFINIBAND)


def translator(pairs: int = 512, length: int = 32, vocabulary: int = 32_000) -> Work:
    """Describe transformer-big with one vocabulary for both sides."""
    config = PRESETS["transformer-big"]
    assert isinstance(config, TransformerConfig)
    config = replace(config, vocabulary=vocabulary)
    layers = config.encoder_layers + config.decoder_layers
    return Work(
        "transformer-big",
        *_sizes(config),
        layers=layers,
        width=config.dim,
        tokens=pairs * length,  # of each side; a layer sees one of them
        forward=flops.translation(config, [(length, length)] * pairs),
        blocks=layers + 1,
    )


def image_classifier(images: int = 128, pixels: int = 224) -> Work:
    """Describe ViT-L/16."""
    config = PRESETS["vit-l"]
    assert isinstance(config, VitConfig)
    config = replace(config, height=pixels, width=pixels, classes=1000, channels=3)
    rows, columns = config.grid
    return Work(
        "ViT-L/16",
        *_sizes(config),
        layers=config.layers,
        width=config.dim,
        tokens=images * (rows * columns + 1),
        forward=images * flops.vit(config),
        blocks=config.layers + 1,
    )


def _sizes(config: ModelConfig) -> tuple[int, int]:
    """Count the parameters of a model, and of the largest part that is gathered at a time."""
    with torch.device("meta"):
        model = config.build()
    whole = sum(each.numel() for each in model.parameters())
    blocks = [sum(each.numel() for each in block.parameters()) for block in blocks_of(model)]
    return whole, max(*blocks, whole - sum(blocks))


def blocks_of(model: nn.Module) -> list[nn.Module]:
    """List the blocks of a Transformer, which FSDP2 shards one by one."""
    return [each for each in model.modules() if isinstance(each, EncoderBlock | DecoderBlock)]


def predict(works: Sequence[Work], achieved: float) -> str:
    """Write the predictions as tables."""
    device, numbers = replace(H200, achieved=achieved), Numbers()
    lines = [
        f"Predicted, not measured: {achieved:.0%} of {H200.peak / 1e12:.0f} TFLOP/s (bf16), "
        f"NVLink {NVLINK.bandwidth / 1e9:.0f} GB/s, InfiniBand {INFINIBAND.bandwidth / 1e9:.0f} "
        "GB/s in each direction.",
        "",
    ]
    head = (
        "| devices | parallel | state GB | memory GB | sent MB | sent bytes/token | compute ms | "
        "communication ms | exposed ms | step ms | efficiency | tokens/s |"
    )
    for work in works:
        lines += [
            f"{work.name}: {work.parameters / 1e6:.0f} million parameters, {work.tokens:,} tokens "
            f"a device and step, {3 * work.forward / 1e12:.1f} TFLOP a step.",
            "",
            head,
            "|" + "---|" * head.count(" |"),
        ]
        alone = step(work, h200(1), "ddp", device, numbers)
        for devices in DEVICES:
            for parallel in ("ddp", "fsdp") if devices > 1 else ("ddp",):
                found = step(work, h200(devices), parallel, device, numbers)
                sent = sent_bytes(work.parameters, devices, parallel, numbers)
                state = state_bytes(work.parameters, devices, parallel, numbers)
                memory = memory_bytes(work, devices, parallel, numbers, checkpoint=False)
                cells = (
                    f"{devices}",
                    parallel if devices > 1 else "none",
                    f"{state / 1e9:.2f}",
                    f"{memory / 1e9:.1f}",
                    f"{sent / 1e6:,.0f}",
                    f"{sent / work.tokens:,.0f}",
                    f"{1e3 * found.compute:.1f}",
                    f"{1e3 * found.communication:.1f}",
                    f"{1e3 * found.exposed:.1f}",
                    f"{1e3 * found.seconds:.1f}",
                    f"{found.efficiency(alone):.0%}",
                    f"{devices * work.tokens / found.seconds:,.0f}",
                )
                lines.append(f"| {' | '.join(cells)} |")
        lines.append("")
    tokens = ", ".join(
        f"{devices} devices {hidden_tokens(h200(devices), device, numbers):,.0f}"
        for devices in DEVICES[1:]
    )
    lines.append(f"Tokens a device and step from which DDP's sums are hidden: {tokens}.")
    return "\n".join(lines)


# --- Held against this machine --------------------------------------------------------------------

SIZES = (1 << 12, 1 << 16, 1 << 20, 1 << 22, 1 << 24)  # bytes of measured exchanges
PATIENCE = timedelta(seconds=120)


def fit(sizes: Sequence[float], seconds: Sequence[float], members: int) -> Link:
    """Find the link whose `exchange` explains measured times best, by relative least squares.

    seconds = (members - 1) * latency + size * (members - 1) / members / bandwidth
    """
    rows = torch.tensor(
        [
            [(members - 1) / t, size * (members - 1) / members / t]
            for size, t in zip(sizes, seconds, strict=True)
        ],
        dtype=torch.float64,
    )
    ones = torch.ones(len(rows), 1, dtype=torch.float64)
    latency, inverse = torch.linalg.lstsq(rows, ones).solution.flatten().tolist()
    return Link(1 / inverse if inverse > 0 else float("inf"), max(latency, 0.0))


def small_model(width: int, layers: int) -> nn.Module:
    """Build the encoder of a ViT, whose step is measured."""
    config = VitConfig(
        height=32,
        width=32,
        channels=3,
        patch=4,
        dim=width,
        layers=layers,
        heads=4,
        ffn_dim=4 * width,
        classes=10,
    )
    return config.build()


def _median(work: Callable[[], object], times: int) -> float:
    """Time a piece of work on all ranks together; the median of several runs."""
    seconds = []
    for number in range(times + 1):
        distributed.barrier()
        begun = time.perf_counter()
        work()
        distributed.barrier()
        if number:  # the first one warms up
            seconds.append(time.perf_counter() - begun)
    return statistics.median(seconds)


def _exchanges(ranks: int, times: int) -> dict[str, list[float]]:
    """Time exchanges of each size, in seconds."""
    found: dict[str, list[float]] = {"all-reduce": [], "all-gather": [], "reduce-scatter": []}
    for size in SIZES:
        whole = torch.ones(size // 4)
        part = torch.ones(size // 4 // ranks)
        works: dict[str, Callable[[], object]] = {
            "all-reduce": partial(distributed.all_reduce, whole),
            "all-gather": partial(distributed.all_gather_into_tensor, whole, part),
            "reduce-scatter": partial(distributed.reduce_scatter_tensor, part, whole),
        }
        for name, work in works.items():
            found[name].append(_median(work, times))
    return found


def _steps(parallel: str, arguments: argparse.Namespace) -> dict[str, float]:
    """Time a step, and the parts of it that communicate nothing."""
    from torch.distributed.fsdp import fully_shard
    from torch.nn.parallel import DistributedDataParallel

    torch.manual_seed(1)
    model: Any = small_model(arguments.width, arguments.layers)
    parameters = sum(each.numel() for each in model.parameters())
    if parallel == "ddp":
        model = DistributedDataParallel(model)
    elif parallel == "fsdp":
        for block in blocks_of(model):
            fully_shard(block)
        fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    images = torch.randn(arguments.batch, 3, 32, 32)
    labels = torch.zeros(arguments.batch, dtype=torch.long)

    def work() -> None:
        optimizer.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()

    return {"seconds": _median(work, arguments.times), "parameters": parameters}


def _rank(rank: int, ranks: int, folder: str, parallel: str, arguments: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", FutureWarning)  # of names that torch 2.8 has, and no others
    distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=ranks, timeout=PATIENCE
    )
    try:
        if parallel == "exchange":
            found: dict[str, Any] = dict(_exchanges(ranks, arguments.times))
        else:
            found = dict(_steps(parallel, arguments))
        if rank == 0:
            Path(folder, "found.json").write_text(dumps(found), encoding="utf-8")
    finally:
        distributed.destroy_process_group()


def _run(ranks: int, parallel: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """Run ranks on this machine, over the loopback interface."""
    import json

    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    with tempfile.TemporaryDirectory() as folder:
        given = (ranks, folder, parallel, arguments)
        spawn(_rank, args=given, nprocs=ranks)
        return json.loads(Path(folder, "found.json").read_text(encoding="utf-8"))


def predict_small(
    alone: float, parameters: int, link: Link, gather: Link, scatter: Link, ranks: int, cores: int
) -> dict[str, float]:
    """Predict a step in fp32 from the step of one rank and the links that were measured.

    Nothing is hidden: the processor that computes also sends. More ranks than processors take
    turns, in computing as in sending.
    """
    busy = max(1.0, ranks / cores)
    size = 4.0 * parameters
    ddp = link.exchange(size, ranks)  # the fitted link is that of a whole all-reduce
    fsdp = 2 * gather.exchange(size, ranks) + scatter.exchange(size, ranks)
    return {"ddp": busy * alone + ddp, "fsdp": busy * alone + fsdp}


def measure(arguments: argparse.Namespace) -> None:
    """Print predicted and measured steps."""
    others = others_while_idle()
    alone = _run(1, "none", arguments)
    parameters, cores = int(alone["parameters"]), os.cpu_count() or 1
    print(
        f"{parameters:,} parameters, batch {arguments.batch} a rank, 1 thread a rank, {cores} "
        f"processors; one rank: {1e3 * alone['seconds']:.1f} ms a step"
    )
    if others > BUSY:
        print(f"Disturbed: other processes take {others:.0%} of the machine; an indication only.")
    print(
        "| ranks | all-reduce MB/s | latency ms | parallel | predicted ms | measured ms | error |"
    )
    print("|---|---|---|---|---|---|---|")
    lines = []
    for ranks in arguments.ranks:
        exchanged = _run(ranks, "exchange", arguments)
        links = {name: fit(SIZES, seconds, ranks) for name, seconds in exchanged.items()}
        predicted = predict_small(
            alone["seconds"],
            parameters,
            links["all-reduce"],
            links["all-gather"],
            links["reduce-scatter"],
            ranks,
            cores,
        )
        for parallel in arguments.parallel:
            seconds = _run(ranks, parallel, arguments)["seconds"]
            error = predicted[parallel] / seconds - 1
            link = links["all-reduce"]
            print(
                f"| {ranks} | {link.bandwidth / 1e6:,.0f} | {1e3 * link.latency:.2f} | {parallel} "
                f"| {1e3 * predicted[parallel]:.1f} | {1e3 * seconds:.1f} | {error:+.0%} |",
                flush=True,
            )
            lines.append(
                {"ranks": ranks, "parallel": parallel, "predicted": predicted[parallel]}
                | {"measured": seconds, "exchanges": exchanged}
            )
    print(dumps({"alone": alone, "steps": lines, "machine": machine(), "others": others}))


def main(given: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks scale_model")
    parser.add_argument("what", nargs="?", choices=["predict", "measure"], default="predict")
    parser.add_argument("--achieved", type=float, default=H200.achieved, help="share of the peak")
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--parallel", nargs="+", choices=["ddp", "fsdp"], default=["ddp", "fsdp"])
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--batch", type=int, default=8, help="images a rank")
    parser.add_argument("--times", type=int, default=9, help="measured runs of each")
    arguments = parser.parse_args(given)
    if arguments.what == "measure":
        measure(arguments)
    else:
        print(predict([translator(), image_classifier()], arguments.achieved))
    return 0


if __name__ == "__main__":
    sys.exit(main())

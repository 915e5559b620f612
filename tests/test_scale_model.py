"""The small model of training on many devices, against cases that were computed by hand."""

import math

import pytest

from benchmarks.scale_model import (
    Cluster,
    Device,
    Link,
    Numbers,
    Parallel,
    Work,
    activations,
    communication,
    compute,
    fit,
    gathered_bytes,
    hidden_tokens,
    image_classifier,
    memory_bytes,
    predict_small,
    sent_bytes,
    state_bytes,
    step,
    translator,
    update,
)

# 100 bytes a second inside a host, 10 between hosts; no latency.
INSIDE, BETWEEN = Link(100, 0), Link(10, 0)
NUMBERS = Numbers()
WORK = Work("w", 1000, largest_block=100, layers=3, width=5, tokens=7, forward=300, blocks=4)
DEVICE = Device(memory=1e9, peak=200, achieved=0.5, stream=2800)


def test_a_ring() -> None:
    """Of 4: three messages of a quarter each; alone there is nothing to send."""
    link = Link(bandwidth=10, latency=0.5)
    assert link.exchange(80, 4) == pytest.approx(3 * (20 / 10 + 0.5))
    assert link.exchange(80, 1) == 0


def test_two_levels() -> None:
    """Two hosts of 4: 400 bytes inside take 3 s, then each device's 100 bytes between hosts 5 s."""
    cluster = Cluster(8, 4, INSIDE, BETWEEN)
    assert (cluster.local, cluster.hosts) == (4, 2)
    assert cluster.exchange(400) == pytest.approx(3 + 5)
    assert Cluster(2, 4, INSIDE, BETWEEN).exchange(400) == pytest.approx(2)


def test_memory() -> None:
    """16 bytes a parameter, divided by the devices with FSDP2, and what is whole for a while."""
    assert state_bytes(1000, 8, "ddp", NUMBERS) == 16_000
    assert state_bytes(1000, 8, "fsdp", NUMBERS) == 2_000
    assert gathered_bytes(WORK, 8, "ddp", NUMBERS) == 0
    assert gathered_bytes(WORK, 1, "fsdp", NUMBERS) == 0
    assert gathered_bytes(WORK, 8, "fsdp", NUMBERS) == 100 * (2 * 2 + 4)
    assert activations(WORK, NUMBERS, checkpoint=False) == 7 * 5 * 3 * 34
    assert activations(WORK, NUMBERS, checkpoint=True) == 7 * 5 * (2 * 3 + 34)
    whole = memory_bytes(WORK, 8, "fsdp", NUMBERS, checkpoint=False)
    assert whole == 2_000 + 800 + 3_570


@pytest.mark.parametrize(("parallel", "numbers", "bytes_"), [
    ("ddp", NUMBERS, 8),  # a gradient twice
    ("fsdp", NUMBERS, 8),  # a weight in bf16 twice, a gradient once
    ("fsdp", Numbers(gathered=4), 12),  # in fp32: half more than DDP
])  # fmt: skip
def test_sent(parallel: Parallel, numbers: Numbers, bytes_: int) -> None:
    """Bytes a parameter, of which each of 4 devices sends three quarters."""
    assert sent_bytes(1000, 4, parallel, numbers) == 1000 * bytes_ * 3 / 4
    assert sent_bytes(1000, 1, parallel, numbers) == 0


def test_what_is_sent_takes_the_time_that_the_link_says() -> None:
    """Without latency, bytes by bandwidth; in however many blocks."""
    cluster = Cluster(4, 8, INSIDE, BETWEEN)
    for parallel in ("ddp", "fsdp"):
        wanted = sent_bytes(1000, 4, parallel, NUMBERS) / 100
        assert communication(WORK, cluster, parallel, NUMBERS) == pytest.approx(wanted)


def test_a_step() -> None:
    """Forward 300 operations at 100 a second: 9 s for the three passes, 12 with a fourth."""
    assert compute(WORK, DEVICE, checkpoint=False) == pytest.approx(9)
    assert compute(WORK, DEVICE, checkpoint=True) == pytest.approx(12)
    assert update(WORK, 8, "ddp", DEVICE, NUMBERS) == pytest.approx(1000 * 28 / 2800)
    assert update(WORK, 8, "fsdp", DEVICE, NUMBERS) == pytest.approx(10 / 8)
    cluster = Cluster(4, 8, INSIDE, BETWEEN)  # 6,000 bytes: 60 s
    found = step(WORK, cluster, "ddp", DEVICE, NUMBERS)
    assert found.communication == pytest.approx(60)
    assert found.exposed == pytest.approx(60 - 6)  # the backward pass hides 6 s
    assert found.seconds == pytest.approx(9 + 54 + 10)
    fast = Cluster(4, 8, Link(10_000, 0), BETWEEN)  # 0.6 s, of which the last quarter is left
    assert step(WORK, fast, "ddp", DEVICE, NUMBERS).exposed == pytest.approx(0.15)
    nothing = step(WORK, cluster, "fsdp", DEVICE, NUMBERS, overlap=0)
    assert nothing.exposed == nothing.communication
    alone = step(WORK, Cluster(1, 8, INSIDE, BETWEEN), "ddp", DEVICE, NUMBERS)
    assert (alone.communication, alone.exposed) == (0, 0)
    assert found.efficiency(alone) == pytest.approx(19 / 73)


def test_tokens_that_hide_the_sums() -> None:
    """8 bytes and half of that by ring: 0.08 x 3/4 s a parameter; 4 operations take 0.04 s."""
    cluster = Cluster(4, 8, Link(100, 9.0), BETWEEN)
    assert hidden_tokens(cluster, DEVICE, NUMBERS) == pytest.approx(0.06 / 0.04)


def test_a_link_is_found_from_its_times() -> None:
    link = Link(bandwidth=3e8, latency=2e-4)
    sizes = (1e3, 1e5, 1e7)
    found = fit(sizes, [link.exchange(size, 4) for size in sizes], 4)
    assert found.bandwidth == pytest.approx(3e8)
    assert found.latency == pytest.approx(2e-4)


def test_ranks_share_processors() -> None:
    """Four on two processors compute in turns; 4,000 bytes in three messages of a quarter."""
    link, half = Link(1000, 0), Link(2000, 0)
    found = predict_small(1.0, 1000, link, half, link, ranks=4, cores=2)
    assert found["ddp"] == pytest.approx(2 + 3)
    assert found["fsdp"] == pytest.approx(2 + 2 * 1.5 + 3)


def test_the_models() -> None:
    """Sizes as published: Vaswani et al. 2017, table 3, and the atlas; about 6 FLOP a parameter."""
    big, vit = translator(), image_classifier()
    assert big.parameters == pytest.approx(213e6, rel=0.03)  # 37,000 subwords there
    assert vit.parameters == 304_326_632
    assert vit.largest_block == 12 * 1024**2 + 13 * 1024
    for work in (big, vit):
        assert work.largest_block < work.parameters
        assert math.isfinite(work.forward)
    # Two operations a parameter and token, and what attention compares.
    assert vit.forward / vit.tokens == pytest.approx(2 * vit.parameters, rel=0.07)

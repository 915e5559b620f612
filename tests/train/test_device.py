"""Which device computes, with how many threads, and what the processor is called."""

import platform
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import nn

from manyheads.errors import UsageError
from manyheads.train import device
from manyheads.train.device import (
    SMALL,
    autocast,
    best_device,
    find_device,
    inference_threads,
    limited_threads,
    processor,
    set_threads,
)


@pytest.fixture(autouse=True)
def two_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A process with two threads and no wish of the user's."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_threads() -> None:
    """A number sets them, 0 takes what there is; the answer is what will be used."""
    assert set_threads(0) == 2
    assert set_threads(1) == torch.get_num_threads() == 1
    assert set_threads(0) == 1


def test_small_models_use_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the number of parameters, unless the environment says how many."""
    with torch.device("meta"):
        small, large = nn.Linear(SMALL // 10 - 1, 10, bias=False), nn.Linear(SMALL // 10, 10)
        just = nn.Linear(SMALL // 10, 10, bias=False)
    assert inference_threads(small) == 1
    assert inference_threads(just) is inference_threads(large) is None
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert inference_threads(small) is None


def test_threads_are_as_before_afterwards() -> None:
    """Also after an error."""

    def fails() -> None:
        assert torch.get_num_threads() == 1
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), limited_threads(1):
        fails()
    assert torch.get_num_threads() == 2
    with limited_threads(None):
        assert torch.get_num_threads() == 2


def test_devices() -> None:
    """What is not there is refused with what there is."""
    assert find_device("cpu") == torch.device("cpu")
    assert find_device(None) == best_device()
    with pytest.raises(UsageError, match=r"no device 'cpuu': did you mean 'cpu'\? Devices: cpu"):
        find_device("cpuu")
    with pytest.raises(UsageError, match=r"no device ''\. Devices: cpu"):
        find_device("")
    with pytest.raises(
        UsageError, match=r"device 'meta' cannot be used here: .*leave `device` out"
    ):
        find_device("meta")  # its tensors hold no values
    number = torch.cuda.device_count()  # one more than there are
    with pytest.raises(
        UsageError, match=rf"device 'cuda:{number}' cannot be used here: .{{10,90}}\."
    ):
        find_device(f"cuda:{number}")


def test_a_gpu_is_taken_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """And listed, if another is asked for."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert best_device() == torch.device("cuda")
    with pytest.raises(UsageError, match=r"Devices: cpu, cuda:0, cuda:1\."):
        find_device("gpu")


def test_fp32_is_left_alone() -> None:
    """bf16 is asked for by the recipe, or it is not there."""
    cpu = torch.device("cpu")
    x = torch.ones(2, 2)
    with autocast(cpu, "fp32"):
        assert (x @ x).dtype == torch.float32
    with autocast(cpu, "bf16"):
        assert (x @ x).dtype == torch.bfloat16


@pytest.mark.parametrize(
    ("cpuinfo", "expected"),
    [
        ("processor\t: 0\nmodel name\t: A CPU: 3 GHz\nmodel name\t: B\n", "A CPU: 3 GHz"),  # x86-64
        ("processor\t: 0\nBogoMIPS\t: 50.00\n", "armv9"),  # ARM has no names there
        (None, "armv9"),  # other systems have no such file
    ],
)
def test_the_name_of_the_processor(
    cpuinfo: str | None, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the system where it says, or else from Python."""
    path = tmp_path / "cpuinfo"
    if cpuinfo is not None:
        path.write_text(cpuinfo, encoding="utf-8")
    monkeypatch.setattr(device, "Path", lambda name: path)
    monkeypatch.setattr(platform, "processor", lambda: "armv9")
    assert processor() == expected
    monkeypatch.setattr(platform, "processor", lambda: "")
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert processor() == ("aarch64" if expected == "armv9" else expected)

"""Memory that does not suffice is said before it is used up."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from manyheads import load
from manyheads.errors import FolderError, OutOfMemoryError, UsageError
from manyheads.fit.run_training import train
from manyheads.memory import available_memory
from manyheads.models.presets import PRESETS
from manyheads.project import capacity
from manyheads.project.capacity import ShapesOnly, at_most, check_memory
from manyheads.project.folder import ModelFolder
from manyheads.train.device import memory_errors, set_threads
from tests.made import CLASSIFY, Silent, write_halves, write_recipe

TINY, VIT = PRESETS["transformer-tiny"], PRESETS["vit-b"]


@pytest.mark.parametrize("name", PRESETS)
def test_shapes_without_values(name: str) -> None:
    """Nothing is allocated, whatever a model does to draw its weights."""
    with ShapesOnly():
        model = PRESETS[name].build()
    assert all(each.is_meta for each in (*model.parameters(), *model.buffers()))


@pytest.mark.parametrize(
    ("config", "largest"),
    [
        (replace(TINY, vocabulary=2 * 10**9), "embedding.weight (2000000000, 128)"),
        (replace(TINY, max_length=2 * 10**9), "positions.table (2000000000, 128)"),
        (replace(VIT, height=16 * 10**7), "positions.table (140000001, 768)"),
        (replace(VIT, dim=12 * 10**8), "larger than any memory"),
    ],
)
def test_a_model_that_is_too_large_names_its_largest_tensor(
    config: type[nn.Module], largest: str
) -> None:
    """So that a reader knows what to lower."""
    with pytest.raises(OutOfMemoryError) as caught:
        check_memory(config.build)  # type: ignore[attr-defined]
    assert largest in str(caught.value)


def test_training_needs_four_times_the_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights, gradients and two moments, all of the same size."""

    def build() -> nn.Module:
        return nn.Linear(100, 10, bias=False)

    monkeypatch.setattr(capacity, "available_memory", lambda: 16_000)
    check_memory(build)
    monkeypatch.setattr(capacity, "available_memory", lambda: 15_999)
    with pytest.raises(OutOfMemoryError, match=r"weight \(10, 100\)"):
        check_memory(build)
    monkeypatch.setattr(capacity, "available_memory", lambda: None)
    check_memory(build)  # not known: nothing to compare with


def test_a_run_that_does_not_fit_writes_nothing(tmp_path: Path) -> None:
    """The model is larger than the machine."""
    write_halves(tmp_path)
    recipe = write_recipe(tmp_path / "halves.toml", CLASSIFY, tmp_path)
    with pytest.raises(OutOfMemoryError, match="Training the model needs"):
        train(recipe, "model.ffn_dim=2000000000", out=tmp_path / "out", observer=Silent())
    assert not (tmp_path / "out").exists()


def test_there_is_memory() -> None:
    """In bytes, on any system that says so."""
    found = available_memory()
    assert found is None or found > 1 << 24


def test_a_model_larger_than_its_weights_is_not_built(own_classifier: Path) -> None:
    """Building it would take the memory before the difference is noticed."""
    with pytest.raises(FolderError, match="a larger model than the weights"), at_most(99):
        nn.Linear(10, 10)
    with at_most(110):
        nn.Linear(10, 10)
    nn.Linear(100, 100)  # counted no more
    assert ModelFolder(own_classifier).model() is not None


def allocate() -> torch.Tensor:
    return torch.empty(1 << 60)


def exhaust() -> None:
    raise MemoryError


def test_models_of_other_threads_are_not_counted() -> None:
    """A server loads several at the same time."""
    with at_most(10), ThreadPoolExecutor(1) as other:
        assert other.submit(nn.Linear, 10, 10).result().weight.numel() == 100


@pytest.mark.parametrize("call", [allocate, exhaust])
def test_an_allocation_that_fails(call: Callable[[], object]) -> None:
    """Torch's and Python's; other errors are left as they are."""
    with (
        pytest.raises(OutOfMemoryError, match=r"suffice\. Lower it\."),
        memory_errors("Lower it."),
    ):
        call()
    with pytest.raises(RuntimeError, match="else"), memory_errors("Lower it."):
        raise RuntimeError("something else")


@pytest.mark.parametrize("size", [0, -1, (0, 4), (4,), (4, 4, 4), 10**6, 4.0, "4"])
def test_an_image_size_that_no_image_has(classifier: Path, size: object) -> None:
    """Before anything is interpolated."""
    with pytest.raises(UsageError, match="`image_size` = "):
        load(classifier, image_size=size)  # type: ignore[call-overload]


def test_threads_that_no_machine_has() -> None:
    """OpenMP would end the process."""
    with pytest.raises(UsageError, match="at most 1024"):
        set_threads(10**9)

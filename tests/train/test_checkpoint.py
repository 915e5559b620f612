"""Checkpoints: whole or not there, checked when read, and never in the way of going on."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import nn
from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageWriter
from torch.distributed.checkpoint.state_dict_saver import save

from manyheads.errors import FolderError
from manyheads.files import sha256
from manyheads.models.transformer import Transformer
from manyheads.train import checkpoint
from manyheads.train.average import Average, ExponentialAverage
from manyheads.train.checkpoint import Progress
from manyheads.train.meter import Sums
from manyheads.train.model_tensors import restore, tensors
from manyheads.train.optim import Optimizer
from manyheads.train.optim import optimizer as build
from manyheads.train.sharded_checkpoint import read
from manyheads.train.train_config import TrainConfig
from tests.small import TRANSFORMERS
from tests.train.toy import Plane, Unplugged, config, network, run


def trained(model: nn.Module, how: TrainConfig) -> Optimizer:
    """One update, so that the optimizer has a state."""
    optimizer = build(model, how)
    sum(p.square().sum() for p in model.parameters()).backward()  # type: ignore[union-attr]
    optimizer.step()
    return optimizer


@pytest.mark.parametrize("muon", [False, True])
def test_all_comes_back(muon: bool, tmp_path: Path) -> None:
    """Weights, moments, step counters, and where the run is."""
    how = config(muon=muon)
    model, other = (Transformer(TRANSFORMERS["transformer-tiny"]) for _ in range(2))
    optimizer = trained(model, how)
    progress = Progress(step=3, epoch=1, index=2, seconds=1.5, best=0.25, stale=1)
    progress.unlogged = Sums(2, 64, 0.5, {"loss": 1.5, "accuracy": 0.25})
    average = ExponentialAverage(0.9)
    average.after_step(model, 1)
    checkpoint.save(tmp_path, model, optimizer, average, progress)
    other_optimizer = build(other, how)
    other_average = ExponentialAverage(0.9)
    assert checkpoint.load(tmp_path, other, other_optimizer, other_average) == progress
    assert other_average.state.keys() == average.state.keys()
    assert all(torch.equal(average.state[k], other_average.state[k]) for k in average.state)
    for one, two in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(one, two)
        state = other_optimizer.state[two]
        assert state.keys() == optimizer.state[one].keys()
        assert all(torch.equal(optimizer.state[one][key], state[key]) for key in state)


def test_no_checkpoint_is_a_fresh_start(tmp_path: Path) -> None:
    """Not an error: a run may be cut off before its first."""
    model = network()
    assert checkpoint.load(tmp_path / "state", model, build(model, config()), Average()) is None


def test_progress_is_read_without_the_weights(tmp_path: Path) -> None:
    """Of the newest checkpoint; nothing is said of one that is damaged or not there."""
    assert checkpoint.newest(tmp_path) is None
    model = network()
    optimizer = trained(model, config())
    for step in (8, 9, 10):
        checkpoint.save(tmp_path, model, optimizer, Average(), Progress(step=step, epoch=2))
    assert checkpoint.newest(tmp_path) == Progress(step=10, epoch=2)
    assert [path.name for path in checkpoint.checkpoints(tmp_path)] == [
        "step-000000009",
        "step-000000010",
    ]
    (tmp_path / "step-000000010" / "progress.json").write_text("{", encoding="utf-8")
    assert checkpoint.newest(tmp_path) is None


def test_moments_keep_their_own_precision(tmp_path: Path) -> None:
    """An optimizer may count more exactly than the weights it moves."""
    model, other = network(), network()
    optimizer, again = trained(model, config()), build(other, config())
    for state in optimizer.state.values():
        state["exp_avg"] = state["exp_avg"].double() / 3
    checkpoint.save(tmp_path, model, optimizer, Average(), Progress(step=1))
    checkpoint.load(tmp_path, other, again, Average())
    for one, two in zip(model.parameters(), other.parameters(), strict=True):
        assert again.state[two]["exp_avg"].dtype == torch.float64
        assert torch.equal(again.state[two]["exp_avg"], optimizer.state[one]["exp_avg"])


def test_tied_weights_are_stored_once() -> None:
    """By their first name, and they are still tied when they come back."""
    model = Transformer(TRANSFORMERS["transformer-tiny"])
    named = tensors(model)
    assert len({tensor.data_ptr() for tensor in named.values()}) == len(named)
    assert sum(tensor.numel() for tensor in named.values()) == sum(
        parameter.numel() for parameter in model.parameters()
    )
    other = Transformer(TRANSFORMERS["transformer-tiny"])
    restore(other, named, Path("model.safetensors"))
    assert other.output.weight.data_ptr() == other.embedding.weight.data_ptr()
    assert torch.equal(other.output.weight, model.output.weight)


def test_only_the_last_two_are_kept(tmp_path: Path) -> None:
    """The newest, and one in case the newest is damaged."""
    run(tmp_path, Plane(), config(save_every=2))
    names = [folder.name for folder in checkpoint.checkpoints(tmp_path / "state")]
    assert names == ["step-000000010", "step-000000012"]


def test_what_was_left_half_written_is_not_a_checkpoint(tmp_path: Path) -> None:
    """A kill leaves a partial folder behind; nobody reads it, and the next save clears it away."""
    model = network()
    optimizer = trained(model, config())
    checkpoint.save(tmp_path, model, optimizer, Average(), Progress(step=1))
    partial = tmp_path / ".manyheads-4321.part"
    partial.mkdir()
    (partial / "model.safetensors").write_bytes(b"half of")
    found = checkpoint.load(tmp_path, model, optimizer, Average())
    assert found is not None
    assert found.step == 1
    checkpoint.save(tmp_path, model, optimizer, Average(), Progress(step=2))
    assert [path.name for path in sorted(tmp_path.iterdir())] == [
        "step-000000001",
        "step-000000002",
    ]


def test_a_save_that_fails_leaves_the_older_checkpoint(tmp_path: Path) -> None:
    """Whatever goes wrong while writing: the new folder gets its name last."""
    model = network()
    optimizer = trained(model, config())
    checkpoint.save(tmp_path, model, optimizer, Average(), Progress(step=1))
    optimizer.state[next(model.parameters())]["note"] = "cannot be stored as a tensor"
    with pytest.raises(ValueError, match="note"):
        checkpoint.save(tmp_path, model, optimizer, Average(), Progress(step=2))
    assert [path.name for path in checkpoint.checkpoints(tmp_path)] == ["step-000000001"]


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.safetensors", "progress.json"])
@pytest.mark.parametrize("left", [0.0, 0.5, 0.99])
def test_a_truncated_checkpoint_is_refused_and_the_older_one_serves(
    tmp_path: Path, name: str, left: float
) -> None:
    """The message names the file and the older checkpoint; moved away, the run ends the same."""
    whole = run(tmp_path / "whole", Plane(), config())
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "cut", Plane(), config(), observer=Unplugged(10))
    older, newest = checkpoint.checkpoints(tmp_path / "cut" / "state")
    content = (newest / name).read_bytes()
    (newest / name).write_bytes(content[: int(len(content) * left)])
    with pytest.raises(FolderError) as caught:
        run(tmp_path / "cut", Plane(), config())
    message = str(caught.value)
    assert f"{newest} is damaged" in message
    assert f"resume from {older.name}" in message
    if name != "progress.json":
        assert name in message
    shutil.move(newest, tmp_path / "away")
    again = run(tmp_path / "cut", Plane(), config())
    assert all(map(torch.equal, again.state_dict().values(), whole.state_dict().values()))


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.safetensors", "progress.json"])
def test_a_file_missing_from_a_checkpoint(tmp_path: Path, name: str) -> None:
    """As damaged as a truncated one; without an older checkpoint, training starts again."""
    run(tmp_path, Plane(), config(steps=4))
    (only,) = checkpoint.checkpoints(tmp_path / "state")
    (only / name).unlink()
    with pytest.raises(FolderError, match="start again from the beginning"):
        run(tmp_path, Plane(), config())


def test_a_checkpoint_of_another_version_is_refused(tmp_path: Path) -> None:
    """Fields that this version does not know are not silently dropped."""
    run(tmp_path, Plane(), config(steps=4))
    (only,) = checkpoint.checkpoints(tmp_path / "state")
    document = json.loads((only / "progress.json").read_text())
    document["progress"]["moon"] = "full"
    (only / "progress.json").write_text(json.dumps(document))
    with pytest.raises(FolderError, match="moon"):
        run(tmp_path, Plane(), config())


def test_weights_of_another_model_are_refused(tmp_path: Path) -> None:
    """Each difference on a line: missing, not part of the model, another shape."""
    model = network()
    stored = dict(tensors(model))
    stored["0.weight"] = torch.zeros(4, 3)
    stored["9.weight"] = stored.pop("3.bias")
    with pytest.raises(FolderError) as caught:
        restore(model, stored, Path("runs/x/model.safetensors"))
    message = str(caught.value)
    assert "runs/x/model.safetensors" in message
    assert "3 differences" in message
    assert "- 0.weight: stored (4, 3), the model has (8, 3)" in message
    assert "- 3.bias: missing" in message
    assert "- 9.weight: not part of this model" in message


def test_a_checkpoint_is_plain_tensors_and_json(tmp_path: Path) -> None:
    """Readable by anything, and by nothing that would run code."""
    run(tmp_path, Plane(), config(steps=4))
    (only,) = checkpoint.checkpoints(tmp_path / "state")
    assert sorted(path.name for path in only.iterdir()) == [
        "average.safetensors",
        "model.safetensors",
        "optimizer.safetensors",
        "progress.json",
    ]
    assert "exp_avg/0.weight" in load_file(only / "optimizer.safetensors")
    assert json.loads((only / "progress.json").read_text())["progress"]["step"] == 4


def test_a_checkpoint_from_before_there_were_averages(tmp_path: Path) -> None:
    """Nor sums of losses: it goes on; but a file that is listed and missing is damage."""
    whole = run(tmp_path / "whole", Plane(), config())
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "cut", Plane(), config(), observer=Unplugged(9))
    newest = checkpoint.checkpoints(tmp_path / "cut" / "state")[-1]
    (newest / "average.safetensors").unlink()
    with pytest.raises(FolderError, match="damaged"):
        run(tmp_path / "cut", Plane(), config())
    document = json.loads((newest / "progress.json").read_text())
    del document["sha256"]["average.safetensors"]
    del document["progress"]["unlogged"]
    (newest / "progress.json").write_text(json.dumps(document))
    resumed = run(tmp_path / "cut", Plane(), config())
    for one, two in zip(whole.parameters(), resumed.parameters(), strict=True):
        assert torch.equal(one, two)


# --- Of several ranks ----------------------------------------------------------------------------


def sharded(folder: Path, model: nn.Module) -> Path:
    """Write what several ranks write, in one process; return the file of its tensors."""
    state = {f"model/{name}": tensor for name, tensor in tensors(model).items()}
    newest = folder / "step-000000001"
    newest.mkdir(parents=True)
    writer = HuggingFaceStorageWriter(str(newest), save_distributed=True)
    save(state, storage_writer=writer, no_dist=True)
    (file,) = newest.glob("*.safetensors")
    document = {"progress": {"step": 1}, "ranks": 2, "sha256": {file.name: sha256(file)}}
    (newest / "progress.json").write_text(json.dumps(document))
    return file


@pytest.mark.filterwarnings("ignore:torch.distributed is")
@pytest.mark.parametrize("left", [0.0, 0.5, 0.99])
def test_weights_of_several_ranks(tmp_path: Path, left: float) -> None:
    """Read alone, after the check of their hashes."""
    model, other = network(), network()
    file = sharded(tmp_path, model)
    found = checkpoint.checkpoints(tmp_path)
    with torch.no_grad():
        next(other.parameters()).zero_()
    checkpoint.read_model(found, other)
    assert all(map(torch.equal, model.parameters(), other.parameters()))
    content = file.read_bytes()
    file.write_bytes(content[: int(len(content) * left)])
    with pytest.raises(FolderError, match=rf"{found[-1]} is damaged: .*has changed"):
        checkpoint.read_model(found, other)


@pytest.mark.filterwarnings("ignore:torch.distributed is")
def test_an_error_while_ranks_read_names_the_folder(tmp_path: Path) -> None:
    """What torch raises then is no Exception."""
    model = network()
    file = sharded(tmp_path, model)
    file.write_bytes(file.read_bytes()[:-9])  # its header is whole
    state = {f"model/{name}": tensor for name, tensor in tensors(model).items()}
    with pytest.raises(FolderError, match=f"{file.parent} cannot be read: "):
        read(file.parent, state)

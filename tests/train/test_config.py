"""The [train] table: what a key means that is left out, and what cannot be meant together."""

from dataclasses import asdict

import pytest

from manyheads.train.train_config import EarlyStop, Restart, TrainConfig


def test_defaults() -> None:
    """Part of the meaning of every stored recipe that leaves a key out."""
    assert asdict(TrainConfig()) == {
        "steps": 1000,
        "accumulate": 1,
        "learning_rate": 1e-3,
        "schedule": "cosine",
        "warmup": 100,
        "restart": None,
        "weight_decay": 0.0,
        "beta1": 0.9,
        "beta2": 0.98,
        "muon": False,
        "layer_decay": 1.0,
        "freeze": (),
        "clip": 1.0,
        "label_smoothing": 0.0,
        "ema": 0.0,
        "average": 1,
        "toward_start": 0.0,
        "precision": "fp32",
        "workers": 0,
        "tensorboard": False,
        "threads": 0,
        "log_every": 50,
        "validate_every": 500,
        "validate_first": False,
        "save_every": 500,
        "early_stop": None,
        "save_dtype": "float32",
        "parallel": "ddp",
        "compile": False,
        "checkpoint_activations": False,
    }
    assert asdict(EarlyStop(metric="val_bleu")) == {"metric": "val_bleu", "patience": 10}
    assert asdict(Restart(step=3)) == {"step": 3, "scale": 1.0}


def test_one_average_at_a_time() -> None:
    """Either alone is fine."""
    assert TrainConfig(ema=0.9).ema == 0.9
    assert TrainConfig(average=2).average == 2
    with pytest.raises(ValueError, match=r"ema is 0\.9, average 2 and .*: choose one"):
        TrainConfig(ema=0.9, average=2)


@pytest.mark.parametrize("step", [10, 11])
def test_a_restart_before_the_end(step: int) -> None:
    """The last step that can begin again is the last but one."""
    assert TrainConfig(steps=10, restart=Restart(step=9)).restart == Restart(step=9)
    with pytest.raises(ValueError, match=rf"restart\.step is {step} and steps 10"):
        TrainConfig(steps=10, restart=Restart(step=step))

"""A run from recipe to folder: what is refused, what is written, and how it is gone on with."""

import errno
import fcntl
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Event

import pytest
import torch
from PIL import Image

from manyheads import load
from manyheads.data import split_register as splits
from manyheads.data.split_register import Split
from manyheads.data.tokenizers.tokenizer import Tokenizer, TokenizerConfig
from manyheads.errors import (
    DataError,
    FolderError,
    InterruptedRunError,
    NonFiniteLossError,
    RecipeError,
    TrainingError,
    UsageError,
)
from manyheads.files import sha256
from manyheads.fit import run_training
from manyheads.fit.inputs import images_digest, training_images
from manyheads.fit.run_training import train
from manyheads.project.base_recipe import read_recipe
from manyheads.project.folder import check_out
from manyheads.project.lock import LOCK, locked
from manyheads.tasks.classify.recipe import ClassifyRecipe
from tests.made import (
    CLASSIFY,
    TRANSLATE,
    Silent,
    numbers,
    read_jsonl,
    run,
    write_halves,
    write_lines,
    write_numbers,
    write_recipe,
)
from tests.remarks import remarks

SHORT = ("train.steps=4", "train.save_every=2", "train.validate_every=4", "train.log_every=1")


@pytest.fixture
def sentences(tmp_path: Path) -> Path:
    """A recipe with its data."""
    write_numbers(tmp_path, train=40, other=4)
    return write_recipe(tmp_path / "numbers.toml", TRANSLATE, tmp_path)


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """A recipe with its data."""
    write_halves(tmp_path)
    return write_recipe(tmp_path / "halves.toml", CLASSIFY, tmp_path)


class Said(Silent):
    """Remembers what was said."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, message: str) -> None:
        self.lines.append(message)


# --- What a run leaves behind -------------------------------------------------------------------


def test_the_result_is_the_stored_models(sentences: Path, tmp_path: Path) -> None:
    """What is returned is what is logged: the stored model, measured on the validation data."""
    line = run(sentences, tmp_path / "out", *SHORT)
    assert read_jsonl(tmp_path / "out" / "evaluations.jsonl") == [line]
    assert line["split"] == "valid"
    assert line["pairs"] == 4
    assert line["final"] is False


def test_the_observer_hears_what_happens(sentences: Path, tmp_path: Path) -> None:
    """Reading, learning a vocabulary, the model's size, and what was left out."""
    said = Said()
    recipe = read_recipe(sentences, [*SHORT, "train.max_length=6", "tokenizer.size=500"])
    train(recipe, out=tmp_path / "out", resume=False, observer=said)
    everything = "\n".join(said.lines)
    assert "reading numbers/train" in everything
    assert "vocabulary from 40 pairs" in everything
    assert re.search(r"the text gives \d+ pieces of 500, 256 of them bytes", everything)
    assert "of 40 pairs, longer than train.max_length = 6 tokens" in everything
    assert "parameters, threads: 1" in everything


@pytest.mark.parametrize("bf16", [True, False])
def test_bf16_is_not_imitated(
    monkeypatch: pytest.MonkeyPatch, images: Path, tmp_path: Path, bf16: bool
) -> None:
    """A processor without instructions for it computes in fp32, and says so."""
    monkeypatch.setattr(run_training, "multiplies_bf16", lambda device: bf16)
    said = Said()
    recipe = read_recipe(images, [*SHORT, "train.precision=bf16"])
    train(recipe, out=tmp_path / "out", resume=False, observer=said)
    assert any("precision fp32" in line for line in said.lines) is not bf16
    manifest = json.loads((tmp_path / "out" / "manyheads.json").read_text("utf-8"))
    assert manifest["precision"] == ("bf16" if bf16 else "fp32")


def test_a_run_that_was_begun_in_bf16_elsewhere(
    monkeypatch: pytest.MonkeyPatch, images: Path, tmp_path: Path
) -> None:
    """Chosen by measurement there, it is imitated here no more than one that was asked for."""
    monkeypatch.setattr(run_training, "multiplies_bf16", lambda device: True)
    monkeypatch.setattr(run_training, "fastest", lambda seconds: "bf16")
    run(images, tmp_path / "out", *SHORT, "train.precision=auto")
    manifest = tmp_path / "out" / "manyheads.json"
    assert json.loads(manifest.read_text("utf-8"))["precision"] == "bf16"
    monkeypatch.setattr(run_training, "multiplies_bf16", lambda device: False)
    recipe = read_recipe(images, [*SHORT, "train.precision=auto", "train.steps=6"])
    with remarks("other conditions"):
        train(recipe, out=tmp_path / "out", resume=True, observer=Said())
    assert json.loads(manifest.read_text("utf-8"))["precision"] == "fp32"


def test_the_same_recipe_gives_the_same_model(images: Path, tmp_path: Path) -> None:
    """Bit by bit; another seed gives another."""
    for name, seed in (("one", 1), ("two", 1), ("three", 2)):
        run(images, tmp_path / name, *SHORT, f"seed={seed}")
    one, two, three = (
        sha256(tmp_path / name / "model.safetensors") for name in ("one", "two", "three")
    )
    assert one == two != three


# --- What is refused ----------------------------------------------------------------------------


def test_a_folder_in_use_is_left_alone(images: Path, tmp_path: Path) -> None:
    """Neither overwritten nor mixed with, whatever its files are called: choose another."""
    out = tmp_path / "out"
    mine = ["thesis.tex", ".zsh_history.1", ".notes.2024.bak", "cache/mine", "README.md"]
    for name in mine:
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text("years of work")
    for resume in (False, True):
        with pytest.raises(
            UsageError, match=r"out is not empty, and no run.*another `out`"
        ) as caught:
            run(images, out, resume=resume)
        assert caught.value.exit_code == 2
    assert all((out / name).read_text() == "years of work" for name in mine)


def test_a_run_is_gone_on_with_or_left_alone(images: Path, tmp_path: Path) -> None:
    """Without --resume nothing happens; with it, only what a kill left half-written goes."""
    out = tmp_path / "out"
    run(images, out, *SHORT)
    (out / ".notes.1").write_text("mine")
    (out / ".manyheads-123.part").write_text("half")
    with pytest.raises(UsageError, match=r"out is not empty.*`resume=True`.*another `out`"):
        run(images, out, *SHORT)
    run(images, out, *SHORT, resume=True)
    assert (out / ".notes.1").exists()
    assert not (out / ".manyheads-123.part").exists()


def test_classes_that_changed_their_names(images: Path, tmp_path: Path) -> None:
    """The head has learned the old ones, in their order: another order would be a wrong answer."""
    out = tmp_path / "out"
    short = read_recipe(images, (*SHORT, "train.steps=8", "train.validate_every=2"))
    with pytest.raises(InterruptedRunError):
        train(short, out=out, observer=CtrlC(4))
    stored = (out / "labels.json").read_bytes()
    folder = tmp_path / "halves" / "left"
    folder.rename(folder.with_name("z-left"))
    with pytest.raises(DataError, match=r"right, z-left.*began with left, right"):
        run(images, out, *SHORT, resume=True)
    assert (out / "labels.json").read_bytes() == stored


def test_an_empty_folder_will_do(images: Path, tmp_path: Path) -> None:
    """As one that is not there yet."""
    (tmp_path / "out").mkdir()
    run(images, tmp_path / "out", *SHORT)


def test_a_file_is_no_folder(images: Path, tmp_path: Path) -> None:
    """With --resume or without."""
    (tmp_path / "out").write_text("")
    for resume in (False, True):
        with pytest.raises(UsageError, match="out is a file"):
            run(images, tmp_path / "out", resume=resume)


def test_data_that_cannot_be_used_leave_no_folder(sentences: Path, tmp_path: Path) -> None:
    """So that the same command works once they are mended."""
    train_de = tmp_path / "numbers" / "train.de"
    whole = train_de.read_bytes()
    train_de.write_bytes(whole.replace(b"eins", b"ein\xff", 1))
    with pytest.raises(DataError, match=r"train\.de, line \d+: byte \d+"):
        run(sentences, tmp_path / "out", *SHORT)
    assert not (tmp_path / "out").exists()
    train_de.write_bytes(whole)
    run(sentences, tmp_path / "out", *SHORT)


@pytest.mark.parametrize("asked", ["model.preset=seq2seq-gru", "train.freeze=['roof']"])
def test_what_cannot_be_trained_leaves_no_folder(
    asked: str, sentences: Path, tmp_path: Path
) -> None:
    """Found before anything is written, so that the next try meets no folder in use."""
    small = ["model.heads=", "model.ffn_dim=", "model.encoder_layers=", "model.decoder_layers="]
    changes = (*(small if "preset" in asked else []), asked, "train.muon=true")
    with pytest.raises(TrainingError, match=r"train\.(muon|freeze)"):
        run(sentences, tmp_path / "out", *changes)
    assert not (tmp_path / "out").exists()


def test_no_validation_data(images: Path, tmp_path: Path) -> None:
    """Names both keys that would give some."""
    with pytest.raises(RecipeError, match=r"data\.valid, or data\.hold_out"):
        run(images, tmp_path / "out", "data.hold_out=0")


def test_validation_classes_that_training_does_not_have(images: Path, tmp_path: Path) -> None:
    """Found before training."""
    shutil.copytree(tmp_path / "halves" / "left", tmp_path / "other" / "middle")
    with pytest.raises(DataError, match="does not have: middle"):
        run(images, tmp_path / "out", f"data.valid='{tmp_path / 'other'}'")


@pytest.mark.parametrize("key", ["train", "valid"])
def test_a_registered_test_split_is_not_trained_or_selected_on(
    sentences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    """Wherever the file lies and whatever it is called: its content is known."""
    digest = sha256(tmp_path / "numbers" / f"{key}.en")
    monkeypatch.setitem(splits._register(), digest, Split("numbers/secret.en", test=True))
    with pytest.raises(UsageError, match=r"is the test split numbers/secret\.en.*`final=True`"):
        run(sentences, tmp_path / "out", *SHORT)


@pytest.mark.parametrize("content_is_registered", [True, False])
def test_generated_test_dates_are_a_test_split_too(
    sentences: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    content_is_registered: bool,
) -> None:
    """They are no file, but as untouchable; also where another Babel makes others."""
    if not content_is_registered:
        for digest in [key for key, split in splits._register().items() if split.test]:
            monkeypatch.delitem(splits._register(), digest)
    with pytest.raises(UsageError, match=r"dates:test is (a|the) test split"):
        run(sentences, tmp_path / "out", "data.valid=dates:test")


def test_an_unknown_generated_split(sentences: Path, tmp_path: Path) -> None:
    """The nearest, and all there are."""
    with pytest.raises(RecipeError, match="'dates:trian': did you mean 'train'"):
        run(sentences, tmp_path / "out", "data.train=dates:trian")


def test_a_loss_that_is_no_number_names_the_lines(sentences: Path, tmp_path: Path) -> None:
    """With file and line numbers; the checkpoint before it serves another try."""
    wild = (*SHORT, "train.steps=20", "train.save_every=1", "train.learning_rate=1e38")
    with pytest.raises(NonFiniteLossError, match=r"train\.\{en,de\}, lines? \d+") as caught:
        run(sentences, tmp_path / "out", *wild)
    assert caught.value.exit_code == 1
    assert list((tmp_path / "out" / "state").glob("step-*"))
    assert read_jsonl(tmp_path / "out" / "metrics.jsonl")


# --- Going on -----------------------------------------------------------------------------------


class CtrlC(Silent):
    """Presses Ctrl-C at a step."""

    def __init__(self, step: int) -> None:
        self.step = step

    def progress(self, step: int, steps: int, line: dict[str, float]) -> None:
        if step == self.step:
            os.kill(os.getpid(), signal.SIGINT)


def test_ctrl_c_saves_and_says_how_to_go_on(images: Path, tmp_path: Path) -> None:
    """The resumed run ends with the same weights, bit by bit, and one line a log step."""
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    run(images, whole)
    with pytest.raises(InterruptedRunError) as caught:
        train(read_recipe(images), out=cut, resume=False, observer=CtrlC(13))
    message = str(caught.value)
    assert "Stopped after step 13 of 40" in message
    assert f"saved in {cut}" in message
    assert "`resume=True`" in message
    assert caught.value.exit_code == 130
    run(images, cut, resume=True)
    assert sha256(cut / "model.safetensors") == sha256(whole / "model.safetensors")
    steps = [line["step"] for line in read_jsonl(cut / "metrics.jsonl")]
    assert steps == [10, 20, 20, 30, 40, 40]


def test_resuming_what_has_not_begun_begins(images: Path, tmp_path: Path) -> None:
    """A run killed before its first checkpoint is gone on with by the same command."""
    run(images, tmp_path / "out", *SHORT, resume=True)
    assert load(tmp_path / "out")


def test_another_recipe_is_not_gone_on_with(images: Path, tmp_path: Path) -> None:
    """The difference is shown; the run is left as it was."""
    run(images, tmp_path / "out", *SHORT)
    before = sha256(tmp_path / "out" / "model.safetensors")
    with pytest.raises(RecipeError) as caught:
        run(images, tmp_path / "out", *SHORT, "train.learning_rate=0.5", resume=True)
    message = str(caught.value)
    assert "\n- train.learning_rate = 0.01\n+ train.learning_rate = 0.5\n" in message
    assert "clip" not in message
    assert sha256(tmp_path / "out" / "model.safetensors") == before


def test_another_number_of_threads_warns(images: Path, tmp_path: Path) -> None:
    """threads = 0 takes what there is; sums in another order are not bitwise the same."""
    all_cores = "train.threads=0"
    with pytest.raises(InterruptedRunError):
        train(
            read_recipe(images, [all_cores]), out=tmp_path / "out", resume=False, observer=CtrlC(3)
        )
    torch.set_num_threads(2)
    with remarks(r"bitwise.*threads was 1, is 2"):
        run(images, tmp_path / "out", all_cores, resume=True)


def test_a_finished_run_is_measured_again(images: Path, tmp_path: Path) -> None:
    """Resuming it trains no further and changes nothing."""
    first = run(images, tmp_path / "out", *SHORT)
    before = sha256(tmp_path / "out" / "model.safetensors")
    again = run(images, tmp_path / "out", *SHORT, resume=True)
    assert again["all"] == first["all"]
    assert sha256(tmp_path / "out" / "model.safetensors") == before


def test_a_resumed_run_of_format_1_can_be_read_at_once(images: Path, tmp_path: Path) -> None:
    """Its recipe is written anew, and so is that file's hash; the weights' is not."""
    out = tmp_path / "out"
    short = read_recipe(images, (*SHORT, "train.steps=8", "train.validate_every=2"))
    with pytest.raises(InterruptedRunError):
        train(short, out=out, observer=CtrlC(4))
    stored = (out / "recipe.toml").read_text()
    old = stored.replace("save_dtype =", "store =").replace("on_error =", "bad =")
    assert old != stored
    (out / "recipe.toml").write_text(old)
    manifest = json.loads((out / "manyheads.json").read_text())
    manifest["sha256"]["recipe.toml"] = sha256(out / "recipe.toml")
    (out / "manyheads.json").write_text(json.dumps(manifest | {"format_version": 1}))
    load(out)
    with pytest.raises(InterruptedRunError):
        train(short, out=out, resume=True, observer=CtrlC(5))
    load(out)


def test_training_leaves_the_process_as_it_was(images: Path, tmp_path: Path) -> None:
    """A library call: threads and torch's generator are the caller's."""
    before, state = torch.get_num_threads(), torch.get_rng_state()
    torch.set_num_threads(2)
    run(images, tmp_path / "out", *SHORT, "train.threads=1")
    assert torch.get_num_threads() == 2
    assert torch.equal(torch.get_rng_state(), state)
    torch.set_num_threads(before)


def test_a_damaged_model_of_a_finished_run_is_written_anew(images: Path, tmp_path: Path) -> None:
    """As the message about it says: --resume."""
    run(images, tmp_path / "out", *SHORT)
    weights = tmp_path / "out" / "model.safetensors"
    before = weights.read_bytes()
    weights.write_bytes(before[:100])
    with pytest.raises(FolderError, match=r"`resume=True`"):
        load(tmp_path / "out")
    run(images, tmp_path / "out", *SHORT, resume=True)
    assert weights.read_bytes() == before


@pytest.mark.parametrize("content", [b"\xff", b"a = [", b"a = " + b"[" * 9000, b"a = 2020-01-01"])
def test_a_damaged_recipe_of_a_run(images: Path, tmp_path: Path, content: bytes) -> None:
    """Resuming compares with it."""
    run(images, tmp_path / "out", *SHORT)
    (tmp_path / "out" / "recipe.toml").write_bytes(content)
    with pytest.raises(RecipeError, match=r"recipe\.toml is not valid|another recipe"):
        run(images, tmp_path / "out", *SHORT, resume=True)


@pytest.mark.parametrize("content", [b"\xff", b"[" * 99999, b'{"progress": {}, "sha256": []}'])
def test_a_damaged_progress_of_a_run(images: Path, tmp_path: Path, content: bytes) -> None:
    """Nested too deeply for Python, for one."""
    run(images, tmp_path / "out", *SHORT)
    *_, newest = sorted((tmp_path / "out" / "state").iterdir())
    (newest / "progress.json").write_bytes(content)
    with pytest.raises(FolderError, match=rf"{newest} is damaged"):
        run(images, tmp_path / "out", *SHORT, resume=True)


def test_a_truncated_checkpoint_loses_only_what_came_after_the_older(
    images: Path, tmp_path: Path
) -> None:
    """Moved away as the message says, the run ends as if nothing had been."""
    run(images, tmp_path / "whole")
    cut = tmp_path / "cut"
    with pytest.raises(InterruptedRunError):
        train(read_recipe(images), out=cut, resume=False, observer=CtrlC(25))
    older, newest = sorted((cut / "state").iterdir())
    weights = newest / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-9])
    with pytest.raises(FolderError, match=rf"{newest} is damaged.*resume from {older.name}"):
        run(images, cut, resume=True)
    shutil.move(newest, tmp_path / "away")
    run(images, cut, resume=True)
    assert sha256(cut / "model.safetensors") == sha256(tmp_path / "whole" / "model.safetensors")


def test_the_vocabulary_is_learned_once(sentences: Path, tmp_path: Path) -> None:
    """A resumed run reads its tokenizer: ids must mean the same."""
    out = tmp_path / "out"
    with pytest.raises(InterruptedRunError):
        train(read_recipe(sentences), out=out, resume=False, observer=CtrlC(3))
    said = Said()
    train(read_recipe(sentences), out=out, resume=True, observer=said)
    assert not any("learning a vocabulary" in line for line in said.lines)


def test_early_stopping_leaves_the_best_in_the_folder(images: Path, tmp_path: Path) -> None:
    """What is stored is what scored best, not what came last."""
    out = tmp_path / "out"
    line = run(
        images,
        out,
        "train.validate_every=5",
        "train.steps=60",
        "train.early_stop={metric='val_loss', patience=2}",
        "train.learning_rate=0.1",
        "train.schedule=constant",
    )
    logged = read_jsonl(out / "metrics.jsonl")
    losses = [each["val_loss"] for each in logged if "val_loss" in each]
    assert line["all"]["loss"]["value"] == pytest.approx(min(losses), rel=1e-5)
    assert losses[-1] > min(losses)
    assert len(losses) < 12


def test_text_of_any_kind_can_be_trained_on(sentences: Path, tmp_path: Path) -> None:
    """Quotes, separators inside a line, other scripts: a line stays a line."""
    source, target = numbers(30, 5)
    odd = ['"', "a\u2028b", "form\x0cfeed", "null", "한국어 🙂", "tab\there"]
    write_lines(tmp_path / "numbers" / "train.en", source + odd)
    write_lines(tmp_path / "numbers" / "train.de", target + odd)
    run(sentences, tmp_path / "out", *SHORT)


# --- One process a folder -----------------------------------------------------------------------


def test_another_training_in_the_folder_is_refused(images: Path, tmp_path: Path) -> None:
    """The message names the process; what it leaves behind is only the run."""
    out = tmp_path / "runs" / "out"
    with locked(out):
        with pytest.raises(UsageError, match=rf"out is in use: process {os.getpid()} on .* trains"):
            run(images, out, *SHORT)
        with pytest.raises(UsageError, match="is in use"):
            run(images, out, *SHORT, resume=True)
    assert not out.parent.exists()  # made for the lock, and empty
    run(images, out, *SHORT)
    assert LOCK not in [path.name for path in out.iterdir()]


def test_a_lock_ends_with_its_process(tmp_path: Path) -> None:
    """However it ends: the file that is left means nothing."""
    program = (
        "import os, sys, pathlib\n"
        "from manyheads.project.lock import locked\n"
        "with locked(pathlib.Path(sys.argv[1])):\n"
        "    print('locked', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    out = tmp_path / "out"
    with subprocess.Popen(
        [sys.executable, "-c", program, str(out)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"locked\n"
        with pytest.raises(UsageError, match=f"process {child.pid} "), locked(out):
            pass
        child.kill()
    assert (out / LOCK).exists()
    check_out(out, resume=False)  # as if it were empty
    with locked(out):
        pass
    assert not (out / LOCK).exists()


def test_a_folder_that_others_remove_is_made_again(tmp_path: Path) -> None:
    """Whoever leaves removes what stayed empty, at any time."""
    folder = tmp_path / "runs" / "out"
    ended = Event()

    def remove() -> None:
        while not ended.wait(1e-4):
            with suppress(OSError):
                folder.rmdir()
                folder.parent.rmdir()

    with ThreadPoolExecutor(1) as others:
        removed = others.submit(remove)
        try:
            for _ in range(500):
                with locked(folder):
                    assert (folder / LOCK).exists()
        finally:
            ended.set()
        removed.result()


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nothing")
    with pytest.raises(FileExistsError), locked(tmp_path / "link" / "out"):
        pass


def test_without_locks_training_goes_on(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some network file systems have none."""

    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    run(images, tmp_path / "out", *SHORT)


def test_several_processes_do_not_train_into_one_folder(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As torchrun starts them, without a process group."""
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(UsageError, match="WORLD_SIZE is 2"):
        run(images, tmp_path / "out", *SHORT)
    monkeypatch.setenv("WORLD_SIZE", "1")
    run(images, tmp_path / "out", *SHORT)


def test_what_is_no_recipe(tmp_path: Path) -> None:
    """Neither a name nor a recipe."""
    with pytest.raises(UsageError, match="is no recipe"):
        train({"task": "translate"}, out=tmp_path / "out")  # type: ignore[arg-type]


# --- What a resumed run finds again -------------------------------------------------------------


def test_another_tokenizer_is_refused(sentences: Path, tmp_path: Path) -> None:
    """Of the same size: nothing else would notice that its ids mean other words."""
    out = tmp_path / "out"
    with pytest.raises(InterruptedRunError):
        train(read_recipe(sentences), out=out, observer=CtrlC(3))
    size = len(Tokenizer((out / "tokenizer.model").read_bytes()))
    words = [f"{left}{right}" for left in "abcdefghij" for right in "klmnopqrst"] * 9
    other = Tokenizer.train(words, TokenizerConfig(kind="bpe", size=size))
    assert len(other) == size
    (out / "tokenizer.model").write_bytes(other.model)
    with pytest.raises(FolderError, match=r"tokenizer\.model is not the file that the run began"):
        train(read_recipe(sentences), out=out, resume=True, observer=Silent())


def test_changed_images_are_noticed(images: Path, tmp_path: Path) -> None:
    """Of the same size in bytes, under the same name."""
    recipe = read_recipe(images)
    assert isinstance(recipe, ClassifyRecipe)
    before = images_digest(*training_images(recipe, tmp_path, Silent().say))
    assert images_digest(*training_images(recipe, tmp_path, Silent().say)) == before
    path = next((tmp_path / "halves" / "left").iterdir())
    image = Image.open(path)
    image.putpixel((0, 0), image.getpixel((0, 0)) ^ 1)  # type: ignore[operator]
    size = path.stat().st_size
    content = io.BytesIO()
    image.save(content, "png")
    path.write_bytes(content.getvalue().ljust(size, b"\0")[: max(size, len(content.getvalue()))])
    assert images_digest(*training_images(recipe, tmp_path, Silent().say)) != before

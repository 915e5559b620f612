"""The engine seam: which device, how many threads, and that no model runs outside of it."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.utils._python_dispatch import TorchDispatchMode

import manyheads
from manyheads.asks.classify_request import ClassifyRequest
from manyheads.asks.generate_request import GenerateRequest
from manyheads.asks.translate_request import TranslateRequest
from manyheads.comparison import compare
from manyheads.doctor.diagnose import diagnose
from manyheads.documents.document_translation import translate_document
from manyheads.engines.engine import TorchEngine, find_engine
from manyheads.errors import UsageError
from manyheads.looking.look_inside import look, shapes_of
from manyheads.measure.stored_model import evaluate
from tests import language
from tests.made import CLASSIFY, run, write_halves, write_recipe


@pytest.fixture(autouse=True)
def two_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A process with two threads and no wish of the user's."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_engines() -> None:
    """What is not there is refused with what there is."""
    assert find_engine("torch") is TorchEngine
    with pytest.raises(UsageError, match=r"no engine 'torhc': did you mean 'torch'\? Engines: tor"):
        find_engine("torhc")


def test_load_takes_them(translator: Path) -> None:
    """In Python as on the command line."""
    found = manyheads.load(translator, engine="torch", device="cpu", threads=2)
    assert next(found.model.parameters()).device.type == "cpu"
    with found.engine.running():
        assert torch.get_num_threads() == 2
    for wrong in ({"engine": "tensor"}, {"device": "nonsense"}, {"threads": 0}):
        with pytest.raises(UsageError):
            manyheads.load(translator, **wrong)


@pytest.mark.parametrize("name", ["digits", "cifar10-cct-2-3x2", "read-ko", "emoji-search"])
def test_images_on_weights_in_bf16(name: str) -> None:
    """Pixels are rounded where they are read; vectors and probabilities are nearly the same."""
    rng = np.random.default_rng(0)
    image = rng.integers(0, 256, (40, 40, 3), dtype=np.uint8)
    answers = {}
    for engine in ("torch", "torch-bf16"):
        model = manyheads.load(name, engine=engine)
        kept = {each.dtype for each in model.model.parameters()}
        assert kept == {torch.float32 if engine == "torch" else torch.bfloat16}
        read = getattr(model, "embed_images", None) or getattr(model, "classify", None) or model
        answers[engine] = cast(Any, read)([image])
    if name == "emoji-search":
        ours, theirs = (answers[each][0] for each in ("torch", "torch-bf16"))
        assert ours @ theirs > 0.999


@pytest.mark.parametrize(
    ("name", "text"),
    [("date-en-ko", "Friday, 3 May 2024"), ("korean-spacing-lstm", "아버지가방에들어가신다")],
)
def test_texts_on_weights_in_bf16(name: str, text: str) -> None:
    """What the model is sure of stays."""
    exact, rounded = (manyheads.load(name, engine=each)(text) for each in ("torch", "torch-bf16"))
    assert exact == rounded


@pytest.fixture
def seen() -> Iterator[set[int]]:
    """The numbers of threads with which any module is called."""
    found: set[int] = set()
    hook = register_module_forward_pre_hook(lambda *_: found.add(torch.get_num_threads()))
    yield found
    hook.remove()


class Threads(TorchDispatchMode):
    """Keeps with how many threads weights are checked and copied."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seen: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in (torch.ops.aten.aminmax.default, torch.ops.aten.copy_.default):
            self.seen.add(torch.get_num_threads())
        return func(*args, **kwargs or {})


def test_weights_are_loaded_on_one_thread(own_translator: Path) -> None:
    """Checking and copying small tensors, for which two threads would wait for each other."""
    with Threads() as found:
        manyheads.load(own_translator)
    assert found.seen == {1}


Run = Callable[[Any], object]
TEXTS: dict[str, Run] = {
    "call": lambda model: model("nine"),
    "answer": lambda model: model.answer(TranslateRequest(texts=("nine",), align=True)),
    "document": lambda model: translate_document(model, "nine\n"),
    "evaluate": lambda model: evaluate(model, alignment=True, timing=True),
    "look": lambda model: look(model, "nine", word="nine", reference="neun", integrated=True),
    "shapes": lambda model: shapes_of(model, "nine"),
    "compare": lambda model: compare(str(model.folder.path), str(model.folder.path)),
    "doctor": lambda model: diagnose(str(model.folder.path)),
}


@pytest.mark.parametrize("verb", TEXTS)
def test_every_path_of_a_translator(own_translator: Path, seen: set[int], verb: str) -> None:
    """Runs on one thread, though the process has two."""
    model = manyheads.load(own_translator)
    TEXTS[verb](model)
    assert seen == {1}


IMAGES: dict[str, Run] = {
    "answer": lambda model: model.answer(ClassifyRequest(images=(model.image,))),
    "evaluate": evaluate,
    "look": lambda model: look(model, model.image, integrated=True),
    "shapes": lambda model: shapes_of(model, str(model.image)),
    "doctor": lambda model: diagnose(str(model.folder.path)),
}


@pytest.mark.parametrize("verb", IMAGES)
def test_every_path_of_a_classifier(
    own_classifier: Path, seen: set[int], verb: str, tmp_path: Path
) -> None:
    """Likewise."""
    from PIL import Image

    model: Any = manyheads.load(own_classifier)
    model.image = tmp_path / "a.png"
    Image.new("L", (28, 28), 200).save(model.image)
    IMAGES[verb](model)
    assert seen == {1}


def test_every_path_of_a_reconstructor(seen: set[int], tmp_path: Path) -> None:
    """Likewise, without answers to look at."""
    write_halves(tmp_path)
    text = CLASSIFY.replace('"classify"', '"reconstruct"')
    recipe = write_recipe(tmp_path / "halves.toml", text, tmp_path)
    run(recipe, tmp_path / "out", "train.steps=2", "model.dropout=")
    seen.clear()
    model: Any = manyheads.load(tmp_path / "out")
    evaluate(model)
    diagnose(str(tmp_path / "out"))
    assert seen == {1}
    for asked, given in ((model, "x"), (model.answer, ClassifyRequest(images=()))):
        with pytest.raises(UsageError, match=r"cannot be called|answers no requests"):
            asked(given)


@pytest.mark.parametrize("task", ["generate", "fill", "tag"])
def test_every_path_of_the_others(task: str, seen: set[int]) -> None:
    """Likewise; a number that was asked for is used."""
    folder = language.trained(task)
    text = "eins <mask>" if task == "fill" else "eins"
    model: Any = manyheads.load(folder)
    model(text)
    look(model, text)
    shapes_of(model, text)
    evaluate(model)
    diagnose(str(folder))
    if task == "generate":
        model.answer(GenerateRequest(texts=(text,)))
        model.score([text])
    assert seen == {1}
    seen.clear()
    model = manyheads.load(folder, threads=2)
    model(text)
    evaluate(model)
    assert seen == {2}


@pytest.mark.parametrize("name", ["ctranslate2", "onnx", "openvino"])
def test_other_engines_refuse_an_edit(name: str) -> None:
    """They would answer as if nothing had been changed."""
    engine = find_engine(name)(None, 1)

    def run() -> None:
        with manyheads.edit(), engine.running():
            pass

    with engine.running():
        pass
    with pytest.raises(UsageError, match=f"engine {name}"):
        run()

"""Adding from outside: the examples as a reader runs them, plugins, and folders that need one."""

import ast
import asyncio
import dataclasses
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

import manyheads
from manyheads.data.images.image_file import FORMATS as IMAGE_FORMATS
from manyheads.data.images.image_file import open_image
from manyheads.data.text.formats import FORMATS as TEXT_FORMATS
from manyheads.data.text.formats import Pair, read_pairs
from manyheads.engines.engine import ENGINES, find_engine
from manyheads.engines.exporter import EXPORTERS, find_exporter
from manyheads.engines.onnx.graph_files import describe, graphs
from manyheads.engines.web.exporter import describe_for_page
from manyheads.errors import DataError, FolderError, NotFoundError, RecipeError, UsageError
from manyheads.extend import (
    BatchRequest,
    ClassifyAnswer,
    ClassifyRequest,
    ClassProbability,
    ExportOptions,
    ImageFormat,
    ModelFolder,
    OutputClasses,
    Pipeline,
    Predictor,
    Recipe,
    TranslateAnswer,
    TranslatedText,
    TranslateRequest,
    read_json,
    register_engine,
    register_image_format,
    register_preset,
    register_task,
    register_text_format,
)
from manyheads.models import PRESETS, ModelConfig, VitConfig, presets
from manyheads.models.components import ATTENTIONS, POSITIONS
from manyheads.project import plugins, registry
from manyheads.project.base_recipe import read_recipe
from manyheads.project.paths import find_data
from manyheads.project.plugins import home, load_plugin
from manyheads.web.ask_queue import job_of
from manyheads.web.problem_json import ProblemError
from manyheads.web.request_bodies import check_limits
from manyheads.web.served import Served, ServedOptions
from manyheads.web.settings import Limits
from tests import squares
from tests.cli.conftest import Call, call  # noqa: F401 - a fixture
from tests.made import CLASSIFY, TRANSLATE, half, write_halves, write_numbers, write_recipe

ROOT = Path(__file__).parents[1]
EXTEND = ROOT / "examples" / "extend"
EXAMPLES = sorted(EXTEND.glob("*.py"))
GUIDE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n# (\w+\.py)\n(.*?)```", GUIDE, flags=re.DOTALL)


def started(*words: str | Path, path: str | Path = "") -> subprocess.CompletedProcess[str]:
    """Run Python with these arguments in a process of its own."""
    return subprocess.run(
        [sys.executable, *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join((str(path or EXTEND), str(ROOT / "src")))},
    )


@pytest.fixture
def undone() -> Iterator[None]:
    """Forget afterwards what plugins brought into this process."""
    tables: list[Any] = [PRESETS, registry.TASKS, presets.REGISTERED_BY]
    tables += [TEXT_FORMATS, IMAGE_FORMATS, ENGINES, EXPORTERS]
    tables += [POSITIONS, ATTENTIONS, plugins.LOADED]
    before = [table.copy() for table in tables]
    yield
    for table, known in zip(tables, before, strict=True):
        table.clear()
        table.update(known)
    for name in [each for each in sys.modules if each.startswith(("own_", "sizes", "broken"))]:
        del sys.modules[name]


# --- The examples --------------------------------------------------------------------------------


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_alone(example: Path) -> None:
    """What it prints is what it promises."""
    done = started(example)
    assert done.returncode == 0, done.stderr
    if example.stem == "own_attention":
        near, *_, far = re.findall(r"\d\.\d+", done.stdout.splitlines()[0])
        assert float(near) < float(far) - 0.2  # a steep slope looks near, a flat one far
    elif example.stem == "own_model":
        assert int(re.findall(r"(\d+)%", done.stdout)[0]) > 90
    else:
        error, total, other = re.findall(r"\d+\.\d+", done.stdout)
        assert float(error) < 1
        assert abs(float(other) - 3) < 1
        assert abs(float(total) - 10) < 1


@pytest.mark.usefixtures("undone")
def test_own_attention_weights_by_distance() -> None:
    """Without scores of its own: softmax(-slope * distance), on a row of two patches by hand."""
    load_plugin(str(EXTEND / "own_attention.py"))
    example = sys.modules["own_attention"]
    attention = example.AlibiAttention(4, 2, (1, 2))
    torch.nn.init.zeros_(attention.qkv.weight)
    torch.nn.init.zeros_(attention.qkv.bias)
    with manyheads.record() as trace:
        attention(torch.randn(1, 2, 4))
    (record,) = trace
    near = [1 / (1 + np.exp(-(2**-slope))) for slope in (4, 8)]  # heads 1 and 2 of 2
    expected = torch.tensor([[[each, 1 - each], [1 - each, each]] for each in near])
    torch.testing.assert_close(record.weights()[0], expected.float())  # type: ignore[attr-defined]
    assert example.distances(2, 3)[0].tolist() == [0, 1, 2, 1, 2, 3]


def imported(code: str) -> Iterator[tuple[str, str]]:
    """Modules of Manyheads, and the names that are imported from them."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("manyheads"):
            yield from ((node.module or "", alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((a.name, "__doc__") for a in node.names if a.name.startswith("manyheads"))


def test_examples_and_guide_import_public_names_only() -> None:
    public = {f"manyheads.{room}" for room in ("errors", "extend", "models", "nn", "train")}
    codes = [path.read_text(encoding="utf-8") for path in EXAMPLES] + [code for _, code in BLOCKS]
    found = [each for code in codes for each in imported(code)]
    assert len(found) > 20
    for module, name in found:
        assert module in public | {"manyheads"}
        assert name == "__doc__" or name in import_module(module).__all__, f"{module}.{name}"


# --- The guide -----------------------------------------------------------------------------------


@pytest.fixture
def guide(tmp_path: Path, undone: None) -> Path:
    """Load every file that the guide shows."""
    for name, code in BLOCKS:
        (tmp_path / name).write_text(code, encoding="utf-8")
        load_plugin(str(tmp_path / name))
    return tmp_path


def test_the_guide_shows_files(guide: Path) -> None:
    assert {name for name, _ in BLOCKS} == {
        "own_encoder.py",
        "own_text_parts.py",
        "own_text_format.py",
        "own_image_format.py",
        "own_engine.py",
        "own_export.py",
    }


def with_encoder(task: str, encoder: str, folder: Path) -> Path:
    """Train two steps with an image encoder; return the folder of the run."""
    head, tail = squares.TEXTS[task].split("[model.image]")
    text = f'{head.rstrip()}\nencoder = "{encoder}"\n\n[train]{tail.partition("[train]")[2]}'
    recipe = write_recipe(folder / f"{task}.toml", text, squares.root())
    manyheads.train(
        recipe, "train.steps=2", "train.validate_every=2", out=folder / f"{task}-{encoder}"
    )
    return folder / f"{task}-{encoder}"


def test_an_image_encoder_from_outside(guide: Path, call: Call) -> None:  # noqa: F811
    """Under a decoder, whose words are shown on the image; and as the tower of a matcher."""
    image, other = squares.write_files(guide / "images", 2)
    captioner = with_encoder("caption", "tiles", guide)
    assert call("caption", image, other, "--model", captioner).out.count("\n") == 2
    view = json.loads(call("look", captioner, image, "--reference", "red left", "--json").out)
    assert [each["name"] for each in view["overlays"]] == [
        "cross-attention: red",
        "cross-attention: left",
    ]
    matcher = with_encoder("match", "tiles", guide)
    assert call("index", guide / "images", "--model", matcher, "--out", guide / "index").code == 0
    assert call("search", "red left", "--index", guide / "index").out.count(".png") == 2


@pytest.mark.parametrize("start", ["pass", "start_image(images)"])
def test_an_image_encoder_that_does_not_record_where_its_parts_are(
    guide: Path,
    call: Call,  # noqa: F811
    start: str,
) -> None:
    """No positions, or those of the pixels: `look` says what to call."""
    code = dict(BLOCKS)["own_encoder.py"].replace('"tiles"', '"lost"')
    code = code.replace("start_image(images)", start).replace("track_modules([self.tiles])", "pass")
    (guide / "own_lost.py").write_text(code, encoding="utf-8")
    load_plugin(str(guide / "own_lost.py"))
    (image,) = squares.write_files(guide / "images", 1)
    status, out, err = call("look", with_encoder("caption", "lost", guide), image)
    assert (status, out) == (2, "")
    assert "calls start_image(images) first" in err


def test_parts_of_a_translator_by_name(
    guide: Path,
    call: Call,  # noqa: F811
) -> None:
    """Trained, searched with a cache, and stored: the map is what its formula says."""
    write_numbers(guide, train=40, other=6)
    recipe = write_recipe(guide / "parts.toml", TRANSLATE, guide)
    plugins.LOADED.clear()
    changes = ("model.attention=distance", "model.positions=sized", "train.steps=4")
    manyheads.train(recipe, *changes, out=guide / "run")
    translate = manyheads.load(guide / "run", manyheads.Translator)
    model: Any = translate.model
    assert type(model.decoder.blocks[0].attention).__name__ == "DistanceAttention"
    assert model.positions.size.requires_grad
    # With a cache, each step sees the same distances as the whole target at once.
    (best,) = translate.translate(["two three"])[0]
    ids = torch.tensor([[model.config.start, *best.tokens, model.config.end]])
    source = translate.tokenizers.source.encode(["two three"])[0]
    with torch.inference_mode():
        whole = model(torch.tensor([[*source, model.config.end]]), ids[:, :-1]).log_softmax(-1)
    scores = whole.gather(2, ids[:, 1:, None])[0, :, 0]
    if best.finished:
        assert scores.tolist() == pytest.approx(best.token_log_probabilities, abs=1e-4)
    # softmax(-slope * distance) where queries and keys are zero.
    attention = sys.modules["own_text_parts"].DistanceAttention(4, 2)
    torch.nn.init.zeros_(attention.qkv.weight)
    with manyheads.record() as trace, torch.inference_mode():
        attention(torch.zeros(1, 3, 4))
    kept: Any = next(iter(trace))
    row = kept.weights()[0, 0, 0]  # the first of two heads has the slope 1/16
    expected = torch.tensor([0.0, -1 / 16, -2 / 16]).exp()
    torch.testing.assert_close(row, expected / expected.sum())
    # The folder knows which module it needs, though nothing was given as a plugin.
    assert read_json(guide / "run" / "manyheads.json")["plugins"] == ["own_text_parts"]
    code, _, err = call("export", guide / "run", "--to", "ctranslate2")
    assert code == 2
    assert "no attention 'distance'" in err


@pytest.mark.usefixtures("undone")
def test_parts_that_are_not_known_or_of_the_wrong_kind(tmp_path: Path) -> None:
    recipe = write_recipe(tmp_path / "parts.toml", TRANSLATE, tmp_path)
    with pytest.raises(RecipeError, match=r"no kind of attention 'softmx': did you mean 'softmax'"):
        read_recipe(recipe, ["model.attention=softmx"])
    with pytest.raises(RecipeError, match=r"no kind of positions 'sinus'.*learned, none, rotary"):
        read_recipe(recipe, ["model.positions=sinus"])
    # In a process without the type checks of these tests.
    calls = (
        "register_attention('mine', dict)",
        "register_positions('mine', 3)",
        "register_positions('learned', dict)",
        "register_attention('', attention)",
    )
    code = "from manyheads.extend import register_attention, register_positions\n"
    code += "from manyheads.errors import UsageError\n"
    code += "from manyheads.nn import MultiHeadAttention as attention\n"
    for each in calls:
        code += f"try:\n    {each}\nexcept UsageError as error:\n    print(error)\n"
    printed = started("-c", code).stdout.splitlines()
    for line, wanted in zip(
        printed,
        ("inherits manyheads.nn.MultiHeadAttention", "inherits torch.nn.Module", "such a", "text"),
        strict=True,
    ):
        assert wanted in line


def test_a_text_format_from_outside(guide: Path) -> None:
    """Read like the others; a line that is not what the format says is named."""
    path = guide / "corpus.bars"
    path.write_text("one ||| eins\ntwo ||| zwei\n", encoding="utf-8")
    assert list(read_pairs(path, "en", "de")) == [Pair(1, "one", "eins"), Pair(2, "two", "zwei")]
    path.write_text("one ||| eins\ntwo\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"corpus\.bars, line 2: no bars"):
        list(read_pairs(path, "en", "de"))


def test_an_image_format_from_outside(guide: Path, own_classifier: Path) -> None:
    """A file is known by its content, listed by its ending, and classified like any other."""
    values = np.asarray(half(0, 1).convert("RGBA"))
    header = b"farbfeld" + np.array([6, 4], ">u4").tobytes()
    path = guide / "half.ff"
    path.write_bytes(header + (values.astype(">u2") * 257).tobytes())
    assert np.array_equal(np.asarray(open_image(path)), values)
    classifier = manyheads.load(own_classifier)
    png = guide / "half.png"
    Image.fromarray(values).save(png)
    assert classifier.classify([path]) == classifier.classify([png])  # type: ignore[attr-defined]


def test_an_engine_from_outside(
    guide: Path, own_classifier: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The predictor is the same; what runs it tells how long it took."""
    timed = manyheads.load(own_classifier, engine="timed")
    image = half(0, 1)
    assert timed(image) == manyheads.load(own_classifier)(image)
    assert re.search(r"\d ms", capsys.readouterr().err)


def test_an_exported_graph_answers_like_torch(guide: Path) -> None:
    """For any number of images; in a process without the checks of shapes, which fix sizes."""
    program = (
        "import own_export, manyheads, numpy as np\n"
        "from PIL import Image\n"
        "draw = np.random.default_rng(1).integers\n"
        "images = [Image.fromarray(draw(0, 255, (8, 8)).astype('uint8')) for _ in range(3)]\n"
        "torch, graph = manyheads.load('digits'), manyheads.load('digits', engine='exported')\n"
        "assert type(graph.model).__name__ != type(torch.model).__name__\n"
        "for some in (images[:1], images):\n"
        "    for a, b in zip(torch.classify(some), graph.classify(some), strict=True):\n"
        "        assert np.allclose([p for _, p in a], [p for _, p in b], atol=1e-5)\n"
    )
    done = started("-c", program, path=guide)
    assert done.returncode == 0, done.stderr


@pytest.mark.usefixtures("undone")
def test_what_is_registered_replaces_nothing_and_is_checked() -> None:
    """The same rule for every table; the same entry again changes nothing."""

    class Task(Pipeline[Any, Any]):
        task, recipe, predictor = "own", Recipe, Predictor
        files: ClassVar[Any] = "words.json"

        def prepare(self, recipe: Any, out: Path, say: Any) -> Any: ...

    png, none = ImageFormat(b"x", lambda content: content), "it lacks being"  # type: ignore[arg-type,return-value]
    wrong: list[tuple[Any, tuple[Any, ...], str]] = [
        (register_engine, ("torch", find_engine("torch").__class__), "load, running"),
        (register_engine, ("bad", 3), f"{none} a class, load"),
        (register_engine, (3, find_engine("torch")), "name of an engine is 3"),
        (register_text_format, (".tsv", print), "text format '.tsv' already"),
        (register_text_format, ("tsv", print), "ending 'tsv' is none"),
        (register_text_format, (".own", 3), f"{none} a function"),
        (register_image_format, (".png", png), "image format '.png' already"),
        (register_image_format, (".own", 3), f"{none} an ImageFormat"),
        (register_preset, (3, VitConfig()), "name of a preset is 3"),
        (register_preset, ("vit-b", VitConfig(dim=8)), "preset 'vit-b' already"),
        (register_task, (Task,), f"{none} an instance"),
        (register_task, (Task(),), "a tuple of names as files"),
        (register_task, (3,), "lacks task, recipe, predictor, prepare"),
    ]
    for register, given, message in wrong:
        with pytest.raises(UsageError, match=message):
            inspect.unwrap(register)(*given)
    register_engine("again", find_engine("torch"))
    register_engine("again", find_engine("torch"))
    register_image_format(".jfif")
    assert IMAGE_FORMATS[".jfif"] is None


@pytest.mark.usefixtures("undone")
def test_a_model_that_cannot_be_trained_is_refused_before_training(tmp_path: Path) -> None:
    """With the call, the members and the fields that the task asks for."""
    (tmp_path / "own_wrong.py").write_text(
        "import manyheads\n"
        "from dataclasses import dataclass\n"
        "from typing import ClassVar\n"
        "from torch import nn\n"
        "@dataclass(frozen=True, kw_only=True)\n"
        "class Few(manyheads.models.ModelConfig):\n"
        "    tasks: ClassVar[tuple[str, ...]] = ('translate', 'classify')\n"
        "    vocabulary: int = 8\n"
        "    def build(self): return nn.Linear(2, 2)\n"
        "@dataclass(frozen=True, kw_only=True)\n"
        "class Wrong(Few):\n"
        "    pad: int = 0\n    start: int = 1\n    end: int = 2\n"
        "manyheads.register_preset('few', Few())\n"
        "manyheads.register_preset('wrong', Wrong())\n"
    )
    load_plugin(str(tmp_path / "own_wrong.py"))
    write_numbers(tmp_path, train=8)
    pairs = write_recipe(tmp_path / "numbers.toml", TRANSLATE, tmp_path)
    sizes = ("dim", "heads", "ffn_dim", "encoder_layers", "decoder_layers", "dropout")
    plain = [f"model.{key}=" for key in sizes]
    with pytest.raises(
        UsageError, match="Few lacks end, pad, start, which the task 'translate' needs"
    ):
        manyheads.train(pairs, "model.preset=few", *plain, out=tmp_path / "out")
    message = (
        r"Linear cannot be trained for the task 'translate': it lacks "
        r"forward\(source, target, scored, readout\), config, start, step, reorder, keep"
    )
    with pytest.raises(UsageError, match=message):
        manyheads.train(pairs, "model.preset=wrong", *plain, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("undone")
def test_a_string_of_tasks_is_no_tuple() -> None:
    example = load_example("own_model")
    config = dataclasses.make_dataclass(
        "Config", [], bases=(example.MixerConfig,), frozen=True, namespace={"tasks": "classify"}
    )
    with pytest.raises(UsageError, match="it lacks a tuple of names as tasks"):
        register_preset("text", config())


def load_example(name: str) -> Any:
    load_plugin(str(EXTEND / f"{name}.py"))
    return sys.modules[name]


# --- Plugins -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with data, and runs of the own model and the own task, by the command line."""
    folder = tmp_path_factory.mktemp("extend")
    write = "import sys, pathlib, own_model as m, own_task as t\nfolder = pathlib.Path(sys.argv[1])"
    write += "\nm.write_stripes(folder)\nt.write_sums(folder)"
    assert started("-c", write, folder, path=EXTEND).returncode == 0
    for recipe, plugin, run in (("stripes", "own_model", "model"), ("sums", "own_task", "task")):
        words = (folder / f"{recipe}.toml", f"data.root={folder}", "train.steps=20")
        given = ("--out", folder / run, "--plugin", EXTEND / f"{plugin}.py")
        done = started("-m", "manyheads", "train", *words, *given)
        assert done.returncode == 0, done.stderr
    return folder


def test_a_folder_names_the_plugin_that_it_needs(trained: Path) -> None:
    """And imports nothing by itself, although Python would find the module."""
    program = (
        "import sys, manyheads\n"
        "from manyheads.errors import FolderError\n"
        "for run, plugin in (('model', 'own_model'), ('task', 'own_task')):\n"
        "    try:\n        manyheads.load(f'{sys.argv[1]}/{run}')\n"
        "    except FolderError as error: print(error)\n"
        "    assert plugin not in sys.modules\n"
    )
    done = started("-c", program, trained, path=EXTEND)
    assert done.returncode == 0, done.stderr
    for plugin, said in zip(("own_model", "own_task"), done.stdout.splitlines(), strict=True):
        assert f"needs a plugin that is not loaded: {plugin}" in said
        assert f"`plugin={plugin}`" in said
        assert f"`plugin=FOLDER/{plugin}.py`" in said


@pytest.mark.usefixtures("undone")
def test_the_command_line_takes_plugins(trained: Path, call: Call) -> None:  # noqa: F811
    """Before the verb and behind it; without it, a message and an exit code."""
    model, task = trained / "model", trained / "task"
    image = trained / "stripes" / "valid" / "flat" / "1.png"
    code, out, err = call("classify", "--model", model, image)
    assert (code, out) == (1, "")
    assert "--plugin own_model" in err
    code, out, _ = call("--plugin", EXTEND / "own_model.py", "classify", "--model", model, image)
    assert code == 0
    assert "flat" in out
    code, out, _ = call("evaluate", "--model", task, "--plugin", EXTEND / "own_task.py")
    assert code == 0
    assert re.search(r"sums/valid\.tsv, 50 lines\n +error +\d+\.\d+ +\(mean absolute error\)", out)
    # Both are there now, and every verb takes them.
    assert "rater-tiny" in call("models").out
    assert call("info", "mixer-tiny").out.startswith("preset")
    assert call("info", task).code == 0
    assert call("look", model, image).code == 0
    assert call("compare", task, "one").code == 2
    looked = call("look", task, "seven two one", "--json")
    view = json.loads(looked.out)
    untrained = call("look", task, "seven two one", "--untrained")
    assert (untrained.code, "leave --untrained out" in untrained.err) == (2, True)
    assert view["answer"] == view["output"][0]
    assert [each["name"] for each in view["overlays"]] == ["contribution"]
    assert sum(view["overlays"][0]["weights"][0]) == pytest.approx(float(view["answer"]), abs=0.06)
    assert "attention" in call("look", task, "seven", "--shapes").out
    assert "losses: 100 training and 50 of 50 validation examples" in call("doctor", task).out
    rater = manyheads.load(task)
    (found,) = rater.answer(sys.modules["own_task"].RateRequest(texts=["one"]))
    assert found.to_json() == {"text": "one", "number": rater("one")}
    assert "Gives a text a number." in (task / "README.md").read_text()


class Draw(BatchRequest):
    """Draw numbers below each of some: neither texts nor images."""

    input_field = "below"
    limited: ClassVar[Any] = {"draws": "beams"}

    below: tuple[int, ...]
    draws: int = 1

    @property
    def all_texts(self) -> tuple[str, ...]:
        return tuple(map(str, self.below))

    @property
    def cost(self) -> int:
        return self.draws * len(self.below)

    @property
    def independent(self) -> bool:
        return self.draws == 1


@pytest.mark.usefixtures("undone")
def test_an_own_request_through_the_queue_of_a_server(trained: Path) -> None:
    """It says itself what its inputs are, what they cost, what is limited and what is merged."""
    request = load_example("own_task").RateRequest
    limits = Limits()

    async def ask() -> list[Any]:
        served = Served(ServedOptions((str(trained / "task"),)), limits)
        model = served.find(None, request, verb="rate texts")
        jobs = [job_of(request(texts=texts)) for texts in (("one", "two"), ("three",))]
        assert jobs[0].key == jobs[1].key
        answers = await asyncio.gather(*map(model.queue.ask, jobs))
        drawn = [job_of(Draw(below=(2, 3), draws=draws)) for draws in (1, 4)]
        assert [(each.inputs, each.cost) for each in drawn] == [((2, 3), 2), ((2, 3), 8)]
        assert [each.key for each in drawn] == [Draw(below=()), None]
        await served.close()
        return [each.text for some in answers for each in some]

    assert asyncio.run(ask()) == ["one", "two", "three"]
    check_limits(Draw(below=(1,), draws=16), limits)
    with pytest.raises(UsageError, match="`draws` is 17: this server allows 16"):
        check_limits(Draw(below=(1,), draws=17), limits)
    with pytest.raises(ProblemError, match="Too large"):
        check_limits(Draw(below=(1,) * 129), limits)


@pytest.mark.parametrize("verb", ["train", "fetch", "check-data", "convert to-marian"])
def test_every_verb_shows_the_option(verb: str, call: Call) -> None:  # noqa: F811
    assert "--plugin" in call(*verb.split(), "--help").out


def test_files_of_an_own_task_are_checked(trained: Path, tmp_path: Path) -> None:
    """Its words are as much the model's as its weights."""
    manifest = read_json(trained / "task" / "manyheads.json")
    assert {"words.json", "model.safetensors", "recipe.toml"} == manifest["sha256"].keys()
    assert manifest["plugins"] == ["own_task"]


def test_installed_plugins_are_imported_for_what_a_user_names(
    trained: Path, tmp_path: Path
) -> None:
    """An unknown preset of a recipe, and not before; never for a model folder."""
    info = tmp_path / "own-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: own\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[manyheads.plugins]\nmixer = own_model\n")
    program = (
        "import sys, manyheads\n"
        "manyheads.load('date-en-ko')\n"
        "from manyheads.errors import FolderError\n"
        "try: manyheads.load(sys.argv[1])\n"
        "except FolderError as error: print(error)\n"
        "assert 'own_model' not in sys.modules\n"
        "from manyheads.doctor.diagnose import diagnose\n"
        "try: diagnose(sys.argv[2])\n"
        "except manyheads.ManyheadsError as error: print(error)\n"
        "assert 'own_model' not in sys.modules\n"
        "from manyheads.project.model_facts import describe\n"
        "print(describe('mixer-tiny')['preset'])\n"
        "print(type(manyheads.load(sys.argv[1]).model).__name__)\n"
    )
    unfinished = tmp_path / "unfinished"
    unfinished.mkdir()
    recipe = (trained / "model" / "recipe.toml").read_text()
    (unfinished / "recipe.toml").write_text(recipe)
    path = os.pathsep.join((str(tmp_path), str(EXTEND)))
    done = started("-c", program, trained / "model", unfinished, path=path)
    assert done.returncode == 0, done.stderr
    refused, unknown, named, loaded = done.stdout.splitlines()
    assert "needs a plugin that is not loaded: own_model" in refused
    assert "no preset 'mixer-tiny'" in unknown
    assert (named, loaded) == ("mixer-tiny", "Mixer")


@pytest.mark.usefixtures("undone")
def test_a_translator_from_outside(
    own_translator: Path,
    monkeypatch: pytest.MonkeyPatch,
    call: Call,  # noqa: F811
) -> None:
    """A verb asks for what a predictor answers; documents need more than that."""

    class Upper(Predictor):
        request = TranslateRequest

        def respond(self, request: TranslateRequest) -> list[TranslateAnswer]:
            made = [TranslatedText(text=t.upper(), score=0.0, finished=True) for t in request.texts]
            return [
                TranslateAnswer(source=text, translation=best.text, n_best=(best,))
                for text, best in zip(request.texts, made, strict=True)
            ]

    pipeline = registry.find_task("translate")
    monkeypatch.setattr(type(pipeline), "load", lambda self, *given: Upper(*given))
    assert call("translate", "--model", own_translator, "one two").out == "ONE TWO\n"
    code, _, err = call("translate", "--model", own_translator, "--file", "x.txt")
    assert (code, "translates texts only" in err) == (2, True)
    code, _, err = call("classify", "--model", own_translator, "x.png")
    assert (code, "does not classify images" in err) == (2, True)


@pytest.mark.usefixtures("undone")
def test_a_predictor_from_outside_says_what_it_can(
    own_classifier: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    call: Call,  # noqa: F811
) -> None:
    """Server, exports and commands ask its class, and look neither for methods nor for files."""

    class Silent(Predictor):
        request = ClassifyRequest

        def respond(self, request: ClassifyRequest) -> list[ClassifyAnswer]:
            best = (ClassProbability(label="good", probability=1.0),)
            return [ClassifyAnswer(path=str(each), classes=best) for each in request.images]

    class Grader(Silent):
        zero_shot = True
        page = "classify"

        @classmethod
        def output_classes(cls, folder: ModelFolder) -> OutputClasses:
            return OutputClasses(["bad", "good"], multi_label=True)

        @classmethod
        def image_input(cls, folder: ModelFolder) -> Any:
            return dataclasses.replace(folder.preprocessing(), height=5)

        @classmethod
        def positions(cls, recipe: Any) -> int:
            return 7

    pipeline = type(registry.find_task("classify"))
    folder = ModelFolder(own_classifier)
    served = Served(ServedOptions((str(own_classifier),)), Limits())
    (model,) = served.models.values()
    labels = own_classifier / "labels.json"
    assert labels.is_file()  # and nobody takes it for those of another predictor
    asked: list[int] = []

    def with_positions(own: VitConfig, most: int) -> VitConfig:
        asked.append(most)
        return own

    monkeypatch.setattr(VitConfig, "with_positions", with_positions)

    monkeypatch.setattr(pipeline, "predictor", Silent)
    assert model.facts()["words"] is False
    assert not {"manyheads.classes", "manyheads.preprocessing"} & describe(folder).keys()
    for target, message in (("web", "the page has nothing for the task"), ("openvino", "one size")):
        with pytest.raises(UsageError, match=message):
            find_exporter(target).export(folder, tmp_path, ExportOptions("float32"))
    image = tmp_path / "half.png"
    half(0, 1).save(image)
    row = call("classify", "--model", own_classifier, image, "--csv", "--top", "3").out
    assert row.splitlines()[0] == "path,label1,p1,label2,p2,label3,p3"

    monkeypatch.setattr(pipeline, "predictor", Grader)
    assert model.facts()["words"] is True
    assert (served.find(None, ClassifyRequest, verb="classify"), asked) == (model, [])
    said = describe(folder)
    assert json.loads(said["manyheads.classes"]) == ["bad", "good"]
    assert "a sigmoid each" in said["manyheads.output"]
    about = describe_for_page(folder)
    assert (about["kind"], about["classes"], about["multi_label"]) == (
        "classify",
        ["bad", "good"],
        True,
    )
    assert (about["preprocessing"]["height"], len(graphs(folder)), asked) == (5, 1, [7])
    row = call("classify", "--model", own_classifier, image, "--csv", "--top", "3").out
    assert row.splitlines()[0] == "path,label1,p1,label2,p2"


@pytest.mark.usefixtures("undone")
def test_a_preset_of_a_known_model_is_named_with_its_plugin(
    tmp_path: Path,
    call: Call,  # noqa: F811
) -> None:
    """A plugin may register nothing but sizes; the folder remembers it all the same."""
    (tmp_path / "sizes.py").write_text(
        "import manyheads\nfrom manyheads.models import VitConfig\n"
        "manyheads.register_preset('my-vit', VitConfig(dim=8, layers=1, heads=2, ffn_dim=16))\n"
    )
    write_halves(tmp_path)
    recipe = write_recipe(tmp_path / "halves.toml", CLASSIFY, tmp_path)
    changes = ("model.preset=my-vit", "train.steps=2", "--plugin", "sizes.py", "--out", "out")
    assert call("train", recipe, *changes).code == 0
    assert "classify --model out image.png --plugin sizes\n" in Path("out/README.md").read_text()
    del PRESETS["my-vit"], sys.modules["sizes"]  # as in another process
    with pytest.raises(FolderError, match="not loaded: sizes"):
        manyheads.load("out")


@pytest.mark.usefixtures("undone")
def test_other_processes_load_the_plugins_too(
    tmp_path: Path,
    call: Call,  # noqa: F811
) -> None:
    """Those of --workers: a file by its path, wherever that was given from."""
    (tmp_path / "sizes.py").write_text(
        "import manyheads\nfrom manyheads.models import preset\n"
        "manyheads.register_preset('my-transformer', preset('transformer-tiny'))\n"
    )
    write_numbers(tmp_path)
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(TRANSLATE.replace("transformer-tiny", "my-transformer"), encoding="utf-8")
    plugin = ("--plugin", "sizes.py")
    changes = (f"data.root={tmp_path}", "train.steps=2", *plugin, "--out", "out")
    assert call("train", recipe, *changes).code == 0
    Path("in.txt").write_text("one two\n")
    given = ("translate", "--model", "out", "--file", "in.txt", "--out", "out.txt")
    found = call(*given, "--workers", "1", *plugin)
    assert found.code == 0, found.err
    assert len(Path("out.txt").read_text("utf-8").splitlines()) == 1


@pytest.mark.usefixtures("undone")
def test_a_preset_of_an_imported_module_is_named_with_it(tmp_path: Path) -> None:
    """In Python a plugin is a module like any other."""
    write_halves(tmp_path)
    recipe = write_recipe(tmp_path / "halves.toml", CLASSIFY, tmp_path)
    small = PRESETS["vit-ti"]
    exec(
        "manyheads.register_preset('my-vit', small)",
        {"__name__": "sizes", "manyheads": manyheads, "small": small},
    )
    out = tmp_path / "out"
    manyheads.train(recipe, "model.preset=my-vit", "train.steps=1", out=out)
    assert read_json(out / "manyheads.json")["plugins"] == ["sizes"]
    (out / "manyheads.json").write_text(
        (out / "manyheads.json")
        .read_text()
        .replace('"plugins": [\n    "sizes"\n  ]', '"plugins": "s"')
    )
    with pytest.raises(FolderError, match="plugins: Input should be a valid list"):
        manyheads.load(out)


@dataclass(frozen=True, kw_only=True)
class Lacking(ModelConfig):
    """For classifiers, without the fields that images set."""

    tasks = ("classify",)

    def build(self) -> nn.Module:
        return nn.Identity()


@dataclass(frozen=True, kw_only=True)
class OwnConfig(VitConfig):
    """A Config with a mistake, by its field."""

    patch: int = 2
    kind: Any = "text"

    def build(self) -> Any:
        return "no model" if self.kind == "text" else super().build()


@pytest.mark.usefixtures("undone")
@pytest.mark.parametrize(
    ("config", "message"),
    [
        (OwnConfig(), r"OwnConfig\.build\(\) returned str, not a torch nn\.Module"),
        (OwnConfig(kind=int), r"OwnConfig cannot be written as TOML"),
        (Lacking(), r"Lacking lacks channels, height, width, which the task 'classify'"),
    ],
)
def test_a_mistake_in_an_own_config_leaves_no_folder(
    config: ModelConfig, message: str, tmp_path: Path
) -> None:
    write_halves(tmp_path)
    recipe = write_recipe(tmp_path / "halves.toml", CLASSIFY.replace("vit-ti", "own"), tmp_path)
    keys = re.findall(r"^(patch|dim|layers|heads|ffn_dim|dropout) =", CLASSIFY, flags=re.MULTILINE)
    manyheads.register_preset("own", config)
    with pytest.raises(UsageError, match=message):
        manyheads.train(recipe, *(f"model.{key}=" for key in keys), out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_file_without_a_reader_is_named(tmp_path: Path) -> None:
    """It is there, so looking for it anew helps nobody."""
    (tmp_path / "corpus.bars").write_text("one ||| eins")
    with pytest.raises(NotFoundError, match=r"exists, but there is no reader for '\.bars'"):
        find_data("corpus.bars", str(tmp_path), (".en", ".de"))


@pytest.mark.usefixtures("undone")
def test_a_plugin_that_cannot_be_imported(tmp_path: Path) -> None:
    """The reason is told, and nothing half-imported stays behind."""
    path = tmp_path / "broken.py"
    path.write_text("1 / 0")
    with pytest.raises(UsageError, match=r"broken\.py' cannot be imported \(ZeroDivisionError"):
        load_plugin(str(path))
    path.write_text("fine = True")
    load_plugin(str(path))
    load_plugin(str(path))  # twice is once
    assert sys.modules["broken"].fine
    (tmp_path / "random.py").write_text("")
    with pytest.raises(UsageError, match="another module 'random' is imported"):
        load_plugin(str(tmp_path / "random.py"))
    with pytest.raises(UsageError, match="No module named 'nowhere'"):
        load_plugin("nowhere.at_all")


def test_a_program_is_known_by_its_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Classes of a started program are found in its file again, not in `__main__`."""
    started = sys.modules["__main__"]  # without a file where a test runner started this process
    monkeypatch.setattr(started, "__file__", "/somewhere/own_model.py", raising=False)
    assert home("__main__") == "own_model"
    assert home("their.plugin") == "their.plugin"
    assert home("manyheads.models.vit") is None


# --- Inside the package ---------------------------------------------------------------------------

SOURCE = ROOT / "src" / "manyheads"
DIFFS = re.findall(r"```diff\n(.*?)```", GUIDE, flags=re.DOTALL)


def apply(diff: str, root: Path) -> set[str]:
    """Make the changes of a diff, each where its lines stand once; return the files."""
    files = set()
    for part in re.split(r"^--- a/src/manyheads/.*\n\+\+\+ b/src/manyheads/", diff, flags=re.M)[1:]:
        name, *hunks = re.split(r"^@@\n|\n", part, maxsplit=1, flags=re.M)
        path = root / name
        text = path.read_text(encoding="utf-8")
        for hunk in re.split(r"^@@\n", hunks[0], flags=re.M)[1:]:
            lines = hunk.splitlines(keepends=True)
            before = "".join(line[1:] for line in lines if line[0] != "+")
            assert text.count(before) == 1, f"{name}: {before!r}"
            text = text.replace(before, "".join(line[1:] for line in lines if line[0] != "-"))
        path.write_text(text, encoding="utf-8")
        files.add(name)
    return files


def test_changes_inside_touch_as_many_files_as_the_guide_says(tmp_path: Path) -> None:
    """Made on a copy of the package, which then reads, builds and trains what was added."""
    copy = shutil.copytree(
        SOURCE, tmp_path / "manyheads", ignore=shutil.ignore_patterns("pretrained", "d3")
    )
    text_format, image_format, model, task = (apply(diff, copy) for diff in DIFFS)
    code, before, _ = (EXTEND / "own_model.py").read_text().partition("\nmanyheads.register_preset")
    assert before
    (copy / "models" / "mixer.py").write_text(code)
    model.add("models/mixer.py")
    code, before, _ = (EXTEND / "own_task.py").read_text().partition("manyheads.register_task(")
    assert before
    (copy / "tasks" / "rate").mkdir()
    (copy / "tasks" / "rate" / "pipeline.py").write_text(f"{code}\nPIPELINE = RatePipeline()\n")
    task.add("tasks/rate/pipeline.py")
    rows = re.findall(r"^\| (an? [a-z ]+) \| (\d) \| ", GUIDE, flags=re.M)
    counted = [("a text format", text_format), ("an image format", image_format)]
    counted += [("a model", model), ("a task", task)]
    assert rows == [(name, str(len(files))) for name, files in counted]
    write_sums = "import sys, own_task\nown_task.write_sums(own_task.Path(sys.argv[1]))"
    assert started("-c", write_sums, tmp_path, path=EXTEND).returncode == 0
    (tmp_path / "corpus.bars").write_text("one ||| eins\n", encoding="utf-8")
    header = b"farbfeld" + np.array([1, 1], ">u4").tobytes()
    (tmp_path / "dot.ff").write_bytes(header + np.zeros(4, ">u2").tobytes())
    program = (
        "import manyheads, torch\n"
        "from pathlib import Path\n"
        "from manyheads.data.images.image_file import open_image\n"
        "from manyheads.data.text.formats import read_pairs\n"
        "from manyheads.models import Mixer\n"
        "here = Path(manyheads.__file__).parents[1]\n"
        "print([pair.target for pair in read_pairs(here / 'corpus.bars', 'en', 'de')])\n"
        "print(open_image(here / 'dot.ff').shape)\n"
        "mixer = manyheads.build('mixer-tiny')\n"
        "print(isinstance(mixer, Mixer), tuple(mixer(torch.zeros(2, 1, 8, 8)).shape))\n"
        "few = ('train.steps=2', f'data.root={here}')\n"
        "manyheads.train(here / 'sums.toml', *few, out=here / 'out')\n"
        "print(type(manyheads.load(here / 'out')('one')).__name__)\n"
    )
    done = started("-c", program, path=tmp_path)
    assert done.stdout.splitlines() == ["['eins']", "(1, 1, 4)", "True (2, 10)", "float"], (
        done.stderr
    )

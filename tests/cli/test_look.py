"""manyheads look at an image with every family of models that attends: PNG, JSON, reasons."""

import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from PIL import Image

from tests.cli.conftest import Call
from tests.made import image_size, run, write_halves, write_recipe
from tests.schema import errors

RECIPE = """
task = "classify"

[data]
train = "halves"
hold_out = 8

[image]
height = 16
width = 16
mode = "RGB"

[model]
{}

[train]
steps = 1
batch_size = 4
warmup = 0
threads = 1
"""

SMALL = "dim = 8\nlayers = 1\nheads = 2\nffn_dim = 16\n"
STAGES = "dims = [4, 8]\nlayers = [1, 1]\n"
MODELS = {
    "deit": f'preset = "deit-ti"\npatch = 8\n{SMALL}',
    "cct": f'preset = "cct-2/3x2"\nstem = 4\n{SMALL}',
    "attention pool": f'preset = "vit-ti"\npatch = 8\npool = "attention"\n{SMALL}',
    "linear": f'preset = "vit-ti"\npatch = 8\npool = "mean"\nattention = "linear"\n{SMALL}',
    "swin": 'preset = "swin-t"\ndim = 8\nlayers = [2, 1]\nheads = [1, 2]\nwindow = [2, 2]',
    "cvt": f'preset = "cvt-13"\n{STAGES}heads = [1, 2]\nkernels = [7, 3]\nstrides = [4, 2]\n'
    "paddings = [2, 1]",
    "coatnet": 'preset = "coatnet-0"\nstem = [4, 8]\ndims = [8, 16]\nlayers = [1, 1]\n'
    "convolutions = 1\nhead_size = 8",
    "resnet": 'preset = "resnet-20"\nstem_width = 4\ndepths = [1]\nwidths = [4]\noutputs = [4]',
}


@cache
def _made() -> TemporaryDirectory[str]:
    return TemporaryDirectory(prefix="manyheads-tests-")


@cache
def folder(kind: str) -> Path:
    """A model that has hardly learned, made once a test run."""
    root = Path(_made().name)
    if not (root / "halves").exists():
        write_halves(root, count=16)
    name = kind.replace(" ", "-")
    recipe = write_recipe(root / f"{name}.toml", RECIPE.format(MODELS[kind]), root)
    run(recipe, root / name)
    return root / name


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """A colour image, twice as wide as the models see it: a quarter is cut off on each side."""
    values = np.random.default_rng(0).integers(0, 256, (32, 64, 3), dtype=np.uint8)
    Image.fromarray(values).save(tmp_path / "image.png")
    return tmp_path / "image.png"


@pytest.mark.parametrize(
    ("kind", "sites", "note"),
    [
        ("deit", ["encoder layer 1 self"], None),
        ("cct", ["encoder layer 1 self", "pool layer 1 sequence"], "Boxes are approximate"),
        ("attention pool", ["encoder layer 1 self", "pool layer 1 attention"], None),
        ("linear", ["encoder layer 1 self (implied)"], None),
        (
            "swin",
            [
                "stage 1 layer 1 window",
                "stage 1 layer 2 shifted window",
                "stage 2 layer 1 window",
            ],
            "rollout is not defined here: the tokens change on the way",
        ),
        ("cvt", ["stage 1 layer 1 self", "stage 2 layer 1 self"], "16 queries with 4 keys"),
        ("coatnet", ["stage 2 layer 1 self"], "Boxes are approximate"),
    ],
)
def test_every_family(
    call: Call, tmp_path: Path, image: Path, kind: str, sites: list[str], note: str | None
) -> None:
    """A PNG; the same numbers as JSON, boxes within what was seen; what one has to know."""
    code, out, err = call("look", folder(kind), image, "--out", "look.png")
    assert code == 0, err
    assert "%" in out
    assert min(image_size(tmp_path / "look.png")) > 200
    assert note is None or note in err
    view = json.loads(call("look", folder(kind), image, "--json").out)
    assert errors(view) == []
    assert [found["site"] for found in view["maps"]] == sites
    assert (view["width"], view["height"]) == (64, 32)
    for grid in view["grids"]:
        top, left = grid["boxes"][0][:2]
        row, column, high, wide = grid["boxes"][-1]
        assert (top, left, row + high, column + wide) == (0, 16, 32, 48)
    names = [found["name"] for found in view["overlays"]]
    defined = [] if "rollout" in (note or "") or kind == "cvt" else ["rollout"]
    both = ["grad-cam, tokens", "grad-cam, map"]
    maps = both if kind in ("cct", "coatnet") else ["grad-cam"]
    assert names == [*defined, "relevance", *maps]
    for found in view["overlays"]:
        grid = view["grids"][found["grid"]]
        assert len(found["weights"]) == grid["rows"] * grid["columns"]


def test_what_does_not_attend(call: Call, tmp_path: Path, image: Path) -> None:
    """A ResNet has no maps, but what speaks for a class can be seen."""
    code, _, err = call("look", folder("resnet"), image, "--out", "look.png")
    assert code == 0, err
    assert min(image_size(tmp_path / "look.png")) > 200
    view = json.loads(call("look", folder("resnet"), image, "--json").out)
    assert view["maps"] == []
    assert [found["name"] for found in view["overlays"]] == ["grad-cam"]
    assert call("look", folder("resnet"), image, "--shapes").code == 0


def test_the_class_and_the_baseline_are_chosen(call: Call, image: Path) -> None:
    """The likeliest class is explained unless another is named; mistakes are named."""
    view = json.loads(
        call(
            *("look", folder("deit"), image, "--json", "--integrated"),
            *("--target", "right", "--baseline", "blur"),
        ).out
    )
    explained = view["overlays"][1:]
    assert {found["target"] for found in explained} == {"right"}
    assert "the logit of right" in explained[0]["legend"]
    assert "from its own blur" in explained[-1]["legend"]
    code, _, err = call("look", folder("deit"), image, "--target", "rigth")
    assert (code, "did you mean 'right'?" in err) == (2, True)
    code, _, err = call("look", folder("deit"), image, "--baseline", "blak")
    assert (code, "did you mean 'black'?" in err) == (2, True)
    assert "integrated gradients" in [found["name"] for found in explained]


def test_the_steps_of_a_translation(call: Call, translator: Path) -> None:
    """T17: what was said so far, what was chosen and what else was likely, where it looked."""
    code, out, err = call("look", translator, "three four", "--steps", "--out", "look.json")
    assert code == 0, err
    view = json.loads(Path("look.json").read_text(encoding="utf-8"))
    steps = view["steps"]
    assert len(steps) == len(view["output"])
    assert [step["token"] for step in steps] == view["output"]
    for step, probability in zip(steps, view["probabilities"], strict=True):
        assert step["probability"] == pytest.approx(probability, abs=1e-5)
        assert len(step["candidates"]) == 5
        chances = [chance for _, chance in step["candidates"]]
        assert chances == sorted(chances, reverse=True)
        assert dict(step["candidates"]).get(step["token"], chances[-1]) <= chances[0]
    assert "step 1  (nothing yet)\n  chosen    " in out
    assert f"step {len(steps)}  {view['translation']}\n" in out
    assert out.count("looks at") == len(steps)
    assert "alignment: " in out
    assert "not measured for this model" in out
    assert "the default may be wrong: evaluate it with --alignment" in out


def test_the_same_model_untrained(call: Call, translator: Path) -> None:
    """The trained model's translation, and where the untrained one looks; it searches for none."""
    code, out, err = call("look", translator, "three four", "--untrained", "--out", "look.html")
    assert code == 0, err
    assert out.splitlines()[0] == call("translate", "--model", translator, "three four").out.strip()
    assert "The model shown is untrained" in err
    page = Path("look.html").read_text(encoding="utf-8")
    assert f"<title>{translator.name}, untrained: three four" in page
    code, out, err = call("look", translator, "three four", "--untrained", "--steps")
    assert (code, out) == (2, "")
    assert "leave --steps out" in err


def test_alignment_of_a_translation(call: Call, translator: Path) -> None:
    """Each output token but the end has a source token that is not the end."""
    view = json.loads(call("look", translator, "three four", "--json").out)
    links = view["alignment"]["links"]
    assert [row for row, _, _ in links] == list(range(len(view["output"]) - 1))
    assert {column for _, column, _ in links} <= set(range(len(view["source"]) - 1))
    assert view["alignment"]["error"] is None
    assert view["alignment"]["chosen"] == {
        "site": "decoder layer 1 cross",
        "layer": 1,
        "head": None,
        "step": "written",
    }


def test_only_translations_have_steps(call: Call, image: Path) -> None:
    code, out, err = call("look", "digits", image, "--steps")
    assert (code, out) == (2, "")
    assert "digits does not search for a translation: leave --steps out" in err


def test_one_file_cannot_hold_both(call: Call, tmp_path: Path) -> None:
    image = tmp_path / "look.png"
    found = call("look", "date-en-ko", "Nov 20", "--out", image, "--figures", image)
    assert found.code == 2
    assert "--out and --figures are both" in found.err
    assert not image.exists()

"""The atlas, in both languages: every idea once, all that is named exists, figures are computed."""

import ast
import math
import re
import shlex
import shutil
import tomllib
from collections.abc import Callable
from functools import cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
import numpy as np
import pytest
import torch
from matplotlib.mathtext import MathTextParser
from torch import nn

from manyheads.cli.main import whole
from manyheads.labs.catalogue import CATALOGUE
from manyheads.labs.experiments import basis_lab as basis
from manyheads.labs.experiments import heads_lab as heads
from manyheads.labs.experiments import loss_lab as loss
from manyheads.labs.experiments import parallel_lab as parallel
from manyheads.labs.experiments import params_lab as params
from manyheads.labs.experiments import patches_lab as patches
from manyheads.labs.experiments import positions_lab as positions
from manyheads.lens.measures.receptive_field import layers_needed, receptive_field
from manyheads.lens.measures.token_losses import losses
from manyheads.models.hybrid import HybridConfig
from manyheads.models.presets import preset
from manyheads.models.swin import SwinConfig
from manyheads.models.vit import VitConfig
from manyheads.nn.attention.softmax import attention_weights
from manyheads.nn.layers.feedforward import FeedForward
from manyheads.nn.layers.positions import GridPositions, sinusoids
from manyheads.nn.layers.residual import PostNorm
from manyheads.nn.vision.patch import patchify
from manyheads.project.base_recipe import read_recipe
from manyheads.project.model_facts import count_parameters
from manyheads.project.paths import find_recipe, shipped
from manyheads.tasks.classify.class_metrics import calibration_error, reliability
from tests.cli.conftest import Call, call  # noqa: F401 - a fixture

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = {name: (DOCS / name).read_text(encoding="utf-8") for name in ("atlas.md", "atlas.ko.md")}
IDS = [
    *(f"T{n}" for n in (1, 2, 3, 4, 5, "5a", 6, 7, 8, "8a", *range(9, 22))),
    *(f"V{n}" for n in range(1, 18)),
    *("M1", "M2"),
    *(f"E{n}" for n in range(1, 15)),
]
NOT_BUILT: dict[str, set[str]] = {}  # what has neither code nor test, and must not
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
STOP = re.compile(r"^### (\w+) · ([^\n]+)\n(.*?)(?=^##|\Z)", re.DOTALL | re.MULTILINE)
ERROR = re.compile(r"^\| \*\*(E\d+)\*\* \| (.+)$", re.MULTILINE)
LINK = re.compile(r"\[((?:`[^`]+`(?:, )?)+)\]\(([^)]+)\)")


class Entry(NamedTuple):
    """An idea, or a mistake: what is said of it, what it names, and what shows it."""

    text: str
    names: dict[str, tuple[str, ...]]  # by linked file, in the order of the page
    commands: tuple[str, ...]
    formulas: tuple[str, ...]


def entry(text: str) -> Entry:
    """Take the text of an entry apart."""
    rows = [line for line in text.splitlines() if "](../" in line and "|" in line]
    links = [link for row in rows for link in LINK.findall(row)]
    return Entry(
        text,
        {path: tuple(re.findall(r"`([^`]+)`", names)) for names, path in links},
        tuple(re.findall(r"`manyheads ([^`]+)`", "\n".join(rows))),
        tuple(code for language, code in FENCE.findall(text) if language == "math"),
    )


@cache
def entries(page: str) -> dict[str, Entry]:
    """Read all entries of a page, in their order; an id that comes twice is an error."""
    found = [(name, text) for name, _, text in STOP.findall(PAGES[page])]
    found += ERROR.findall(PAGES[page])
    assert len(dict(found)) == len(found), "an entry is there twice"
    return {name: entry(text) for name, text in found}


languages = pytest.mark.parametrize("page", PAGES)
EVERY = [(name, words) for name, each in entries("atlas.md").items() for words in each.commands]
COMMANDS = {words: shlex.split(words) for _, words in EVERY}


# --- What the pages name ------------------------------------------------------------------------


@languages
def test_every_entry_once_in_the_order_of_the_lecture(page: str) -> None:
    """None is left out, none is made up; each has an equation, or is a mistake."""
    found = entries(page)
    assert list(found) == IDS
    for name, each in found.items():
        assert bool(each.formulas) != name.startswith("E"), name
        assert bool(each.names) != (name in NOT_BUILT), name


def test_both_languages_name_the_same() -> None:
    """Code, tests, commands and equations; only the sentences differ."""
    english, korean = (entries(page) for page in PAGES)
    for name in IDS:
        assert english[name][1:] == korean[name][1:], name
        assert english[name].text != korean[name].text, name


@languages
def test_links_lead_somewhere(page: str) -> None:
    """Every relative link, images and other pages too."""
    links = re.findall(r"\]\(([^)#:]+)\)", PAGES[page])
    assert len(links) > 100
    assert {link for link in links if not (DOCS / link).resolve().exists()} == set()


@languages
def test_the_contents_are_the_headings(page: str) -> None:
    """All of them, in order, with the anchors that GitHub makes of them."""
    headings = re.findall(r"^## (.+)$", PAGES[page], flags=re.MULTILINE)
    anchors = [re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in headings]
    assert re.findall(r"\]\(#([^)]+)\)", PAGES[page]) == anchors


@cache
def defined(path: Path) -> set[str]:
    """Names of functions, classes and constants of a file, and methods as Class.method."""
    names: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
            names |= {
                f"{node.name}.{part.name}"
                for part in node.body
                if isinstance(part, ast.FunctionDef)
            }
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return names


@pytest.mark.parametrize("name", [name for name in IDS if name not in NOT_BUILT])
def test_code_and_tests_are_where_the_page_says(name: str) -> None:
    """Each has both, except that a mistake is proved by tests alone."""
    files = entries("atlas.md")[name].names
    for path, names in files.items():
        assert path.startswith(("../src/manyheads/", "../tests/"))
        for each in names:
            assert each in defined((DOCS / path).resolve()), f"{path} has no {each}"
            assert path.startswith("../src/") or each.startswith("test_"), each
    assert any(path.startswith("../tests/") for path in files)
    assert name.startswith("E") or any(path.startswith("../src/") for path in files)


@pytest.mark.parametrize("name", NOT_BUILT)
def test_what_is_said_not_to_be_built_is_not(name: str) -> None:
    """Whoever builds it describes it here."""
    assert not NOT_BUILT[name] & {path.name for path in (ROOT / "src").rglob("*.py")}


# --- What the pages call ------------------------------------------------------------------------


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_commands_are_understood(words: list[str]) -> None:
    """By the parser of the command line; recipes, presets and models are there."""
    verb, *rest = words
    command = whole().commands[verb]
    command.make_context(verb, list(rest))
    if verb == "train":
        read_recipe(find_recipe(rest[0]), [each for each in rest[1:] if "=" in each])


def test_commands_can_run_in_order_in_one_folder() -> None:
    """Every training has a folder of its own, and what names a run comes after its training."""
    trained: set[str] = set()
    for verb, *rest in (shlex.split(words) for _, words in EVERY):
        needed = {word for word in rest if word.startswith("runs/")}
        if verb == "train":
            recipe = tomllib.loads(find_recipe(rest[0]).read_text(encoding="utf-8"))
            run = rest[rest.index("--out") + 1] if "--out" in rest else f"runs/{rest[0]}"
            assert run not in trained, "another training wrote it"
            start = recipe.get("start", {}).get("model", "")
            needed = (needed - {run}) | ({start} if start.startswith("runs/") else set())
        assert needed <= trained, (verb, rest)
        trained |= {run} if verb == "train" else set()


def test_every_lab_stands_where_it_belongs() -> None:
    """A lab is named at the entries that it answers, and at no other."""
    named = {(words.split()[1], name) for name, words in EVERY if words.startswith("lab ")}
    assert named == {(lab, name) for lab, about in CATALOGUE.items() for name in about.atlas}


CHEAP = {"lab patches", "lab params", "lab scale", "lab basis", "lab loss"}  # nothing is trained
ELSEWHERE = [  # commands of pages whose own tests run them
    shlex.split(line, comments=True)[1:]
    for path in (ROOT / "README.md", DOCS / "vision.md")
    for line in re.findall(r"^manyheads .*$", path.read_text(encoding="utf-8"), re.MULTILINE)
]
ANSWERED = {
    line: words
    for line, words in COMMANDS.items()
    if words not in ELSEWHERE
    and (
        words[0] in ("info", "translate", "classify", "evaluate")
        or " ".join(words[:2]) in CHEAP
        or (words[0] == "look" and words[1] in shipped("pretrained"))
    )
}


@pytest.mark.parametrize("words", ANSWERED.values(), ids=ANSWERED)
def test_commands_answer(words: list[str], call: Call, tmp_path: Path) -> None:  # noqa: F811
    """Those that need neither data nor training, as they are written."""
    (tmp_path / "docs" / "images").mkdir(parents=True)
    shutil.copy(DOCS / "images" / "seven.png", tmp_path / "docs" / "images")
    found = call(*words)
    assert found.code == 0, found.err
    assert found.out


# --- Equations ----------------------------------------------------------------------------------


@languages
def test_equations_can_be_drawn(page: str) -> None:
    """Each is TeX that parses."""
    parser = MathTextParser("path")
    inline = re.findall(r"\$([^$\n]+)\$", FENCE.sub("", PAGES[page]))
    fenced = chain.from_iterable(each.formulas for each in entries(page).values())
    formulas = [*inline, *(formula.strip() for formula in fenced)]
    assert len(formulas) > 50
    with mpl.rc_context({"mathtext.fontset": "cm"}):
        for formula in formulas:
            parser.parse(f"${formula}$")


@languages
def test_dollars_are_read_as_mathematics(page: str) -> None:
    """On GitHub: with a space in front, and a space or a mark behind."""
    text = FENCE.sub("", PAGES[page])
    formulas = re.findall(r"(?<!\S)\$\S(?:[^$\n]*\S)?\$(?=[\s.,:;?]|$)", text)
    assert 2 * len(formulas) == text.count("$")


# --- Figures ------------------------------------------------------------------------------------


def parameters(part: nn.Module) -> int:
    return sum(parameter.numel() for parameter in part.parameters())


def of_preset(name: str) -> str:
    return f"{count_parameters(preset(name)):,}"


def attention_on_paper() -> list[str]:
    """T4, T5: dot products 2 ln 3 and 0 in width 4, values 4 and 8."""
    q = torch.tensor([[1.0, 0, 0, 0]])
    k = torch.tensor([[2 * math.log(3), 0, 0, 0], [0.0, 0, 0, 0]])
    weights = attention_weights(q, k)
    torch.testing.assert_close(weights, torch.tensor([[3 / 4, 1 / 4]]))
    assert (weights @ torch.tensor([[4.0], [8.0]])).item() == pytest.approx(5)
    return ["3/4", "1/4"]


def waves() -> list[str]:
    """T8: position 1 of width 4; the first and the last wavelength; token 10 of 20 and of 40."""
    first = ", ".join(f"{value:.3f}" for value in sinusoids(2, 4)[1].tolist())
    longest = basis.of_base(10000, 8, 512)["longest"]
    shares = [f"{10 / length:g}" for length in (20, 40)]
    return [f"({first})", f"{positions.wavelengths(16)[0]:.2f}", f"{longest:,.0f}", *shares]


def overlapping_waves() -> list[str]:
    table = basis.sinusoids(50, 64)
    return [f"{basis.overlap(table)[0]:.2f}", str(basis.rank_and_condition(table)[0])]


def forms_of_heads() -> list[str]:
    """T9: a, b and c; the paper's b has no more than c."""
    with torch.device("meta"):
        counts = [parameters(form) for form in heads.forms(512, 8).values()]
    assert counts[1] == counts[2] == 4 * 512**2 + 4 * 512
    return [f"{count:,}" for count in counts[:2]]


def halves_of_a_layer() -> list[str]:
    with torch.device("meta"):
        return [f"{parameters(FeedForward(512, 2048, nn.ReLU())):,}", forms_of_heads()[1]]


def norm_on_paper() -> list[str]:
    """T11: (1, 2, 3) and twice as much."""
    x = torch.tensor([[[1.0, 2, 3]]])
    low, middle, high = PostNorm(3).add(x, 2 * x)[0, 0].tolist()
    assert abs(middle) < 1e-6
    return [f"({low:.2f}, 0, {high:.2f})"]


def words_on_paper() -> list[str]:
    """T15: exponentials 4, 2 and 1."""
    shares = torch.tensor([4.0, 2, 1]).log().softmax(dim=0) * 7
    return [f"{round(share)}/7" for share in shares.tolist()]


def loss_on_paper() -> list[str]:
    """T16: the whole table."""
    values = losses(loss.PROBABILITIES)
    rows = [" | ".join(f"{p:g}" for p in loss.PROBABILITIES)]
    rows.append(" | ".join(f"{value:.3f}" for value in [*values, sum(values) / len(values)]))
    return rows


def patches_of(side: int, size: int) -> list[str]:
    tokens, values = patchify(torch.zeros(1, 3, side, side), size).shape[1:]
    return [str(tokens), str(values)]


def places() -> list[str]:
    """V3: a row for every patch and the class token; V9: 24 x 24 of 14 x 14."""
    config, large = VitConfig(), VitConfig(height=384, width=384)
    table = GridPositions(config.grid, 1, 8, std=0.02).table
    return [str(len(table)), str(math.prod(config.grid)), str(math.prod(large.grid))]


def calibration_on_paper() -> list[str]:
    """V6: two answers at .95, one right, and two at .55, both right."""
    bins = reliability(np.array([0.95, 0.95, 0.55, 0.55]), np.array([1, 0, 1, 1]))
    return [f"{calibration_error(bins):.0f}%"]


def layer_of_vit() -> list[str]:
    """V8: the formula of one layer is what one more layer adds."""
    counts = [count_parameters(VitConfig(layers=layers)) for layers in (11, 12)]
    assert counts[1] - counts[0] == sum(n * 768**2 + m * 768 for n, m in ((4, 4), (8, 5), (0, 4)))
    names = ("vit-b/16", "vit-l/16", "vit-l/32", "vit-h/14", "resnet-152", "vgg-16")
    headless = counts[1] - 1000 * (768 + 1)
    return [f"{headless:,}", *map(of_preset, names)]


def fields() -> list[str]:
    assert (layers_needed(31), layers_needed(32)) == (15, 16)
    return ["15", "16", str(receptive_field(15))]


def scores(side: int) -> str:
    tokens = patches.tokens(side, 16)
    assert tokens is not None
    return f"{tokens**2:,}"


def windows() -> list[str]:
    """V16: the first stage of Swin, with windows and without."""
    config = preset("swin-t")
    assert isinstance(config, SwinConfig)
    tokens, window = math.prod(config.grids[0]), math.prod(config.windows[0])
    return [f"{n:,}" for n in (tokens, tokens * window, tokens**2)]


def hybrid() -> list[str]:
    config = preset("hybrid-r50-b")
    assert isinstance(config, HybridConfig)
    assert config.grid == VitConfig().grid
    return ["{} x {}".format(*config.grid)]


def convolutions_of_bit() -> list[str]:
    found = params.count("bit-152x4")
    assert found["attentions"] == 0
    return [str(found["convolutions"]), str(params.count("vgg-16")["parameters"] // 10**6)]


def weights_at_equal_width() -> list[str]:
    found = params.compare(8)
    assert count_parameters(preset("vit-b/16")) < count_parameters(preset("vgg-16"))
    return [f"{found[kind] // 64} D x D" for kind in ("attention", "convolution")]


FIGURES: dict[str, Callable[[], list[str]]] = {
    "T4": lambda: [*attention_on_paper(), "5"],
    "T5": attention_on_paper,
    "T5a": lambda: [f"{math.sqrt(512):.1f}"],
    "T6": lambda: [f"{p:g}" for p in (torch.tensor([6.0, 3, 1]) / 10).tolist()],
    "T8": waves,
    "T8a": overlapping_waves,
    "T9": forms_of_heads,
    "T10": halves_of_a_layer,
    "T11": norm_on_paper,
    "T15": words_on_paper,
    "T16": loss_on_paper,
    "T19": lambda: [str(parallel.steps_in_a_row(name, 100)) for name in ("LSTM", "Transformer")],
    "V1": lambda: patches_of(224, 16),
    "V3": lambda: places()[:2],
    "V6": calibration_on_paper,
    "V8": layer_of_vit,
    "V9": lambda: places()[1:],
    "V11": fields,
    "V12": lambda: [patches_of(224, 16)[0], scores(224), scores(448)],
    "V14": hybrid,
    "V16": windows,
    "E1": lambda: [f"{positions.wavelengths(16)[0]:.2f}"],
    "E3": lambda: [f"{3**4} : 1"],
    "E4": lambda: [*fields(), str(receptive_field(16))],
    "E5": convolutions_of_bit,
    "E6": lambda: [patches_of(256, 16)[0]],
    "E11": lambda: [str(basis.of_base(10, 64, 64)["frequencies"])],
    "E12": weights_at_equal_width,
}


@pytest.mark.parametrize("name", FIGURES)
@languages
def test_figures(page: str, name: str) -> None:
    """What a page says in numbers is what is computed."""
    text = entries(page)[name].text
    for figure in FIGURES[name]():
        assert re.search(rf"(?<![\d.,]){re.escape(figure)}(?!\d)", text), figure

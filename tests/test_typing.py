"""What a type checker tells a user: mypy reads the package as it is installed, by its stubs."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import manyheads
from manyheads.asks.evaluate_request import EvaluateRequest
from manyheads.asks.load_options import LoadOptions
from manyheads.asks.look_request import LookRequest
from manyheads.asks.request import Request
from manyheads.errors import UsageError
from manyheads.project.base_recipe import read_recipe
from manyheads.project.paths import shipped
from manyheads.project.registry import find_task

PACKAGE = Path(manyheads.__file__).parent
STUB = ast.parse((PACKAGE / "__init__.pyi").read_text(encoding="utf-8"))

USER = '''
"""Thirty lines of a user; a line with a mistake names the error that mypy has for it."""

from pathlib import Path

import manyheads
from manyheads import Classifier, Translator
from manyheads.extend import TranslateRequest

translate = manyheads.load("runs/mine", Translator)
dates = manyheads.load("date-en-ko")
digits = manyheads.load("digits")
pets = manyheads.load(Path("runs/pets"), Classifier, device="cpu")
some = manyheads.load("runs/other")

answer: str = translate("A dog runs.")
answers: list[str] = translate(["A dog runs.", "A cat sleeps."])
label: str = digits("seven.png")
paths = ["one.png", "two.png"]
labels: list[str] = pets(paths)
score: float = pets.classify(paths, top=3)[0][0].probability
best: str = translate.translate(["A dog."], n_best=2)[0][0].text
given = TranslateRequest(texts=("A dog runs.",), n_best=2)
scores: list[float] = [each.score for each in dates.answer(given)[0].n_best]
line = manyheads.evaluate(translate, metrics=["bleu", "chrf"], by_length=True)
page: str = manyheads.look(dates, "20 November 2026").html()
unknown: object = some("An input of any kind")

translate.translate(["A dog."], beams="4")  # arg-type: a number as text
manyheads.load("runs/mine", Translator, devise="cpu")  # call-overload: a misspelled option
manyheads.evaluate(translate, metrics=["blue"])  # list-item: there is no such metric
pets.translate(["A dog."])  # attr-defined: a classifier does not translate
dates.translate("20 November 2026")  # arg-type: a text is no list of texts
dates.answer(given)[0].score  # attr-defined: scores are those of n_best
digits.answer(given)  # arg-type: a classifier does not translate
some("An input").upper()  # attr-defined: the class of this model is not known
'''


def test_mypy_finds_the_mistakes_of_a_user_and_no_others(tmp_path: Path) -> None:
    (tmp_path / "user.py").write_text(USER, encoding="utf-8")
    wanted = {
        (number, found[1])
        for number, line in enumerate(USER.splitlines(), 1)
        if (found := re.search(r"# ([a-z-]+): ", line))
    }
    assert len(wanted) == 8
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache")]
    done = subprocess.run([*command, "user.py"], capture_output=True, text=True, cwd=tmp_path)
    lines = re.findall(r"^user\.py:(\d+): error: .*\[([a-z-]+)\]$", done.stdout, flags=re.MULTILINE)
    assert {(int(number), code) for number, code in lines} == wanted, done.stdout + done.stderr
    assert "site-packages" not in done.stdout  # the package itself is not complained of


def declared(name: str) -> list[ast.FunctionDef]:
    return [node for node in STUB.body if isinstance(node, ast.FunctionDef) and node.name == name]


@pytest.mark.parametrize(
    ("function", "request_type"), [("evaluate", EvaluateRequest), ("look", LookRequest)]
)
def test_the_stub_has_the_parameters_of_the_requests(
    function: str, request_type: type[Request]
) -> None:
    """Written by hand for type checkers; the defaults are those of the requests, too."""
    (stub,) = declared(function)
    written = {
        argument.arg: ast.literal_eval(default) if default is not None else None
        for argument, default in zip(stub.args.kwonlyargs, stub.args.kw_defaults, strict=True)
    }
    fields = {**request_type.model_fields, **LoadOptions.model_fields}
    assert written == {name: each.default for name, each in fields.items() if name != "given"}


def test_the_stub_knows_the_class_of_every_shipped_model() -> None:
    classes = {}
    for stub in declared("load"):
        first = stub.args.args[0].annotation
        assert first is not None
        for name in re.findall(r"'([^']+)'", ast.unparse(first)):
            assert stub.returns is not None
            classes[name] = ast.unparse(stub.returns)
    assert classes == {
        name: find_task(read_recipe(path.with_name("recipe.toml")).task).predictor.__name__
        for name, path in shipped("pretrained").items()
    }


def test_load_refuses_a_model_of_another_class() -> None:
    assert isinstance(manyheads.load("digits", manyheads.Classifier), manyheads.Classifier)
    with pytest.raises(UsageError, match=r"digits is no Translator: its task is 'classify'"):
        manyheads.load("digits", manyheads.Translator)
    with pytest.raises(UsageError, match="digits is no 5"):
        manyheads.load("digits", 5)  # type: ignore[call-overload]


def test_what_an_interpreter_shows_is_short() -> None:
    """A notebook shows the page of a look, in a frame of its own."""
    dates = manyheads.load("date-en-ko")
    assert repr(dates) == "<Translator date-en-ko, translate>"
    seen = manyheads.look(dates, "Nov 20, 2026")
    assert "2026년 11월 20일" in repr(seen)
    assert len(repr(seen)) < 200
    assert seen._repr_html_().startswith("<iframe sandbox=")
    assert "<script" not in seen._repr_html_()  # escaped, as the value of `srcdoc`

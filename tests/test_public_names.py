"""Public names: each resolves, none is private, and none is imported before it is used."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import FunctionType, ModuleType

import pytest

ROOMS = ("decode", "extend", "models", "nn", "train")
PACKAGES = ["manyheads", *(f"manyheads.{name}" for name in ROOMS)]
every = pytest.mark.parametrize("package", PACKAGES)


@every
def test_every_public_name_resolves(package: str) -> None:
    """A name listed in `__all__` is there, and is what its own module calls by that name."""
    module = import_module(package)
    for name in module.__all__:
        found = getattr(module, name)
        if not isinstance(found, type | FunctionType | ModuleType):
            continue  # a dict, or another name for a type
        called = getattr(found, "__name__", name)
        assert called.removeprefix("manyheads.") == name, f"{package}.{name}"
        home = getattr(found, "__module__", package)
        assert home.startswith("manyheads"), f"{package}.{name} comes from {home}"


def order(name: str) -> tuple[bool, bool, str]:
    """Constants, then classes, then functions."""
    return not name.isupper(), not name[0].isupper(), name


@every
def test_public_names_are_sorted_and_not_private(package: str) -> None:
    names = import_module(package).__all__
    assert names == sorted(set(names), key=order)
    assert not [name for name in names if name.startswith("_") and name != "__version__"]


@every
def test_type_checkers_read_the_same_names(package: str) -> None:
    """The stub imports each name from the module of the table, and has the same `__all__`."""
    module = import_module(package)
    stub = Path(str(module.__file__)).with_suffix(".pyi").read_text(encoding="utf-8")
    read = {
        name.name: node.module
        for node in ast.parse(stub).body
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }
    # A function that the stub declares itself has its parameters written out: test_typing.py.
    own = {node.name for node in ast.parse(stub).body if isinstance(node, ast.FunctionDef)}
    public = set(module.__all__)
    assert own <= public
    read = {name: home for name, home in read.items() if name in public}
    homes = [(home, " ".join(set(names.split()) - own)) for home, names in module.HOMES.items()]
    assert read == {name: f"manyheads.{home}" for home, names in homes for name in names.split()}
    listed: dict[str, list[str]] = {}
    exec("\n".join(line for line in stub.splitlines() if line.startswith("__all__")), listed)
    assert listed["__all__"] == module.__all__


@every
def test_no_public_name_hides_a_module(package: str) -> None:
    """Importing manyheads.x.y sets the attribute y of manyheads.x: y must not be a function too.

    `manyheads.train` is both: the package itself is called.
    """
    module = import_module(package)
    modules = {each.name for each in iter_modules(getattr(module, "__path__", []))}
    both = {"train"} if package == "manyheads" else set()
    assert modules & set(module.__all__) == both


@every
def test_completion_lists_the_public_names(package: str) -> None:
    """What an interpreter offers for the Tab key, before and after a name was used."""
    module = import_module(package)
    assert dir(module) == sorted(module.__all__)


@every
def test_an_unknown_name_is_an_attribute_error(package: str) -> None:
    with pytest.raises(AttributeError, match=rf"'{package}' has no attribute 'Vitt'"):
        import_module(package).Vitt  # noqa: B018


def loaded(code: str) -> set[str]:
    """Modules that are loaded after a piece of code has run in a new process."""
    script = f"{code}\nimport sys\nprint(*sys.modules)"
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@every
def test_a_package_loads_no_torch_before_a_name_is_used(package: str) -> None:
    assert "torch" not in loaded(f"import {package}")


def test_one_model_does_not_load_the_others() -> None:
    modules = loaded("from manyheads.models import Vit")
    assert "manyheads.models.vit" in modules
    assert not modules & {"manyheads.models.swin", "manyheads.models.presets"}


@pytest.mark.parametrize(
    ("task", "model", "given"),
    [
        ("translate", "multi30k-en-de", "A dog runs."),
        pytest.param("caption", "emoji-caption", "docs/images/heart.png", marks=pytest.mark.full),
        pytest.param("classify", "digits", "docs/images/seven.png", marks=pytest.mark.full),
    ],
)
def test_an_answer_loads_nothing_of_other_tasks(task: str, model: str, given: str) -> None:
    """Nor more of the package than it needs: a translation 150 modules."""
    path = str(Path(__file__).parents[1] / given) if "/" in given else given
    modules = loaded(f"import manyheads\nmanyheads.load({model!r})({path!r})")
    own = {name for name in modules if name.partition(".")[0] == "manyheads"}
    tasks = {name.split(".")[2] for name in own if name.startswith("manyheads.tasks.")}
    assert tasks == {task}
    assert len(own) <= (150 if task == "translate" else 180)


def test_every_model_and_config_is_public() -> None:
    """A new model file must be listed, too: Configs that build, and the models they build."""
    import manyheads.models as models
    from manyheads.models.presets import PRESETS

    for config in PRESETS.values():
        assert type(config).__name__ in models.__all__
        built = config.build.__annotations__["return"]
        assert str(getattr(built, "__name__", built)) in models.__all__


@pytest.mark.parametrize(
    "first",
    [
        "import manyheads.train as train",
        pytest.param("import manyheads as m; train = m.train", marks=pytest.mark.full),
        pytest.param("from manyheads import train", marks=pytest.mark.full),
        "import manyheads as m; m.evaluate; train = m.train",
    ],
)
def test_train_is_a_function_and_a_package(first: str) -> None:
    """The same object, whatever was imported before; calling it needs nothing else."""
    uses = (
        "assert train.fit.__module__ == 'manyheads.train.loop'\n"
        "from manyheads.train import TrainConfig\n"
        "from manyheads.errors import NotFoundError\n"
        "try:\n    train('nothing-of-this-name')\n"
        "except NotFoundError: print('called')"
    )
    assert "called" in loaded(f"{first}\n{uses}")

"""Rules of the package that a reader can rely on, checked on the source itself."""

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "manyheads"
FILES = {path.relative_to(SOURCE).as_posix(): path for path in sorted(SOURCE.rglob("*.py"))}
CHECKED = ("nn/", "models/", "decode/")  # where jaxtyping checks shapes


@cache
def tree(name: str) -> ast.Module:
    return ast.parse(FILES[name].read_text(encoding="utf-8"))


def names(node: ast.AST) -> Iterator[tuple[str, int]]:
    """Every name that is used or imported: `softmax` of `x.softmax()`, `F.softmax`, `as`..."""
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute):
            yield part.attr, part.lineno
        elif isinstance(part, ast.Name):
            yield part.id, part.lineno
        elif isinstance(part, ast.ImportFrom | ast.Import):
            for alias in part.names:
                yield alias.name.rpartition(".")[2], part.lineno


def imports(node: ast.AST) -> Iterator[tuple[str, int]]:
    """Every module that is imported, at the top or in a function."""
    for part in ast.walk(node):
        if isinstance(part, ast.Import):
            for alias in part.names:
                yield alias.name, part.lineno
        elif isinstance(part, ast.ImportFrom) and part.module and not part.level:
            yield part.module, part.lineno


def found(wanted: set[str], within: str = "") -> list[str]:
    """Places where one of these names is used, as file:line."""
    return [
        f"{file}:{line} {name}"
        for file in FILES
        if file.startswith(within)
        for name, line in names(tree(file))
        if name in wanted
    ]


def test_the_source_is_found() -> None:
    """The tests below would pass on nothing."""
    assert {"nn/attention/attention.py", "models/vit.py", "decode/beam.py", "errors.py"} <= set(
        FILES
    )


def test_file_names_say_which_file() -> None:
    """One name, one file, but where folders are alike: tasks, engines, commands, routes."""
    alike = ("tasks/", "engines/", "cli/", "web/routes/")
    own = Counter(Path(name).name for name in FILES if not name.startswith(alike))
    assert {name for name, count in own.items() if count > 1} == {"__init__.py"}


def test_json_is_written_in_one_place() -> None:
    """Python's own writer puts NaN and Infinity into it, which other programs refuse."""
    places = [name for name, path in FILES.items() if "json.dump" in path.read_text("utf-8")]
    assert places == ["strict_json.py"]


# --- One attention ------------------------------------------------------------------------------

# The rule is about softmax over keys; log_softmax over a vocabulary or classes stays allowed.
# Probabilities of classes are log_softmax(...).exp(), so that the rule can be this short.
KERNELS = {
    "scaled_dot_product_attention",
    "flex_attention",
    "varlen_attn",
    "multi_head_attention_forward",
    "MultiheadAttention",
    "TransformerEncoderLayer",
    "TransformerDecoderLayer",
}
SOFTMAX = {"softmax", "Softmax", "softmax_", "_softmax", "_safe_softmax", "Softmax2d"}


def test_attention_is_computed_in_two_files() -> None:
    """T5: softmax over keys is in nn/attention/softmax.py, the fused kernel in attention.py.

    The loss takes a softmax over a vocabulary in bf16, where log_softmax(...).exp() is too coarse.
    `project/cost.py` counts what the kernel does, and so has to know it by name.
    """
    files = {place.partition(":")[0] for place in found(SOFTMAX)}
    assert files == {"nn/attention/softmax.py", "train/losses.py"}
    files = {place.partition(":")[0] for place in found(KERNELS)}
    assert files == {"nn/attention/attention.py", "project/cost.py"}


def test_attention_is_computed_by_two_functions() -> None:
    """T5, design: the readable formula has the softmax, a function of `attend` the kernel.

    `_with_gradients` is `normalise` in less time.
    """
    users: dict[str, set[str]] = {}
    for node in tree("nn/attention/softmax.py").body + tree("nn/attention/attention.py").body:
        used = {name for name, _ in names(node)} & (KERNELS | SOFTMAX)
        if used:
            assert isinstance(node, ast.FunctionDef), f"line {node.lineno}: {used}"
            users[node.name] = used
    assert users == {
        "normalise": {"softmax"},
        "_with_gradients": {"softmax"},
        "_mix": {"scaled_dot_product_attention"},
    }


# --- One object per task ------------------------------------------------------------------------


def _classes() -> set[str]:
    """Names of recipe classes, Configs and models: of everything that inherits one, too."""
    bases = {"Recipe", "ModelConfig", "Module"}
    parents = {
        node.name: {name for base in node.bases for name, _ in names(base)}
        for file in FILES
        if file.startswith(("models/", "project/", "recipe_data/", "tasks/", "tokenwise/"))
        for node in ast.walk(tree(file))
        if isinstance(node, ast.ClassDef)
    }
    before = 0
    while len(bases) > before:
        before = len(bases)
        bases |= {name for name, above in parents.items() if above & bases}
    return bases - {"Module"}


TASK_NAMES = {"translate", "classify", "reconstruct", "generate", "fill", "tag"}
TASK_NAMES |= {"caption", "match", "read", "embed"}


def _asks_for_task(node: ast.AST) -> bool:
    """Whether this is what names a recipe's task: `recipe.task`, `manifest["task"]`."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Constant) and node.slice.value == "task"
    return isinstance(node, ast.Attribute) and node.attr == "task"


def _is_type(node: ast.AST) -> bool:
    """Whether this is the class of something: `type(x)`, `x.__class__`, the name of either."""
    if isinstance(node, ast.Attribute):
        return node.attr == "__class__" or (node.attr == "__name__" and _is_type(node.value))
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "type"


def _constants(node: ast.AST) -> set[object]:
    return {part.value for part in ast.walk(node) if isinstance(part, ast.Constant)}


def ladders(module: ast.Module, classes: set[str], own: str = "") -> list[tuple[int, str]]:
    """Places that tell tasks or models apart, except by the task of a pipeline's own file."""
    # A tuple or a union of classes is as good as the classes, whatever it is called.
    classes = classes | {
        target.id
        for node in ast.walk(module)
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Tuple | ast.BinOp | ast.List | ast.Set)
        and {name for name, _ in names(node.value)} & classes
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    tasks = TASK_NAMES - {own}
    asked: list[tuple[int, str]] = []
    for node in ast.walk(module):
        parts: list[ast.expr] = []
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "issubclass"):
            parts = [node.args[1]]
        elif isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            if any(map(_is_type, sides)):
                parts = [side for side in sides if not _is_type(side)]
                if not parts:
                    asked.append((node.lineno, ast.unparse(node)))
            elif any(map(_asks_for_task, sides)) and any(_constants(s) & tasks for s in sides):
                asked.append((node.lineno, ast.unparse(node)))
        elif isinstance(node, ast.MatchClass):
            parts = [node.cls]
        elif isinstance(node, ast.Match) and _asks_for_task(node.subject):
            asked.append((node.lineno, ast.unparse(node.subject)))
        elif isinstance(node, ast.Dict):
            keys = {each.value for each in node.keys if isinstance(each, ast.Constant)}
            if (
                len(keys & TASK_NAMES) > 1
                or {n for k in node.keys if k for n, _ in names(k)} & classes
            ):
                asked.append((node.lineno, ast.unparse(node)[:60]))
        asked += [(line, name) for part in parts for name, line in names(part) if name in classes]
    return asked


@pytest.mark.parametrize(
    "ladder",
    [
        "if isinstance(config, VitConfig): pass",
        "if isinstance(config, (SwinConfig, models.VitConfig)): pass",
        "WITH = (VitConfig, SwinConfig)\nif isinstance(config, WITH): pass",
        "WITH = VitConfig | SwinConfig\nif issubclass(type(config), WITH): pass",
        "if type(config) is VitConfig: pass",
        "if type(config) in (VitConfig, SwinConfig): pass",
        "if config.__class__ == VitConfig: pass",
        "if type(config) is type(other): pass",
        "if recipe.task == 'classify': pass",
        "if folder.recipe.task not in ('generate', 'fill'): pass",
        "if 'classify' != manifest['task']: pass",
        "match recipe.task:\n    case 'classify': pass",
        "match config:\n    case VitConfig(): pass",
        "BUILD = {VitConfig: 1}",
        "LOAD = {'classify': 1, 'translate': 2}[recipe.task]",
    ],
)
def test_ladders_are_seen(ladder: str) -> None:
    """The next test would pass if none ever were."""
    assert ladders(ast.parse(ladder), {"VitConfig", "SwinConfig"})


@pytest.mark.parametrize(
    "fine",
    [
        "if self.task not in base.tasks: pass",
        "if isinstance(given, str | Path): pass",
        "if type(usual) is int: pass",
        "say(f'the task is {recipe.task!r}')",
        "FORMATS = (Path, str)\nif isinstance(given, FORMATS): pass",
    ],
)
def test_no_ladder_is_seen_where_none_is(fine: str) -> None:
    assert ladders(ast.parse(fine), {"VitConfig", "SwinConfig"}) == []


# The dict of tasks; and `train` may be given a recipe, of whichever task.
REGISTRY = "project/registry.py"


def test_nobody_asks_which_task_or_model_it_is() -> None:
    """A recipe, a Config or a model is never told apart by its class or task."""
    classes = _classes()
    assert {"TranslateRecipe", "ImageRecipe", "VitConfig", "Transformer", "Vit"} <= classes
    asked = [
        f"{file}:{line} {what}"
        for file in FILES
        if file not in (REGISTRY, "cli/main.py")  # tables of tasks and of commands
        for line, what in ladders(
            tree(file),
            classes - {"Recipe"} if file == "fit/run_training.py" else classes,
            own=Path(file).parts[1] if file.startswith("tasks/") else "",
        )
    ]
    assert asked == []


def test_only_the_registry_names_the_pipelines() -> None:
    """Nothing below imports a pipeline; what converts or compares models makes recipes of one."""
    users = {
        file
        for file in FILES
        if not file.startswith(("tasks/", "labs/"))  # labs train with a task's own table
        for module, _ in imports(tree(file))
        if re.fullmatch(r"manyheads\.tasks\.\w+\.(pipeline|recipe)", module)
    }
    users -= {"convert/image_text.py"}  # a folder of another library, as the next two
    assert users == {"comparison.py", "convert/classifiers.py", "convert/marian_folder.py"}


# --- Imports ------------------------------------------------------------------------------------

ACYCLIC = (
    "asks",
    "convert",
    "doctor",
    "engines",
    "fit",
    "looking",
    "predict",
    "project",
    "cli",
    "nn",
    "data",
    "models",
    "train",
    "decode",
    "lens",
    "tasks",
    "labs",
    "web",
)


def strong_components(graph: dict[str, set[str]]) -> list[set[str]]:
    """Sets of two or more nodes that reach each other (Tarjan 1972)."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    components = []

    def visit(node: str) -> None:
        order[node] = low[node] = len(order)
        stack.append(node)
        for neighbour in sorted(graph.get(node, ())):
            if neighbour not in order:
                visit(neighbour)
                low[node] = min(low[node], low[neighbour])
            elif neighbour in stack:
                low[node] = min(low[node], order[neighbour])
        if low[node] == order[node]:
            at = stack.index(node)
            components.append(set(stack[at:]))
            del stack[at:]

    for node in graph:
        if node not in order:
            visit(node)
    return [found for found in components if len(found) > 1]


def test_strong_components_are_found() -> None:
    """The test below would pass if none ever were."""
    graph = {"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": {"e"}, "e": {"d"}, "f": {"a"}}
    found = strong_components(graph)
    assert sorted(map(sorted, found)) == [["a", "b", "c"], ["d", "e"]]
    assert strong_components({"a": {"b"}, "b": set()}) == []


@pytest.fixture(scope="module")
def imported() -> dict[str, set[str]]:
    """What every module imports, under TYPE_CHECKING and in functions too."""
    import grimp

    graph = grimp.build_graph("manyheads", exclude_type_checking_imports=False, cache_dir=None)
    return {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}


@pytest.mark.parametrize("package", ACYCLIC)
def test_no_modules_import_each_other_in_a_circle(
    package: str, imported: dict[str, set[str]]
) -> None:
    """Whatever the folders: a module can be read after those it imports."""
    inside = {each for each in imported if each.startswith(f"manyheads.{package}.")}
    assert len(inside) > 5
    assert strong_components({each: imported[each] & inside for each in sorted(inside)}) == []


@pytest.mark.parametrize("package", ACYCLIC)
def test_no_sub_packages_import_each_other_in_a_circle(
    package: str, imported: dict[str, set[str]]
) -> None:
    """Nor do folders, such as nn.recording and nn.layers: one of two is below the other."""

    def part(module: str) -> str:
        return module.removeprefix(f"manyheads.{package}.").partition(".")[0]

    graph: dict[str, set[str]] = {}
    for module, others in sorted(imported.items()):
        if module.startswith(f"manyheads.{package}."):
            inside = {part(each) for each in others if each.startswith(f"manyheads.{package}.")}
            graph.setdefault(part(module), set()).update(inside - {part(module)})
    assert strong_components(graph) == []


# A package that is called trains a recipe; a task's pipeline is imported when it is first named,
# and what converts a model of the hub when one is named that is not here yet.
UPWARDS = {
    "train/__init__.py": {"manyheads.fit.run_training"},
    "project/registry.py": {f"manyheads.tasks.{task}.pipeline" for task in TASK_NAMES},
    "project/paths.py": {"manyheads.convert.hub_models"},
}
MODULE = re.compile(r"manyheads(\.[a-z_]+){2,}")


def test_three_files_import_upwards_by_name() -> None:
    """What import-linter cannot see: modules that are imported by a string."""
    named: dict[str, set[str]] = {}
    for file in FILES:
        package = ".".join(("manyheads", *Path(file).parent.parts))  # whose files are read
        for node in ast.walk(tree(file)):
            text = node.value if isinstance(node, ast.Constant) else package
            if isinstance(text, str) and text != package and MODULE.fullmatch(text):
                named.setdefault(file, set()).add(text)
    assert named == UPWARDS
    importing = {place.partition(":")[0] for place in found({"import_module", "__import__"})}
    by_data = {"__init__.py", "lazy.py", "project/plugins.py", "labs/catalogue.py"}
    # engines, exporters and commands, each beside the table that names it
    by_data |= {"registration.py", "cli/main.py"}
    # models of presets, converters of families, and the parts of a task, each in a folder that is
    # named there
    by_data |= {"models/presets.py", "models/convert/families.py", "predict/task_pipeline.py"}
    assert importing == set(UPWARDS) | by_data


# --- What is never used -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "package", ["torchvision", "pickle", "dill", "joblib", "shelve", "marshal"]
)
def test_never_imported(package: str) -> None:
    """torchvision cannot live beside CPU torch here; pickle runs what it reads."""
    places = [
        f"{file}:{line}"
        for file in FILES
        for name, line in imports(tree(file))
        if name.partition(".")[0] == package
    ]
    assert places == []


# Older models of others are pickled; what is not a tensor is refused.
FOREIGN = (
    "convert/foreign_files.py",
    "torch.load(path, map_location='cpu', weights_only=True)",
)


def test_weights_are_never_pickled() -> None:
    """Ours are safetensors: no torch.load, no torch.save, no numpy pickles."""
    places = []
    for file in FILES:
        for node in ast.walk(tree(file)):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                if (file, ast.unparse(node)) == FOREIGN:
                    continue
                if called in {
                    "torch.load",
                    "torch.save",
                    "torch.jit.load",
                    "torch.jit.save",
                } or any(
                    keyword.arg == "allow_pickle"
                    and not (isinstance(keyword.value, ast.Constant) and not keyword.value.value)
                    for keyword in node.keywords
                ):
                    places.append(f"{file}:{node.lineno} {called}")
            elif isinstance(node, ast.ImportFrom) and node.module == "torch":
                places += [
                    f"{file}:{node.lineno} {alias.name}"
                    for alias in node.names
                    if alias.name in {"load", "save"}
                ]
    assert places == []


# --- How tensor code is written -----------------------------------------------------------------

TENSOR_FILES = [name for name in FILES if name.startswith(CHECKED)]


@pytest.mark.parametrize("name", TENSOR_FILES)
def test_annotations_are_real(name: str) -> None:
    """Shapes in signatures are executed in tests, so annotations may not be strings."""
    assert not any(
        isinstance(node, ast.ImportFrom) and node.module == "__future__"
        for node in ast.walk(tree(name))
    )


@pytest.mark.parametrize("name", TENSOR_FILES)
def test_every_argument_is_said(name: str) -> None:
    """No *args or **kwargs: an argument that is swallowed is an argument that has no effect."""
    for node in ast.walk(tree(name)):
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            assert node.args.vararg is None, f"{name}:{node.lineno}"
            assert node.args.kwarg is None, f"{name}:{node.lineno}"


# Parameters in another order, not the state of a call: docs/decisions/packed-weights.md.
DERIVED = {("nn/layers/linear.py", "self._packed")}
# A trace is no module: what is recorded is stored in it, and counted.
COUNTED = {("nn/recording/trace.py", "self.kept"), ("nn/recording/trace.py", "self.dropped")}
# An edit is no module either: whether it changed something is noted in it.
COUNTED |= {
    ("nn/editing/edits.py", f"self.{name}") for name in ("change", "fired", "known", "starts")
}
COUNTED |= {("nn/editing/edits.py", "self.passed"), ("nn/layers/residual.py", "self.part")}
COUNTED |= {("nn/layers/residual.py", "(self.part, self.owner)")}


@pytest.mark.parametrize("name", TENSOR_FILES)
def test_nothing_is_stored_in_forward(name: str) -> None:
    """A module's attributes are set when it is built; a cache is an argument and a result."""
    for node in ast.walk(tree(name)):
        if not isinstance(node, ast.FunctionDef) or node.name == "__init__":
            continue
        for part in ast.walk(node):
            if isinstance(part, ast.Assign | ast.AugAssign | ast.AnnAssign):
                targets = part.targets if isinstance(part, ast.Assign) else [part.target]
                for target in map(ast.unparse, targets):
                    if (name, target.partition("[")[0]) not in DERIVED | COUNTED:
                        assert not target.startswith("self."), f"{name}:{part.lineno}"


# --- The public surface -------------------------------------------------------------------------


@pytest.mark.parametrize("module", ["manyheads", "manyheads.cli.main"])
def test_importing_does_not_import_torch(module: str) -> None:
    """Start-up is a feature: `manyheads --help` answers without torch."""
    program = (
        f"import sys, {module}\n"
        "heavy = {'torch', 'numpy', 'sentencepiece', 'matplotlib', 'sklearn'} & set(sys.modules)\n"
        "assert not heavy, sorted(heavy)"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_public_names() -> None:
    """A public name is a promise: `__all__` is sorted, and everything in it is there."""
    import manyheads

    assert manyheads.__all__ == sorted(set(manyheads.__all__))
    for name in manyheads.__all__:
        assert getattr(manyheads, name) is not None


# --- Any machine --------------------------------------------------------------------------------


def text_without_encoding(node: ast.AST) -> Iterator[int]:
    """Lines where a text is read or written in whatever encoding the machine is set to."""
    for part in ast.walk(node):
        if not isinstance(part, ast.Call) or any(each.arg == "encoding" for each in part.keywords):
            continue
        name = part.func.attr if isinstance(part.func, ast.Attribute) else ast.unparse(part.func)
        first = part.args[0] if part.args else None  # the mode, for a Path; archives open bytes
        mode = first.value if isinstance(first, ast.Constant) else None
        if (
            (name == "read_text" and not part.args)
            or (name == "write_text" and len(part.args) == 1)
            or (name == "open" and isinstance(mode, str) and not {"b", ":"} & set(mode))
            or (any(each.arg == "text" for each in part.keywords) and name in ("run", "Popen"))
        ):
            yield part.lineno


def test_texts_are_read_and_written_as_utf_8() -> None:
    """Also where the machine's own encoding is another: every opened text names its encoding."""
    code = ast.parse('p.read_text()\np.write_text("x")\np.open("w")\nrun(["x"], text=True)')
    assert list(text_without_encoding(code)) == [1, 2, 3, 4]
    code = ast.parse('p.read_text("utf-8")\np.open("rb")\np.open("w", encoding="utf-8")')
    assert not list(text_without_encoding(code))
    root = SOURCE.parents[1]
    files = [*FILES.values(), *(root / "examples").glob("*.py"), *(root / "scripts").glob("*.py")]
    assert not [
        f"{path}:{line}"
        for path in files
        for line in text_without_encoding(ast.parse(path.read_text(encoding="utf-8")))
    ]

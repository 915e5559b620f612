"""Rules of the house that a reader can rely on, checked on the source itself."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "manyheads"
FILES = {path.relative_to(SOURCE).as_posix(): path for path in sorted(SOURCE.rglob("*.py"))}
CHECKED = ("nn/", "models/", "decode/")  # where jaxtyping checks shapes


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
    assert {"nn/attention.py", "models/vit.py", "decode/beam.py", "errors.py"} <= set(FILES)


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


def test_attention_is_computed_in_one_file() -> None:
    """T5, design: every softmax over keys and every fused kernel lives in nn/attention.py."""
    places = found(KERNELS | SOFTMAX)
    assert [place for place in places if not place.startswith("nn/attention.py:")] == []


def test_attention_is_computed_by_two_functions() -> None:
    """T5, design: the readable formula has the softmax, `attend` the kernel; nothing else has."""
    users: dict[str, set[str]] = {}
    for node in tree("nn/attention.py").body:
        used = {name for name, _ in names(node)} & (KERNELS | SOFTMAX)
        if used:
            assert isinstance(node, ast.FunctionDef), f"line {node.lineno}: {used}"
            users[node.name] = used
    assert users == {"normalise": {"softmax"}, "attend": {"scaled_dot_product_attention"}}


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
FOREIGN = ("app/foreign_files.py", "torch.load(pickled, map_location='cpu', weights_only=True)")


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
DERIVED = {("nn/linear.py", "self._packed")}
# A trace is no module: what is recorded is stored in it, and counted.
COUNTED = {("nn/trace.py", "self.kept"), ("nn/trace.py", "self.dropped")}


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

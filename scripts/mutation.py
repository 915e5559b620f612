"""Measures how many small bugs the tests find: docs/mutation.md tells how to read the result.

    python scripts/mutation.py nn decode train --count 340 --seed 1 --out sample.json

A mutant is one change to one expression or statement. It runs against the tests that execute its
line, the fastest first, until one fails. pytest collects the tests once; for each mutant a fork of
that process exchanges the code of one function. What is computed when a module is imported, or by
other processes, is changed in a copy of the repository instead.
"""

import argparse
import ast
import gc
import hashlib
import importlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import CodeType, FunctionType
from typing import TypeVar, cast

import coverage
import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "manyheads"
NOT_RUN = {"full", "integration"}  # the slow tier, and what runs whole processes only
TESTS = sorted(
    {f"tests/{path.parent.name}" for path in ROOT.glob("tests/*/test_*.py")}
    - {f"tests/{name}" for name in NOT_RUN}
)
BUDGET = 30.0  # seconds of tests for a mutant, as measured without it
PATIENCE = 30.0  # seconds of computation that a mutant may need more than its tests
WAIT = 20  # how much longer than its computation a mutant may take on a busy machine
MEMORY = 8 << 30
ASSERTED = ("strict", "encoding")  # arguments: the first is an assertion, the second is linted

N = TypeVar("N", bound=ast.AST)
OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.And: ast.Or,
    ast.Or: ast.And,
}


@dataclass
class Mutant:
    """One change, and what became of it."""

    file: str  # below src/manyheads
    number: int  # among the mutants of the file
    line: int
    operator: str
    was: str
    now: str
    function: str | None  # the outermost function around it; None at import
    outcome: str = ""
    by: str = ""  # the test that failed

    @property
    def killed(self) -> bool:
        """Whether a test found the change."""
        return self.outcome == "killed"


def variants(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield the mutants of one node, each with the name of its operator."""
    match node:
        case ast.Compare(left, [op, *ops], right):
            yield "compare", ast.Compare(left, [_swapped(op), *ops], right)
        case ast.BinOp(left, op, right) if type(op) in OPERATORS:
            yield "arithmetic", ast.BinOp(left, _swapped(op), right)
        case ast.AugAssign(target, op, value) if type(op) in OPERATORS:
            yield "arithmetic", ast.AugAssign(target, _swapped(op), value)
            yield "statement", ast.Pass()
        case ast.BoolOp(op, values):
            yield "boolean", ast.BoolOp(_swapped(op), values)
        case ast.UnaryOp(ast.Not() | ast.USub() | ast.Invert(), operand):
            yield "unary", operand
        case ast.If(test, body, orelse):
            yield "condition", ast.If(_negated(test), body, orelse)
        case ast.IfExp(test, body, orelse):
            yield "condition", ast.IfExp(_negated(test), body, orelse)
        case ast.While(test, body, orelse):
            yield "condition", ast.While(_negated(test), body, orelse)
        case ast.comprehension(target, each, [test, *tests], is_async):
            yield "condition", ast.comprehension(target, each, [_negated(test), *tests], is_async)
        case ast.Constant(bool(value)):
            yield "constant", ast.Constant(not value)
        case ast.Constant(float(value)):
            yield "constant", ast.Constant(value + 1)
        case ast.Constant(int(value)):
            yield "constant", ast.Constant(value + 1)
            yield "constant", ast.Constant(value - 1)
        case ast.Constant(str(value)):
            yield "constant", ast.Constant(value + "?")
        case ast.Call(function, positional, keywords):
            for keyword in keywords:
                if keyword.arg not in (None, *ASSERTED):
                    rest = [each for each in keywords if each is not keyword]
                    yield "argument", ast.Call(function, positional, rest)
        case ast.Return(value) if value is not None and ast.unparse(value) != "None":
            yield "return", ast.Return(ast.Constant(None))
        case ast.Break():
            yield "loop", ast.Continue()
        case ast.Continue():
            yield "loop", ast.Break()
        case ast.Raise() | ast.Expr(ast.Call()) | ast.Assign([ast.Attribute() | ast.Subscript()]):
            yield "statement", ast.Pass()


def _swapped(operator: N) -> N:
    new = OPERATORS[type(operator)]()
    return cast(N, new)  # of the same kind: comparison, arithmetic or boolean


def _negated(test: ast.expr) -> ast.expr:
    return ast.UnaryOp(ast.Not(), test)


def left_alone(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield what no answer depends on: types, docstrings, assertions, and how messages read."""
    for node in ast.walk(tree):
        match node:
            case ast.Expr(ast.Constant()) | ast.Assert() | ast.If(ast.Name("TYPE_CHECKING")):
                yield node
            case ast.Assign([ast.Name("__all__")]) | ast.Assign(value=ast.Subscript(ast.Name())):
                yield node  # the second is a type's name, or a lookup
            case ast.AnnAssign(annotation=annotation) | ast.arg(annotation=annotation) if (
                annotation
            ):
                yield annotation
            case (
                ast.FunctionDef(returns=ast.expr() as annotation)
                | ast.AsyncFunctionDef(returns=ast.expr() as annotation)
            ):
                yield annotation
            case ast.Raise(exc=ast.expr() as error):
                yield error
            case ast.Call(ast.Name("dataclass" | "TypeVar" | "cast")):
                yield node
            case ast.Call(ast.Attribute(attr="warn")):
                yield from ast.iter_child_nodes(node)
            case ast.keyword(name) if name in ASSERTED:
                yield node
            case ast.Constant() if _is_prose(node):
                yield node
            case ast.JoinedStr(parts) if any(map(_is_prose, parts)):
                yield node


def _is_prose(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and " " in str(node.value).strip()


class Mutator(ast.NodeTransformer):
    """Lists the mutants of a module, or makes one of them."""

    def __init__(self, file: str, make: int | None = None) -> None:
        self.file = file
        self.make = make
        self.found: list[Mutant] = []
        self.names: list[str] = []
        self.function: str | None = None
        tree = ast.parse((PACKAGE / file).read_text(encoding="utf-8"))
        self.alone = {id(node) for node in left_alone(tree)}
        self.visit(tree)
        self.tree = tree

    def visit(self, node: ast.AST) -> ast.AST:
        """Note the mutants of a node, and of the nodes in it."""
        if id(node) in self.alone:
            return node
        for operator, new in variants(node):
            number = len(self.found)
            place = node.target if isinstance(node, ast.comprehension) else node
            line: int = place.lineno  # type: ignore[attr-defined]
            ast.fix_missing_locations(ast.copy_location(new, place))
            was, now = (ast.unparse(each).partition("\n")[0] for each in (node, new))
            self.found.append(Mutant(self.file, number, line, operator, was, now, self.function))
            if number == self.make:
                return new
        return super().visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        """Keep the name of the class."""
        self.names.append(node.name)
        self.generic_visit(node)
        self.names.pop()
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        """Keep the name of the outermost function; its defaults are computed outside of it."""
        node.decorator_list = [self.visit(each) for each in node.decorator_list]  # type: ignore[misc]
        node.args = self.visit(node.args)  # type: ignore[assignment]
        self.names.append(node.name)
        outer, self.function = self.function, self.function or ".".join(self.names)
        node.body = [self.visit(each) for each in node.body]  # type: ignore[misc]
        self.function = outer
        self.names.pop()
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        """The same for a coroutine."""
        return self.visit_FunctionDef(node)


def sample(folders: Sequence[str], count: int, seed: int) -> list[Mutant]:
    """Draw mutants, all equally likely."""
    files = sorted(
        path.relative_to(PACKAGE).as_posix()
        for folder in folders
        for path in (PACKAGE / folder).rglob("*.py")
        if path.name != "__init__.py"  # imports only
    )
    mutants = [mutant for file in files for mutant in Mutator(file).found]
    print(f"{len(mutants)} mutants of {len(files)} files, {count} drawn", flush=True)
    return random.Random(seed).sample(mutants, count)


def found_again(before: Mutant) -> Mutant:
    """Return a mutant of an earlier sample as it stands in the code now, which may have moved."""
    same = [
        each
        for each in Mutator(before.file).found
        if (each.function, each.operator, each.was, each.now)
        == (before.function, before.operator, before.was, before.now)
    ]
    if not same:
        return before if before.killed else replace(before, outcome="gone")
    now = min(same, key=lambda each: abs(each.line - before.line))
    return replace(before, line=now.line, number=now.number)


class Tests:
    """A pytest plugin that runs mutants instead of the tests."""

    def __init__(self, mutants: Sequence[Mutant], known: Path, copy: Path) -> None:
        self.mutants = mutants
        self.known = known  # which lines each test executes: measured unless it is of this code
        self.copy = copy

    def pytest_configure(self) -> None:
        """Let hypothesis try the same examples for every mutant, however slow the machine is."""
        # Not before pytest has begun, which rewrites its assertions.
        from hypothesis import HealthCheck, settings

        settings.register_profile(
            "mutation",
            derandomize=True,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        )
        settings.load_profile("mutation")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run all mutants."""
        self.session = session
        self.items = {item.nodeid: item for item in session.items}
        measured = json.loads(self.known.read_text("utf-8")) if self.known.exists() else {}
        if measured.get("code") != code_hash():
            if failure := fork(self.measure, 4 * 3600):
                raise RuntimeError(f"The tests could not be measured: {failure}")
            measured = json.loads(self.known.read_text("utf-8"))
        # Tests younger than the measurement are free, and may execute any line.
        seconds = dict.fromkeys(self.items, 0.0) | measured["seconds"]
        self.seconds = {k: v for k, v in seconds.items() if k in self.items and v is not None}
        self.young = self.seconds.keys() - measured["seconds"].keys()
        self.lines: dict[str, dict[str, list[str]]] = measured["lines"]
        import_all()  # also what tests import when they need it: its functions can be exchanged
        self.functions: dict[tuple[str, str], list[FunctionType]] = defaultdict(list)
        for each in gc.get_objects():
            if type(each) is FunctionType:  # isinstance would ask the object
                self.functions[each.__code__.co_filename, each.__code__.co_qualname].append(each)
        gc.freeze()
        for mutant in self.mutants:
            self.attempt(mutant)
            if not mutant.killed:
                change = f"{mutant.was}  ->  {mutant.now}"
                print(f"{mutant.outcome} {mutant.file}:{mutant.line}  {change}", flush=True)
        return True

    def measure(self) -> str:
        """Run every test once; write the seconds it takes and the lines it executes."""
        recorder = coverage.Coverage(data_file=None, include=[f"{PACKAGE}/**"])
        recorder.start()
        seconds: dict[str, float | None] = {}
        start = computed()
        for nodeid, failed in self.outcomes(list(self.items), recorder.switch_context):
            seconds[nodeid] = None if failed else computed() - start
            start = computed()
            if failed:
                print(f"left out, since it fails without a mutant: {nodeid}", file=sys.stderr)
        recorder.stop()
        data = recorder.get_data()
        lines = {
            Path(file).relative_to(PACKAGE).as_posix(): {
                line: [test for test in tests if test]
                for line, tests in data.contexts_by_lineno(file).items()
            }
            for file in data.measured_files()
        }
        known = json.dumps({"code": code_hash(), "seconds": seconds, "lines": lines})
        self.known.write_text(known, encoding="utf-8")
        return ""

    def outcomes(
        self, nodeids: Sequence[str], before: Callable[[str], object] | None = None
    ) -> Iterator[tuple[str, bool]]:
        """Run tests; yield whether each fails."""
        items = [self.items[nodeid] for nodeid in nodeids]
        for item, following in zip(items, [*items[1:], None], strict=True):
            if before:
                before(item.nodeid)
            failures = self.session.testsfailed
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            yield item.nodeid, self.session.testsfailed > failures

    def attempt(self, mutant: Mutant) -> None:
        """Run the tests of one mutant."""
        lines = self.lines.get(mutant.file, {})
        tests = set(lines.get(str(mutant.line), ())) if mutant.function else set()
        here = bool(tests)  # or else it runs at import, in other processes, or never
        if not here:
            mirror = f"/test_{Path(mutant.file).stem}.py:"
            tests = {test for some in lines.values() for test in some}
            tests |= {test for test in self.items if mirror in test}
        chosen: list[str] = []
        left = BUDGET
        for test in sorted(
            (tests | self.young) & self.seconds.keys(), key=self.seconds.__getitem__
        ):
            if (left := left - self.seconds[test]) < 0 and chosen:
                break
            chosen.append(test)
        if not chosen:
            mutant.outcome = "untested"
            return
        seconds = PATIENCE + 2 * sum(map(self.seconds.__getitem__, chosen))
        tree = Mutator(mutant.file, mutant.number).tree
        swap = self.exchange(mutant, tree) if here else None
        if swap is None:
            found = self.apart(mutant.file, tree, chosen[:40], seconds)
        else:
            found = fork(lambda: self.first(chosen, swap), seconds)
        mutant.outcome = "killed" if found else "survived"
        mutant.by = found

    def exchange(self, mutant: Mutant, tree: ast.Module) -> Callable[[], None] | None:
        """Return what gives a function its mutated code; None if that cannot be done."""
        path = str(PACKAGE / mutant.file)
        functions = self.functions[path, mutant.function or ""]
        codes = {each.co_qualname: each for each in nested(compile(tree, path, "exec"))}
        code = codes[mutant.function or ""]
        if not functions or any(f.__code__.co_freevars != code.co_freevars for f in functions):
            return None

        def swap() -> None:
            for function in functions:
                function.__code__ = code

        return swap

    def first(self, tests: Sequence[str], swap: Callable[[], None]) -> str:
        """Return the first test that fails with the mutant."""
        swap()
        return next((test for test, failed in self.outcomes(tests) if failed), "")

    def apart(self, file: str, tree: ast.AST, tests: Sequence[str], seconds: float) -> str:
        """Test a mutant by a new process in a copy of the repository; return the first failure."""
        if not self.copy.exists():
            unwanted = shutil.ignore_patterns(".git", ".venv*", "__pycache__")
            shutil.copytree(ROOT, self.copy, ignore=unwanted, symlinks=True)
        target = self.copy / "src" / "manyheads" / file
        before = target.read_text(encoding="utf-8")
        compiled = target.parent / "__pycache__"
        try:
            target.write_text(ast.unparse(tree), encoding="utf-8")
            done = subprocess.run(
                [sys.executable, "-m", "pytest", "-xqrfE", "-p", "no:cacheprovider", *tests],
                cwd=self.copy,
                env=os.environ | {"PYTHONPATH": str(self.copy / "src")},
                capture_output=True,
                encoding="utf-8",
                timeout=WAIT * seconds,
                preexec_fn=lambda: limit(seconds),
            )
        except subprocess.TimeoutExpired:
            return "time limit"
        finally:
            target.write_text(before, encoding="utf-8")
            for each in compiled.glob(f"{target.stem}.*"):  # may look as new as the next mutant
                each.unlink()
        if not done.returncode:
            return ""
        names = [
            line.split()[1]
            for line in done.stdout.split("\n")
            if line.startswith(("FAILED ", "ERROR "))
        ]
        return names[0] if names else "does not start"


def import_all() -> None:
    """Import every module of the package."""
    for path in sorted(PACKAGE.rglob("*.py")):
        name = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        if path.stem not in ("__init__", "__main__"):
            importlib.import_module(name)


def code_hash() -> str:
    """Return what changes with every change of the package: the lines that tests execute move."""
    files = sorted(PACKAGE.rglob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


def computed() -> float:
    """Return the seconds of computation of this process and its children so far."""
    return sum(os.times()[:4])


def nested(code: CodeType) -> Iterator[CodeType]:
    """Yield all code objects in one."""
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield each
            yield from nested(each)


def limit(seconds: float) -> None:
    """Limit the computation and the memory of this process."""
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds)))
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))


def fork(work: Callable[[], str], seconds: float) -> str:
    """Call a function in a fork of this process; return its result, or how the fork ended."""
    reader, writer = os.pipe()
    process = os.fork()
    if not process:
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1):
            os.dup2(null, stream)
        try:
            os.setsid()
            limit(seconds)
            os.write(writer, work().encode())
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    os.close(writer)
    end = time.monotonic() + WAIT * seconds
    while not (found := os.waitpid(process, os.WNOHANG))[0]:
        if time.monotonic() > end:
            os.killpg(process, signal.SIGKILL)
        time.sleep(0.01)
    with os.fdopen(reader, encoding="utf-8") as file:
        result = file.read()
    if os.WIFSIGNALED(found[1]):
        name = signal.Signals(os.WTERMSIG(found[1])).name
        return "time limit" if name in ("SIGXCPU", "SIGKILL") else name
    if found[1]:
        raise RuntimeError("The script failed in a fork.")
    return result


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folders", nargs="*", help="of src/manyheads")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True, help="the sample, as JSON lines")
    parser.add_argument("--again", action="store_true", help="run what survived in OUT again")
    parser.add_argument("--known", type=Path, help="where to keep which tests execute which lines")
    parser.add_argument("--tests", nargs="+", default=TESTS)
    asked = parser.parse_args()
    if asked.again:
        lines = asked.out.read_text(encoding="utf-8").splitlines()
        mutants = [found_again(Mutant(**json.loads(line))) for line in lines]
    else:
        mutants = sample(asked.folders, asked.count, asked.seed)
    with tempfile.TemporaryDirectory() as scratch:
        plugin = Tests(
            [each for each in mutants if each.outcome not in ("killed", "gone")],
            asked.known or Path(scratch, "known.json"),
            Path(scratch, "copy"),
        )
        arguments = ["-qs", "-p", "no:cacheprovider", f"--basetemp={scratch}/pytest"]
        if (
            pytest.main([*arguments, *asked.tests], plugins=[plugin])
            is pytest.ExitCode.INTERNAL_ERROR
        ):
            sys.exit(1)
    mutants.sort(key=lambda each: (each.file, each.number))
    text = "".join(json.dumps(asdict(each), ensure_ascii=False) + "\n" for each in mutants)
    asked.out.write_text(text, encoding="utf-8")
    for folder, number in sorted(Counter(each.file.split("/")[0] for each in mutants).items()):
        killed = sum(each.killed for each in mutants if each.file.startswith(f"{folder}/"))
        print(f"{folder}: {killed} of {number} killed, {100 * killed / number:.1f}%")


if __name__ == "__main__":
    main()

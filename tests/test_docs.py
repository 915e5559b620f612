"""All pages: links lead somewhere, and what they name in code is there."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "manyheads"
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for pattern in ("*.md", "docs/*.md", "docs/decisions/*.md", "docs/lab/README.md")
    for path in ROOT.glob(pattern)
)
HISTORY = {"CHANGELOG.md", "docs/decisions/names.md"}  # name what is gone, too
# Of torch and other libraries, and what the lecture calls its modules.
ELSEWHERE = {
    *("DistributedDataParallel", "TypeAdapter", "ContextVar", "MarianMTModel"),
    *("MultiheadAttention", "MaskedMultiHeadAttention", "EncoderDecoderAttention"),
}


def defined() -> set[str]:
    """Names of the package, and Class.name of what a class or one that it inherits has or sets."""
    names: set[str] = set()
    own: dict[str, set[str]] = {}
    parents: dict[str, set[str]] = {}
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Name):
                names.add(node.id)
            elif isinstance(node, ast.ClassDef):
                bases = {each.id for each in node.bases if isinstance(each, ast.Name)}
                parents[node.name] = parents.get(node.name, set()) | bases
                own[node.name] = own.get(node.name, set()) | {
                    part.name if isinstance(part, ast.FunctionDef) else part.attr
                    for part in ast.walk(node)
                    if isinstance(part, ast.FunctionDef)
                    or (isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store))
                }

    def members(name: str, *below: str) -> set[str]:
        # Two classes of one name may inherit from each other's.
        above = parents.get(name, set()) - {name, *below}
        return own.get(name, set()).union(*(members(each, name, *below) for each in above))

    return names | own.keys() | {f"{name}.{each}" for name in own for each in members(name)}


def in_backticks(page: str) -> set[str]:
    """What a page writes as code within its sentences."""
    text = re.sub(r"```.*?```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)
    return set(re.findall(r"`([^`\n]+)`", text))


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    """Every relative link of every page."""
    text = (ROOT / page).read_text(encoding="utf-8")
    links = set(re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", text))
    assert {link for link in links if not (ROOT / page).parent.joinpath(link).exists()} == set()


@pytest.mark.parametrize("page", [page for page in PAGES if page not in HISTORY])
def test_files_that_are_named_exist(page: str) -> None:
    """Files with a folder in front, and folders: below the root or src/manyheads."""
    folders = "|".join(path.name for path in SOURCE.iterdir() if path.is_dir())
    paths = re.compile(rf"[a-z]+/[\w/]*\.py|({folders})/[\w/]+")
    named = {name for name in in_backticks(page) if paths.fullmatch(name)}
    gone = {
        name
        for name in named
        if not any((each / name).exists() for each in (ROOT, SOURCE.parent, SOURCE))
    }
    assert gone == set()


def test_classes_that_are_named_exist() -> None:
    """`Class` and `Class.method`; also those of the decisions and the architecture."""
    known = defined() | ELSEWHERE
    named = {
        (page, name)
        for page in PAGES
        if page not in HISTORY
        for name in in_backticks(page)
        if re.fullmatch(r"[A-Z][a-z]+[A-Z]\w*(\.[a-z]\w+)?", name)
    }
    assert len(named) > 80
    assert {(page, name) for page, name in named if name not in known} == set()


def test_new_names_exist() -> None:
    """In the tables of renames: what each row says that a module, class or function is called."""
    tables = (ROOT / "docs" / "decisions" / "names.md").read_text(encoding="utf-8")
    words = set(re.findall(r"\w+", "".join(p.read_text("utf-8") for p in SOURCE.rglob("*.py"))))
    now = [row.split("|")[2] for row in tables.splitlines() if row.count("|") >= 3]
    named = [name for cell in now for name in re.findall(r"`([^`]+)`", cell)]
    assert len(named) > 150
    modules = {name for name in named if "/" in name}
    others = set(re.findall(r"\w+", " ".join(name for name in named if "/" not in name)))
    assert {
        m for m in modules if not any((SOURCE / (m + end)).exists() for end in ("", ".py"))
    } == set()
    assert others - words - {path.stem for path in SOURCE.rglob("*.py")} == set()


def test_modules_that_are_named_exist() -> None:
    """`manyheads.package.module.name`; of the changelog what its table of renames says of now."""
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    now = [row.split("|")[2] for row in changes.splitlines() if row.startswith("  |")]
    named = {name for page in PAGES if page not in HISTORY for name in in_backticks(page)}
    named |= {name for cell in now for name in re.findall(r"`([^`]+)`", cell)}
    dotted = {found[0] for name in named if (found := re.match(r"manyheads(\.\w+)+", name))}
    assert len(dotted) > 15
    gone = set()
    for name in dotted - {"manyheads.json", "manyheads.plugins"}:  # a file, and an entry point
        *parts, last = name.split(".")[1:]
        folder = SOURCE.joinpath(*parts)
        file = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
        there = (folder / last).exists() or (folder / f"{last}.py").exists()
        if not there and not (file.exists() and last in file.read_text(encoding="utf-8")):
            gone.add(name)
    assert gone == set()

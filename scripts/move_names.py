"""Rewrite imports after names have moved to other modules.

    python scripts/move_names.py MAP.tsv [--check]

MAP has lines `old.module  new.module` (a module moved whole) and `old.module:Name  new.module:Name`
(one name moved; it may get another name only where it is imported). Imports in src, tests,
benchmarks, examples, scripts and docs are rewritten; text that names a module by its dotted path
or by its file is rewritten for whole modules. A map is for one move: run again, it would move what
has got the old name since.
"""

import re
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WHERE = ("src", "tests", "benchmarks", "examples", "scripts", "docs")
IMPORT = re.compile(
    r"^(?P<indent>[ >]*(?:\.\.\. |>>> )?)from (?P<module>manyheads[\w.]*) import "
    r"(?:\((?P<many>[^)]*)\)|(?P<one>[^\n(]+?))(?P<tail>[ ]*(?:#[^\n]*)?)$",
    re.MULTILINE,
)


def read_map(path: Path) -> tuple[dict[str, str], dict[tuple[str, str], str]]:
    """Read which modules and which names move."""
    modules, names = {}, {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        old, new = line.split()
        if ":" in old:
            module, name = old.split(":")
            names[module, name] = new.partition(":")[0]
        else:
            modules[old] = new
    return modules, names


def rewrite(text: str, modules: dict[str, str], names: dict[tuple[str, str], str]) -> str:
    """Rewrite one file."""
    homes = {*modules.values(), *names.values()}

    def moved(found: re.Match[str]) -> str:
        module, tail = found["module"], found["tail"]
        many = found["many"] or found["one"]
        groups: dict[str, list[str]] = defaultdict(list)
        for each in re.sub(r"#[^\n]*", "", many).split(","):
            if not (item := " ".join(each.split())):
                continue
            name, whole = item.split()[0], f"{module}.{item.split()[0]}"
            if whole in modules:  # a module is imported from its package
                package, _, last = modules[whole].rpartition(".")
                alias = item.partition(" as ")[2] or name
                groups[package].append(last if last == alias else f"{last} as {alias}")
            else:
                home = names.get((module, name), modules.get(module, module))
                groups[home].append(item)
        if list(groups) == [module] and whole not in modules:
            return found[0]
        return "\n".join(
            f"{found['indent']}from {home} import {', '.join(items)}{tail if n == 0 else ''}"
            for n, (home, items) in enumerate(groups.items())
        )

    text = IMPORT.sub(moved, text)
    for (module, name), home in names.items():
        if module in text and name in text:
            text = re.sub(rf"(?<![\w.]){re.escape(module)}\.{name}(?!\w)", f"{home}.{name}", text)
    for old, new in sorted(modules.items(), key=lambda pair: -len(pair[0])):
        if old.rpartition(".")[2] not in text:
            continue
        # A module may have become a package of its old name.
        after = r"(?!\w|\.\w)" if any(each.startswith(f"{old}.") for each in homes) else r"(?!\w)"
        text = re.sub(rf"(?<![\w.]){re.escape(old)}{after}", new, text)
        for form in ("src/{}", "{}"):
            before = form.format(old.replace(".", "/")) + ".py"
            text = text.replace(before, form.format(new.replace(".", "/")) + ".py")
        short_old = old.removeprefix("manyheads.").replace(".", "/") + ".py"
        short_new = new.removeprefix("manyheads.").replace(".", "/") + ".py"
        text = re.sub(rf"(?<![\w/]){re.escape(short_old)}", short_new, text)
    return text


def main() -> None:
    """Rewrite all files."""
    modules, names = read_map(Path(sys.argv[1]))
    inside = (path for folder in WHERE for path in sorted((ROOT / folder).rglob("*")))
    kinds = (".py", ".md", ".toml", ".pyi")
    for path in (*inside, *ROOT.glob("*.md"), ROOT / "pyproject.toml"):
        if path.suffix not in kinds or path.name == "move_names.py":
            continue
        before = path.read_text(encoding="utf-8")
        after = rewrite(before, modules, names)
        if after != before:
            path.write_text(after, encoding="utf-8")
            print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()

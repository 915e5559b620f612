"""Build the pages and notebooks of the first hour, English and Korean, from docs/first_hour.py.

python scripts/first_hour.py              docs/first-hour[.ko].md and docs/first-hour[.ko].ipynb
python scripts/first_hour.py --pictures   runs the cells first, draws docs/images/first-hour-*.png
"""

import contextlib
import io
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

DOCS = Path(__file__).resolve().parents[1] / "docs"
SOURCE = DOCS / "first_hour.py"
LANGUAGES = ("en", "ko")
HEAD = re.compile(r"^# %%(.*)$", re.MULTILINE)
MARK = re.compile(r"«([^|«»]*)\|([^|«»]*)»")
SOLUTIONS = {"en": "Solutions", "ko": "풀이"}
SOLUTION = {"en": "Exercise", "ko": "연습"}
CHECK = {"en": "The check, to run behind your answer", "ko": "답을 확인하는 셀"}


class Cell(NamedTuple):
    """A part of the source: its kind, its name or what else stands in its head, its text."""

    kind: str  # code, markdown, output, picture, exercise, check, solution, wrong
    name: str
    text: str

    @property
    def is_code(self) -> bool:
        """Whether a reader runs it."""
        return self.kind in ("code", "exercise", "check")


def cells(language: str, source: str | None = None) -> list[Cell]:
    """Read the source in one language."""
    source = SOURCE.read_text(encoding="utf-8") if source is None else source
    _, *parts = HEAD.split(source)
    found = []
    for head, body in zip(parts[::2], parts[1::2], strict=True):
        kind, _, name = head.strip().partition(" ")
        if kind == "[markdown]" and name != language:
            continue
        text = in_language(body.strip("\n"), language)
        if kind in ("[markdown]", "output"):
            text = re.sub(r"^# ?", "", text, flags=re.MULTILINE)
        name = in_language(name, language)
        found.append(Cell(kind.strip("[]") or "code", name, text))
    return found


def in_language(text: str, language: str) -> str:
    """Take one half of each «English|Korean»."""
    return MARK.sub(lambda match: match[LANGUAGES.index(language) + 1], text)


# --- What is built ------------------------------------------------------------------------------


def notebook(language: str) -> str:
    """Write the notebook: code without outputs, checks folded, solutions at the end."""
    written: list[dict[str, Any]] = []
    for cell in cells(language):
        if cell.is_code:
            hidden = {"jupyter": {"source_hidden": True}} if cell.kind == "check" else {}
            code: dict[str, Any] = {"execution_count": None, "metadata": hidden, "outputs": []}
            written.append({"cell_type": "code", "source": cell.text, **code})
        elif cell.kind == "markdown":
            written.append({"cell_type": "markdown", "metadata": {}, "source": cell.text})
    written.append({"cell_type": "markdown", "metadata": {}, "source": solutions(language)})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    book = {
        "cells": [
            {
                **each,
                "id": f"cell-{number}",
                "source": each["source"].splitlines(keepends=True),
            }
            for number, each in enumerate(written, 1)
        ],
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(book, ensure_ascii=False, indent=1) + "\n"


def page(language: str) -> str:
    """Write the page: code with what it prints and draws, checks folded, solutions at the end."""
    written = ["<!-- Built by scripts/first_hour.py from docs/first_hour.py -->"]
    for cell in cells(language):
        if cell.kind == "check":
            written.append(folded(CHECK[language], cell.text))
        elif cell.is_code:
            written.append(f"```python\n{cell.text}\n```")
        elif cell.kind == "output":
            written.append(f"```text\n{cell.text}\n```")
        elif cell.kind == "picture":
            name, _, alternatives = cell.name.partition(" ")
            alternative = alternatives.split("|")[LANGUAGES.index(language)]
            written.append(f"![{alternative}](images/{picture(name).name})")
        elif cell.kind == "markdown":
            written.append(cell.text)
    return "\n\n".join([*written, solutions(language)]) + "\n"


def solutions(language: str) -> str:
    """Fold each solution, in the order of the exercises."""
    found = [cell.text for cell in cells(language) if cell.kind == "solution"]
    parts = [folded(f"{SOLUTION[language]} {number}", text) for number, text in enumerate(found, 1)]
    return "\n\n".join([f"## {SOLUTIONS[language]}", *parts])


def folded(title: str, code: str) -> str:
    """Show a title; the code behind it after a click."""
    return f"<details><summary>{title}</summary>\n\n```python\n{code}\n```\n\n</details>"


def picture(name: str) -> Path:
    """Where the picture of this name lies."""
    return DOCS / "images" / f"first-hour-{name}.png"


def built() -> dict[Path, str]:
    """Build every file."""
    ending = {"en": "", "ko": ".ko"}
    return {
        DOCS / f"first-hour{ending[language]}.{kind}": build(language)
        for language in LANGUAGES
        for kind, build in (("md", page), ("ipynb", notebook))
    }


# --- Running it ---------------------------------------------------------------------------------


class Ran(NamedTuple):
    """A cell that ran, what it printed, and what stands in the source for that."""

    cell: Cell
    printed: str
    expected: str | None  # None: nothing stands there, or it varies


def run(
    parts: Sequence[Cell],
    values: dict[str, Any],
    *,
    show: Callable[[str], object] = str,
) -> Iterator[Ran]:
    """Run the cells of a reader one after the other, in one namespace, as a notebook does.

    Args:
        parts: the cells.
        values: the namespace.
        show: called in place of pyplot's `show`, with the name of the picture.
    """
    import matplotlib as mpl
    from matplotlib import pyplot

    mpl.use("Agg")
    plt: Any = pyplot
    for number, cell in enumerate(parts):
        if not cell.is_code:
            continue
        behind = parts[number + 1] if number + 1 < len(parts) else Cell("", "", "")
        drawn = behind.name.split()[0] if behind.kind == "picture" else ""
        printed = io.StringIO()
        shown, plt.show = plt.show, lambda drawn=drawn: show(drawn)
        try:
            with contextlib.redirect_stdout(printed):
                exec(compile(cell.text, f"{SOURCE.name}, cell {number}", "exec"), values)
        finally:
            plt.show = shown
            plt.close("all")
        expected = behind.text if behind.kind == "output" and behind.name != "varies" else None
        yield Ran(cell, printed.getvalue().rstrip("\n"), expected)


def main() -> None:
    """Write all files; run the cells first if pictures are asked for."""
    if sys.argv[1:] not in ([], ["--pictures"]):
        sys.exit(__doc__)
    if sys.argv[1:]:
        import matplotlib.pyplot as plt

        def save(name: str) -> None:
            plt.savefig(picture(name), dpi=100)

        for ran in run(cells("en"), {}, show=save):
            print(ran.printed)
            if ran.expected not in (None, ran.printed):
                print(f"docs/first_hour.py says instead:\n{ran.expected}", file=sys.stderr)
    for path, text in built().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

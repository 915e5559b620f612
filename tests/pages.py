"""A document of 200 lines with everything that must survive, and what its structure is."""

import re
from itertools import cycle

from tests.made import numbers

SPECIAL = [
    "See https://example.com/photos?id=7&size=big for one image.",
    "Two <b>bold</b> words and <a href='https://a.example/b'>one link</a>.",
    "Hello {name}, you have %d of {{limit}} and ${TOTAL}; %(left)s left.",
    "It costs 3.50 or 1,234.5, on 2026-11-20 at 15:05, at -5 °C.",
    "Write to one.two@example.org or open `run --all` in src/tools/make.py.",
    "Yes 🎉 and 👩‍👩‍👧 and 🇰🇷 &amp; <br/> a [link](http://c.example) in **bold**.",
]
PREFIXES = ["", "  ", "\t", "- ", "* ", "1. ", "    2) ", "> ", "> > ", "# ", "### ", "- [ ] "]


def page(lines: int = 200, *, end: str = "\n", last: bool = True) -> str:
    """A document: paragraphs, lists, tables, code, blank lines; with a last line end or without."""
    sentences, _ = numbers(60, seed=5)
    words = cycle(f"{text.capitalize()}." for text in sentences)
    found: list[str] = []
    for n in range(lines):
        special = SPECIAL[n % len(SPECIAL)]
        kind = n % 10
        if kind in (3, 7):
            found.append("" if n % 20 < 10 else "  \t")
        elif kind == 4:  # a long paragraph, with two spaces here and there
            found.append(" ".join([next(words) for _ in range(12)] + ["", special, next(words)]))
        elif kind == 5:
            found.append(f"| one | {special} | {n} |" if n % 20 < 10 else "|:---|---:|----|")
        elif kind == 6:
            found.append(f"one\ttwo {n}\t{special}   ")
        else:
            found.append(PREFIXES[n % len(PREFIXES)] + f"{next(words)} {special}")
    found[120:124] = ["```python", "print('one two', 3)  # {x}", "", "```"]
    return end.join(found[:lines]) + (end if last else "")


def assert_same_structure(source: str, translated: str) -> None:
    """Every line begins and ends as it did: indentation, bullet, quotation; spaces, line end."""
    before, after = (re.findall(r"[^\n]*\n|[^\n]+", text) for text in (source, translated))
    assert len(before) == len(after)
    for number, (line, new) in enumerate(zip(before, after, strict=True), 1):
        begin = re.match(r"[\s>|]*(?:[-*] |#+ |\d[.)] )?(?:\[ \] )?", line)
        end = re.search(r"[\s|]*\Z", line)
        assert begin is not None
        assert end is not None
        assert new.startswith(begin.group()), (number, line, new)
        assert new.endswith(end.group()), (number, line, new)
        assert bool(new.strip()) == bool(line.strip()), (number, line, new)
        assert new.count("\t") == line.count("\t"), (number, line, new)
        assert new.startswith(line) or not re.match(r"[`|:-]*\s*\Z|print", line)

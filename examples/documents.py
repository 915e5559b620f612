"""Translate a document, and report what became of its lines, sentences and placeholders.

    python examples/documents.py [MODEL [FILE [GLOSSARY]]]

Without a file, a small page of dates for the shipped date translator.
"""

import sys
from collections import Counter
from pathlib import Path

import manyheads
from manyheads.data.documents.glossary import Glossary
from manyheads.data.documents.placeholders import KINDS, find
from manyheads.documents.document_translation import Document, translate_file
from manyheads.tasks.translate.predictor import Translator

PAGE = """\
# Friday, November 20, 2026

- [ ] {name}: November 21, 2026 at 3:05 PM
- [x] <b>Sunday, November 22, 2026</b> 🎉

| from November 20, 2026 to January 2, 2027 | %d | https://example.com/2026?day=20 |
|---|---|---|
    November 2026
"""


def report(document: Document) -> None:
    """Print line beside line, then what was counted."""
    source = "\n".join(line.source for line in document.lines)
    width = max(len(line.source) for line in document.lines)
    for line in document.lines:
        print(f"{line.source:<{width}} | {line.translation}")
    print()
    ways = Counter(sentence.how for line in document.lines for sentence in line.sentences)
    print("sentences:", ", ".join(f"{count} {how}" for how, count in ways.items()))
    target = "\n".join(line.translation for line in document.lines)
    before, after = (Counter(i.kind for i in find(text)) for text in (source, target))
    for kind in KINDS:
        if before[kind]:
            print(f"{kind + 's:':<14}{before[kind]} before, {after[kind]} after")
    print(f"lines:        {source.count(chr(10))} before, {target.count(chr(10))} after")
    for note in document.notes:
        print("note:", note)


def main() -> None:
    """Translate the page or a file."""
    name, file, terms = (*sys.argv[1:], *[None] * 3)[:3]
    translator = manyheads.load(name or "date-en-ko")
    assert isinstance(translator, Translator)
    content = Path(file).read_bytes() if file else PAGE.encode()
    glossary = Glossary.read(Path(terms)) if terms else None
    report(translate_file(translator, content, file or "page.txt", glossary=glossary))


if __name__ == "__main__":
    main()

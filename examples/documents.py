"""Translate a document, and report what became of its lines, sentences and placeholders.

    python examples/documents.py [MODEL [FILE [GLOSSARY]]]

Without a file, a small page of dates for the shipped date translator.
"""

import sys
from collections import Counter
from pathlib import Path

import manyheads
from manyheads.app.documents.documents import Document, read_document, translate_document
from manyheads.app.predictors.translator import Translator
from manyheads.data.documents.glossary import Glossary
from manyheads.data.documents.placeholders import KINDS, find

PAGE = """\
# Friday, November 20, 2026

- [ ] {name}: November 21, 2026 at 3:05 PM
- [x] <b>Sunday, November 22, 2026</b> 🎉

| from November 20, 2026 to January 2, 2027 | %d | https://example.com/2026?day=20 |
|---|---|---|
    November 2026
"""


def report(source: str, document: Document) -> None:
    """Print line beside line, then what was counted."""
    width = max(len(line.source) for line in document.lines)
    for line in document.lines:
        print(f"{line.source:<{width}} | {line.translation}")
    print()
    ways = Counter(sentence.how for line in document.lines for sentence in line.sentences)
    print("sentences:", ", ".join(f"{count} {how}" for how, count in ways.items()))
    before, after = (Counter(i.kind for i in find(text)) for text in (source, document.text))
    for kind in KINDS:
        if before[kind]:
            print(f"{kind + 's:':<14}{before[kind]} before, {after[kind]} after")
    print(f"lines:        {source.count(chr(10))} before, {document.text.count(chr(10))} after")
    for note in document.notes:
        print("note:", note)


def main() -> None:
    """Translate the page or a file."""
    name, file, terms = (*sys.argv[1:], *[None] * 3)[:3]
    translator = manyheads.load(name or "date-en-ko")
    assert isinstance(translator, Translator)
    source = read_document(Path(file)) if file else PAGE
    glossary = Glossary.read(Path(terms)) if terms else None
    report(source, translate_document(translator, source, glossary=glossary))


if __name__ == "__main__":
    main()

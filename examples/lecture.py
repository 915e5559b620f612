"""Translate a few sentences, each with the model of its language pair, and print a table.

    python examples/lecture.py

Reads lecture.tsv under the data root (source language, target language, source, reference); pairs
without a model are left out. Other models: python examples/lecture.py en-fr=runs/multi30k-en-fr
"""

import sys

import manyheads
from manyheads.errors import ManyheadsError, NotFoundError
from manyheads.project.paths import find_data
from manyheads.tasks.translate.predictor import Translator

MODELS = {"en-de": "multi30k-en-de", "en-ko": "enko-en-ko", "ko-en": "enko-ko-en"}


def main() -> None:
    """Print what comes out, good or bad."""
    models = MODELS | dict(each.split("=", 1) for each in sys.argv[1:])
    try:
        (path,) = find_data("lecture.tsv", None, ("",))
    except ManyheadsError as error:
        sys.exit(str(error))
    lines = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")[1:]
    print("| | source | translation | a person's |\n|---|---|---|---|")
    for source_language, target_language, text, reference in (line.split("\t") for line in lines):
        pair = f"{source_language}-{target_language}"
        try:
            translator = manyheads.load(models[pair])
        except (KeyError, NotFoundError):
            continue
        assert isinstance(translator, Translator)
        print(f"| {pair} | {text} | {translator(text)} | {reference} |")


if __name__ == "__main__":
    main()

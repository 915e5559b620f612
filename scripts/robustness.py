"""Measure how a translator bears what people type: case, end marks, unseen names, repetitions.

MANYHEADS_DATA=FOLDER python scripts/robustness.py en-de            # on its validation data

Scores are BLEU of lower-cased texts without end marks, so that only the words count.
"""

import json
import re
import sys
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import manyheads
from manyheads.data.augment.number_pairs import LANGUAGES, number_pairs, number_words
from manyheads.data.augment.text_noise import drop_end_mark, random_name, random_number
from manyheads.data.text.corpus import Corpus
from manyheads.measure.text_metrics import TEXT_METRICS
from manyheads.recipe_data.pair_splits import corpus_split, training_corpus
from manyheads.tasks.translate.predictor import Translator

NAMED = 200  # sentences with unseen names and numbers
WRITTEN: dict[str, Callable[[str], str]] = {
    "plain": str,
    "lower case": str.lower,
    "capitals": str.upper,
    "no end mark": lambda text: bare(text),
}
REPEATED = re.compile(r"\b(\w+(?: \w+){0,3})(?:[,.]? \1\b){2}")


def bare(text: str) -> str:
    """Remove the end mark."""
    return drop_end_mark(text, "x.")[0]


def main() -> None:
    """Translate the validation data in every form."""
    model = manyheads.load(sys.argv[1])
    assert isinstance(model, Translator)
    data: Any = model.folder.recipe.data
    valid, train = corpus_split("valid", data), training_corpus(data)
    found: dict[str, Any] = {}
    references = [[bare(text.lower())] for text in valid.target]
    repeated = 0
    for name, write in WRITTEN.items():
        outputs = [best.text for best, *_ in model.translate([*map(write, valid.source)])]
        lowered = [bare(text.lower()) for text in outputs]
        found[name] = round(TEXT_METRICS["bleu"](lowered, references, data.target).value, 2)
        repeated += sum(bool(REPEATED.search(text)) for text in outputs)
    found["repeated three times"] = f"{repeated} of {len(WRITTEN) * len(valid)} answers"
    found["copied"] = copied(model, valid.source, {w for s, _ in train.pairs() for w in s.split()})
    if {data.source, data.target} == set(LANGUAGES):
        found["other numbers"] = numbered(model, valid)
    print(json.dumps({sys.argv[1]: found}, ensure_ascii=False, indent=1))


def copied(model: Translator, sources: list[str], seen: set[str]) -> dict[str, Any]:
    """Put names and numbers that training has not seen into sentences; count those that survive."""
    draw = Random(1)
    texts: list[str] = []
    wanted: list[str] = []
    for source in sources:
        if len(texts) == NAMED:
            break
        name = next(name for name in iter(lambda: random_name(draw), None) if name not in seen)
        number = random_number("1234", draw)
        text = re.sub(r"\bTom\b", name, source, count=1)
        if text != source:
            wanted.append(name)
        else:
            text = re.sub(r"\b\d+\b", number, source, count=1)
            if text == source:
                continue
            wanted.append(number)
        texts.append(text)
    outputs = [best.text for best, *_ in model.translate(texts)]
    right = [want in output for want, output in zip(wanted, outputs, strict=True)]
    wrong = [f"{t} -> {o}" for t, o, r in zip(texts, outputs, right, strict=True) if not r]
    return {
        "verbatim": f"{sum(right)} of {len(texts)}",
        "names": sum(r for r, w in zip(right, wanted, strict=True) if w.isalpha()),
        "of": sum(w.isalpha() for w in wanted),
        "failures": wrong[:5],
    }


def numbered(model: Translator, valid: Corpus) -> dict[str, Any]:
    """Count answers with the numbers, times and prices that were put into validation pairs."""
    data: Any = model.folder.recipe.data
    languages = data.source, data.target
    made = number_pairs(valid.source, valid.target, 0.3, 1, languages)
    pairs = [(s, t) for s, t in dict.fromkeys(made) if said(t, languages[1])]
    outputs = [best.text for best, *_ in model.translate([source for source, _ in pairs])]
    right = [
        said(target, languages[1]) == said(output, languages[1])
        for (_, target), output in zip(pairs, outputs, strict=True)
    ]
    wrong = [f"{s} -> {o}" for (s, _), o, r in zip(pairs, outputs, right, strict=True) if not r]
    score = TEXT_METRICS["chrf"](outputs, [[target] for _, target in pairs], languages[1])
    return {
        "right": f"{sum(right)} of {len(pairs)}",
        "chrf": round(score.value, 2),
        "failures": wrong[:8],
    }


def said(text: str, language: str) -> Counter[str]:
    """The numbers of a text; one in a word is the same as in digits."""
    words = number_words(language)
    found = re.findall(r"\d+(?:[.,:]\d+)*|[\w-]+", text.lower())
    plain = (str(words.get(each) or re.sub(r"[.,:](?=\d{3}\b)", "", each)) for each in found)
    return Counter(each.replace(":", ".") for each in plain if each[0].isdigit())


if __name__ == "__main__":
    main()

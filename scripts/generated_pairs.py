"""Make further pairs with models: en-de, en-ko, ko-en and multi30k-en-de-distil learn from them.

    python scripts/generated_pairs.py german --root data
    python scripts/generated_pairs.py korean --root data --models runs/en-ko-base runs/ko-en-base
    python scripts/generated_pairs.py korean --models runs/en-ko-1 runs/ko-en --sentences 100000
    python scripts/generated_pairs.py captions --models runs/multi30k-{en-de,de-en}-teacher

German: generated/back.en-de.tsv is the German side of the training pairs translated back by de-en
(Nguyen et al. 2020, "Data Diversification", with one model each way), and
generated/forward.en-de.tsv English sentences that only the French pairs have, translated by
en-de. Of its four best translations that one is kept which de-en translates back to what is most
like the source (chrF) and which en-de holds for likely; none if no way back is near, or if it has
words that are in no German text. On two cores twenty minutes.

Korean: generated/mono.en-ko.tsv is Korean that comes without English, and
generated/tatoeba.en-ko.tsv English sentences of the German and French pairs, each with the best of
four translations, if its way back has a chrF of at least 20. A third column says whether it is
near: who learns to write the language of the text learns from all (Sennrich et al. 2016,
back-translation), who reads it from the near ones. On one core twenty minutes. Better models make
better pairs: of 60,000 sentences 28% came back near, of 100,000 the next time 48%.

Captions: Multi30k's task 2 has five English and five German captions of each training image, which
are no translations of each other. generated/captions-forward.en-de.tsv has the English ones with
translations that the model holds for likely, generated/captions-back.en-de.tsv well-formed German
ones, translated to English. Needs multi30k with task2/train.1.en to train.5.de of
https://github.com/multi30k/dataset and its test_2018_flickr, tatoeba, and what "german" wrote. On
one core an hour.
"""

import argparse
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from random import Random
from typing import NamedTuple

from sacrebleu.metrics.chrf import CHRF

from manyheads import load
from manyheads.data.text.corpus import read_lines
from manyheads.data.text.exclusion import normalised
from manyheads.data.text.formats import read_pairs
from manyheads.tasks.translate.predictor import Translator

MANY = 1024  # texts at a time
NEAR = 60.0  # chrF of source and way back
LEAST = 20.0  # of pairs that are kept
WEIGHT = 25.0  # of the score, a mean log-probability, beside a chrF of 0 to 100
WORD = re.compile(r"[^\W\d_]+")
SHIPPED = {
    "german": ("en-de", "de-en"),
    "korean": ("en-ko", "ko-en"),
    "captions": ("en-de", "de-en"),
}
HELD_OUT = ("val", "test_2016_flickr", "test_2017_flickr", "test_2018_flickr")


def blocks(texts: Iterable[str]) -> Iterator[list[str]]:
    """Yield so many texts at a time."""
    rest = iter(texts)
    while some := list(islice(rest, MANY)):
        yield some


def back(pairs: list[tuple[str, str]], translator: Translator) -> Iterator[tuple[str, str]]:
    """Translate targets back; yield pairs that there are not."""
    known = set(pairs)
    for some in blocks(dict.fromkeys(target for _, target in pairs)):
        for target, (best,) in zip(some, translator.translate(some), strict=True):
            source = " ".join(best.text.split())
            if source and (source, target) not in known:
                yield source, " ".join(target.split())


class Best(NamedTuple):
    """A text, the best of its translations, and the chrF of its way back."""

    text: str
    translation: str
    near: float


def best_of_four(
    texts: Iterable[str], translator: Translator, backward: Translator, known: set[str] | None
) -> Iterator[Best]:
    """Translate texts; yield those that have a translation, of known words if there are such."""
    likeness = CHRF()
    for some in blocks(texts):
        found = translator.translate(some, n_best=4)
        candidates = [
            [(" ".join(each.text.split()), each.score) for each in four if each.finished]
            for four in found
        ]
        flat = list(dict.fromkeys(text for four in candidates for text, _ in four if text))
        ways = backward.translate(flat, beams=1)
        returned = {text: way.text for text, (way,) in zip(flat, ways, strict=True)}
        for source, four in zip(some, candidates, strict=True):
            near = {
                text: likeness.sentence_score(returned[text], [source]).score
                for text, _ in four
                if text and (known is None or spelled(text, source, known))
            }
            rated = [(near[text] + WEIGHT * score, text) for text, score in four if text in near]
            if rated:
                _, best = max(rated)
                yield Best(source, best, near[best])


def spelled(target: str, source: str, known: set[str]) -> bool:
    """Tell whether all words are known ones or names of the source."""
    names = {word for word in WORD.findall(source) if word[0].isupper()}
    return all(
        word.casefold() in known or word in names or word.removesuffix("s") in names
        for word in WORD.findall(target)
    )


def german(root: Path, translator: Translator, backward: Translator) -> None:
    """Write both files of English and German."""
    tatoeba = list(read_pairs(root / "tatoeba/train.en-de.tsv", "en", "de"))
    captions = read_pairs(root / "multi30k/train", "en", "de")
    pairs = [(pair.source, pair.target) for pair in (*tatoeba, *captions)]
    have = {normalised(pair.source) for pair in tatoeba}
    french = read_pairs(root / "tatoeba/train.en-fr.tsv", "en", "fr")
    new = {key: pair.source for pair in french if (key := normalised(pair.source)) not in have}
    words = {word.casefold() for _, target in pairs for word in WORD.findall(target)}
    write(root / "generated/back.en-de.tsv", back(pairs, backward))
    forward = best_of_four(new.values(), translator, backward, words)
    made = ((best.text, best.translation) for best in forward if best.near >= NEAR)
    write(root / "generated/forward.en-de.tsv", made)


def korean(root: Path, translator: Translator, backward: Translator, sentences: int) -> None:
    """Write both files of English and Korean."""
    mono, _ = read_lines(root / "enko/mono.ko")
    made = rows(best_of_four(dict.fromkeys(mono), backward, translator, None))
    write(root / "generated/mono.en-ko.tsv", ((en, ko, near) for ko, en, near in made))
    english = {
        normalised(pair.source): pair.source
        for language in ("de", "fr")
        for pair in read_pairs(root / f"tatoeba/train.en-{language}.tsv", "en", language)
    }
    some = Random(1).sample(sorted(english.values()), sentences)
    made = rows(best_of_four(some, translator, backward, None))
    write(root / "generated/tatoeba.en-ko.tsv", made)


def captions(root: Path, translator: Translator, backward: Translator) -> None:
    """Write both files of captions."""
    folder = root / "multi30k"
    taken = {
        normalised(line)
        for name in ("train", *HELD_OUT)
        for language in ("en", "de")
        for line in lines(folder / f"{name}.{language}")
    }
    tables = [root / "tatoeba/train.en-de.tsv", root / "generated/forward.en-de.tsv"]
    texts = [pair.target for path in tables for pair in read_pairs(path, "en", "de")]
    texts += lines(folder / "train.de")
    words = {word.casefold() for text in texts for word in WORD.findall(text)}
    new: dict[str, dict[str, str]] = {"en": {}, "de": {}}
    for language, found in new.items():
        for number in range(1, 6):
            for line in lines(folder / f"task2/train.{number}.{language}"):
                key, usable = normalised(line), language == "en" or well_formed(line, words)
                if usable and key not in taken and 4 <= len(line.split()) <= 32:
                    found.setdefault(key, line)
    translated = likely(new["en"].values(), translator, beams=4, least=0.56)
    made = ((en, de) for en, de in translated if 0.8 <= len(de) / len(en) <= 1.6)
    write(root / "generated/captions-forward.en-de.tsv", made)
    whole = [line if line[-1] in ".!?" else f"{line}." for line in new["de"].values()]
    back = likely(whole, backward, beams=2, least=0.5)
    made = ((en, de) for de, en in back if 0.75 <= len(de) / len(en) <= 1.8)
    write(root / "generated/captions-back.en-de.tsv", made)


def lines(path: Path) -> list[str]:
    """Read a file's lines, with single spaces."""
    return [" ".join(line.split()) for line in read_lines(path)[0]]


def well_formed(german: str, known: set[str]) -> bool:
    """Tell whether a caption begins with a capital, has a noun behind it and known words only.

    Examples:
        >>> known = {"ein", "hund", "rennt"}
        >>> [well_formed(text, known) for text in ("Ein Hund rennt", "Ein hund rennt", "Ein Hnd")]
        [True, False, False]
    """
    first, *others = WORD.findall(german) or [""]
    return (
        german[:1].isupper()
        and any(word[0].isupper() for word in others)
        and all(word.casefold() in known for word in (first, *others))
    )


def likely(
    texts: Iterable[str], translator: Translator, *, beams: int, least: float
) -> Iterator[tuple[str, str]]:
    """Translate texts; yield those whose tokens have a mean probability of at least `least`."""
    for some in blocks(texts):
        for source, (best,) in zip(some, translator.translate(some, beams=beams), strict=True):
            if best.text and best.finished and best.mean_probability >= least:
                yield source, " ".join(best.text.split())


def rows(found: Iterable[Best]) -> Iterator[tuple[str, str, str]]:
    """Leave out what does not come back, and name what a recipe chooses by.

    Examples:
        >>> [row[2] for row in rows(Best("a", "b", near) for near in (19.9, 20, 59.9, 60))]
        ['far', 'far', 'near']
    """
    for text, translation, near in found:
        if near >= LEAST:
            yield text, translation, "near" if near >= NEAR else "far"


def write(path: Path, table: Iterable[Iterable[str]]) -> None:
    """Write a table without a header."""
    path.parent.mkdir(exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        file.writelines("\t".join(row) + "\n" for row in table)


def main() -> None:
    """Write the files of a language."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("language", choices=SHIPPED)
    parser.add_argument("--root", type=Path, default=Path("data"), help="folder of data sets")
    parser.add_argument("--models", nargs=2, help="from English, to English; default: shipped ones")
    parser.add_argument("--sentences", type=int, default=60_000, help="English ones, for Korean")
    given = parser.parse_args()
    models = given.models or SHIPPED[given.language]
    translator, backward = (load(name, Translator) for name in models)
    makers: dict[str, Callable[[Path, Translator, Translator], None]] = {
        "german": german,
        "korean": partial(korean, sentences=given.sentences),
        "captions": captions,
    }
    makers[given.language](given.root, translator, backward)


if __name__ == "__main__":
    main()

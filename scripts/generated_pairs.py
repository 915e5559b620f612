"""Make further English-German pairs with the shipped models: what the recipe en-de learns from.

    python scripts/generated_pairs.py --root data

Writes generated/back.en-de.tsv, the German side of the training pairs translated back by de-en
(Nguyen et al. 2020, "Data Diversification", with one model each way), and
generated/forward.en-de.tsv: English sentences that only the French pairs have, translated by
en-de. Of its four best translations that one is kept which de-en translates back to what is most
like the source (chrF) and which en-de holds for likely; none if no way back is near, or if it has
words that are in no German text. On two cores twenty minutes.
"""

import argparse
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from sacrebleu.metrics.chrf import CHRF

from manyheads import load
from manyheads.data.text.exclusion import normalised
from manyheads.data.text.formats import read_pairs
from manyheads.tasks.translate.predictor import Translator

MANY = 1024  # texts at a time
NEAR = 60.0  # chrF of source and way back
WEIGHT = 25.0  # of the score, a mean log-probability, beside a chrF of 0 to 100
WORD = re.compile(r"[^\W\d_]+")


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


def forward(
    texts: Iterable[str], translator: Translator, backward: Translator, known: set[str]
) -> Iterator[tuple[str, str]]:
    """Translate texts; yield those of which a translation comes back."""
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
                if text and spelled(text, source, known)
            }
            rated = [(near[text] + WEIGHT * score, text) for text, score in four if text in near]
            _, best = max(rated, default=(0.0, ""))
            if near.get(best, 0.0) >= NEAR:
                yield source, best


def spelled(target: str, source: str, known: set[str]) -> bool:
    """Tell whether all words are known ones or names of the source."""
    names = {word for word in WORD.findall(source) if word[0].isupper()}
    return all(
        word.casefold() in known or word in names or word.removesuffix("s") in names
        for word in WORD.findall(target)
    )


def main() -> None:
    """Write both files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=Path("data"), help="folder of data sets")
    parser.add_argument("--model", default="en-de", help="translates what only French pairs have")
    given = parser.parse_args()
    tatoeba = list(read_pairs(given.root / "tatoeba/train.en-de.tsv", "en", "de"))
    captions = read_pairs(given.root / "multi30k/train", "en", "de")
    pairs = [(pair.source, pair.target) for pair in (*tatoeba, *captions)]
    have = {normalised(pair.source) for pair in tatoeba}
    french = read_pairs(given.root / "tatoeba/train.en-fr.tsv", "en", "fr")
    new = {key: pair.source for pair in french if (key := normalised(pair.source)) not in have}
    german = {word.casefold() for _, target in pairs for word in WORD.findall(target)}
    backward = load("de-en", Translator)
    translator = load(given.model, Translator)
    folder = given.root / "generated"
    folder.mkdir(exist_ok=True)
    for name, rows in (
        ("back", back(pairs, backward)),
        ("forward", forward(new.values(), translator, backward, german)),
    ):
        with (folder / f"{name}.en-de.tsv").open("w", encoding="utf-8") as file:
            file.writelines(f"{source}\t{target}\n" for source, target in rows)


if __name__ == "__main__":
    main()

"""Make further English-German pairs with the shipped models: what the recipe en-de learns from.

    python scripts/generated_pairs.py --root data

Writes generated/back.en-de.tsv, the German side of the training pairs translated back by de-en
(Nguyen et al. 2020, "Data Diversification", with one model each way), and
generated/forward.en-de.tsv: English sentences that only the French pairs have, translated by
en-de. Of its four best translations that one is kept which de-en translates back to what is most
like the source (chrF) and which en-de holds for likely; none if no way back is near, or if it has
words that are in no German text. On two cores half an hour.
"""

import argparse
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from sacrebleu.metrics.chrf import CHRF

from manyheads import load
from manyheads.data.text.exclusion import normalised
from manyheads.tasks.translate.predictor import Translator

MANY = 1024  # texts at a time
NEAR = 60.0  # chrF of source and way back
WEIGHT = 25.0  # of the score, a mean log-probability, beside a chrF of 0 to 100
WORD = re.compile(r"[^\W\d_]+")


def pairs_of(path: Path) -> list[tuple[str, str]]:
    """Read the first two columns of a table."""
    rows = (line.split("\t") for line in path.read_text(encoding="utf-8").splitlines())
    return [(row[0], row[1]) for row in rows]


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
            rated = [
                (near + WEIGHT * score, near, text)
                for text, score in four
                if text and spelled(text, source, known)
                for near in [likeness.sentence_score(returned[text], [source]).score]
            ]
            if rated and max(rated)[1] >= NEAR:
                yield source, max(rated)[2]


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
    captions = [
        (given.root / f"multi30k/train.{side}").read_text(encoding="utf-8").splitlines()
        for side in ("en", "de")
    ]
    tatoeba = pairs_of(given.root / "tatoeba/train.en-de.tsv")
    pairs = tatoeba + list(zip(*captions, strict=True))
    have = {normalised(source) for source, _ in tatoeba}
    french = pairs_of(given.root / "tatoeba/train.en-fr.tsv")
    new = {normalised(text): text for text, _ in french if normalised(text) not in have}
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

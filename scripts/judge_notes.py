"""Ask whether notes stand on wrong translations: draw texts, answer them, join what was judged.

MANYHEADS_DATA=FOLDER python scripts/judge_notes.py draw     the kind and the digest of each text
MANYHEADS_DATA=FOLDER python scripts/judge_notes.py answer en-de OUT   answers, and notes
python scripts/judge_notes.py join en-de OUT                 with what was judged

Who judges reads OUT/MODEL.answers.tsv only, and writes into benchmarks/notes/MODEL.tsv: 1 (the
meaning is understood and a reader accepts the translation) or 0. Texts of data sets stay out of the
repository: it has their digests, and those of the translations.
"""

import json
import os
import sys
from hashlib import sha256
from math import sqrt
from pathlib import Path
from random import Random
from typing import Any

import manyheads

FOLDER = Path(__file__).parents[1] / "benchmarks" / "notes"
HEAD = "kind\ttext\tright\ttranslation\n"
SEED, NEWS = 20261125, "news and other"
ONLY = {"documentation": "python-docs", "captions and headlines": "sts-human"}  # third column
# Of each model: kind, file, column, lines. A .txt file is the repository's and has one column.
Parts = list[tuple[str, str, int, int]]
PYTHON, MORE, CAPTIONS = "enko/val.tsv", "enko/more.tsv", "multi30k/val.en"
MESSAGES: Parts = [("messages", "written.en.txt", 0, 60)]
LAST: Parts = [(NEWS, "enko/ntrex.tsv", 0, 30), (NEWS, "other.txt", 0, 30)]
GERMAN: Parts = [*MESSAGES, ("documentation", PYTHON, 0, 60), *LAST]
KOREAN: Parts = [("messages", "written.ko.txt", 0, 60), ("captions and headlines", MORE, 1, 60)]
PARTS: dict[str, Parts] = {
    "en-de": [("own", "tatoeba/val.en-de.tsv", 0, 60), ("own", CAPTIONS, 0, 60), *GERMAN],
    "multi30k-en-de": [("own", CAPTIONS, 0, 120), *GERMAN],
    "enko-en-ko": [("own", PYTHON, 0, 120), *MESSAGES, ("captions", CAPTIONS, 0, 60), *LAST],
    "enko-ko-en": [("own", PYTHON, 1, 120), *KOREAN, (NEWS, LAST[0][1], 1, 30), LAST[1]],
}


def read(path: Path) -> list[str]:
    """Read the lines of a file."""
    return path.read_text("utf-8").splitlines()


def digest(text: str) -> str:
    """Name a text without telling it."""
    return sha256(text.encode()).hexdigest()[:16]


def drawn(model: str) -> list[tuple[str, str]]:
    """Draw the texts of a model, each with its kind."""
    random, found = Random(SEED), []
    for kind, name, column, count in PARTS[model]:
        data = FOLDER if name.endswith(".txt") else Path(os.environ["MANYHEADS_DATA"])
        rows = [line.split("\t") for line in read(data / name)]
        if kind in ONLY:
            rows = [row for row in rows if row[2] == ONLY[kind] and len(row[0]) <= 200]
        found += [(kind, row[column].strip()) for row in random.sample(rows, count)]
    return found


def draw() -> None:
    """Write the digests of the texts of each model, before anything is judged."""
    for model in PARTS:
        lines = [f"{kind}\t{digest(text)}\t\t\n" for kind, text in drawn(model)]
        (FOLDER / f"{model}.tsv").write_text(HEAD + "".join(lines), encoding="utf-8")


def answer(model: str, out: Path) -> None:
    """Translate the texts; notes and what they follow from go to a file of their own."""
    translator: Any = manyheads.load(model)
    answers, told = "", []
    for number, (_, text) in enumerate(drawn(model), 1):
        best = translator.translate([text])[0][0]
        (given,) = translator.respond(translator.request(texts=[text]))
        answers += f"{number}\t{text}\t{given.translation}\n"
        score = best.log_probability / (len(best.tokens) + best.finished)
        told.append({"notes": given.notes or [], "score": score})
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{model}.answers.tsv").write_text(answers, encoding="utf-8")
    (out / f"{model}.notes.json").write_text(json.dumps(told, indent=1), encoding="utf-8")


def wilson(flags: list[bool]) -> str:
    """Share of the true ones in percent, with the 95% interval of Wilson."""
    if not flags:
        return "none of 0"
    share, width = sum(flags) / len(flags), 1.96**2 / len(flags)
    half = 1.96 * sqrt(share * (1 - share) / len(flags) + (width / 1.96 / 2) ** 2)
    low, high = (100 * (share + width / 2 + sign * half) / (1 + width) for sign in (-1, 1))
    return f"{sum(flags)} of {len(flags)} = {100 * share:.1f}% [{low:.1f}, {high:.1f}]"


def auroc(right: list[float], wrong: list[float]) -> float:
    """Probability that a right answer scores higher than a wrong one; ties are half."""
    pairs = [(r > w) + 0.5 * (r == w) for w in wrong for r in right]
    return sum(pairs) / len(pairs) if pairs else float("nan")


def report(name: str, kinds: list[str], right: list[bool], noted: list[bool], score: Any) -> None:
    """Print what is noted of right and of wrong answers, of all and by kind."""
    for kind in ("all", *dict.fromkeys(kinds)):
        rows = [n for n, each in enumerate(kinds) if kind in ("all", each)]
        good, bad = [n for n in rows if right[n]], [n for n in rows if not right[n]]
        print(
            f"{name}, {kind}: wrong noted {wilson([noted[n] for n in bad])}; right noted "
            f"{wilson([noted[n] for n in good])}; AUROC of the score "
            f"{auroc([score[n] for n in good], [score[n] for n in bad]):.3f}"
        )


def join(model: str, out: Path) -> None:
    """Join what was judged with the notes."""
    rows = [line.split("\t") for line in read(FOLDER / f"{model}.tsv")[1:]]
    answers = [line.split("\t")[2] for line in read(out / f"{model}.answers.tsv")]
    if [row[3] for row in rows] != list(map(digest, answers)):
        sys.exit(f"{model} does not answer what was judged: judge its answers again.")
    kinds, right = [row[0] for row in rows], [row[2] == "1" for row in rows]
    told = json.loads((out / f"{model}.notes.json").read_text("utf-8"))
    noted, score = [bool(each["notes"]) for each in told], [each["score"] for each in told]
    report(model, kinds, right, noted, score)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["draw"]:
            draw()
        case ["answer" | "join" as step, model, out] if model in PARTS:
            (answer if step == "answer" else join)(model, Path(out))
        case _:
            sys.exit(__doc__)

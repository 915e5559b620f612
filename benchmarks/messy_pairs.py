"""Plant every fault that people's tables have in clean sentence pairs, to see what is named.

    python -m benchmarks.messy_pairs tatoeba/train.en-de.tsv --pairs 20000 --out messy.csv
    manyheads init messy.csv

Beside messy.csv, messy.json has how often each fault was planted, and messy.clean.tsv the pairs
before.
"""

import argparse
import csv
import html
import io
import json
from pathlib import Path
from random import Random

EACH = 0.02  # share of the pairs with each fault of a row


def plant(pairs: list[tuple[str, str]], seed: int = 0) -> tuple[bytes, dict[str, int]]:
    """Return a table of the pairs with faults, and how often each was planted.

    It has semicolons, quotes, a header, an id and a domain beside the texts, Windows line ends and
    Windows-1252, with some lines in UTF-8.
    """
    random = Random(seed)
    each = max(1, round(EACH * len(pairs)))
    rows = [[source, target] for source, target in pairs]
    plain = [n for n, row in enumerate(rows) if all(len(side.split()) > 4 for side in row)]
    chosen = iter(random.sample(plain, min(len(plain), 9 * each)))

    def some() -> list[int]:
        return [next(chosen) for _ in range(each)]

    planted = dict.fromkeys(
        ("swapped-sides", "html-entities", "empty-side", "copied", "length-ratio", "spacing"), each
    )
    for n in some():
        rows[n].reverse()
    for n in some():
        rows[n][0] = f"{html.escape(rows[n][0], quote=False)} &amp; &quot;so&quot;"
        rows[n][1] = f"{html.escape(rows[n][1], quote=False)} &amp; &quot;so&quot;"
    for n in some():
        rows[n][random.randrange(2)] = random.choice(("", "  "))
    for n in some():
        rows[n][1] = rows[n][0]
    for n in some():
        rows[n][1] = " ".join([rows[n][1]] * 8)
    for n in some():
        rows[n][0] = f"  {rows[n][0].replace(' ', '  ', 1)} "
    repeated, near, wide = some(), some(), set(some())
    again = [list(rows[n]) for n in repeated]
    again += [[rows[n][0].upper().rstrip(".!?"), rows[n][1]] for n in near]
    planted |= {"duplicate-pair": each, "near-duplicate": 2 * each, "header": 1}
    planted |= {"windows-line-ends": len(rows) + len(again) + 1}
    lines = []
    for n, (source, target) in enumerate([*rows, *again]):
        text = io.StringIO(newline="")
        domain = random.choice(("web", "talk", "book"))
        writer = csv.writer(text, delimiter=";", lineterminator="\r\n")
        writer.writerow([n + 1, source, target, domain])
        encoding = "utf-8" if n in wide else "cp1252"
        lines.append(text.getvalue().encode(encoding, "replace"))
    planted["invalid-utf8"] = sum(not _is_utf8(line) for line in lines)
    return b"".join([b"id;English;Deutsch;domain\r\n", *lines]), planted


def _is_utf8(line: bytes) -> bool:
    return line.decode("utf-8", "ignore").encode("utf-8") == line


def main() -> None:
    """Write the table, what was planted, and the clean pairs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path)
    parser.add_argument("--pairs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    texts = given.source.read_text(encoding="utf-8").splitlines()
    drawn = Random(given.seed).sample(texts, given.pairs)
    pairs = [(one, other) for one, other, *_ in (line.split("\t") for line in drawn)]
    content, planted = plant(pairs, given.seed)
    given.out.write_bytes(content)
    given.out.with_suffix(".json").write_text(json.dumps(planted, indent=2), encoding="utf-8")
    clean = "".join(f"{one}\t{other}\n" for one, other in pairs)
    given.out.with_suffix(".clean.tsv").write_text(clean, encoding="utf-8")


if __name__ == "__main__":
    main()

"""Count test sentences that have a near-duplicate among the training sentences.

python examples/near_duplicates.py enko/train.tsv enko/test.tsv

Files of tab-separated columns under MANYHEADS_DATA; of test lines, the last column names the group.
Two sentences are near-duplicates if, in lower case, with digits as 0 and without punctuation, their
sets of words share at least four fifths (Jaccard similarity of 0.8).
"""

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable

from manyheads.project.paths import data_root

SHARE = 0.8


def words(text: str) -> frozenset[str]:
    """Normalise a sentence to its set of words."""
    return frozenset(re.findall(r"\w+", re.sub(r"\d", "0", text.lower())))


def near_duplicates(train: Iterable[str], test: Iterable[str]) -> list[bool]:
    """Tell for each test sentence whether a training sentence is nearly the same."""
    known = list({words(text) for text in train} - {frozenset()})
    holding = defaultdict(list)
    for number, each in enumerate(known):
        for word in each:
            holding[word].append(number)

    def found(each: frozenset[str]) -> bool:
        shared = Counter(number for word in each for number in holding[word])
        return any(n >= SHARE * (len(each) + len(known[i]) - n) for i, n in shared.items())

    return [found(words(text)) for text in test]


def main() -> None:
    """Print the counts of both columns, by group."""
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    for name in sys.argv[1:]:
        if not (data_root(None) / name).is_file():
            sys.exit(f"There is no {data_root(None) / name}. Set MANYHEADS_DATA to its folder.")
    train, test = (
        [line.split("\t") for line in path.read_text(encoding="utf-8").rstrip("\n").split("\n")]
        for path in (data_root(None) / name for name in sys.argv[1:3])
    )
    groups = Counter(row[-1] for row in test)
    for column in (0, 1):
        near = near_duplicates((row[column] for row in train), (row[column] for row in test))
        counts = Counter(row[-1] for row, each in zip(test, near, strict=True) if each)
        told = ", ".join(f"{counts[name]} of {total} {name}" for name, total in groups.items())
        print(f"column {column + 1}: {sum(near)} of {len(test)} ({told})")


if __name__ == "__main__":
    main()

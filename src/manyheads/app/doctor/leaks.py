"""What in a run's texts gives its answers away, or makes its validation worth nothing."""

from collections.abc import Sequence
from itertools import islice

from manyheads.app.doctor.finding import SHOWN, Finding, cut
from manyheads.app.doctor.samples import LineSamples, PairSamples, Samples
from manyheads.data.leaks import Shared, contains, shared_texts

TEXTS = 1_000_000  # of training that are compared with validation

# Of the validation examples. Corpora have a few short sentences twice: Multi30k 0.3%.
SOME, MANY = 0.01, 0.10
GIVEN = 0.10  # of the sources with their target in them; a name or number is one now and then


def seen_before(samples: Samples) -> list[Finding]:
    """Say if validation texts are in the training data."""
    if isinstance(samples, PairSamples):
        corpus, valid = samples.corpora
        pairs = islice(corpus.pairs(), TEXTS)
        shared = shared_texts(map("\t".join, pairs), ["\t".join(p) for p in valid.pairs()])
        names = [
            f"{valid.describe([each.valid])} is also {corpus.describe([each.train])}: "
            f"{cut(each.text, 50)!r}"
            for each in shared[:SHOWN]
        ]
        return _seen(shared, len(valid), names, "pairs")
    if isinstance(samples, LineSamples):
        lines, valid_lines = samples.lines
        shared = shared_texts(islice(lines.lines, TEXTS), valid_lines.lines)
        names = [
            f"{valid_lines.describe([each.valid])} is also {lines.describe([each.train])}: "
            f"{cut(each.text, 50)!r}"
            for each in shared[:SHOWN]
        ]
        return _seen(shared, len(valid_lines), names, "lines")
    return []


def _seen(shared: Sequence[Shared], count: int, names: list[str], what: str) -> list[Finding]:
    share = len(shared) / max(1, count)
    if share < SOME:
        return []
    return [
        Finding(
            kind="seen-before",
            severity="error" if share >= MANY else "warning",
            what=f"{100 * share:.0f}% of the validation data are in the training data as well: "
            "the validation measures memory.",
            evidence=(f"{len(shared):,} of {count:,} {what}", *names),
            remedy="Remove them from the training data; `manyheads check-data` with --valid lists "
            "them all, and --fix leaves them out.",
        )
    ]


def given_away(samples: Samples) -> list[Finding]:
    """Say if sources have their translation in them."""
    if not isinstance(samples, PairSamples):
        return []
    few = samples.few[0]
    which = [n for n, (s, t) in enumerate(few.pairs()) if contains(s, t)]
    if len(which) < GIVEN * len(few):
        return []
    return [
        Finding(
            kind="target-in-source",
            severity="error",
            what=f"{100 * len(which) / len(few):.0f}% of the sources have their translation in "
            "them: there is nothing to translate.",
            evidence=tuple(
                f"{few.describe([n])}: {cut(few.source[n])!r} has {cut(few.target[n], 40)!r}"
                for n in which[:SHOWN]
            ),
            remedy="Was a column read twice, or both languages written into one? Mend the source "
            "side.",
        )
    ]

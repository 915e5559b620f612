"""Leaks in a run's texts: validation data in training, translations in their sources."""

from collections.abc import Sequence
from itertools import islice

from manyheads.data.checks.leakage import Shared, contains, shared_texts
from manyheads.data.text.corpus import Corpus, Sentences, StreamedCorpus
from manyheads.doctor.finding import SHOWN, Findings, cut, finding

Texts = Corpus | StreamedCorpus | Sentences

TEXTS = 1_000_000  # of training that are compared with validation

# Of the validation examples. Corpora have a few short sentences twice: Multi30k 0.3%.
SOME, MANY = 0.01, 0.10
GIVEN = 0.10  # of the sources with their target in them; a name or number is one now and then


def pairs_seen_before(corpus: Corpus | StreamedCorpus, valid: Corpus) -> Findings:
    """Find validation pairs that are in the training data."""
    pairs = islice(corpus.pairs(), TEXTS)
    shared = shared_texts(map("\t".join, pairs), ["\t".join(p) for p in valid.pairs()])
    return _seen(shared, corpus, valid, "pairs")


def lines_seen_before(lines: Sentences, valid: Sentences) -> Findings:
    """Find validation lines that are in the training data."""
    return _seen(shared_texts(islice(lines.lines, TEXTS), valid.lines), lines, valid, "lines")


def _seen(shared: Sequence[Shared], train: Texts, valid: Corpus | Sentences, what: str) -> Findings:
    count = len(valid)
    share = len(shared) / max(1, count)
    if share >= SOME:
        yield finding(
            "seen-before:texts",
            f"{len(shared):,} of {count:,} {what}",
            *(
                f"{valid.describe([each.valid])} is also {train.describe([each.train])}: "
                f"{cut(each.text, 50)!r}"
                for each in shared[:SHOWN]
            ),
            severity="error" if share >= MANY else "warning",
            share=100 * share,
        )


def target_in_source(few: Corpus) -> Findings:
    """Find sources that contain their translation."""
    which = [n for n, (s, t) in enumerate(few.pairs()) if contains(s, t)]
    if len(which) >= GIVEN * len(few):
        shown = (
            f"{few.describe([n])}: {cut(few.source[n])!r} has {cut(few.target[n], 40)!r}"
            for n in which[:SHOWN]
        )
        yield finding("target-in-source", *shown, share=100 * len(which) / len(few))

"""The fuzzer, a few seconds of it: mutated files are answered or refused, nothing else."""

import pytest

from scripts.fuzz import GROWTH, TARGETS, example, is_answered, peak, samples_of

EXAMPLES = dict.fromkeys(TARGETS, 150) | {"folders": 15, "indexes": 60, "engines": 20, "runs": 18}


@pytest.mark.parametrize("name", TARGETS)
def test_mutated_files(name: str) -> None:
    """No other exception than those of manyheads.errors, and no gigabyte of memory."""
    before = peak()
    answered = sum(example(name, 1, number) for number in range(EXAMPLES[name]))
    assert 0 < answered < EXAMPLES[name]
    assert peak() - before < GROWTH


@pytest.mark.parametrize("name", TARGETS)
def test_most_files_are_valid_before(name: str) -> None:
    """Or the fuzzer would only reach what looks at the first bytes."""
    samples = samples_of(name)[:12]
    assert sum(is_answered(name, sample) for sample in samples) >= len(samples) / 2

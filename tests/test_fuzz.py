"""The fuzzer, a few seconds of it: mutated files are answered or refused, nothing else."""

import tempfile
from pathlib import Path

import pytest

from manyheads.errors import ManyheadsError
from scripts.fuzz import GROWTH, TARGETS, example, peak, samples_of

EXAMPLES = dict.fromkeys(TARGETS, 150) | {"folders": 15}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", TARGETS)
def test_mutated_files(name: str) -> None:
    """No other exception than those of manyheads.errors, and no gigabyte of memory."""
    before = peak()
    answered = sum(example(name, 1, number) for number in range(EXAMPLES[name]))
    assert 0 < answered < EXAMPLES[name]
    assert peak() - before < GROWTH


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", TARGETS)
def test_most_files_are_valid_before(name: str, tmp_path: Path) -> None:
    """Or the fuzzer would only reach what looks at the first bytes."""
    answered = 0
    for sample in samples_of(name)[:12]:
        with tempfile.TemporaryDirectory(dir=tmp_path) as folder:
            for each, content in sample.items():
                (Path(folder) / each).write_bytes(content)
            try:
                TARGETS[name].read(Path(folder))
                answered += 1
            except ManyheadsError:
                pass
    assert answered >= len(samples_of(name)[:12]) / 2

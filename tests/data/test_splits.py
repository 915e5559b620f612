"""The register: a test split is known by its content, wherever it lies."""

import json
from importlib.resources import files

import pytest

from manyheads.data.split_register import Split, find_registered_splits, reject_test_split
from manyheads.errors import UsageError
from manyheads.recipe_data.pair_splits import read_corpus
from manyheads.recipe_data.text_data import PairData

REGISTER = json.loads(files("manyheads.data").joinpath("splits.json").read_text(encoding="utf-8"))
TEST = next(entry for entry in REGISTER if entry["test"])
TRAIN = next(entry for entry in REGISTER if not entry["test"])


def test_the_register_is_in_order() -> None:
    """Each entry has a name, a sha256 and says whether it is a test split; no content is twice."""
    assert {entry["name"].split("/")[0] for entry in REGISTER} >= {"multi30k", "cifar10", "enko"}
    for entry in REGISTER:
        assert isinstance(entry["test"], bool)
        assert len(bytes.fromhex(entry["sha256"])) == 32
    assert len({entry["sha256"] for entry in REGISTER}) == len(REGISTER)
    assert len({entry["name"] for entry in REGISTER}) == len(REGISTER)


def test_every_test_split_is_marked() -> None:
    """By its name; enko's two other evaluation sets are tests too."""
    named = {entry["name"] for entry in REGISTER if "test" in entry["name"].split("/")[-1]}
    assert named <= {entry["name"] for entry in REGISTER if entry["test"]}
    assert not any("train" in entry["name"] for entry in REGISTER if entry["test"])


def test_content_is_looked_up_by_its_hash() -> None:
    """Unknown content is nobody's split."""
    assert find_registered_splits([TEST["sha256"], "0" * 64]) == [Split(TEST["name"], test=True)]
    assert find_registered_splits(["0" * 64]) == []


def test_a_test_split_is_refused_in_training() -> None:
    """Names the split and how it may be used."""
    with pytest.raises(UsageError) as caught:
        reject_test_split([TRAIN["sha256"], TEST["sha256"]], "data/copy-of-it.tsv")
    assert f"data/copy-of-it.tsv is the test split {TEST['name']}" in str(caught.value)
    assert "`final=True`" in str(caught.value)
    assert caught.value.exit_code == 2


def test_other_content_may_be_trained_on() -> None:
    """Registered training data, and files that nobody registered."""
    reject_test_split([TRAIN["sha256"], "0" * 64], "data/train.tsv")


@pytest.mark.parametrize("split", ["train", "valid", "test"])
def test_generated_dates_are_the_registered_ones(split: str) -> None:
    """Another CLDR, seed, size or phrasing would make other splits of the same name."""
    data = PairData(train="dates:train", valid="dates:valid", source="en", target="ko")
    (found,) = find_registered_splits(read_corpus(f"dates:{split}", data).hashes)
    assert (found.name, found.test) == (f"dates:{split}", split == "test")

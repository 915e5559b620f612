"""Made codes and prices: of known patterns, with random digits and letters."""

import re

import numpy as np

from manyheads.data.synthetic.codes import PATTERNS, codes


def test_every_pattern_is_drawn_with_its_own_kinds() -> None:
    """A digit where a 9 stands, letters where A and a stand, and the rest as it is."""
    random = np.random.default_rng(1)
    drawn = {codes(random, most=1) for _ in range(4000)}
    for pattern in PATTERNS:
        kinds = {"9": "[0-9]", "A": "[A-Z]", "a": "[a-z]"}
        wanted = re.compile("".join(kinds.get(each, re.escape(each)) for each in pattern))
        assert any(wanted.fullmatch(each) for each in drawn), pattern


def test_one_to_four_of_them_and_the_same_again() -> None:
    one, same = np.random.default_rng(2), np.random.default_rng(2)
    some = [codes(one) for _ in range(300)]
    assert some == [codes(same) for _ in range(300)]
    assert len(set(some)) > 290
    counts = {len(each.split(" ")) for each in some}
    assert min(counts) == 1
    assert max(counts) >= 4

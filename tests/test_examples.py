"""Examples that compute something of their own."""

import runpy
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_near_duplicates_share_four_fifths_of_their_words() -> None:
    """Case, digits and punctuation do not count; three of four words are not enough."""
    near = runpy.run_path(str(EXAMPLES / "near_duplicates.py"))["near_duplicates"]
    train = ["Added in version 3.11.", "a b c d e", ""]
    assert near(train, ["added in Version 3.12!", "a b c d", "a b c", "...", "x"]) == [
        True,
        True,
        False,
        False,
        False,
    ]

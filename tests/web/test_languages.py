"""Which language a text is in, among some."""

import pytest

from manyheads.data.text.languages import guess

FOUR = ("en", "de", "fr", "ko")


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("The dog is in the house.", "en"),
        ("Ein Mann steht auf der Straße und wartet.", "de"),
        ("Un homme dans la rue attend avec son chien.", "fr"),
        ("강아지가 집에 있다.", "ko"),
        ("NATO와 EU, S&P 500 지수", "ko"),  # half of its letters are Latin
        ("IBM CEO 교체", "ko"),
    ],
)
def test_guesses(text: str, language: str) -> None:
    """By letters, then by frequent words; the order of the languages does not matter."""
    for order in (FOUR, FOUR[::-1]):
        (best, confidence), *others = guess(text, order)
        assert best == language
        assert all(confidence > other for _, other in others)


def test_nothing_to_go_by() -> None:
    """Signs have no language; one known language is sure."""
    assert {confidence for _, confidence in guess("12 + 3", FOUR)} == {0.0}
    assert guess("A dog.", ["en-GB"]) == [("en", 1.0)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Latin letters without a frequent word count a tenth: 3 / 5 * 0.1 against 2 / 5.
        ("IBM 교체", [("ko", 0.87), ("en", 0.13)]),
        # Two of four words are frequent in English: 0.1 + 2 / 4 against 0.1.
        ("The dog is IBM", [("en", 0.857), ("de", 0.143)]),
        ("IBM CEO", [("en", 1.0), ("ko", 0.0)]),
    ],
)
def test_confidence_by_hand(text: str, expected: list[tuple[str, float]]) -> None:
    """The share of a language among the scores of all."""
    assert guess(text, [language for language, _ in expected]) == expected

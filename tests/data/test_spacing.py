"""Word spacing as tagging, and characters as tokens."""

from hypothesis import given
from hypothesis import strategies as st

from manyheads.data.tokenizers.characters import PAD, UNKNOWN, Characters
from manyheads.data.tokenizers.spacing import with_spaces, without_spaces


def test_by_hand() -> None:
    """T1: one answer a character, 1 where a space follows."""
    assert without_spaces("나는 밥을 먹는다.") == ("나는밥을먹는다.", [0, 1, 0, 1, 0, 0, 0, 0])
    assert with_spaces("나는밥을먹는다.", [0, 1, 0, 1, 0, 0, 0, 0]) == "나는 밥을 먹는다."


@given(st.text(alphabet="가나 \t\u00a0a.", max_size=20))
def test_spaces_come_back(text: str) -> None:
    """All white space is a single space after the round trip; none at the ends."""
    characters, tags = without_spaces(text)
    assert len(characters) == len(tags)
    assert with_spaces(characters, tags) == " ".join(text.split())
    assert tags[-1:] in ([], [0])


def test_a_space_behind_the_last_character_is_none() -> None:
    """A tagger may say so; the text ends with its last character."""
    assert with_spaces("가나", [1, 1]) == "가 나"
    assert with_spaces("", []) == ""


def test_characters() -> None:
    """The frequent first, ties in order; what occurs once is unknown, as what never does."""
    characters = Characters.learn(["나가나", "가나다", "라라"])
    assert characters.alphabet == "나가라"
    assert len(characters) == 5
    assert characters.encode("나가라다?") == [2, 3, 4, UNKNOWN, UNKNOWN]
    assert PAD not in characters.encode("나가라다?")
    assert Characters(characters.alphabet).encode("라") == [4]

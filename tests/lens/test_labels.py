from manyheads.lens.labels import label, labels


def test_the_mark_of_a_words_start_is_dropped_and_what_is_left_is_visible() -> None:
    assert labels(["▁금요일", "년", "▁", "", " ", "a▁b"]) == ["금요일", "년", "␣", "␣", "␣", "a b"]


def test_a_control_character_cannot_reach_the_terminal() -> None:
    assert label("a\x1b[2Jb") == r"a\x1b[2Jb"


def test_a_long_token_is_cut() -> None:
    assert label("Donaudampfschifffahrtsgesellschaft") == "Donaudampfschifffahrtsg…"

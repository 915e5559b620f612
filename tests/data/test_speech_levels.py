"""Speech levels of Korean: told by the ending, and plain sentences made polite by rule."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyheads.data.augment.speech_levels import polite, polite_pairs, speech_level, with_levels
from manyheads.errors import RecipeError


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("값을 반환합니다.", "formal"),
        ("무슨 뜻입니까?", "formal"),
        ("여기에 서명하십시오", "formal"),
        ("좋은 생각이에요.", "polite"),
        ("정말 그렇죠?", "polite"),
        ("'조용히 하세요!'", "polite"),
        ("그는 갔다.", "plain"),
        ("뭐 해?", "plain"),
        ("C 모듈 초기화", None),  # a title
        ("바다", None),  # a noun that ends like a verb
        ("더 필요", None),  # and one that ends like a polite one
        ("고마워. 안녕히 가세요.", None),  # a mixture
        ("갑니다. 옵니다.", "formal"),
        ("", None),
    ],
)
def test_the_level_is_that_of_all_sentences(text: str, level: str | None) -> None:
    """None where there is no sentence, or more than one level."""
    assert speech_level(text) == level


@pytest.mark.parametrize(
    ("plain", "made"),
    [
        ("톰은 집에 갔다.", "톰은 집에 갔어요."),  # the past is bright or dark already
        ("시간이 없다.", "시간이 없어요."),
        ("날씨가 좋다.", "날씨가 좋아요."),
        ("키가 작다.", "키가 작아요."),
        ("그는 책을 읽는다.", "그는 책을 읽어요."),
        ("그는 일한다.", "그는 일해요."),
        ("이것은 책이다.", "이것은 책이에요."),
        ("제비는 새야.", "제비는 새예요."),
        ("할 것이다.", "할 거예요."),
        ("아니야!", "아니에요!"),
        ("가지 마.", "가지 마세요."),
        ("어디 있니?", "어디 있어요?"),
        ("나는 네모를 그렸어.", "저는 네모를 그렸어요."),
        ("비가 온다. 우산이 없어.", "비가 와요. 우산이 없어요."),
        ("물이 뜨겁다.", None),  # ㅂ becomes 우: 뜨거워요
        ("길을 걷는다.", None),  # ㄷ becomes ㄹ: 걸어요
        ("빨갛다.", None),
        ("너는 갔다.", None),  # 너 is for friends
        ("좋은 생각이에요.", None),  # is polite already
        ("초기화", None),
    ],
)
def test_plain_sentences_are_made_polite(plain: str, made: str | None) -> None:
    """Where the ending's spelling decides; nothing is guessed."""
    assert polite(plain) == made


@given(st.text("가나다라마바사아자차카타파하았었했있없좋다어요야니까 .?!", max_size=40))
def test_what_is_made_polite_is_polite(text: str) -> None:
    """And stays as it is when it is made so again."""
    made = polite(text)
    if made is not None:
        assert speech_level(made) == "polite"
        assert polite(made) is None


def test_pairs_and_tags() -> None:
    """A share of pairs more; each source begins with its target's level, a title's is drawn."""
    sources, targets = ["He left.", "Format", "Thanks."], ["그는 갔다.", "형식", "고맙습니다."]
    assert list(polite_pairs(sources, targets, 0.5, 1, "ko")) == [("He left.", "그는 갔어요.")]
    assert list(polite_pairs(sources, targets, 0.0, 1, "ko")) == []
    first, title, last = with_levels(sources, targets, 1, "ko")
    assert (first, last) == ("<plain> He left.", "<formal> Thanks.")
    drawn = {with_levels(["Format"], ["형식"], seed, "ko")[0] for seed in range(20)}
    assert drawn == {"<formal> Format", "<polite> Format", "<plain> Format"} >= {title}


def test_other_languages_are_refused() -> None:
    """The endings are those of Korean."""
    with pytest.raises(RecipeError, match=r"augment.polite is for Korean targets \(ko\), not de"):
        list(polite_pairs(["a"], ["b"], 1.0, 1, "de"))
    with pytest.raises(RecipeError, match=r"augment\.levels is for Korean"):
        with_levels(["a"], ["b"], 1, "de")

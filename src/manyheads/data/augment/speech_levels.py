"""How politely a Korean sentence speaks, by its last ending; and plain sentences made polite.

Korean ends each sentence in a speech level: formal (-습니다), polite (-어요), or plain (-다, -어).
Of 5,102 everyday pairs of Tatoeba 577 are polite or formal, so a translator that has read no others
is rude to strangers. What is made polite here are endings whose polite form follows from their
spelling; most irregular verbs are left alone.
"""

import random
import re
from collections.abc import Callable, Iterator

from manyheads.data.augment.text_noise import Pair
from manyheads.errors import RecipeError

LEVELS = ("formal", "polite", "plain")
TAGS = {level: f"<{level}>" for level in LEVELS}

_SENTENCES = re.compile(r"(?<=[.?!])\s+")
_MARKS = "\"'”’」』)]~… "
_FORMAL = re.compile(r"(?:니다|니까|시오|십시다)$")
_POLITE = re.compile(r"(?<![필중수주개소강])(?:요|죠)$")
_PLAIN = re.compile(r"[다까냐니라자어아야지네해군나게래걸데려마워와줘돼봐가]$")


def speech_level(text: str) -> str | None:
    """Name the level of all sentences of a text; None for words that are none, or for a mixture.

    >>> [speech_level(text) for text in ("고맙습니다.", "고마워요.", "고마워.", "형식")]
    ['formal', 'polite', 'plain', None]
    """
    levels = {_level(sentence) for sentence in _SENTENCES.split(text.strip())}
    return levels.pop() if len(levels) == 1 else None


def _level(sentence: str) -> str | None:
    text = sentence.rstrip(_MARKS)
    words = text.rstrip(".?!")
    if _FORMAL.search(words):
        return "formal"
    if _POLITE.search(words):
        return "polite"
    # A noun may end in any of these: only what ends in a mark is surely a sentence.
    return "plain" if words != text and _PLAIN.search(words) else None


# Hangul syllables are composed: 28 finals for each of 21 vowels for each of 19 initials.
_FIRST, _FINALS, _VOWELS = 0xAC00, 28, 21
_FINAL = ("", *"ㄱㄲㄳㄴㄵㄶㄷㄹㄺㄻㄼㄽㄾㄿㅀㅁㅂㅄㅅㅆㅇㅈㅊㅋㅌㅍㅎ")
# A stem with one of these keeps it before a vowel; ㄷ, ㄹ, ㅂ, ㅅ and ㅎ may change or go.
_REGULAR = set("ㄱㄲㄵㄶㄺㄻㄼㄾㅀㅁㅄㅆㅈㅊㅌㅍ")
_BRIGHT = (0, 8)  # the vowels ㅏ and ㅗ: -아요, all others -어요


def _final(syllable: str) -> str:
    return _FINAL[(ord(syllable) - _FIRST) % _FINALS] if "가" <= syllable <= "힣" else "?"


def _stem(syllable: str) -> str | None:
    """The polite form of a regular stem by its last syllable; None if it is irregular."""
    final = _final(syllable)
    if final not in _REGULAR and syllable != "좋":
        return None
    vowel = (ord(syllable) - _FIRST) // _FINALS % _VOWELS
    return syllable + ("아요" if vowel in _BRIGHT and final != "ㅆ" else "어요")  # 갔 is 가았


def _copula(noun: str) -> str | None:
    """The polite form of "is" behind a noun."""
    if not "가" <= noun <= "힣":
        return None
    return noun + ("이에요" if _final(noun) else "예요")


_CONTRACTED = {"한": "해", "된": "돼", "간": "가", "온": "와", "본": "봐", "준": "줘"}
_ENDINGS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str | None]], ...] = (
    (re.compile(r"아(?:니다|니야)$"), lambda _: "아니에요"),
    (re.compile(r"것이다$"), lambda _: "거예요"),
    (re.compile(r"(.)이(?:다|야)$"), lambda found: _copula(found[1])),
    (re.compile(r"(.)야$"), lambda found: _copula(found[1])),
    (re.compile(r"([한된간온본준])다$"), lambda found: f"{_CONTRACTED[found[1]]}요"),
    (re.compile(r"(.)(?:는다|다|니)$"), lambda found: _stem(found[1])),
    (re.compile(r"(?<=지) 마$"), lambda _: " 마세요"),
    (re.compile(r"([어아해돼봐줘와네지까래워려])$"), lambda found: f"{found[1]}요"),
)
# Who says 저 for "I" is polite; who says 너 for "you" is not, whatever the ending.
_HUMBLE = {"나는": "저는", "내가": "제가", "나도": "저도", "나를": "저를", "나의": "저의"}
_HUMBLE |= {"내": "제", "나에게": "저에게", "나한테": "저한테"}
_CLOSE = re.compile(r"(?<!\S)(?:너\S?|넌|널|네|네가|니가|너희\S?|얘|야)(?!\S)")


def polite(text: str) -> str | None:
    """Make a plain text polite; None where the form is not certain.

    >>> polite("나는 거기에 갔다."), polite("그것은 사실이야."), polite("뭐가 까맣니?")
    ('저는 거기에 갔어요.', '그것은 사실이에요.', None)
    """
    if speech_level(text) != "plain" or _CLOSE.search(text):
        return None
    made = [_polite(sentence) for sentence in _SENTENCES.split(text.strip())]
    if None in made:
        return None
    words = " ".join(filter(None, made)).split(" ")
    return " ".join(_HUMBLE.get(word, word) for word in words)


def _polite(sentence: str) -> str | None:
    words = sentence.rstrip(_MARKS + ".?!")
    for pattern, change in _ENDINGS:
        if found := pattern.search(words):
            made = change(found)
            return None if made is None else words[: found.start()] + made + sentence[len(words) :]
    return None


def polite_pairs(
    sources: list[str], targets: list[str], share: float, seed: int, language: str
) -> Iterator[Pair]:
    """Yield up to `share` times as many pairs as there are, with their target made polite.

    Raises:
        RecipeError: the target is not Korean.
    """
    _check("polite", language)
    pairs = [(s, new) for s, t in zip(sources, targets, strict=True) if (new := polite(t))]
    random.Random(seed).shuffle(pairs)
    yield from pairs[: round(share * len(sources))]


def with_levels(sources: list[str], targets: list[str], seed: int, language: str) -> list[str]:
    """Begin each source with the tag of its target's level, drawn for targets that have none.

    So a title stays one whatever the tag.

    Raises:
        RecipeError: the target is not Korean.
    """
    _check("levels", language)
    draw = random.Random(seed)
    levels = (speech_level(target) or draw.choice(LEVELS) for target in targets)
    return [f"{TAGS[level]} {source}" for level, source in zip(levels, sources, strict=True)]


def _check(name: str, language: str) -> None:
    if language != "ko":
        raise RecipeError(
            f"augment.{name} is for Korean targets (ko), not {language}: leave it out."
        )

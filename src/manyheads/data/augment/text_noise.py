"""Training pairs as people type them: without capitals, end marks or apostrophes, names never seen.

Each draw is a pure function of the pair and its random stream. Published: case and punctuation
noise on the source (OpusTrainer, Bogoychev et al. 2023); names and numbers that stand on both
sides are replaced on both, so that copying is learned and not the names.
"""

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import partial
from typing import Annotated, Any, ClassVar

from annotated_types import Ge, Le

Share = Annotated[float, Ge(0), Le(1)]
Pair = tuple[str, str]
MADE_ONCE = ("joined", "numbers", "beginnings", "polite", "levels")  # keys: not drawn anew


@dataclass(frozen=True, kw_only=True)
class TextNoise:
    """The [augment] table of a translator: the share of training pairs that each change reaches."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    lowercase: Share = 0.0  # the source in lower case
    end_mark: Share = 0.0  # without . ! ? at the end, on both sides
    contractions: Share = 0.0  # an English source: "I'm" for "I am", or the reverse
    apostrophes: Share = 0.0  # of the source, left out or curly; quotation marks likewise curly
    names: Share = 0.0  # names and numbers that both sides have, replaced by random ones
    joined: Share = 0.0  # pairs more, each of two pairs one after the other
    numbers: Share = 0.0  # pairs more, with other numbers, times, prices, titles; English, German
    beginnings: Share = 0.0  # pairs more: phrases that begin sentences of both sides
    polite: Share = 0.0  # pairs more, with a plain Korean target made polite
    levels: bool = False  # sources begin with the speech level of a Korean target: <polite>, ...

    @property
    def changes_pairs(self) -> bool:
        """Whether any change is drawn anew in each epoch; pairs more are made once."""
        return any(getattr(self, f.name) for f in fields(self) if f.name not in MADE_ONCE)

    def __call__(self, source: str, target: str, seed: int) -> Pair:
        """Draw which changes a pair gets, and apply them."""
        draw = random.Random(seed)
        changes: tuple[tuple[float, Callable[[str, str], Pair]], ...] = (
            (self.names, partial(replace_copied, draw=draw)),
            (self.contractions, contract),
            (self.apostrophes, partial(change_apostrophes, draw=draw)),
            (self.end_mark, drop_end_mark),
            (self.lowercase, lower_source),
        )
        for share, change in changes:
            if draw.random() < share:
                source, target = change(source, target)
        return source, target


def joined_pairs(sources: list[str], targets: list[str], share: float, seed: int) -> Iterator[Pair]:
    """Yield `share` times as many pairs as there are, each of two random ones in one line."""
    draw = random.Random(seed)
    for _ in range(round(share * len(sources))):
        first, second = draw.randrange(len(sources)), draw.randrange(len(sources))
        if sources[first].endswith(MARKS) and targets[first].endswith(MARKS):
            yield (f"{sources[first]} {sources[second]}", f"{targets[first]} {targets[second]}")


def lower_source(source: str, target: str) -> Pair:
    """Write the source in lower case."""
    return source.lower(), target


MARKS = (".", "!", "?", "…", "。", "！", "？")


def drop_end_mark(source: str, target: str) -> Pair:
    """Remove the marks at the end of both sides, if both have one; a text of marks stays."""
    if not (source.endswith(MARKS) and target.endswith(MARKS)):
        return source, target
    marks = "".join(MARKS)
    short = source.rstrip(marks).rstrip(), target.rstrip(marks).rstrip()
    return short if all(short) else (source, target)


# Unambiguous both ways; "'s" and "'d" are not.
CONTRACTIONS = {"I am": "I'm", "cannot": "can't", "will not": "won't"}
_SUBJECTS = {"are": "you we they", "have": "I you we they", "will": "I you he she we they"}
CONTRACTIONS |= {
    f"{who} {verb}": f"{who}'{verb[-2:]}"
    for verb, subjects in _SUBJECTS.items()
    for who in subjects.split()
}
_NEGATED = "do does did is are was were have has had could would should"
CONTRACTIONS |= {f"{verb} not": f"{verb}n't" for verb in _NEGATED.split()}
_OTHER_WAY = {key.lower(): value.lower() for key, value in CONTRACTIONS.items()}
_OTHER_WAY |= {value: key for key, value in _OTHER_WAY.items()}
_CONTRACTION = re.compile(
    # "you will not" becomes "you won't", not "you'll not".
    rf"\b(?:{'|'.join(map(re.escape, sorted(_OTHER_WAY, key=len, reverse=True)))})\b(?! not\b)",
    re.IGNORECASE,
)


def contract(source: str, target: str) -> Pair:
    """Contract an English source where it is written out, and the reverse."""

    def other(match: re.Match[str]) -> str:
        words = re.sub(r"\bi\b", "I", _OTHER_WAY[match[0].lower()])
        return words[0].upper() + words[1:] if match[0][0].isupper() else words

    return _CONTRACTION.sub(other, source), target


def change_apostrophes(source: str, target: str, draw: random.Random) -> Pair:
    """Leave the apostrophes of the source out, or make them and its quotation marks curly."""
    if draw.random() < 0.5:
        return re.sub(r"(?<=\w)'(?=\w)", "", source), target
    return re.sub(r'"([^"]*)"', "“\\1”", source).replace("'", "’"), target


_NAME = re.compile(r"[^\W\d_]{3,}")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")


def replace_copied(source: str, target: str, draw: random.Random) -> Pair:
    """Replace names and numbers that occur equally often on both sides, on both.

    A name is a capitalised word of the source that the target has as well, in German also with
    the s of a genitive. Each digit of a number is replaced by another.
    """
    theirs = Counter(_NAME.findall(target))
    new: dict[str, str] = {}
    for name, count in Counter(_NAME.findall(source)).items():
        if name[0].isupper() and not name.isupper() and theirs[name] + theirs[f"{name}s"] == count:
            new[name] = random_name(draw)
            new[f"{name}s"] = f"{new[name]}s"
    numbers = Counter(_NUMBER.findall(target))
    for number, count in Counter(_NUMBER.findall(source)).items():
        if numbers[number] == count:
            new[number] = random_number(number, draw)
    if not new:
        return source, target

    def replaced(text: str) -> str:
        text = _NAME.sub(lambda match: new.get(match[0], match[0]), text)
        return _NUMBER.sub(lambda match: new.get(match[0], match[0]), text)

    return replaced(source), replaced(target)


# Parts of syllables, separated by spaces; one that stands twice is twice as frequent.
_ONSETS = (
    "b b br ch d d dr f fl g gr h h j k k kr kl l l m m n n p p r r s s sch sh st t t th tr v v w "
    "w y z"
)
_VOWELS = "a a a a e e e e i i i o o o u u ai au ei ie ö ü é"
_CODAS = "n l r m k nd rt ld lt ll nn th w"
_ENDINGS = "a a e i o o ko ki ova ini ez er er en el in ian ard mann ton ski czyk yk at"


def random_name(draw: random.Random) -> str:
    """Make a name of two or three syllables that no list of names has to have."""

    def one(parts: str) -> str:
        return draw.choice(parts.split())

    name = "".join(
        one(_ONSETS) + one(_VOWELS) + (one(_CODAS) if draw.random() < 0.4 else "")
        for _ in range(draw.choice((1, 1, 2)))
    )
    return (name + one(_ONSETS) + one(_ENDINGS)).capitalize()


def random_number(number: str, draw: random.Random) -> str:
    """Replace every digit; the first one of a longer number does not become 0."""
    return "".join(
        str(draw.randrange(not place and len(number) > 1, 10)) if digit.isdigit() else digit
        for place, digit in enumerate(number)
    )

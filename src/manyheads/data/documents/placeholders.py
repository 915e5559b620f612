"""Items that a translation must not change: placeholders, tags, URLs, numbers and the like.

`find` returns the items of a text, `preserves` checks that a translation still has them. No model
is involved: `documents/` makes translations that preserve their items.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

Kind = Literal[
    "code", "placeholder", "tag", "url", "email", "mention", "file", "emoji", "number", "term"
]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, slots=True)
class Item:
    """Characters [begin, end) of a text that the translation must preserve.

    `text` must occur in the translation. It is a part of the characters [begin, end): of "20th"
    only the number 20 must be preserved, but "20th" is reinserted.
    """

    kind: Kind
    begin: int
    end: int
    text: str
    whole: str  # reinserted for the characters [begin, end)


# A URL ends before CJK text, because Korean and Japanese attach particles to it. CJK text after a
# slash or similar is part of the URL.
_URL_CHARACTER = r"[\w\-.~:/?#\[\]@!$&'()*+,;=%]"
_NO_CJK = r"(?![\u1100-\u11ff\u2e80-\ud7ff\uf900-\ufaff\uff00-\uffef])"
_URL_REST = rf"(?:{_NO_CJK}{_URL_CHARACTER})+(?:(?<=[/=_#-])[^\W_]+(?:{_URL_CHARACTER})*)?"
_DOMAINS = "com|org|net|edu|gov|io|dev|info|eu|de|fr|at|ch|uk|kr|jp|cn|ru|es|it|nl|pl|us|ca|au"
_FILES = (
    "7z|avi|bat|bmp|bz2|cfg|conf|cpp|cs|css|csv|db|dll|docx?|epub|exe|flac|gif|go|gz|hpp|html?|"
    "ini|ipynb|jar|java|jpe?g|json|jsonl|js|jsx|kt|lock|log|md|mkv|mov|mp3|mp4|odt|ogg|parquet|"
    "pdf|php|png|pptx?|ps1|py|pyi|rb|rs|rst|rtf|safetensors|scala|sh|so|sql|svg|swift|tar|tex|tgz|"
    "tiff?|toml|ts|tsv|tsx|txt|wav|webm|webp|whl|xlsx?|xml|xz|ya?ml|zip|zst|c|h"
)
_EMOJI = (
    r"[\U0001F300-\U0001F3FA\U0001F400-\U0001FAFF\U0001F000-\U0001F1E5\U0001F200-\U0001F2FF"
    r"\u203C\u2049\u2139\u2190-\u21FF\u2300-\u23FF\u2460-\u24FF\u25A0-\u27BF\u2900-\u297F"
    r"\u2B00-\u2BFF\u3030\u303D\u3297\u3299]"
    r"[\uFE0E\uFE0F]?[\U0001F3FB-\U0001F3FF]?[\U000E0020-\U000E007F]*"
)

# The first pattern that matches at a position determines the kind of the item.
_PATTERNS: tuple[tuple[Kind, str], ...] = (
    ("code", r"(?P<ticks>`{1,9})(?!`).{1,300}?(?<!`)(?P=ticks)(?!`)"),
    ("placeholder", r"\{\{.{0,200}?\}\}\}?|\{%.{0,200}?%\}|\$\{[^{}]{0,200}\}"),
    ("placeholder", r"\{(?:[^{}]|\{[^{}]{0,100}\}){0,300}\}"),
    ("tag", r"</?[A-Za-z][^<>]{0,999}>|<!--.{0,999}?-->|<[!?][A-Za-z][^<>]{0,999}>"),
    ("tag", r"&(?:[A-Za-z]\w{1,31}|#\w{1,8});"),
    # Markdown: a link's brackets with its address, and strong and struck-out text.
    ("tag", r"!?\[(?=[^\[\]]{0,300}\]\([^()\s]{0,500}\))|\]\([^()\s]{0,500}\)|\*\*(?!\*)|~~(?!~)"),
    ("email", r"(?:mailto:)?[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63})+"),
    ("url", rf"(?:[A-Za-z][A-Za-z0-9+.-]{{1,30}}://|www\.){_URL_REST}"),
    (
        "url",
        rf"(?<![\w@.])(?:[A-Za-z0-9-]{{1,63}}\.)+(?:{_DOMAINS})(?![\w-])(?:/(?:{_URL_REST})?)?",
    ),
    ("placeholder", r"%\([^()\s]{1,99}\)[#0+ -]*\d*(?:\.\d+)?[A-Za-z]"),
    ("placeholder", r"%(?:\d+\$)?[#0+-]*\d*(?:\.\d+)?(?:hh|ll|[hlzjtL])?[@sdiuoxXfFeEgGcp](?!\w)"),
    ("placeholder", r"%[A-Za-z_]\w*%|%%|(?<!\w)\$[A-Za-z_]\w*"),
    ("mention", r"(?<![\w/&])[@#][A-Za-z_]\w*"),
    (
        "file",
        r"(?<![\w/.])(?:~|\.{1,2})?/(?:[\w.+-]{1,99}/)*[\w+-]{1,99}(?:\.[\w+-]{1,99})*/?(?!\w)",
    ),
    ("file", r"(?<!\w)[A-Za-z]:\\[\w.\\+-]*[\w\\]"),
    ("file", rf"(?<![\w/\\])(?:[\w.+-]{{1,99}}[/\\]){{0,40}}[\w+.-]{{1,99}}\.(?:{_FILES})(?!\w)"),
    ("emoji", rf"[\U0001F1E6-\U0001F1FF]{{2}}|[0-9#*]\uFE0F?\u20E3|{_EMOJI}(?:\u200D{_EMOJI})*"),
    (
        "number",
        r"(?:(?<![\w.,)\]%])[-+\u2212])?\d+(?:[.,]\d+|['\u2019\u00A0\u2009\u202F]\d{3}(?!\d))*",
    ),
)
_ITEM = re.compile("|".join(f"(?P<p{i}>{pattern})" for i, (_, pattern) in enumerate(_PATTERNS)))
# Only words and punctuation, as most sentences: they need no search for items.
_PLAIN = re.compile(r"(?:[^\W\d_]|[\s,;:!?'\"()\u2013\u2014-]|\.(?!\w))*+\Z")
_KIND: dict[str, Kind] = {f"p{i}": kind for i, (kind, _) in enumerate(_PATTERNS)}
_LATIN = "A-Za-z\u00c0-\u024f"
_SPACED = _LATIN + r"0-9_\u0370-\u052f"  # scripts that put spaces between words
_WORD = re.compile(f"[{_SPACED}]")
_MARKUP = "`<>{}[]|*#@\\"
# Characters that are reinserted with a number: "20th", "MP3", "$5", "5%".
_BEFORE_NUMBER = re.compile(rf"(?:[{_LATIN}_]{{1,30}}|[$\u20ac\u00a3\u00a5\u20a9])\Z")
_AFTER_NUMBER = re.compile(rf"[{_LATIN}_]+|\u00a0?[%\u2030\u00b0](?:[CF]\b)?")


def find(text: str, kinds: Collection[Kind] = KINDS) -> list[Item]:
    """Find the items of a text, from left to right; items do not overlap."""
    items: list[Item] = []
    if _PLAIN.match(text):
        return items
    position = 0
    while match := _ITEM.search(text, position):
        kind, begin, end = _KIND[str(match.lastgroup)], match.start(), match.end()
        if kind == "url":
            end = begin + len(_without_punctuation(match.group()))
        position = max(end, begin + 1)
        if kind not in kinds:
            continue
        if items and items[-1].end > begin:  # "5http://a.b": the unit was none
            last = items.pop()
            items.append(replace(last, end=begin, whole=text[last.begin : begin]))
        found = text[begin:end]
        if kind == "number":
            first = items[-1].end if items else 0
            before = _BEFORE_NUMBER.search(text, first, begin)
            after = _AFTER_NUMBER.match(text, end)
            begin, end = before.start() if before else begin, after.end() if after else end
            items.append(Item(kind, begin, end, found, text[begin:end]))
        else:
            items.append(Item(kind, begin, end, found, found))
    return items


def _without_punctuation(url: str) -> str:
    """Remove the punctuation of the sentence from the end of a URL."""
    while url[-1] in ".,;:!?'*_" or (url[-1] == ")" and url.count(")") > url.count("(")):
        url = url[:-1]
    return url


def preserves(
    text: str,
    items: Sequence[Item],
    translation: str,
    *,
    source: str = "",
    target: str = "",
    kinds: Collection[Kind] = KINDS,
) -> bool:
    """Return whether a translation has every item as often as its source `text`, and no others.

    Tags must also keep their order, and there must be no new brackets or other markup characters.
    There may be more numbers and terms ("two" may become 2, and a glossary translation may also
    translate other words). Number formats may differ by the languages `source` and `target`: see
    `same_number`. Only items of these kinds, and terms, are checked.
    """
    terms = Counter(item.text for item in items if item.kind == "term")
    if any(len(as_word(term).findall(translation)) < n for term, n in terms.items()):
        return False
    wanted = [item for item in items if item.kind != "term"]
    for term, count in terms.items():  # a term may itself have items: Windows 11
        wanted += [item for item in find(term, kinds) if item.kind != "number"] * count
    known = text + "".join(item.whole for item in items if item.kind == "term")
    if any(translation.count(sign) > known.count(sign) for sign in _MARKUP):
        return False
    found = find(translation, kinds)
    if _texts(wanted, "tag") != _texts(found, "tag") or _others(wanted) != _others(found):
        return False
    # "3n" does not count as 3, unless the source has such numbers too.
    joined = any(map(_with_letters, wanted))
    numbers = [i.text for i in found if i.kind == "number" and (joined or not _with_letters(i))]
    needed = Counter(_texts(wanted, "number"))
    # Match identical strings first, then numbers that are equal in value.
    left = list((needed - Counter(numbers)).elements())
    numbers = list((Counter(numbers) - needed).elements())
    for number in left:
        equal = [other for other in numbers if same_number(number, other, source, target)]
        if not equal:
            return False
        numbers.remove(equal[0])
    return True


def same_number(number: str, translated: str, source: str, target: str) -> bool:
    """Return whether two numbers are equal, each in the number format of its language.

    Equal means: the same characters; or the same digits before and after the decimal separator
    and the same sign, with the separators of the two languages. "1,234.5" in English is "1.234,5"
    in German and "1 234,5" in French; "3.50" is not "3,5". Versions, addresses and numbers of
    unlisted languages must keep their characters.
    """
    if number == translated:
        return True
    value = _digits(number, source)
    return value is not None and value == _digits(translated, target)


def as_word(text: str) -> re.Pattern[str]:
    """Return a pattern of a text as whole words, as written or capitalised.

    In scripts without spaces or with attached particles (Korean), it may be part of a word.
    """
    first, rest = text[:1], re.escape(text[1:])
    either = f"[{re.escape(first)}{re.escape(first.upper())}]" if len(first.upper()) == 1 else first
    before = f"(?<![{_SPACED}])" if re.match(f"[{_SPACED}]", text) else ""
    after = f"(?![{_SPACED}])" if re.search(f"[{_SPACED}]\\Z", text) else ""
    return re.compile(f"{before}{either}{rest}{after}")


def is_whole(text: str, begin: int, end: int) -> bool:
    """Return whether characters of a text are whole words, as `as_word` would find them."""
    before = _WORD.match(text[begin]) and begin and _WORD.match(text[begin - 1])
    after = _WORD.match(text[end - 1]) and end < len(text) and _WORD.match(text[end])
    return not (before or after)


def cut(text: str, items: Iterable[Item]) -> list[str | Item]:
    """Split a text into its items and the text between them."""
    pieces: list[str | Item] = []
    position = 0
    for item in items:
        pieces += [text[position : item.begin], item]
        position = item.end
    return [*pieces, text[position:]]


def put_together(pieces: Iterable[str | Item]) -> str:
    """Join the pieces of `cut`, with a space where two words would run together."""
    text = ""
    for piece in pieces:
        more = piece.whole if isinstance(piece, Item) else piece
        joined = re.search(f"[{_SPACED}]\\Z", text) and re.match(f"[{_SPACED}]", more)
        text += f" {more}" if joined else more
    return text


def has_words(text: str, items: Iterable[Item]) -> bool:
    """Return whether there is a letter or digit outside the items."""
    return any(
        character.isalnum()
        for piece in cut(text, items)
        if isinstance(piece, str)
        for character in piece
    )


# Decimal separators (CLDR); other separators group thousands.
_POINT = {"en", "he", "hi", "ja", "ko", "ms", "th", "zh"}
_COMMA = {"bg", "ca", "cs", "da", "de", "el", "es", "et", "fi", "fr", "hr", "hu", "id", "is", "it"}
_COMMA |= {"lt", "lv", "nb", "nl", "no", "pl", "pt", "ro", "ru", "sk", "sl", "sr", "sv", "tr", "uk"}
_COMMA |= {"vi"}


def _digits(number: str, language: str) -> tuple[bool, str, str] | None:
    """Return sign, integer digits and decimal digits; None if it is not a number."""
    language = re.split("[-_]", language.lower())[0]
    if language not in _POINT | _COMMA:
        return None
    point, group = (r"\.", ",") if language in _POINT else (",", "[.'\u2019\u00a0\u2009\u202f]")
    match = re.fullmatch(
        rf"([-+\u2212]?)(\d+|\d{{1,3}}(?:(?P<group>{group})\d{{3}})(?:(?P=group)\d{{3}})*)(?:{point}(\d+))?",
        number,
    )
    if match is None:
        return None
    return match[1] in ("-", "\u2212"), re.sub(r"\D", "", match[2]), match[4] or ""


def _texts(items: Iterable[Item], kind: Kind) -> list[str]:
    return [item.text for item in items if item.kind == kind]


def _with_letters(item: Item) -> bool:
    return item.kind == "number" and any(map(str.isalpha, item.whole))


def _others(items: Iterable[Item]) -> Counter[str]:
    return Counter(item.text for item in items if item.kind not in ("tag", "number", "term"))

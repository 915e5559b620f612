"""Scripts and frequent words of languages, to detect text in a wrong language."""

import re
from collections.abc import Mapping
from functools import cache

# The letters of each script, as ranges of Unicode code points, and the languages written in it.
_BY_SCRIPT = {
    "Arabic": ("\u0600-\u06ff\u0750-\u077f\ufb50-\ufdff\ufe70-\ufefc", "ar fa ps ur"),
    "Armenian": ("\u0530-\u058f", "hy"),
    "Bengali": ("\u0980-\u09ff", "as bn"),
    "Cyrillic": ("\u0400-\u052f", "be bg kk ky mk mn ru tg uk"),
    "Devanagari": ("\u0900-\u097f", "hi mr ne sa"),
    "Ethiopic": ("\u1200-\u139f", "am ti"),
    "Georgian": ("\u10a0-\u10ff\u1c90-\u1cbf", "ka"),
    "Greek": ("\u0370-\u03ff\u1f00-\u1fff", "el"),
    "Gujarati": ("\u0a80-\u0aff", "gu"),
    "Han": ("\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff", "zh"),
    "Hangul": ("\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff", "ko"),
    "Hebrew": ("\u0590-\u05ff\ufb1d-\ufb4f", "he yi"),
    "Japanese": ("\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uff66-\uff9f", "ja"),
    "Kannada": ("\u0c80-\u0cff", "kn"),
    "Khmer": ("\u1780-\u17ff", "km"),
    "Lao": ("\u0e80-\u0eff", "lo"),
    "Latin": (
        "A-Za-z\u00aa\u00ba\u00c0-\u024f\u0250-\u02af\u1e00-\u1eff\ufb00-\ufb06",
        "af az ca cs cy da de en eo es et eu fi fr ga gl hr hu id is it la lb lt lv ms mt nb nl "
        "nn no pl pt ro sk sl so sq sv sw tl tr vi zu",
    ),
    "Malayalam": ("\u0d00-\u0d7f", "ml"),
    "Myanmar": ("\u1000-\u109f", "my"),
    "Sinhala": ("\u0d80-\u0dff", "si"),
    "Tamil": ("\u0b80-\u0bff", "ta"),
    "Telugu": ("\u0c00-\u0c7f", "te"),
    "Thai": ("\u0e00-\u0e7f", "th"),
}
_SCRIPTS = {code: script for script, (_, codes) in _BY_SCRIPT.items() for code in codes.split()}

# Frequent function words of each language.
_WORDS = {
    "cs": "a aby ale ani být co do ho i jako je jsem jsou která který na není o od po pro se si ta "
    "tak to u v ve z za že",
    "da": "af at da de den der det dig du efter eller en er et for fra han har hun i ikke jeg kan "
    "med mig når og om på sig som til var vi vil",
    "de": "aber als am auch auf aus bei das dass dem den der des die durch ein eine einem einen "
    "einer er es für haben hat ich ihr im ist kann mit nach nicht noch oder sein sich sie sind so "
    "und uns vom von vor war was wenn werden wie wir wird zu zum zur über",
    "en": "a and are as at be been but by can do for from had has have he her his i if in is it "
    "its my not of on one or our she so some than that the their them there these they this to "
    "was we were what when which who will with would you your",
    "es": "al como con de del el ella en es esta este fue ha hay la las le lo los más me mi muy no "
    "para pero por que se ser si sin sobre su sus también un una y ya",
    "fr": "au aux avec ce ces cette dans de des du elle en est et il ils je la le les leur mais ne "
    "nous on ou par pas plus pour qu que qui sa se ses son sont sur un une vous à été être",
    "it": "al alla che chi come con da dal dei del della delle di e ed gli ha ho i il in io la le "
    "lo ma nel nella non per più questa questo se si sono su sua suo un una è",
    "nl": "aan als bij dan dat de deze die dit door een en er haar heb heeft het hij ik in is je "
    "kan maar met mijn naar niet nog of om ook op te tot uit van voor was we wel wij wordt ze zijn",
    "pl": "a ale by być co czy do go i ich jak jest już który ma mi na nie o od po przez się są ta "
    "tak to tym w we z za ze że",
    "pt": "ao as com como da das de do dos e ela ele em era esta este eu foi há isso já mais mas "
    "me muito na nas no nos não o os ou para pela pelo por que se sem seu sua são também um uma é",
    "sv": "att av de den det du efter eller en ett från för han har hon i inte jag kan man med men "
    "mig när och om på sig som så till var vi vill är",
    "tr": "ama ben bir biz bu da daha de değil diye en gibi için ile kadar ki mi mı ne o olan "
    "olarak onu sen şu var ve veya ya yok çok",
}

_TOKEN = re.compile(r"[^\W\d_]+")

# What a code looks like, such as en, pt-BR or zh_Hans.
_CODE = re.compile("[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{1,8})*")

# Three-letter codes (ISO 639, OPUS) of languages with special rules.
_SHORT = {
    **dict.fromkeys(("chi", "cmn", "yue", "zho"), "zh"),
    **dict.fromkeys(("jap", "jpn"), "ja"),
    **dict.fromkeys(("bur", "mya"), "my"),
    "khm": "km",
    "kor": "ko",
    "lao": "lo",
    "tha": "th",
}


def is_language_code(text: str) -> bool:
    """Tell whether a text looks like the code of a language."""
    return _CODE.fullmatch(text) is not None


def base(language: str) -> str:
    """Return a language code without script and region: pt for pt_BR, zh for cmn_Hans."""
    code = re.split("[-_]", language.lower())[0]
    return _SHORT.get(code, code)


def script(language: str) -> str | None:
    """Return the script of a language; None if it is unknown or has several."""
    return _SCRIPTS.get(base(language))


@cache
def letters(script: str) -> re.Pattern[str]:
    """Return a pattern of a run of letters of a script."""
    return re.compile(f"[{_BY_SCRIPT[script][0]}]+")


def count(letters: re.Pattern[str], text: str) -> int:
    """Count the letters in a text, given a pattern of runs of them."""
    return sum(map(len, letters.findall(text)))


def typical_words(language: str, other: str) -> frozenset[str]:
    """Return the frequent words of a language that are not frequent in the other."""
    own, others = (_WORDS.get(base(code), "").split() for code in (language, other))
    return frozenset(own) - frozenset(others) if others else frozenset()


def frequent_words(language: str) -> frozenset[str]:
    """Return the frequent words of a language; none where they are unknown."""
    return frozenset(_WORDS.get(base(language), "").split())


def languages_with_words() -> tuple[str, ...]:
    """Return the languages whose frequent words are known."""
    return tuple(_WORDS)


def count_words(text: str, words: frozenset[str]) -> int:
    """Count the words of a text that are in `words`."""
    return sum(token in words for token in _TOKEN.findall(text.lower()))


def header_words(*languages: str) -> Mapping[str, None]:
    """Return usual column names of tables of sentence pairs, in lower case."""
    usual = (
        "source target src tgt source_language target_language sentence sentence1 sentence2 text "
        "translation input output reference ref english german french spanish italian korean "
        "japanese chinese russian portuguese dutch polish turkish arabic id"
    )
    return dict.fromkeys([*usual.split(), *(code.lower() for code in languages)])

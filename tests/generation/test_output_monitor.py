"""Signs that something is wrong with a model's outputs: found where they are, and only there."""

import re

import pytest

from manyheads import load
from manyheads.data.synthetic.dates import generate
from manyheads.generation.output_monitor import PAIRS, OutputMonitor, signs
from manyheads.tasks.translate.predictor import Translator
from tests.remarks import collected

NOUNS = ["house", "river", "teacher", "window", "garden", "mountain", "letter", "winter", "bridge"]
WORDS = {
    "house": "Haus",
    "river": "Fluss",
    "teacher": "Lehrer",
    "window": "Fenster",
    "garden": "Garten",
    "mountain": "Berg",
    "letter": "Brief",
    "winter": "Winter",
    "bridge": "Brücke",
    "and": "und",
}
SOURCES = [f"{a} and {b} and {number}" for number, a in enumerate(NOUNS) for b in NOUNS] * 2
SOURCES = [f"{text} {number}" for number, text in enumerate(SOURCES)]
REFERENCES = [" ".join(WORDS.get(word, word) for word in text.split()) for text in SOURCES]
LOOP = "Haus und Haus und Haus und Haus und"


# --- What is measured ---------------------------------------------------------------------------


def test_signs_by_hand() -> None:
    """One of each in five outputs; two are the same."""
    sources = ["one dog runs", "two dogs", "red cats here", "green", "blue"]
    references = ["ein Hund rennt", "zwei Hunde", "rote Katzen hier", "grün", "blau"]
    outputs = ["ein Hund ein Hund ein Hund", "", "Red cats here", "blau", "blau"]
    found = signs(sources, outputs, references)
    assert found.length_ratio == pytest.approx((26 + 0 + 13 + 4 + 4) / (14 + 10 + 16 + 4 + 4))
    assert found[1:] == (20, 20, 20, 40, 0)


@pytest.mark.parametrize(
    ("text", "loops"),
    [
        ("the man the man the man", True),
        ("a man and a man and a man and a man and a", True),
        ("aaaaaaaaaaaaaaaa", True),
        ("한 남자가 한 남자가 한 남자가", True),
        ("no no no", False),  # people say that
        ("und und und", True),  # 12 characters with the spaces
        ("abcdefghijklmnopqrst uvwxyzabcdefghijklmn opqrstuvwxyzabcde " * 3, True),  # 60 each
        ("abcdefghijklmnopqrst uvwxyzabcdefghijklmn opqrstuvwxyzabcdef " * 3, False),  # 61
        ("the man, the dog, the man", False),
        ("- - - - - - - - - - - - - -", False),  # a rule, not words
        ("1000000000000000", False),
        ("", False),
    ],
)
def test_repetition(text: str, loops: bool) -> None:
    """The same phrase at least three times in a row, spaces between words aside."""
    assert bool(signs(["source"], [text], ["reference"]).repeated) == loops


@pytest.mark.parametrize(
    ("output", "copied"),
    [
        ("the red house on the hill", True),
        ("The  red house on the Hill", True),
        ("the red house on the Hügel", True),  # 5 words of 6
        ("das red house auf the Hügel", False),
        ("the the the the the the", False),  # the source has it twice only
        ("the red house on Hügel", True),  # 4 words of 5
        ("the red house auf Hügel", False),  # 3 of 5
        ("", False),
    ],
)
def test_copying(output: str, copied: bool) -> None:
    """Most of the words are the source's, each as often as there."""
    source = "the red house on the hill"
    assert bool(signs([source], [output], ["das rote Haus auf dem Hügel"]).copied) == copied


def test_a_copied_name_is_one_word() -> None:
    """Fewer than three words must be the whole source to count."""
    assert signs(["Anna Berg speaks"], ["Anna Berg"], ["Anna Berg spricht"]).copied == 0
    assert signs(["Anna Berg"], ["Anna Berg"], ["Anna Berg"]).copied == 100


@pytest.mark.parametrize(
    ("output", "wrong"),
    [
        ("학교", 0),
        ("the school", 100),
        ("API 학교 문서", 0),
        ("2026 11 20", 0),
        ("", 0),
        ("abc 학", 0),  # a quarter of the letters
        ("abcd 학", 100),
    ],
)
def test_scripts(output: str, wrong: float) -> None:
    """Letters count, digits do not; a foreign name among the words is no wrong script."""
    assert signs(["school"], [output], ["학교 문서"]).wrong_script == wrong


# --- When it warns ------------------------------------------------------------------------------


def spoilt(kind: str) -> list[str]:
    """Outputs of a model with one fault, in two of five sentences."""
    numbers = range(len(REFERENCES))
    bad = {
        "length_ratio": [str(n) for n in numbers],
        "repeated": [f"{LOOP} {n}" for n in numbers],
        "copied": SOURCES,
        "empty": ["" for _ in numbers],
        "same": ["ein Haus und ein Garten im Winter" for _ in numbers],
        "wrong_script": [f"дом {n} и река и гора" for n in numbers],
    }[kind]
    return [b if n % 5 < 2 else r for n, (b, r) in enumerate(zip(bad, REFERENCES, strict=True))]


def validate(watch: OutputMonitor, outputs: list[str]) -> list[str]:
    """What a validation says."""
    with collected() as said:
        watch(outputs)
    return said


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("length_ratio", r"the outputs are 0\.63 times as long.*length_penalty"),
        ("repeated", r"4.% .* repeat a phrase .*\(0% of the references\).*learning_rate"),
        ("copied", r"4.% .* mostly copy their source .*check-data"),
        ("empty", r"4.% .* are empty.*length_penalty"),
        ("same", r"4.% .* same for different sources .*warmup"),
        ("wrong_script", r"4.% .* another script .*data\.source"),
    ],
)
def test_warns_once_of_what_stays(kind: str, words: str) -> None:
    """The first validation of a run says nothing yet; the second warns, the third is silent."""
    watch = OutputMonitor(SOURCES, REFERENCES)
    assert validate(watch, spoilt(kind)) == []
    said = validate(watch, spoilt(kind))
    assert any(re.match(f"On the validation data, {words}", each) for each in said)
    assert len(said) == (2 if kind == "empty" else 1)  # these are short as well
    assert validate(watch, spoilt(kind)) == []


@pytest.mark.parametrize(
    ("kind", "beyond", "within"),
    [
        ("length_ratio", -0.31, -0.29),
        ("length_ratio", 0.41, 0.39),
        ("repeated", 5.1, 4.9),
        ("copied", 10.1, 9.9),
        ("empty", 1.1, 0.9),
        ("same", 15.1, 14.9),
        ("wrong_script", 5.1, 4.9),
    ],
)
def test_the_limit_of_each_sign(kind: str, beyond: float, within: float) -> None:
    """In points more than the references have; less than they have is no sign but of length."""
    watch = OutputMonitor(SOURCES, REFERENCES)
    usual = getattr(watch.usual, kind)
    assert [*watch.found(watch.usual._replace(**{kind: usual + beyond}))] == [kind]
    assert watch.found(watch.usual._replace(**{kind: usual + within})) == {}
    if kind != "length_ratio":
        assert watch.found(watch.usual._replace(**{kind: usual - 50})) == {}


def test_a_hundred_pairs_are_enough() -> None:
    """With one fewer, a share is too uncertain."""
    for count, said in ((100, ["empty"]), (99, [])):
        watch = OutputMonitor(SOURCES[:count], REFERENCES[:count])
        assert [*watch.found(watch.usual._replace(empty=50.0))] == said


@pytest.mark.parametrize(("after", "said"), [(91, 1), (89, 0)])
def test_a_sign_must_fall_by_a_tenth(after: int, said: int) -> None:
    """100 of 162 outputs repeat a phrase, then 91 of them still, or 89."""
    watch = OutputMonitor(SOURCES, REFERENCES)
    for bad, warned in ((100, 0), (after, said)):
        looping = [f"{LOOP} {number}" for number in range(bad)]
        told = validate(watch, looping + REFERENCES[bad:])
        assert len([each for each in told if "repeat a phrase" in each]) == warned


def test_a_sign_is_warned_of_when_it_comes() -> None:
    """A model that was good and collapses."""
    watch = OutputMonitor(SOURCES, REFERENCES)
    assert validate(watch, REFERENCES) == []
    assert len(validate(watch, spoilt("same"))) == 1


def test_a_model_that_gets_better_is_not_warned_of() -> None:
    """Every model begins by repeating itself; half as much each time needs no remark."""
    watch = OutputMonitor(SOURCES, REFERENCES)
    for share in (1.0, 0.5, 0.25, 0.12):
        bad = int(share * len(REFERENCES))
        assert validate(watch, [LOOP] * bad + REFERENCES[bad:]) == []


def test_references_have_their_own_rates() -> None:
    """Where the data copy names and translate two phrasings alike, a model may too."""
    sources = [f"{('at', 'in')[n % 2]} Müller {n // 2} Bern" for n in range(200)]
    references = [f"Müller {n // 2} Bern" for n in range(200)]
    watch = OutputMonitor(sources, references)
    assert (watch.usual.copied, watch.usual.same) == (100, 100)
    assert [validate(watch, references) for _ in range(3)] == [[], [], []]


def test_too_few_sentences_for_a_share() -> None:
    """Ten sentences prove nothing: measured, and not warned of."""
    watch = OutputMonitor(SOURCES[:10], REFERENCES[:10])
    assert watch([""] * 10)["empty"] == 100
    assert validate(watch, [""] * 10) == []


def test_a_good_model_is_never_warned_of() -> None:
    """The shipped one, on dates it has not seen, one after another and again."""
    translate = load("date-en-ko")
    assert isinstance(translate, Translator)
    pairs = generate("valid", size=132)[:PAIRS]
    sources, references = [pair.source for pair in pairs], [pair.target for pair in pairs]
    watch = OutputMonitor(sources, references)
    found = signs(sources, translate(sources), references)
    assert watch.remarks(found) == {}
    assert found.length_ratio == pytest.approx(1, abs=0.02)

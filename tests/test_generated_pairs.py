"""Further pairs by the shipped models, of a few sentences."""

from manyheads import load
from manyheads.tasks.translate.predictor import Translator
from scripts.generated_pairs import NEAR, WORD, back, best_of_four, spelled


def test_what_comes_back_otherwise_is_a_new_pair() -> None:
    """A pair that there is, is none; each German text is translated once."""
    backward = load("de-en", Translator)
    same = backward("Ein Hund schläft."), "Ein Hund schläft."
    assert list(back([same], backward)) == []
    found = list(back([("What?", same[1]), ("How?", same[1])], backward))
    assert found == [same]


def test_what_comes_back_near_in_known_words_is_kept() -> None:
    """Without its words in the corpus nothing is."""
    translator, backward = load("en-de", Translator), load("de-en", Translator)
    texts = ["He is my brother.", "I am tired."]
    known = {
        word.casefold()
        for four in translator.translate(texts, n_best=4)
        for each in four
        for word in WORD.findall(each.text)
    }
    found = list(best_of_four(texts, translator, backward, known))
    assert [best.text for best in found] == texts
    for text, translation, near in found:
        assert translation in [best.text for best in translator.translate([text], n_best=4)[0]]
        assert near >= NEAR
    assert list(best_of_four(texts, translator, backward, set())) == []
    assert list(best_of_four(texts, translator, backward, None)) == found


def test_words_are_known_ones_or_names_of_the_source() -> None:
    """Made-up words and copied words in lower case are neither; "Toms" is Tom's."""
    known = {"der", "hund", "ist", "da"}
    assert spelled("Toms Hund ist da.", "Tom's dog is there.", known)
    assert not spelled("Der Konsiraky ist da.", "The conspiracy is there.", known)
    assert not spelled("Der Hund ist awkward.", "The dog is awkward.", known)

"""Further pairs by the shipped models, of a few sentences."""

from pathlib import Path

from manyheads import load
from manyheads.tasks.translate.predictor import Translator
from scripts.generated_pairs import HELD_OUT, NEAR, WORD, back, best_of_four, captions, spelled


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


def test_captions_that_are_new_and_well_formed(tmp_path: Path) -> None:
    """Each once; none of a held-out file; German ones need a capital, a noun and known words."""
    train = {"en": "A dog runs on the grass.\n", "de": "Ein Hund rennt auf dem Gras.\n"}
    files = {f"{name}.{side}": train[side] for name in ("train", *HELD_OUT) for side in train}
    task2 = {
        "en": "A man plays the guitar.\na man plays the guitar\na dog runs on the grass\n",
        "de": "ein hund schläft im Gras\nEin Hund schläft im Gras\n"
        "Ein Hnud schläft im Gras\nEin Hund schläft the Gras\n",
    }
    files |= {f"task2/train.{n}.{side}": task2[side] for n in range(1, 6) for side in task2}
    for name, text in files.items():
        path = tmp_path / "multi30k" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for name in ("tatoeba/train.en-de.tsv", "generated/forward.en-de.tsv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("in the grass\tschläft im Gras\n", encoding="utf-8")
    captions(tmp_path, load("en-de", Translator), load("de-en", Translator))
    forward, back_ = (
        (tmp_path / f"generated/captions-{way}.en-de.tsv").read_text(encoding="utf-8")
        for way in ("forward", "back")
    )
    assert forward == "A man plays the guitar.\tEin Mann spielt Gitarre.\n"
    (pair,) = back_.splitlines()
    english, german = pair.split("\t")
    assert german == "Ein Hund schläft im Gras."
    assert english.startswith("A dog")

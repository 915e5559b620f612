"""Looking through the front door: one call, three forms to keep, numbers that fit the schema."""

import json
from pathlib import Path

import pytest
from PIL import Image

import manyheads
from manyheads.cli import look as cli_look
from manyheads.errors import UsageError
from manyheads.lens.view.image_view import ImageView
from manyheads.looking.look_inside import FORMS, Look, look
from manyheads.project.paths import checked_name
from tests import language
from tests.made import half
from tests.schema import errors

SEVEN = Path(__file__).parents[2] / "docs" / "images" / "seven.png"


@pytest.fixture(scope="module")
def sentence(translator: Path) -> Look:
    return look(translator, "one two")


@pytest.fixture
def image(tmp_path: Path) -> Path:
    half(0, seed=1).save(tmp_path / "half.png")
    return tmp_path / "half.png"


def test_it_is_public() -> None:
    """manyheads.look, beside manyheads.load."""
    assert manyheads.look is look


def test_a_translator(sentence: Look, translator: Path) -> None:
    """By folder, or loaded; what is told is the text and the model's own translation."""
    loaded = manyheads.load(translator)
    assert sentence.told == {
        "model": translator.name,
        "text": "one two",
        "translation": loaded("one two"),
    }
    assert sentence.answer == sentence.told["translation"]
    assert sentence.title == f"{translator.name}: one two  →  {sentence.answer}"
    assert look(loaded, "one two").to_json() == sentence.to_json()


def test_a_classifier(classifier: Path, image: Path) -> None:
    """The path is kept as given; the image as the model saw it."""
    found = look(classifier, image)
    assert isinstance(found.view, ImageView)
    assert found.told == {"model": classifier.name, "path": str(image)}
    assert found.answer == found.view.classes[0].label
    assert found.title == f"{classifier.name}: half.png  →  {found.answer}"
    assert found.pixels is not None
    assert tuple(found.pixels.shape) == (4, 6)
    assert errors(json.loads(json.dumps(found.to_json()))) == []


def test_a_large_image_is_shown_smaller(classifier: Path, tmp_path: Path) -> None:
    """In its own pixels are the boxes; what is drawn of it has at most 1,024 a side."""
    Image.new("RGB", (3000, 20)).save(tmp_path / "long.png")
    found = look(classifier, tmp_path / "long.png")
    assert isinstance(found.view, ImageView)
    assert (found.view.width, found.view.height) == (3000, 20)
    assert found.pixels is not None
    assert tuple(found.pixels.shape) == (7, 1024)  # the model is grey


@pytest.mark.parametrize("size", [(1, 1), (30_000, 1), (1, 30_000)])
def test_a_dot_and_a_line_are_looked_at(
    classifier: Path, tmp_path: Path, size: tuple[int, int]
) -> None:
    """In every form."""
    Image.new("L", size, 99).save(tmp_path / "line.png")
    found = look(classifier, tmp_path / "line.png")
    for suffix in FORMS:
        found.save(tmp_path / f"out{suffix}")


def test_an_unlikely_class_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    """It is added to the likeliest five and marked: in the numbers, the title and the terminal."""
    found = look("digits", SEVEN, target="1")
    assert isinstance(found.view, ImageView)
    assert [each.label for each in found.view.classes if each.explained] == ["1"]
    chances = [each.probability for each in found.view.classes]
    assert len(chances) == 6
    assert chances == sorted(chances, reverse=True)
    assert found.title == "digits: seven.png  →  7, explained: 1"
    assert found.to_json()["model"] == "digits"
    assert "<title>digits: seven.png" in found.html()
    assert errors(json.loads(json.dumps(found.to_json()))) == []
    cli_look._print(found)
    assert capsys.readouterr().out.splitlines()[-1].endswith("%  1  (explained)")
    likeliest = look("digits", SEVEN)
    assert isinstance(likeliest.view, ImageView)
    assert [each.explained for each in likeliest.view.classes] == [True] + [False] * 4
    assert likeliest.title == "digits: seven.png  →  7"


@pytest.mark.parametrize("task", ["generate", "fill", "tag"])
def test_readers_of_one_text(task: str, tmp_path: Path) -> None:
    """Language models and taggers have a page as well, and numbers of the same schema."""
    text = "eins <mask> drei" if task == "fill" else "eins zwei"
    found = look(language.trained(task), text)
    assert found.told["text"] == text
    assert found.answer == found.told["answer"]
    assert errors(json.loads(json.dumps(found.to_json()))) == []
    found.save(tmp_path / "look.html")
    assert (tmp_path / "look.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_the_name_says_the_form(sentence: Look, tmp_path: Path) -> None:
    """In folders that are made, whatever the case of the ending."""
    pytest.importorskip("matplotlib")
    for name in ("new/look.html", "new/look.PNG", "look.json"):
        sentence.save(tmp_path / name)
    page = (tmp_path / "new" / "look.html").read_bytes()
    assert page.startswith(b"<!doctype html>")
    assert b"\r" not in page
    with Image.open(tmp_path / "new" / "look.PNG") as image:
        assert min(image.size) > 200
    written = (tmp_path / "look.json").read_text(encoding="utf-8")
    assert json.loads(written) == json.loads(json.dumps(sentence.to_json()))
    assert ": " not in written.replace(sentence.told["text"], "")[:40]  # no room between numbers
    assert errors(json.loads(written)) == []


@pytest.mark.parametrize("name", ["look.gif", "look", "html", "look.html.gz"])
def test_a_name_that_says_nothing(name: str) -> None:
    with pytest.raises(UsageError, match=r"'[\w.]+' does not say .*\.html .*\.png .*\.json"):
        checked_name(name, FORMS)


def test_a_page_survives_half_a_character(sentence: Look, tmp_path: Path) -> None:
    """A terminal with another encoding hands over halves of surrogate pairs."""
    told = {**sentence.told, "text": "one \udcff two"}
    Look(told, sentence.view).save(tmp_path / "look.html")
    page = (tmp_path / "look.html").read_bytes().decode()
    assert f"<title>{sentence.told['model']}: one ? two" in page
    assert r"\udcff" in page  # as it was, where JSON can say it


def test_an_image_class_is_no_word(translator: Path, classifier: Path, image: Path) -> None:
    """A target is a class of images; an unknown one is answered with those that there are."""
    with pytest.raises(UsageError, match="it takes no target class"):
        look(translator, "one", target="left")
    with pytest.raises(UsageError, match="left, right"):
        look(classifier, image, target="middle")


def test_nothing_to_look_at(translator: Path) -> None:
    with pytest.raises(UsageError, match="text is empty"):
        look(translator, "  ")

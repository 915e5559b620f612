"""Reading from end to end: training on drawn lines, answers, pages, and translation behind it."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from manyheads import evaluate, load, read
from manyheads.asks.caption_request import CaptionRequest
from manyheads.errors import DataError, NotFoundError, RecipeError, UsageError
from manyheads.picture_translation import shipped_translator
from manyheads.project.base_recipe import read_recipe
from manyheads.tasks.read.predictor import (
    Reader,
    ReadLine,
    ReadText,
    _is_text,
    combine,
    separators,
)
from manyheads.tasks.read.task import ReadCharacter, edit_distance
from manyheads.tasks.translate.predictor import Translator
from tests import squares
from tests.made import (
    READ,
    numbers,
    png,
    read_jsonl,
    run,
    trained,
    write_fonts,
    write_recipe,
    write_texts_to_read,
)

Draw = Callable[..., Path]


@pytest.fixture(scope="module")
def reader() -> Reader:
    found = load(trained("reader"))
    assert isinstance(found, Reader)
    return found


@pytest.fixture
def draw(tmp_path: Path) -> Draw:
    """Writes an image of lines of text, in the font that the reader learned."""

    def write(*lines: str, name: str = "lines.png", top: int = 8) -> Path:
        font = ImageFont.load_default(24)
        image = Image.new("L", (400, max(40, 2 * top + 40 * len(lines) - 16)), 255)
        canvas = ImageDraw.Draw(image)
        for number, line in enumerate(lines):
            canvas.text((12, top + 40 * number), line, fill=0, font=font)
        image.save(tmp_path / name)
        return tmp_path / name

    return write


def test_lines_are_learned_and_read(reader: Reader, draw: Draw) -> None:
    """A tiny reader of ten words reads lines that it never saw."""
    measured = read_jsonl(reader.folder.path / "evaluations.jsonl")[-1]
    assert measured["metric"] == "cer"
    assert measured["value"] < 10
    assert "groups" not in measured  # of one font
    assert edit_distance(reader(draw("five two nine")), "five two nine") <= 3


def test_a_folder_says_what_it_reads(reader: Reader) -> None:
    card = (reader.folder.path / "README.md").read_text(encoding="utf-8")
    assert "Reads printed lines" in card
    assert f"manyheads read --model {reader.folder.name}" in card


def test_a_page_is_read_line_by_line(reader: Reader, draw: Draw) -> None:
    lines = ["one two", "three", "four five six"]
    (found,) = reader.read([draw(*lines)])
    assert len(found) == 3
    assert "\n".join(line.text for line in found) == reader(draw(*lines))
    (answer,) = reader.answer(CaptionRequest(images=(draw(*lines),)))
    assert answer.text == reader(draw(*lines))
    assert not any("wide gaps" in note for note in answer.notes or ())


def test_columns_are_noted(reader: Reader, tmp_path: Path) -> None:
    """Where a gap is as wide as between columns; lines below one another alone are usual."""
    image = Image.new("L", (600, 100), 255)
    pen = ImageDraw.Draw(image)
    for row, (left, right) in enumerate([("one", "two"), ("three", "four")]):
        pen.text((10, 10 + 44 * row), left, fill=0, font=ImageFont.load_default(26))
        pen.text((420, 10 + 44 * row), right, fill=0, font=ImageFont.load_default(26))
    image.save(tmp_path / "table.png")
    (answer,) = reader.answer(CaptionRequest(images=(tmp_path / "table.png",)))
    assert any("columns of text and tables are read across" in note for note in answer.notes or ())


def test_an_answer_tells_characters_and_alternatives(reader: Reader, draw: Draw) -> None:
    request = CaptionRequest(images=(draw("seven"),), n_best=3, probabilities=True)
    (answer,) = reader.answer(request)
    assert answer.language == "en"
    assert answer.n_best is not None
    assert answer.text == answer.n_best[0].text
    scores = [each.score for each in answer.n_best]
    assert len(scores) == len({each.text for each in answer.n_best}) == 3
    assert scores == sorted(scores, reverse=True)
    for each in answer.n_best:
        for token in each.tokens or ():
            assert each.text[token.begin : token.end] == token.token
            assert 0 <= token.probability <= 1


def test_what_is_read_does_not_depend_on_the_other_images(reader: Reader, draw: Draw) -> None:
    paths = tuple(draw(text, name=f"{text}.png") for text in ("one", "two three four", "six"))
    assert reader(paths) == [reader(path) for path in paths]


@pytest.mark.parametrize("size", [(1, 1), (30_000, 1), (1, 30_000), (50, 50)])
def test_an_image_without_text_is_read_as_nothing(
    reader: Reader, tmp_path: Path, size: tuple[int, int]
) -> None:
    path = tmp_path / "empty.png"
    Image.new("L", size, 200).save(path)
    (answer,) = reader.answer(CaptionRequest(images=(path,)))
    assert answer.text == ""
    assert answer.notes == ("there is no text to be seen in it.",)


def test_a_line_of_30_000_pixels_is_read_in_pieces(reader: Reader, draw: Draw) -> None:
    with Image.open(draw("one two three ")) as image:
        part = np.asarray(image.crop((0, 0, 250, 40)))
    wide = np.tile(part, (1, 120))
    assert wide.shape[1] == 30_000
    (lines,) = reader.read([Image.fromarray(wide)])
    assert len(lines) == 1
    assert len(lines[0].text) > 600


def test_a_strip_is_refused_by_name(reader: Reader, tmp_path: Path) -> None:
    """Two rows of a photo that are stretched to the height of a line would be endless."""
    rows = np.full((6, 200_000), 255, dtype=np.uint8)
    for column in range(4):
        rows[1:5, column::9] = 0
    path = tmp_path / "strip.png"
    Image.fromarray(rows).save(path)
    (answer,) = reader.answer(CaptionRequest(images=(path,)))
    assert answer.text is None
    assert "strip.png" in str(answer.error)
    assert "times as wide as high" in str(answer.error)


def test_what_cannot_be_read_is_told_in_its_place(
    reader: Reader, draw: Draw, tmp_path: Path
) -> None:
    (tmp_path / "empty.jpg").write_bytes(b"")
    (tmp_path / "text.png").write_text("no image", encoding="utf-8")
    paths = [tmp_path / "empty.jpg", draw("one"), tmp_path / "text.png", tmp_path / "none.png"]
    first, second, third, fourth = reader.answer(CaptionRequest(images=tuple(paths)))
    assert "0 bytes" in str(first.error)
    assert second.text is not None
    assert "not an image" in str(third.error)
    assert "no file" in str(fourth.error)


def test_requests_that_a_reader_cannot_answer(reader: Reader, draw: Draw) -> None:
    with pytest.raises(UsageError, match="draws nothing: leave out `sample`"):
        reader.answer(CaptionRequest(images=(draw("one"),), temperature=2.0))
    with pytest.raises(UsageError, match="reads en, not 'ko'"):
        reader.answer(CaptionRequest(images=(draw("one"),), language="ko"))
    assert reader.answer(CaptionRequest(images=(draw("one"),), language="en"))[0].text is not None


def test_held_out_fonts_are_those_of_the_test_split(reader: Reader) -> None:
    with pytest.raises(UsageError, match="test split"):
        evaluate(reader, split="test")
    line = evaluate(reader, split="test", final=True)
    assert line["final"]
    assert line["lines"] >= 12
    assert set(line["all"]) == {"cer", "exact", "loss"}


def test_read_and_translate(reader: Reader, draw: Draw, tmp_path: Path) -> None:
    """Two models in a row; each answer has the text and its translation."""
    path = draw("one two", "three")
    found, missing = read(
        [path, tmp_path / "none.png"], model=reader, translator=str(trained("translator"))
    )
    assert found.text == reader(path)
    assert (found.language, found.to) == ("en", "de")
    assert found.translation
    assert found.translation.count("\n") == 1  # no line ends a sentence, so each is one
    assert missing.error is not None
    assert missing.to is None
    (alone,) = read([path], model=trained("reader"))
    assert alone.to_json().keys() == {"path", "text", "language", "notes"} - (
        set() if alone.notes else {"notes"}
    )


def test_a_translation_of_what_was_read_has_notes(reader: Reader, draw: Draw) -> None:
    """Those of the translator: words that it has never seen, of which none is a date."""
    (found,) = read([draw("one two", "three")], model=reader, translator="date-en-ko")
    told = "unlike what date-en-ko was trained on"
    assert any(note.startswith("line 1: ") and told in note for note in found.notes or ())


@pytest.mark.parametrize("noted", [False, True])
def test_a_note_follows_what_the_shipped_reader_can_do(noted: bool) -> None:
    """Of lines that it reads, and of the same lines where it gets a quarter or more wrong."""
    reader = load("read-ko")
    assert isinstance(reader, Reader)
    for text, most in (("Remove an attribute by name.", 3.4), ("The meeting begins at nine.", 5)):
        image = Image.new("L", (460, 52), 230)
        ImageDraw.Draw(image).text((10, 8), text, fill=50, font=ImageFont.load_default(28))
        blurred = image.filter(ImageFilter.GaussianBlur(most * noted))
        (lines,) = reader.read([blurred.convert("RGB")])
        best = combine([line.texts for line in lines], 1, [""])[0]
        assert (edit_distance(best.text, text) > len(text) / 4) is noted
        assert any("is unlike what" in each for each in reader.notes(lines)) is noted


def test_english_and_korean_are_translated_each_by_its_translator(tmp_path: Path) -> None:
    """The language is that of the text; one that is asked for already stays as it is."""
    image = Image.new("L", (420, 60), 255)
    pen = ImageDraw.Draw(image)
    pen.text((10, 14), "Where is the station?", fill=0, font=ImageFont.load_default(28))
    image.save(tmp_path / "sign.png")
    (korean,) = read([tmp_path / "sign.png"], to="ko")
    assert (korean.text, korean.language, korean.to) == ("Where is the station?", "en", "ko")
    assert korean.translation == load("en-ko", Translator)("Where is the station?")
    (same,) = read([tmp_path / "sign.png"], to="en")
    assert same.translation == same.text
    (named,) = read([tmp_path / "sign.png"], translator="en-ko")
    assert named.translation == korean.translation
    shutil.copy(Path(__file__).parents[2] / "docs" / "images" / "line.png", tmp_path)
    images = [tmp_path / "sign.png", tmp_path / "line.png", tmp_path / "none.png"]
    english, translated, missing = read(images, to="en")
    assert (english.translation, translated.language) == (english.text, "ko")
    assert translated.translation == load("ko-en", Translator)(translated.text or "")
    assert missing.error is not None
    assert (missing.to, missing.translation) == (None, None)
    with pytest.raises(UsageError, match="No shipped model translates from ko to 'fr'"):
        read([tmp_path / "sign.png"], to="fr")


def test_letters_that_are_none_are_left_out() -> None:
    """Unsure letters of Hangul alone, as in a landscape; a laugh, which is sure, is a text."""

    def line(text: str, probability: float) -> ReadLine:
        characters = tuple(ReadCharacter(each, probability) for each in text)
        return ReadLine((ReadText(characters, 0.0),), 0)

    assert not _is_text(line("\u1162\u11a8", 0.4))
    assert _is_text(line("\u110f\u110f\u110f", 0.99))
    assert _is_text(line("abc", 0.1))


@pytest.mark.parametrize("pair", [("ko", "en"), ("en", "ko"), ("en", "de"), ("de", "en")])
def test_what_was_read_is_translated_by_the_general_translator(pair: tuple[str, str]) -> None:
    """Not by one of dates, captions or documentation."""
    assert shipped_translator(*pair) == "-".join(pair)


def test_languages_have_to_fit(reader: Reader, draw: Draw) -> None:
    path = draw("one")
    with pytest.raises(
        UsageError, match=r"No shipped model translates from en to 'es'.*enko-ko-en"
    ):
        read([path], model=reader, to="es")
    with pytest.raises(UsageError, match="reads en and the translation is to be in fr"):
        read([path], model=reader, to="fr", translator=str(trained("translator")))
    with pytest.raises(UsageError, match="does not read: its task is 'translate'"):
        read([path], model=trained("translator"))
    with pytest.raises(UsageError, match="does not translate: its task is 'read'"):
        read([path], model=reader, to="de", translator=str(trained("reader")))


def test_a_captioner_reads_in_its_first_language(tmp_path: Path) -> None:
    (path,) = squares.write_files(tmp_path, 1)
    model = squares.trained("caption")
    (found,) = read([path], model=model, translator=str(trained("translator")))
    assert (found.language, found.to) == ("en", "de")
    assert found.translation is not None


def test_texts_of_lines_are_combined_by_probability() -> None:
    def text(characters: str, score: float) -> ReadText:
        return ReadText(tuple(ReadCharacter(each, 1.0) for each in characters), score)

    lines = [
        ReadLine((text("a", -1), text("b", -2)), 0),
        ReadLine((text("c", -1), text("d", -1.5)), 0),
        ReadLine((text("e", 0),), 1),
    ]
    found = combine([line.texts for line in lines], 3, separators(lines))
    assert [each.text for each in found] == ["a\nc\n\ne", "a\nd\n\ne", "b\nc\n\ne"]
    assert [each.score for each in found] == [-2, -2.5, -3]


def write_line_images(path: Path, count: int) -> None:
    """A table of drawn lines and their texts."""
    font = ImageFont.load_default(20)
    images, texts = [], numbers(count, 0)[0]
    for text in texts:
        image = Image.new("RGB", (round(font.getlength(text)) + 16, 30), "white")
        ImageDraw.Draw(image).text((8, 2), text, fill=(40, 0, 90), font=font)
        images.append({"bytes": png(image), "path": None})
    pq.write_table(pa.table({"image": images, "caption": texts}), path)


OWN = READ.replace(
    READ[READ.index('train = "read') : READ.index("[model]")],
    'train = "lines.parquet"\nhold_out = 6\nlanguage = "en"\n\n',
)


def test_a_reader_learns_from_images_of_lines(tmp_path: Path) -> None:
    write_line_images(tmp_path / "lines.parquet", 40)
    recipe = write_recipe(tmp_path / "own.toml", OWN, tmp_path)
    line = run(recipe, tmp_path / "out", "train.steps=3")
    assert line["lines"] == 6
    found = load(tmp_path / "out")
    assert isinstance(found(Image.new("L", (100, 32), 255)), str)
    assert "render" not in (tmp_path / "out" / "recipe.toml").read_text(encoding="utf-8")


def test_a_reader_of_drawn_lines_is_measured_on_images_of_lines(
    reader: Reader, tmp_path: Path
) -> None:
    write_line_images(tmp_path / "lines.parquet", 5)
    line = evaluate(reader, data=str(tmp_path / "lines.parquet"))
    assert line["lines"] == 5
    Image.new("L", (60, 32), 255).save(tmp_path / "a.png")
    (tmp_path / "a.txt").write_text("one", encoding="utf-8")
    assert evaluate(reader, data=str(tmp_path))["lines"] == 1


def test_a_reader_starts_from_another(tmp_path: Path) -> None:
    """Weights and letters are taken over; letters that are new get rows of their own."""
    write_line_images(tmp_path / "lines.parquet", 40)
    own = OWN.replace("[model]", f"[start]\nmodel = '{trained('reader')}'\n\n[model]")
    recipe = write_recipe(tmp_path / "own.toml", own, tmp_path)
    line = run(recipe, tmp_path / "out", "train.steps=2", "train.learning_rate=1e-5")
    assert line["value"] < 60  # much is read from the beginning, though drawn otherwise
    first, second = load(trained("reader")), load(tmp_path / "out")
    assert isinstance(first, Reader)
    assert isinstance(second, Reader)
    assert second.characters.alphabet.startswith(first.characters.alphabet)
    record = json.loads((tmp_path / "out" / "start.json").read_text(encoding="utf-8"))
    assert "output.weight" in record["reader"]["tensors"]
    with pytest.raises(RecipeError, match=r"do not fit model.preset = 'line-reader' \(columns"):
        run(recipe, tmp_path / "other", "model.dim=16")
    with pytest.raises(RecipeError, match=r"task of .* is 'translate'; a reader starts from a"):
        run(recipe, tmp_path / "third", f"start.model={trained('translator')}")


def test_images_of_lines_that_do_not_fit(tmp_path: Path) -> None:
    write_line_images(tmp_path / "lines.parquet", 12)
    recipe = write_recipe(tmp_path / "own.toml", OWN, tmp_path)
    with pytest.raises(DataError, match=r"none of 6 images is a line.*image.max_width"):
        run(recipe, tmp_path / "a", "image.max_width=32")
    with pytest.raises(DataError, match="fewer columns of 64 pixels than"):
        run(recipe, tmp_path / "b", "model.column_strides=[8, 8, 1, 1]")
    with pytest.raises(RecipeError, match="no validation data"):
        run(recipe, tmp_path / "c", "data.hold_out=0")


def test_mistakes_in_recipes_are_explained(tmp_path: Path) -> None:
    write_texts_to_read(tmp_path)
    recipe = write_recipe(tmp_path / "read.toml", READ, tmp_path)
    with pytest.raises(RecipeError, match="has no font 'Tow': did you mean 'Two'"):
        run(recipe, tmp_path / "a", 'data.held_out_fonts=["Tow"]')
    with pytest.raises(RecipeError, match=r"Every font .* is held out"):
        run(recipe, tmp_path / "b", 'data.held_out_fonts=["One", "Two"]')
    with pytest.raises(NotFoundError, match="apt install fonts-nanum"):
        run(recipe, tmp_path / "c", "data.fonts=nowhere")
    with pytest.raises(RecipeError, match="held_out_fonts without fonts"):
        read_recipe(recipe, ["data.fonts="])
    with pytest.raises(RecipeError, match="the least cannot be more than the most"):
        read_recipe(recipe, ["render.min_characters=50"])
    with pytest.raises(RecipeError, match="the smallest cannot be larger"):
        read_recipe(recipe, ["render.max_size=0.3"])
    with pytest.raises(RecipeError, match="do not divide"):
        read_recipe(recipe, ["image.height=24"])


def test_a_run_goes_on_bitwise(tmp_path: Path) -> None:
    """Twelve steps at once, and the same stopped after six: the same weights."""
    write_texts_to_read(tmp_path)
    recipe = write_recipe(tmp_path / "read.toml", READ, tmp_path)
    short = ("train.steps=12", "train.save_every=6", "train.validate_every=6")
    run(recipe, tmp_path / "whole", *short)
    shutil.copytree(tmp_path / "whole", tmp_path / "half")
    wanted = (tmp_path / "whole" / "model.safetensors").read_bytes()
    for state in sorted((tmp_path / "half" / "state").iterdir())[1:]:
        state.unlink() if state.is_file() else shutil.rmtree(state)
    (tmp_path / "half" / "model.safetensors").write_bytes(b"")
    run(recipe, tmp_path / "half", *short, resume=True)
    assert (tmp_path / "half" / "model.safetensors").read_bytes() == wanted


def test_two_fonts_with_one_design_are_two_groups(tmp_path: Path) -> None:
    write_texts_to_read(tmp_path)
    write_fonts(tmp_path / "fonts")
    recipe = write_recipe(tmp_path / "read.toml", READ, tmp_path)
    line = run(recipe, tmp_path / "out", "train.steps=2", "data.held_out_fonts=[]")
    assert set(line["groups"]) == {"One", "Two"}
    json.dumps(line)

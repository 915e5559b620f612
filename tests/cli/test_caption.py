"""caption, classify --labels, and look at a caption: answers on stdout, mistakes explained."""

import json
import re
from pathlib import Path

import pytest
from PIL import Image

from tests import squares
from tests.cli.conftest import Call
from tests.made import image_size
from tests.schema import errors


@pytest.fixture
def images(tmp_path: Path) -> list[Path]:
    """Four images in a folder: red left, right and top, green left."""
    return squares.write_files(tmp_path / "images")


@pytest.fixture
def model() -> tuple[str, Path]:
    return ("--model", squares.trained("caption"))


@pytest.fixture
def matcher() -> tuple[str, Path]:
    return ("--model", squares.trained("match"))


KOREAN = [squares.texts(number)["ko"][0] for number in range(4)]

# --- caption ------------------------------------------------------------------------------------


def test_a_line_for_each_image(call: Call, model: tuple[str, Path], images: list[Path]) -> None:
    """In order, in the language that is asked for, and nothing else."""
    wanted = "".join(f"{text}\n" for text in KOREAN)
    assert call("caption", *model, "--language", "ko", *images) == (0, wanted, "")
    assert call("caption", *model, "--language", "ko", images[0].parent).out == wanted
    stdin = "".join(f"{path}\n" for path in images).encode()
    assert call("caption", *model, "--language", "ko", stdin=stdin).out == wanted
    assert call("caption", *model, stdin=b"") == (0, "", "")
    english = call("caption", *model, *images).out.splitlines()
    for number, line in enumerate(english):
        assert line in squares.texts(number)["en"]


def test_json(call: Call, model: tuple[str, Path], images: list[Path]) -> None:
    """An object a line; with probabilities the tokens, and several texts if they are wanted."""
    code, out, err = call("caption", *model, "--json", "--n-best", "2", *images)
    assert (code, err) == (0, "")
    first, *others = map(json.loads, out.splitlines())
    assert len(others) == 3
    assert first.keys() == {"path", "text", "language", "n_best"}
    assert first["path"] == str(images[0])
    assert {each["text"] for each in first["n_best"]} == {*squares.texts(0)["en"]}
    out = call("caption", *model, "--json", "--probabilities", images[0]).out
    (best,) = json.loads(out)["n_best"]
    assert best["tokens"][0].keys() == {"token", "probability", "begin", "end"}
    found = call("caption", *model, "--probabilities", images[0])
    assert found.code == 2
    assert "add --json" in found.err


def test_n_best_and_search(call: Call, model: tuple[str, Path], images: list[Path]) -> None:
    """Scores in front; sampling by seed; a greedy search is one beam."""
    lines = call("caption", *model, "--n-best", "3", images[0]).out.splitlines()
    scores, texts = zip(*(line.split("\t") for line in lines), strict=True)
    assert len(lines) == 3
    assert [*map(float, scores)] == sorted(map(float, scores), reverse=True)
    assert {*texts[:2]} == {*squares.texts(0)["en"]}
    greedy = call("caption", *model, "--beam", "1", images[0]).out
    assert greedy.removesuffix("\n") in squares.texts(0)["en"]
    hot = ("--sample", "--temperature", "9")
    first, again, other = (
        call("caption", *model, *hot, "--seed", seed, images[0]).out for seed in ("1", "1", "2")
    )
    assert first == again != other
    found = call("caption", *model, "--sample", "--beam", "2", images[0])
    assert found.code == 2
    assert "leave out --beam" in found.err


def test_what_cannot_be_read(call: Call, model: tuple[str, Path], images: list[Path]) -> None:
    """Its line is empty, so that line N belongs to image N; the others are answered."""
    bad = images[0].with_name("bad.png")
    bad.write_bytes(b"x")
    code, out, err = call("caption", *model, "--language", "ko", images[0], bad, images[1])
    assert (code, out) == (1, f"{KOREAN[0]}\n\n{KOREAN[1]}\n")
    assert str(bad) in err
    code, out, err = call("caption", *model, "none.png", bad)
    assert (code, out) == (2, "\n\n")
    assert "none.png" in err
    lines = call("caption", *model, "--json", bad, images[0]).out.splitlines()
    assert json.loads(lines[0]).keys() == {"path", "error"}
    assert "text" in json.loads(lines[1])


def test_folders(call: Call, model: tuple[str, Path], images: list[Path], tmp_path: Path) -> None:
    """All images below; one without any is named, and costs the others nothing."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "images" / "notes.txt").write_text("no image")
    code, out, err = call("caption", *model, "--language", "ko", "empty", "images")
    assert (code, out) == (1, "\n" + "".join(f"{text}\n" for text in KOREAN))
    assert "empty has no images" in err


@pytest.mark.parametrize("size", [(1, 1), (30_000, 1), (1, 30_000)])
def test_images_of_any_shape(
    call: Call, model: tuple[str, Path], size: tuple[int, int], tmp_path: Path
) -> None:
    Image.new("L", size, 200).save(tmp_path / "odd.png")
    code, out, err = call("caption", *model, "odd.png")
    assert (code, err) == (0, "")
    assert out.count("\n") == 1


def test_mistakes(
    call: Call, model: tuple[str, Path], images: list[Path], translator: Path
) -> None:
    """A language that the model does not write; a model that writes no captions."""
    code, out, err = call("caption", *model, "--language", "fr", images[0])
    assert (code, out) == (2, "")
    assert "--language is 'fr'. caption writes en, ko." in err
    code, out, err = call("caption", "--model", translator, images[0])
    assert (code, out) == (2, "")
    assert "does not write texts for images" in err
    code, out, err = call("translate", *model, "red left")
    assert (code, out) == (2, "")
    assert "manyheads caption" in err


# --- classify --labels --------------------------------------------------------------------------

LABELS = ("--labels", "red left, red right,red top,green left")


def test_classes_in_words(call: Call, matcher: tuple[str, Path], images: list[Path]) -> None:
    """As of any classifier; spaces around the commas are not part of a class."""
    code, out, err = call("classify", *matcher, *LABELS, "--top", "2", *images)
    assert (code, err) == (0, "")
    best = [line.split("\t")[1].rpartition(" ")[0] for line in out.splitlines()]
    names = ["red left", "red right", "red top", "green left"]
    for line, name, path in zip(out.splitlines(), names, images, strict=True):
        assert re.fullmatch(rf"{path}\t{name} \d+\.\d%  [a-z ]+ \d+\.\d%", line)
    assert len(best) == 4
    line = call("classify", *matcher, *LABELS, "--json", images[3]).out
    assert json.loads(line)["classes"][0]["label"] == "green left"


def test_templates_around_the_classes(
    call: Call, matcher: tuple[str, Path], images: list[Path]
) -> None:
    """Several are averaged."""
    sentences = ("--template", "{} left", "--template", "left: {}")
    colours = ("--labels", "red,green,blue,white")
    out = call("classify", *matcher, *colours, *sentences, "--top", "1", *images[::3]).out
    assert [line.split("\t")[1].split()[0] for line in out.splitlines()] == ["red", "green"]
    found = call("classify", *matcher, *colours, "--template", "left", images[0])
    assert found.code == 2
    assert "--template has 'left': write {}" in found.err


def test_a_table(call: Call, matcher: tuple[str, Path], images: list[Path]) -> None:
    """As many columns as classes, if fewer than --top."""
    header, *rows = call("classify", *matcher, *LABELS, "--csv", *images).out.splitlines()
    assert header == "path,label1,p1,label2,p2,label3,p3,label4,p4"
    assert len(rows) == 4


def test_labels_that_cannot_be(
    call: Call, matcher: tuple[str, Path], classifier: Path, images: list[Path]
) -> None:
    """None, one alone, one twice, one empty; or for a model that has its own."""
    for given in ([], ["--labels", ","], ["--labels", "red"], ["--labels", "red,,blue"]):
        code, out, err = call("classify", *matcher, *given, images[0])
        assert (code, out) == (2, "")
        assert "--labels is" in err
        assert "such as cat,dog,house" in err
    for option in (LABELS, ("--template", "{}")):
        code, out, err = call("classify", "--model", classifier, *option, images[0])
        assert (code, out) == (2, "")
        assert "has classes of its own: leave out --labels and --template" in err


def test_labels_beside_what_cannot_be_read(
    call: Call, matcher: tuple[str, Path], images: list[Path], tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad.png").write_bytes(b"x")
    code, out, err = call("classify", *matcher, *LABELS, "empty", "bad.png", images[0])
    assert code == 1
    assert len(out.splitlines()) == 1
    assert "empty has no images" in err
    assert "bad.png" in err
    assert call("classify", *matcher, *LABELS, "none.png").code == 2


def test_charts_are_for_classifiers(call: Call, matcher: tuple[str, Path]) -> None:
    code, _, err = call("evaluate", *matcher, "--plots", "charts")
    assert code == 2
    assert "--plots is for classifiers" in err


# --- look ---------------------------------------------------------------------------------------


def look(call: Call, *words: str | Path) -> str:
    code, out, err = call("look", squares.trained("caption"), *words)
    assert code == 0, err
    return out


def test_each_word_on_the_image(call: Call, images: list[Path]) -> None:
    """Words in the place of classes, each with its probability and where the decoder looked."""
    view = json.loads(look(call, images[0], "--language", "ko", "--json"))
    assert (view["answer"], view["path"]) == (KOREAN[0], str(images[0]))
    assert errors(view) == []
    assert [each["label"] for each in view["classes"]] == KOREAN[0].split()
    assert all(each["probability"] > 0.5 and each["explained"] for each in view["classes"])
    words = [each for each in view["overlays"] if each["target"] is not None]
    assert [each["name"] for each in words] == [f"cross-attention: {w}" for w in KOREAN[0].split()]
    for each in words:
        grid = view["grids"][each["grid"]]
        assert (grid["rows"], grid["columns"]) == (2, 2)
        assert len(each["weights"]) == 4
        assert max(each["weights"]) == 1.0
    assert any("given the image and the words before it" in note for note in view["notes"])
    out = look(call, images[0], "--language", "ko")
    assert out.splitlines()[0] == KOREAN[0]
    assert [line.split()[1] for line in out.splitlines()[1:3]] == KOREAN[0].split()


def test_a_caption_of_ones_own(call: Call, images: list[Path]) -> None:
    """Scored token by token: a wrong word is improbable, and looked at where it would be."""
    told = json.loads(look(call, images[0], "--reference", "red right", "--json"))
    assert told["answer"] == "red right"
    red, right = told["classes"]
    assert (red["label"], right["label"]) == ("red", "right")
    assert right["probability"] < 0.1 < red["probability"]
    assert "How surprised the model was by each word of your caption" in json.dumps(
        told["figures"][0]
    )
    twice = json.loads(look(call, images[0], "--reference", "red red red", "--json"))
    labels = [each["label"] for each in twice["classes"]]
    assert labels == ["red", "red (2)", "red (3)"]
    out = look(call, images[0], "--reference", "red right")
    assert "How surprised the model was by each word of your caption" in out


def test_pages_and_pictures(call: Call, images: list[Path], tmp_path: Path) -> None:
    look(call, images[0], "--out", "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "cross-attention: " in page
    assert "caption: 0.png" in page
    look(call, images[0], "--out", "picture.png", "--figures", "figures.png")
    for name in ("picture.png", "figures.png"):
        assert min(image_size(tmp_path / name)) > 100
    look(call, images[0], "--out", "view.json")
    assert errors(json.loads((tmp_path / "view.json").read_text())) == []


def test_shapes(call: Call, images: list[Path]) -> None:
    """From the pixels through the encoder and the bridge to the logits."""
    out = look(call, images[0], "--shapes")
    for part in ("encoder", "bridge", "decoder", "output"):
        assert part in out


def test_shapes_of_a_matcher(call: Call, images: list[Path]) -> None:
    """Of the tower that an input goes through."""
    model = squares.trained("match")
    for given, part, other in ((images[0], "images", "texts"), ("red left", "texts", "images")):
        lines = json.loads(call("look", model, given, "--shapes", "--json").out)
        towers = {each["name"].split(".")[0] for each in lines}
        assert part in towers
        assert other not in towers


def test_a_language_of_a_region(call: Call, model: tuple[str, Path], images: list[Path]) -> None:
    """It is taken as its language."""
    wanted = call("caption", *model, images[0], "--language", "ko").out
    assert call("caption", *model, images[0], "--language", "ko-KR").out == wanted


def test_a_name_of_two_lines(call: Call, matcher: tuple[str, Path], images: list[Path]) -> None:
    """It is written on one."""
    name = images[0].with_name("two\nlines.png")
    name.write_bytes(images[0].read_bytes())
    (line,) = call("classify", *matcher, *LABELS, name).out.splitlines()
    assert "two\\nlines.png\t" in line


def test_images_to_search_among_need_texts(
    call: Call, matcher: tuple[str, Path], images: list[Path]
) -> None:
    """Or none of them would count as right; what to give is said."""
    found = call("evaluate", *matcher, "--among", images[0].parent)
    assert found.code == 1
    assert "Images for --among need texts, too" in found.err


def test_what_cannot_be_looked_at(
    call: Call, images: list[Path], classifier: Path, translator: Path, tmp_path: Path
) -> None:
    """Languages where there is none, classes where there are words, nothing to show."""
    captioner = squares.trained("caption")
    for words, message in (
        ((classifier, images[0], "--language", "ko"), "does not choose a language"),
        ((translator, "one", "--language", "ko"), "does not choose a language"),
        ((classifier, images[0], "--reference", "red"), "no use for a reference"),
        ((captioner, images[0], "--language", "fr"), "--language is 'fr'. caption writes en, ko"),
        (
            (captioner, images[0], "--target", "red"),
            "has no classes to explain: leave out --target",
        ),
        ((captioner, images[0], "--baseline", "blur"), "leave out --target and --baseline"),
        ((captioner, images[0], "--reference", ""), "The caption is empty"),
        ((captioner, images[0], "--word", "red"), "which have no words"),
        ((captioner, images[0], "--steps"), "does not search for a translation"),
        ((captioner, "none.png"), "none.png"),
    ):
        code, out, err = call("look", *words)
        assert (code, out) == (2, ""), words
        assert message in err
    (tmp_path / "bad.png").write_bytes(b"x")
    assert call("look", captioner, "bad.png").code == 1
    assert not (tmp_path / "look.html").exists()

"""What each verb answers: answers on stdout, remarks on stderr, JSON on demand."""

import csv
import json
import statistics
from pathlib import Path

import pytest
from PIL import Image

from manyheads import load
from manyheads.cli.look import model_for
from manyheads.data.images.digits import read_digits
from manyheads.tasks.translate.predictor import Translator
from tests.cli.conftest import Call
from tests.made import (
    CLASSIFY,
    TRANSLATE,
    half,
    image_size,
    numbers,
    read_jsonl,
    write_halves,
    write_lines,
    write_numbers,
    write_recipe,
)
from tests.schema import errors

# --- translate ----------------------------------------------------------------------------------


def test_translate_texts(call: Call, translator: Path) -> None:
    """One answer a line, in order, and nothing else."""
    found = call("translate", "--model", translator, "nine", "three four", "nine")
    assert found == (0, "".join(f"{text}\n" for text in expected(translator)), "")


def expected(translator: Path) -> list[str]:
    predictor = load(translator)
    assert isinstance(predictor, Translator)
    return predictor(["nine", "three four", "nine"])


def test_translate_stdin(call: Call, translator: Path) -> None:
    """The lines of stdin, of Unix or of Windows, the last one with an end or without."""
    wanted = "".join(f"{text}\n" for text in expected(translator))
    for stdin in (b"nine\nthree four\nnine\n", b"nine\r\nthree four\r\nnine"):
        assert call("translate", "--model", translator, stdin=stdin) == (0, wanted, "")


def test_translate_stdin_keeps_empty_lines(call: Call, translator: Path) -> None:
    """Line N of the output belongs to line N of the input."""
    nine, three, _ = expected(translator)
    found = call("translate", "--model", translator, stdin=b"\nnine\n  \nthree four\n\n")
    assert found.out == f"\n{nine}\n\n{three}\n\n"


def test_translate_stdin_splits_at_line_feeds_only(call: Call, translator: Path) -> None:
    """A separator of Unicode or a form feed inside a line is not the end of it."""
    found = call("translate", "--model", translator, stdin="nine\u2028nine\x0cnine\n".encode())
    assert found.code == 0
    assert found.out.count("\n") == 1


def test_lines_before_a_bad_one_are_answered(call: Call, translator: Path) -> None:
    """A byte that is not UTF-8 in line 2 does not cost line 1 its answer."""
    nine = expected(translator)[0]
    found = call("translate", "--model", translator, stdin=b"nine\n\xff\n")
    assert (found.code, found.out) == (1, f"{nine}\n")
    assert "line 2" in found.err


def test_translate_nothing(call: Call, translator: Path) -> None:
    """No lines in, no lines out."""
    assert call("translate", "--model", translator, stdin=b"") == (0, "", "")


def test_a_byte_order_mark_on_stdin_is_not_text(call: Call, translator: Path) -> None:
    """As in a file: Windows puts one in front."""
    nine = expected(translator)[0]
    found = call("translate", "--model", translator, stdin=b"\xef\xbb\xbfnine\n")
    assert found.out == f"{nine}\n"


def test_translate_json(call: Call, translator: Path) -> None:
    """An object a line: source, translation, and the search's account."""
    found = call(
        "translate", "--model", translator, "--json", "--n-best", "2", "nine", "three four"
    )
    lines = [json.loads(line) for line in found.out.splitlines()]
    assert [line["source"] for line in lines] == ["nine", "three four"]
    assert [line["translation"] for line in lines] == expected(translator)[:2]
    for line in lines:
        assert len(line["n_best"]) == 2
        assert line["n_best"][0].keys() == {"text", "score", "finished"}


def test_translate_n_best(call: Call, translator: Path) -> None:
    """Score and text, the best first."""
    found = call("translate", "--model", translator, "--n-best", "2", "nine")
    scores, texts = zip(*(line.split("\t") for line in found.out.splitlines()), strict=True)
    assert list(map(float, scores)) == sorted(map(float, scores), reverse=True)
    assert texts[0] == expected(translator)[0]


def test_translate_beam(call: Call, translator: Path) -> None:
    """1 is greedy; without it, the recipe's 4 find something else for some sentences."""
    predictor = load(translator)
    assert isinstance(predictor, Translator)
    texts, _ = numbers(64, seed=7)
    greedy = [best.text for (best,) in predictor.translate(texts, beams=1)]
    assert greedy != predictor(texts)
    found = call("translate", "--model", translator, "--beam", "1", *texts)
    assert found.out.splitlines() == greedy
    assert call("translate", "--model", translator, *texts).out.splitlines() == predictor(texts)


# --- classify -----------------------------------------------------------------------------------


@pytest.fixture
def images(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / "b.png", tmp_path / "a.png"]
    for label, path in enumerate(paths):
        half(label, 9).save(path)
    return paths


def test_classify(call: Call, classifier: Path, images: list[Path]) -> None:
    """A line an image, in the order given: path, tab, classes with probabilities."""
    code, out, err = call("classify", "--model", classifier, *images)
    assert (code, err) == (0, "")
    lines = [line.split("\t") for line in out.splitlines()]
    assert [path for path, _ in lines] == [str(path) for path in images]
    for _, classes in lines:
        assert {"left", "right"} <= set(classes.split())
        assert "%" in classes


def test_classify_a_folder(call: Call, classifier: Path, images: list[Path]) -> None:
    """All images in it, in order of their names."""
    out = call("classify", "--model", classifier, "--top", "1", images[0].parent).out
    assert [line.split("\t")[0] for line in out.splitlines()] == sorted(map(str, images))


def test_classify_json(call: Call, classifier: Path, images: list[Path]) -> None:
    """An object a line."""
    out = call("classify", "--model", classifier, "--json", *images).out
    lines = [json.loads(line) for line in out.splitlines()]
    assert [line["path"] for line in lines] == [str(path) for path in images]
    for line in lines:
        assert sum(guess["probability"] for guess in line["classes"]) == pytest.approx(1)


def test_classify_csv(call: Call, classifier: Path, images: list[Path]) -> None:
    """A header, and the classes from the likeliest on."""
    out = call("classify", "--model", classifier, "--csv", "--top", "9", *images).out
    header, *rows = csv.reader(out.splitlines())
    assert header == ["path", "label1", "p1", "label2", "p2"]
    assert [row[0] for row in rows] == [str(path) for path in images]
    for row in rows:
        assert float(row[2]) + float(row[4]) == pytest.approx(1, abs=1e-3)
    assert call("classify", "--csv", "--json", *images).code == 2


def test_classify_paths_from_stdin(call: Call, classifier: Path, images: list[Path]) -> None:
    """One a line, as `find` prints them."""
    lines = "".join(f"{path}\n" for path in images).encode()
    found = call("classify", "--model", classifier, stdin=lines)
    assert found.out == call("classify", "--model", classifier, *images).out


def test_classify_beside_an_empty_folder(call: Call, classifier: Path, images: list[Path]) -> None:
    """The folder is named on stderr, all images before and after it are classified."""
    empty = images[0].with_name("empty")
    empty.mkdir()
    three = (images[0], empty, images[1])
    found = call("classify", "--model", classifier, *three)
    assert found.code == 1
    assert [line.split("\t")[0] for line in found.out.splitlines()] == [str(p) for p in images]
    assert f"{empty} has no images" in found.err
    lines = call("classify", "--model", classifier, "--json", *three).out.splitlines()
    assert "error" in json.loads(lines[1])


def test_classify_what_can_be_read(call: Call, classifier: Path, images: list[Path]) -> None:
    """A bad image between good ones: named on stderr, in JSON also where its answer would be."""
    bad = images[0].with_name("bad.png")
    bad.write_bytes(b"")
    three = (images[0], bad, images[1])
    found = call("classify", "--model", classifier, *three)
    assert found.code == 1
    assert [line.split("\t")[0] for line in found.out.splitlines()] == [str(p) for p in images]
    assert f"{bad} cannot be read as an image: it is empty" in found.err
    lines = [
        json.loads(line)
        for line in call("classify", "--model", classifier, "--json", *three).out.splitlines()
    ]
    assert [line["path"] for line in lines] == [str(path) for path in three]
    assert "empty" in lines[1]["error"]
    assert call("classify", "--model", classifier, images[0], "none.png").code == 2


def test_evaluate_images(call: Call, own_classifier: Path, tmp_path: Path) -> None:
    """Interval, classes, what is taken for what; charts on demand."""
    found = call("evaluate", "--model", own_classifier, "--plots", "charts")
    assert found.code == 0
    assert "95% within" in found.out
    for word in ("precision", "recall", "is / said", "ece"):
        assert word in found.out
    for name in ("reliability.png", "confusion.png"):
        with Image.open(tmp_path / "charts" / name) as chart:
            assert min(chart.size) > 200


# --- Shipped models -----------------------------------------------------------------------------


def test_default_models(call: Call, tmp_path: Path) -> None:
    """Contracts: English becomes German and digits are read without a word about models."""
    found = call("translate", "A man is riding a bicycle.")
    assert found == (0, "Ein Mann fährt Fahrrad.\n", "")
    read_digits().image(0).resize((80, 80)).save(tmp_path / "zero.png")
    found = call("classify", "--top", "1", "zero.png")
    assert found.code == 0
    assert found.out.startswith("zero.png\t0 ")


def test_fewer_different_translations_than_asked_for(call: Call) -> None:
    """Said on stderr, so that whoever counts lines is warned."""
    found = call(
        "translate", "--model", "date-en-ko", "--n-best", "3", "--diverse", "0.5", "Nov 20, 2026"
    )
    assert found.code == 0
    count = len(found.out.splitlines())
    assert (count < 3) == (f"found {count} different translations, not 3" in found.err)


# --- evaluate -----------------------------------------------------------------------------------


def test_evaluate(call: Call, own_translator: Path) -> None:
    """Model, data, score and signature; logged in the folder."""
    code, out, _ = call("evaluate", "--model", own_translator)
    assert code == 0
    assert "8 pairs" in out
    assert "bleu" in out
    assert "tok:13a" in out
    assert len(read_jsonl(own_translator / "evaluations.jsonl")) == 2


def test_evaluate_json(call: Call, own_classifier: Path) -> None:
    """The logged line, and the model it belongs to."""
    found = json.loads(call("evaluate", "--model", own_classifier, "--json").out)
    assert found.pop("model") == str(own_classifier)
    assert found == read_jsonl(own_classifier / "evaluations.jsonl")[-1]


def test_evaluate_other_data(call: Call, own_translator: Path, tmp_path: Path) -> None:
    """From the current folder."""
    write_lines(tmp_path / "mine.tsv", ["nine\tneun", "two\tzwei"])
    found = json.loads(
        call("evaluate", "--model", own_translator, "--data", "mine.tsv", "--json").out
    )
    assert (found["data"], found["pairs"]) == ("mine.tsv", 2)


def test_evaluate_the_test_split(call: Call, own_translator: Path) -> None:
    """A wrong call without --final."""
    code, out, err = call("evaluate", "--model", own_translator, "--split", "test")
    assert (code, out) == (2, "")
    assert "--final" in err
    assert call("evaluate", "--model", own_translator, "--split", "test", "--final").code == 0
    assert read_jsonl(own_translator / "evaluations.jsonl")[-1]["final"] is True


# --- look ---------------------------------------------------------------------------------------


def test_look_at_a_sentence(call: Call, translator: Path, tmp_path: Path) -> None:
    """A PNG, and the clearest map in the terminal."""
    code, out, err = call("look", translator, "three four", "--out", tmp_path / "map.png")
    assert code == 0
    assert out.startswith(expected(translator)[1])
    assert "%" in out or any(block in out for block in "░▒▓█")
    assert f"wrote {tmp_path / 'map.png'}" in err
    assert min(image_size(tmp_path / "map.png")) > 200


def test_look_at_an_image(call: Call, classifier: Path, images: list[Path], tmp_path: Path) -> None:
    """A page in the current folder, the classes in the terminal."""
    code, out, err = call("look", classifier, images[0])
    assert code == 0
    assert "left" in out
    assert "wrote look.html" in err
    assert (tmp_path / "look.html").read_bytes().startswith(b"<!doctype html>")


@pytest.mark.parametrize(
    ("given", "model"),
    [("How are you?", "en-de"), ("안녕하세요", "ko-en"), ("Wie geht es dir?", "de-en")],
)
def test_look_chooses_a_translator_of_the_language(call: Call, given: str, model: str) -> None:
    assert json.loads(call("look", given, "--json").out)["model"] == model


def test_look_needs_an_input(call: Call, tmp_path: Path) -> None:
    """A word alone, and a folder, are taken for a model; an image has a classifier."""
    assert "Missing argument 'INPUT'" in call("look", "en-de").err
    assert model_for("docs/images/seven.png") == ["cifar10-cct-2-3x2"]
    (tmp_path / "my run").mkdir()
    assert model_for(str(tmp_path / "my run")) == []


def test_look_tells_what_to_note_of_the_answer(call: Call) -> None:
    """As the command that only answers does."""
    text = "Teh qick brwn fox jmps at 7:30 pm."
    notes = json.loads(call("look", "en-de", text, "--json").out)["notes"]
    answer = json.loads(call("translate", text, "--json").out)["notes"]
    assert len(answer) >= 2
    assert notes[: len(answer)] == answer


def test_a_file_is_not_translated_as_a_text_in_silence(call: Call, tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("How are you?", encoding="utf-8")
    assert "--file note.txt translates what is in it" in call("translate", "note.txt").err
    assert call("translate", "가" * 100).code == 0  # longer than the name of a file may be


def test_look_takes_the_place_of_no_page_without_a_word(
    call: Call, translator: Path, tmp_path: Path
) -> None:
    """Without --out another name is taken; with it, the message says that there was a file."""
    assert "wrote look.html" in call("look", translator, "three four").err
    first = (tmp_path / "look.html").read_bytes()
    assert "wrote look-2.html" in call("look", translator, "nine").err
    assert (tmp_path / "look.html").read_bytes() == first
    assert "replaced look.html" in call("look", translator, "nine", "--out", "look.html").err
    assert (tmp_path / "look.html").read_bytes() != first


def test_look_json(
    call: Call, translator: Path, classifier: Path, images: list[Path], tmp_path: Path
) -> None:
    """The view as data, and no image unless asked for."""
    found = json.loads(call("look", translator, "three four", "--json").out)
    assert errors(found) == []
    assert found["text"] == "three four"
    assert found["source"][-1] == "</s>"
    assert found["translation"] == expected(translator)[1]
    maps = {each["kind"]: each for each in found["maps"]}
    for text, spans in (
        ("three four", maps["decoder cross"]["column_spans"]),
        (found["translation"], maps["decoder cross"]["row_spans"]),
    ):
        assert spans[-1] is None  # the end is no text
        assert "".join(text[b:e] for b, e in filter(None, spans)) == text.replace(" ", "")
    found = json.loads(call("look", classifier, images[0], "--json").out)
    assert found["path"] == str(images[0])
    assert errors(found) == []
    assert not (tmp_path / "look.html").exists()


def test_look_writes_what_the_name_says(call: Call, translator: Path, tmp_path: Path) -> None:
    """A page, or the same JSON as on the terminal; another ending is answered with these."""
    printed = call("look", translator, "three four", "--json", "--out", "new/look.html").out
    assert (tmp_path / "new" / "look.html").exists()
    assert call("look", translator, "three four", "--out", "look.json").code == 0
    assert json.loads((tmp_path / "look.json").read_text(encoding="utf-8")) == json.loads(printed)
    code, out, err = call("look", translator, "three four", "--out", "look.jpg")
    assert (code, out) == (2, "")
    assert "'look.jpg' does not say what to write: give a name that ends in .html" in err


def test_look_shapes(call: Call, translator: Path, classifier: Path, images: list[Path]) -> None:
    """The walk of shapes through either model, as text or as JSON."""
    for model, given in ((translator, "three four"), (classifier, images[0])):
        code, out, _ = call("look", model, given, "--shapes")
        assert code == 0
        assert "encoder" in out
        assert len(out.splitlines()) > 10
        lines = json.loads(call("look", model, given, "--shapes", "--json").out)
        assert len(lines) > 10


# --- info, models -------------------------------------------------------------------------------


def test_info_on_a_preset(call: Call) -> None:
    """Parameters counted exactly."""
    code, out, _ = call("info", "vit-b")
    assert code == 0
    assert "86,567,656" in out
    assert "86M (Dosovitskiy et al. 2021, table 1; B/16 without its head is 85.8M)" in out
    assert json.loads(call("info", "vit-b/32", "--json").out)["config"]["patch"] == 32


def test_info_on_a_folder(call: Call, translator: Path) -> None:
    """Task, training, measurements."""
    code, out, _ = call("info", translator)
    assert code == 0
    for part in ("translate", "transformer-tiny", "trained", "measured", "bleu"):
        assert part in out
    assert json.loads(call("info", translator, "--json").out)["task"] == "translate"


def test_models(call: Call) -> None:
    """Shipped models, recipes and presets by name."""
    out = call("models").out
    for name in ("date-en-ko", "digits", "multi30k-en-de-tiny", "transformer-base", "vit-h"):
        assert name in out
    # Two translators from English to German are told apart, and a narrow one is called so.
    for use in ("English dates to Korean ones", "Everyday English to German", "documentation and"):
        assert use in out
    found = json.loads(call("models", "--json").out)
    assert set(found) == {"models", "recipes", "presets", "uses", "licences"}
    assert "vit-ti" in found["presets"]
    assert list(found["licences"]) == list(found["uses"]) == found["models"]
    assert found["uses"]["read-ko"]["use"] == "manyheads read --model read-ko line.png"
    assert "CC BY 2.0 FR, attribution: tatoeba.org" in found["licences"]["enko-en-ko"]["enko"]
    assert out.count("\n  enko-en-ko: enko: Python documentation PSF-2.0") == 1


# --- train --------------------------------------------------------------------------------------


def test_train(call: Call, tmp_path: Path) -> None:
    """Progress on stderr, the score of the stored model on stdout, the folder by the recipe."""
    write_halves(tmp_path)
    write_recipe(tmp_path / "halves.toml", CLASSIFY, tmp_path)
    code, out, err = call("train", "halves.toml", "train.steps=6", "train.validate_every=3")
    assert code == 0
    assert "runs/halves" in out
    assert "accuracy" in out
    assert "step 3: val_accuracy" in err
    assert "step 6 of 6: loss " in err
    assert call("info", "runs/halves").code == 0


def test_train_json(call: Call, tmp_path: Path) -> None:
    """The evaluation as one object."""
    write_numbers(tmp_path, train=20, other=4)
    write_recipe(tmp_path / "numbers.toml", TRANSLATE, tmp_path)
    found = call("train", "numbers.toml", "train.steps=2", "--out", "deep/run", "--json")
    line = json.loads(found.out)
    assert line["model"] == "deep/run"
    assert line["metric"] == "bleu"


def test_train_fast(call: Call, tmp_path: Path) -> None:
    """Twenty steps with two validations, in a folder of their own; the recipe's own keys stay."""
    write_numbers(tmp_path, train=20, other=60)
    write_recipe(tmp_path / "numbers.toml", TRANSLATE, tmp_path)
    code, out, err = call("train", "numbers.toml", "--fast")
    assert code == 0
    assert "runs/numbers-fast" in out
    assert not (tmp_path / "runs/numbers").exists()
    lines = read_jsonl(tmp_path / "runs/numbers-fast/metrics.jsonl")
    assert [each["step"] for each in lines if any(key.startswith("val_") for key in each)] == [
        10,
        20,
    ]
    assert "step 20 of 20" in err
    assert json.loads(call("info", "runs/numbers-fast", "--json").out)["trained"]["steps"] == 20
    code, out, _ = call("train", "numbers.toml", "--fast", "train.steps=3", "--out", "shorter")
    assert code == 0  # what is asked for by name wins
    assert json.loads(call("info", "shorter", "--json").out)["trained"]["steps"] == 3


def test_train_seeds(call: Call, tmp_path: Path) -> None:
    """Three runs that differ in the seed; the score of each, their mean and their spread."""
    write_halves(tmp_path)
    write_recipe(tmp_path / "halves.toml", CLASSIFY, tmp_path)
    words = "train", "halves.toml", "train.steps=4", "evaluate.limit=4", "--seeds", "3"
    code, out, err = call(*words)
    assert code == 0
    folders = [f"runs/halves-{number}" for number in (1, 2, 3)]
    measured = [read_jsonl(tmp_path / each / "evaluations.jsonl")[-1] for each in folders]
    scores = [each["all"]["accuracy"]["value"] for each in measured]
    table = [line.split() for line in out.splitlines() if line.strip()]
    for each, score in zip(folders, scores, strict=True):
        assert [each, f"{score:.2f}"] in [row[:2] for row in table]
    assert ["mean", f"{statistics.mean(scores):.2f}"] in [row[:2] for row in table]
    spread = ["standard", "deviation", f"{statistics.stdev(scores):.2f}"]
    assert spread in [row[:3] for row in table]
    assert "4 images, 3 seeds" in out  # as many as were measured
    seeds = [json.loads(call("info", each, "--json").out)["trained"]["seed"] for each in folders]
    assert seeds == [seeds[0], seeds[0] + 1, seeds[0] + 2]
    for seed, each in zip(seeds, folders, strict=True):
        assert f"seed {seed}: {each}" in err

    found = json.loads(call(*words, "--out", "again", "--json").out)
    assert [run["model"] for run in found["runs"]] == ["again-1", "again-2", "again-3"]
    assert [run["all"]["accuracy"]["value"] for run in found["runs"]] == scores
    assert found["mean"]["accuracy"] == statistics.mean(scores)
    assert found["standard_deviation"]["accuracy"] == statistics.stdev(scores)


def test_train_finds_data_by_the_path_rule(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MANYHEADS_DATA for the recipe's names, the current folder for those of the command line."""
    write_numbers(tmp_path / "sets", train=20, other=4)
    (tmp_path / "numbers.toml").write_text(TRANSLATE, encoding="utf-8")
    monkeypatch.setenv("MANYHEADS_DATA", str(tmp_path / "sets"))
    assert call("train", "numbers.toml", "train.steps=1").code == 0
    write_lines(tmp_path / "mine.tsv", ["nine\tneun", "two\tzwei"])
    found = call("train", "numbers.toml", "train.steps=1", "data.valid=mine.tsv", "--out", "b")
    assert f"{tmp_path / 'mine.tsv'}, 2 pairs" in found.out

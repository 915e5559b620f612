"""manyheads export, and what it makes, on the command line."""

import json
from pathlib import Path

from tests.cli.conftest import Call

DATE = "Friday, 20 November 2026"


def test_from_a_shipped_model_to_an_answer(call: Call, tmp_path: Path) -> None:
    made = call("export", "date-en-ko", "--to", "ctranslate2", "--limit", "40")
    assert made.code == 0, made.err
    assert "runs/date-en-ko/engines/ctranslate2: ctranslate2, float32, " in made.out
    for told in ("40 inputs of dates:valid", "exact on torch", "exact on ctranslate2"):
        assert told in made.out
    assert "Load it with: --model runs/date-en-ko --engine ctranslate2" in made.out
    assert "exporting date-en-ko to ctranslate2 in float32" in made.err
    chosen = ("--model", "runs/date-en-ko", "--engine", "ctranslate2")
    plain = call("translate", "--model", "date-en-ko", DATE)
    engine = call("translate", *chosen, DATE)
    assert (engine.code, engine.out, engine.err) == (0, plain.out, "")
    details = call("translate", *chosen, "--json", "--align", "--n-best", "2", DATE)
    found = json.loads(details.out)
    assert found["n_best"][0]["text"] == plain.out.strip()
    assert found["n_best"][0]["tokens"][0]["source"]["token"]
    again = call("export", "date-en-ko", "--to", "ctranslate2", "--limit", "40", "--json")
    report = json.loads(again.out)
    assert report["model"] == "runs/date-en-ko"
    assert report["parity"]["difference"] <= 1e-4


def test_what_an_engine_lacks_is_named_by_its_option(call: Call, tmp_path: Path) -> None:
    made = call("export", "date-en-ko", "--to", "ctranslate2", "--text", DATE, "--text", "1 May")
    assert made.code == 0, made.err
    assert "2 inputs of texts given" in made.out
    chosen = ("translate", "--model", "runs/date-en-ko", "--engine", "ctranslate2")
    refused = call(*chosen, "--beam", "2", "--coverage", "0.2", DATE)
    assert (refused.code, refused.out) == (2, "")
    assert "The engine ctranslate2 has no --coverage: leave it out, or load the" in refused.err
    assert "--engine torch" in refused.err
    looked = call("look", *chosen[1:], DATE)
    assert looked.code == 2


def test_bad_calls(call: Call) -> None:
    absent = call("translate", "--model", "date-en-ko", "--engine", "ctranslate2", DATE)
    assert absent.code == 1
    assert "Run `manyheads export` on the model with --to ctranslate2." in absent.err
    assert "runs/date-en-ko if --out does not say another" in absent.err
    for words, told in (
        (("digits", "--to", "ctranslate2"), "digits cannot be exported to CTranslate2"),
        (("date-en-ko", "--to", "ctranslate"), "did you mean 'ctranslate2'?"),
        (("date-en-ko", "--to", "ctranslate2", "--quantization", "int4"), "has float32, bfloat16"),
        (("no-model", "--to", "ctranslate2"), "There is no model 'no-model'"),
        (("date-en-ko", "--to", "ctranslate2", "--calibrate", "x"), "has no use for --calibrate"),
        (("date-en-ko", "--to", "ctranslate2", "--data", "a", "--text", "b"), "--data or --text"),
        (("multi30k-en-de", "--to", "ctranslate2"), "Or give other pairs as --data, or --text"),
    ):
        refused = call("export", *words)
        assert (refused.code, refused.out) == (2, ""), words
        assert told in refused.err
    assert not Path("runs/date-en-ko").exists()

"""Requests are validated once; answers are what is printed, sent, and described by a schema."""

import json
import math
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import pytest
from jsonschema import validate

import manyheads
from manyheads import asks
from manyheads.asks.caption_request import CaptionRequest
from manyheads.asks.classify_request import ClassifyRequest
from manyheads.asks.decode_config import DecodeConfig
from manyheads.asks.fill_request import FillRequest
from manyheads.asks.generate_request import GenerateRequest
from manyheads.asks.request import IMAGE_TOKENS, Answer, Request
from manyheads.asks.tag_request import TagRequest
from manyheads.asks.translate_request import TranslateAnswer, TranslateRequest
from manyheads.errors import DataError, UsageError
from manyheads.predict.stream import stream
from tests import language

KINDS = [
    each
    for module in iter_modules(asks.__path__, "manyheads.asks.")
    for each in vars(import_module(module.name)).values()
    if isinstance(each, type) and issubclass(each, Request | Answer)
]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_frozen_and_closed(kind: type[Request | Answer]) -> None:
    """Nothing can be changed behind the validation, and nothing unknown comes in."""
    assert kind.model_config.get("frozen")
    assert kind.model_json_schema()["additionalProperties"] is False


def test_mistakes_name_the_parameter() -> None:
    """As Python and HTTP call it; with what was given, and what is near."""
    texts: dict[str, Any] = {"texts": ["a"]}
    for kind, given, message in (
        (TranslateRequest, {"temprature": 0.5}, "'temprature': did you mean 'temperature'"),
        (TranslateRequest, {"n_best": 0}, "`n_best` = 0: input should be greater than or equal"),
        (TranslateRequest, {"n_best": "2"}, "`n_best` = '2': input should be a valid integer"),
        (TranslateRequest, {"beams": True}, "`beams` = True: input should be a valid integer"),
        (GenerateRequest, {"top_p": 1.5}, "`top_p` = 1.5: input should be less than or equal to 1"),
        (FillRequest, {"texts": "a"}, "`texts` is 'a': give several, in a list"),
        (TagRequest, {"texts": [3]}, "`texts.0` = 3: input should be a valid string"),
        (TranslateRequest, {"diversity": 0.5}, "`diversity` makes several .* set `n_best`"),
        (TranslateRequest, {"beams": 4, "top_k": 5}, "sampling has no beams: leave out `beams`"),
        (GenerateRequest, {"beams": 4, "top_k": 5}, "sampling has no beams: leave out `beams`"),
    ):
        made: Any = kind
        with pytest.raises(UsageError, match=message):
            made(**texts | given)
        with pytest.raises(UsageError, match=message):
            kind.model_validate(texts | given)
    for name in ("length_penalty", "coverage_penalty", "diversity", "temperature"):
        for value in (1e308, math.inf, math.nan):
            with pytest.raises(
                UsageError, match=rf"`{name}` = .*: input should be (less|a finite)"
            ):
                TranslateRequest.model_validate(texts | {"n_best": 2, name: value})
    with pytest.raises(UsageError, match=r"`length_penalty` = -11\.0: input should be greater"):
        TranslateRequest.model_validate(texts | {"length_penalty": -11.0})
    for name in ("tokens", "n_best", "beams"):
        with pytest.raises(UsageError, match=rf"`{name}` = 1000000: input should be less than or"):
            GenerateRequest.model_validate(texts | {name: 10**6})
    with pytest.raises(UsageError, match=r"^`texts` is missing\.$"):
        FillRequest.model_validate_json('{"top": 3}')
    with pytest.raises(UsageError, match=r"^`images\.0` = b'abc': "):  # no name of a union's types
        ClassifyRequest(images=(b"abc",))
    with pytest.raises(UsageError, match=r"`texts\.0` = 3"):
        TagRequest(texts=()).with_inputs([3])


def test_several_come_in_a_list_too() -> None:
    """In Python, and from JSON; a path is also text."""
    made: Any = ClassifyRequest
    assert made(images=["a.png"]).images == (Path("a.png"),)
    assert ClassifyRequest.model_validate_json('{"images": ["a.png"]}').images == (Path("a.png"),)
    assert TagRequest(texts=()).with_inputs(iter("ab")).texts == ("a", "b")


def test_a_predictor_answers_requests_of_its_own_type(translator: Path, classifier: Path) -> None:
    with pytest.raises(
        UsageError, match=r"answers a ClassifyRequest, not TranslateR.*: its task is 'classify'"
    ):
        manyheads.load(classifier).answer(TranslateRequest(texts=("a",)))
    with pytest.raises(UsageError, match="model answers a TranslateRequest, not 'a'"):
        manyheads.load(translator).answer("a")


def test_what_a_server_asks_of_requests() -> None:
    """Inputs, tokens of work, texts, limited parameters, and whether answers are independent."""
    generate = GenerateRequest(texts=("abc", "ä" * 9), n_best=4, tokens=10)
    assert generate.inputs == generate.all_texts == ("abc", "ä" * 9)
    assert generate.cost == 4 * ((3 // 3 + 2) + (18 // 3 + 2) + 2 * 10)
    assert {*generate.limited} == {"beams", "n_best", "tokens"}
    assert generate.independent
    assert GenerateRequest(texts=("a",), top_k=3).independent  # what is drawn depends on its text
    assert TranslateRequest(texts=("abc",), beams=5, n_best=2).cost == 5 * 3
    classify = ClassifyRequest(images=(Path("a.png"),), labels=("cat",), templates=("a {}",))
    assert (classify.inputs, classify.cost) == ((Path("a.png"),), IMAGE_TOKENS + 3 + 3)
    assert classify.all_texts == ("cat", "a {}")
    assert classify.with_inputs(()) == classify.with_inputs([Path("b.png")]).with_inputs([])
    caption = CaptionRequest(images=(Path("a.png"),), n_best=9)
    assert (caption.cost, {*caption.limited}) == (9 * IMAGE_TOKENS, {"beams", "n_best"})
    assert CaptionRequest(images=(), sample=True).independent


def test_any_sampling_option_samples() -> None:
    """Without one it is a search."""
    own = DecodeConfig(beams=1)
    assert GenerateRequest(texts=("a",)).decode(own) == own
    assert GenerateRequest(texts=("a",), sample=True).decode(own).sample
    for option in ({"temperature": 2.0}, {"top_k": 3}, {"top_p": 0.5}):
        found = GenerateRequest.model_validate({"texts": ["a"], **option}).decode(own)
        assert found.sample
        ((name, value),) = option.items()
        assert getattr(found, name) == value


def test_decode_table_of_a_request() -> None:
    """The model's own where the request says nothing; a group of beams for each translation."""
    own = DecodeConfig(beams=5, length_penalty=0.7, no_repeat_ngram=3)
    assert TranslateRequest(texts=()).decode(own) == own
    changes = TranslateRequest(texts=(), length_penalty=1.5, no_repeat_ngram=0).decode(own)
    assert (changes.beams, changes.length_penalty, changes.no_repeat_ngram) == (5, 1.5, 0)
    diverse = TranslateRequest(texts=(), n_best=3, diversity=0.5).decode(own)
    assert (diverse.groups, diverse.beams, diverse.diversity) == (3, 6, 0.5)  # 5 beams, rounded up
    with pytest.raises(UsageError, match="are options of beam search"):
        TranslateRequest(texts=(), sample=True).decode(DecodeConfig(coverage_penalty=0.2))


def answered(model: Any, request: Request) -> list[dict[str, Any]]:
    """Answer; check each answer against the schema of its type, also after JSON."""
    answers: list[Answer] = model.answer(request)
    sent = [json.loads(json.dumps(each.to_json())) for each in answers]
    for each, received in zip(answers, sent, strict=True):
        validate(received, type(each).model_json_schema())
        assert type(each).model_validate_json(json.dumps(received)) == each
    return sent


def test_translate(translator: Path) -> None:
    """One answer a text; tokens and their sources only if they are asked for."""
    model: Any = manyheads.load(translator)
    plain, other = answered(model, TranslateRequest(texts=("nine", "three four")))
    assert (plain["source"], plain["translation"]) == ("nine", model("nine"))
    assert plain["n_best"][0].keys() == {"text", "score", "finished"}
    assert other["translation"] == model("three four")
    (told,) = answered(model, TranslateRequest(texts=("nine",), probabilities=True, n_best=2))
    assert len(told["n_best"]) == 2
    assert told["n_best"][0]["tokens"][0].keys() == {"token", "probability", "begin", "end"}
    (aligned,) = answered(model, TranslateRequest(texts=("nine",), align=True))
    source = aligned["n_best"][0]["tokens"][0]["source"]
    assert source.keys() == {"token", "begin", "end", "share"}
    assert answered(model, TranslateRequest(texts=())) == []
    (begun,) = answered(model, TranslateRequest(texts=("nine",), prefix="acht"))
    assert begun["translation"].startswith("acht")


def test_language_models() -> None:
    """Generate, fill and tag: what the predictor's own method gives."""
    generator: Any = manyheads.load(language.trained("generate"))
    (found,) = answered(generator, GenerateRequest(texts=("eins",), n_best=2, tokens=3))
    wanted = generator.complete(["eins"], n_best=2, tokens=3)[0]
    assert found["prompt"] == "eins"
    assert [each["text"] for each in found["texts"]] == [each.text for each in wanted]
    filler: Any = manyheads.load(language.trained("fill"))
    (filled,) = answered(filler, FillRequest(texts=("<mask> zwei",), top=2))
    assert filled["blanks"] == [[each._asdict() for each in filler.fill("<mask> zwei", top=2)[0]]]
    assert "notes" not in found.keys() | filled.keys()
    spacer: Any = manyheads.load(language.trained("tag"))
    (tagged,) = answered(spacer, TagRequest(texts=("einszwei",)))
    assert tagged["text"] == spacer("einszwei")
    assert "".join(tagged["characters"]) == tagged["source"]
    unknown = ["characters that the vocabulary does not have: '漢'."]
    asked: list[tuple[Any, Request]] = [
        (generator, GenerateRequest(texts=("eins 漢",), tokens=1)),
        (filler, FillRequest(texts=("漢 <mask>",))),
        (spacer, TagRequest(texts=("eins漢",))),
    ]
    for model, request in asked:
        assert answered(model, request)[0]["notes"] == unknown


def test_classify(classifier: Path, tmp_path: Path) -> None:
    """What cannot be read is told in its place, and the others are answered."""
    from PIL import Image

    Image.new("L", (28, 28), 200).save(tmp_path / "a.png")
    (tmp_path / "b.png").write_text("no image")
    model: Any = manyheads.load(classifier)
    images = tuple(tmp_path / name for name in ("b.png", "a.png", "c.png"))
    broken, fine, missing = answered(model, ClassifyRequest(images=images, top=2))
    assert broken.keys() == missing.keys() == {"path", "error"}
    assert "cannot be read as an image" in broken["error"]
    assert "There is no file" in missing["error"]
    assert fine["path"] == str(tmp_path / "a.png")
    assert [each["label"] for each in fine["classes"]] == [
        each.label for each in model.classify([tmp_path / "a.png"], top=2)[0]
    ]


def test_a_stream_answers_what_came_before_an_error() -> None:
    """Texts are read no further than is needed; a bad line does not take the good ones along."""
    read: list[str] = []

    def lines() -> Iterator[str]:
        for text in "abc":
            read.append(text)
            yield text
        raise DataError("line 4")

    chunks: list[tuple[str, ...]] = []

    def answer(request: TranslateRequest) -> list[TranslateAnswer]:
        chunks.append(request.texts)
        return [TranslateAnswer(source=t, translation=t, n_best=()) for t in request.texts]

    found = stream(answer, TranslateRequest(texts=(), prefix="x"), lines(), 2)
    assert next(found).source == "a"
    assert read == ["a", "b"]
    assert [next(found).source, next(found).source] == ["b", "c"]
    with pytest.raises(DataError, match="line 4"):
        next(found)
    assert chunks == [("a", "b"), ("c",)]


def test_a_long_text_does_not_hold_back_those_before_it() -> None:
    """It is answered alone, in its place."""
    chunks: list[tuple[str, ...]] = []

    def answer(request: TranslateRequest) -> list[TranslateAnswer]:
        chunks.append(request.texts)
        return [TranslateAnswer(source=t, translation=t, n_best=()) for t in request.texts]

    long = "x" * 5000
    texts = ["a", "b", long, "c", long, long]
    found = stream(answer, TranslateRequest(texts=()), texts)
    assert [each.source for each in found] == texts
    assert chunks == [("a", "b"), (long,), ("c",), (long,), (long,)]


def test_what_makes_an_answer_dear_counts() -> None:
    """A prefix in each text and beam, an image in each beam, a class in each template."""
    texts = ("abc", "abcdef")  # 3 and 4 tokens
    assert TranslateRequest(texts=texts, beams=5).cost == 5 * 7
    assert TranslateRequest(texts=texts, beams=5, prefix="a" * 30).cost == 5 * (7 + 2 * 12)
    assert CaptionRequest(images=(), beams=3).cost_of(2) == 2 * 3 * IMAGE_TOKENS
    classes = ClassifyRequest(images=(), labels=("abc", "abcdef"), templates=("a {}", "b {}"))
    assert classes.cost_of(1) == IMAGE_TOKENS + 7 * 2 + (3 + 3) * 2
    assert TranslateRequest.limited["prefix"] == "prefix"

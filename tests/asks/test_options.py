"""A parameter is written once: every shell has it, and the answer follows it."""

from collections.abc import Iterator
from typing import Any

import pytest

import manyheads
from manyheads.asks.option import option_of
from manyheads.asks.request import BatchRequest, Request
from manyheads.asks.translate_request import TranslateRequest
from manyheads.cli.main import VERBS, load_verb, whole
from manyheads.web.routes.texts import TRANSLATE


def requests(kind: type[Request] = Request) -> Iterator[type[Request]]:
    """The types of `asks/`; a body of HTTP is made of one, and inherits `Request` too."""
    for each in kind.__subclasses__():
        if each.__module__.startswith("manyheads.asks."):
            yield each
        yield from requests(each)


KINDS: list[type[Request]] = sorted(set(requests()), key=lambda each: each.__name__)


def test_the_length_of_a_translation_everywhere() -> None:
    """`min_length` is one line of `TranslateRequest`."""
    options = {flag for each in load_verb("translate").params for flag in each.opts}
    assert "--min-length" in options
    described = TRANSLATE.openapi()["requestBody"]["content"]["application/json"]["schema"]
    assert described["properties"]["min_length"]["description"].startswith("Write at least")
    translate: Any = manyheads.load("date-en-ko")
    short, long = (
        translate.answer(TranslateRequest(texts=("1 May 2024",), min_length=least, beams=1))[0]
        for least in (None, 40)
    )
    assert len(translate.tokenizers.target.encode([long.translation])[0]) >= 40
    assert len(short.translation) < len(long.translation)


@pytest.mark.parametrize("kind", KINDS)
def test_options_have_a_help(kind: type[Request]) -> None:
    """HTTP describes a parameter in the words of the command line."""
    for name, field in kind.model_fields.items():
        if option := option_of(field):
            described = kind.model_json_schema()["properties"][name]
            assert described["description"] == option.help


def test_no_option_twice() -> None:
    """Two parameters of a request would be one option."""
    for kind in KINDS:
        flags = [
            option.flag(name)
            for name, field in kind.model_fields.items()
            if (option := option_of(field))
        ]
        assert len(flags) == len(set(flags))


def test_verbs_are_described_as_they_describe_themselves() -> None:
    """The list of verbs is written apart from them, so that listing them imports none."""
    for name, command in whole().commands.items():
        assert command.help.partition("\n\n")[0].replace("\n", " ") == VERBS[name]


def test_inputs_are_no_options() -> None:
    """They are arguments, and the request of a command has none of its own."""
    for kind in KINDS:
        if issubclass(kind, BatchRequest) and hasattr(kind, "input_field"):
            assert option_of(kind.model_fields[kind.input_field]) is None

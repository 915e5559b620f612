"""Scores, and the signatures that say how they were computed."""

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st

from manyheads.errors import MissingExtraError
from manyheads.measure.text_metrics import (
    TEXT_METRICS,
    Metric,
    bleu,
    bleu_lc_tok,
    chrf,
    exact_match,
    lower_cased_tokens,
    ter,
)
from manyheads.project.paths import data_root

OUTPUTS = ["Ein Mann mit einem Hut steht hier.", "Zwei Hunde laufen im Park.", "Ja"]
REFERENCES = ["Ein Mann mit einem Hut steht da.", "Zwei Hunde rennen im Park.", "Ja"]
METRICS = pytest.mark.parametrize("metric", TEXT_METRICS.values(), ids=TEXT_METRICS)


def test_exact_match() -> None:
    """Character by character: a space or a full stop too many is wrong."""
    outputs = ["2026년 11월 20일", "11월 20일 ", "11월", "12월"]
    references = ["2026년 11월 20일", "11월 20일", "11월", "11월"]
    assert exact_match(outputs, references) == (50.0, "exact match")


@pytest.mark.parametrize(
    ("metric", "theirs", "signature"),
    [
        (bleu, sacrebleu.corpus_bleu, ("case:mixed", "tok:13a")),
        (chrf, sacrebleu.corpus_chrf, ("nc:6", "nw:0", "space:no")),
        (ter, sacrebleu.corpus_ter, ("case:lc", "tok:tercom")),
    ],
)
def test_sacrebleus(metric: Metric, theirs: Callable[..., Any], signature: tuple[str, ...]) -> None:
    """Of detokenised text, over the corpus, with its signature."""
    found = metric(OUTPUTS, REFERENCES)
    assert found.value == pytest.approx(theirs(OUTPUTS, [REFERENCES]).score)
    assert 0 < found.value < 90
    for part in ("nrefs:1", *signature, "version:"):
        assert part in found.signature


def test_bleu_by_hand() -> None:
    """All n-grams right, but the output is 4 tokens for 5: e^(1 - 5/4) (Papineni et al. 2002)."""
    found = bleu(["a b c d"], ["a b c d e"])
    assert found.value == pytest.approx(100 * 2.718281828 ** (1 - 5 / 4))


def test_chrf_by_hand() -> None:
    """One pair of letters; recall weighs twice (Popović 2015).

    "ab" for "abc": of single letters, precision 2/2 and recall 2/3; of pairs, 1/1 and 1/2; of
    triples the output has none, so orders from 3 do not count.
    """
    precision, recall = 1.0, (2 / 3 + 1 / 2) / 2
    expected = 100 * 5 * precision * recall / (4 * precision + recall)
    assert chrf(["ab"], ["abc"]).value == pytest.approx(expected)


def test_ter_by_hand() -> None:
    """Edits for each word of the references: a shift counts as one, and case as none."""
    assert ter(["c d a b x"], ["A B C D x"]).value == pytest.approx(100 * 1 / 5)
    assert ter(["a a a a"], ["b"]).value == pytest.approx(400)
    assert ter(["一二三"], ["一二四"], "zh").value == pytest.approx(100 / 3)


@METRICS
def test_as_many_outputs_as_references(metric: Metric) -> None:
    """A missing translation must not go unnoticed."""
    with pytest.raises(ValueError, match="zip"):
        metric(["one"], ["eins", "zwei"], "de")


# --- Statistics ---------------------------------------------------------------------------------


TEXT = st.text("ab .ß가", max_size=12)


@METRICS
@settings(max_examples=30)
@given(texts=st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=4))
def test_the_sums_of_sentences_give_the_score(metric: Metric, texts: list[tuple[str, str]]) -> None:
    """Whatever the texts: a bootstrap scores what the metric scores."""
    outputs, references = [text for text, _ in texts], [text for _, text in texts]
    rows, value, signature = metric.statistics(outputs, references, "en")
    whole = metric(outputs, references, "en")
    assert len(rows) == len(texts)
    assert value(rows.sum(axis=0)) == pytest.approx(whole.value)
    assert signature == whole.signature


def test_a_sample_of_sentences() -> None:
    """A sentence drawn twice counts twice."""
    rows, value, _ = bleu.statistics(OUTPUTS, REFERENCES)
    drawn = [0, 0, 2]
    expected = bleu([OUTPUTS[i] for i in drawn], [REFERENCES[i] for i in drawn]).value
    assert value(np.array([2, 0, 1]) @ rows) == pytest.approx(expected)


# --- Languages ----------------------------------------------------------------------------------


def test_bleu_of_korean_counts_morphemes() -> None:
    """As sacrebleu prescribes: a wrong particle does not make the whole word wrong."""
    found = bleu(["나는 학교에 간다."], ["나는 학교로 간다."], "ko")
    assert "tok:ko-mecab" in found.signature
    assert found.value > bleu(["나는 학교에 간다."], ["나는 학교로 간다."]).value


def test_bleu_of_chinese() -> None:
    """Character by character."""
    assert "tok:zh" in bleu(["一二三四五"], ["一二三四五"], "zh").signature


@pytest.mark.parametrize(
    ("codes", "tokenizer"),
    [
        (("zh_CN", "zh-Hans", "ZH", "zho", "chi", "cmn", "cmn_Hans", "yue"), "zh"),
        (("ko_KR", "kor", "kor_Hang"), "ko-mecab"),
        (("de_AT", "deu", ""), "13a"),
    ],
)
def test_bleu_of_other_codes_of_a_language(codes: tuple[str, ...], tokenizer: str) -> None:
    """Region, script, or three letters: the language is the same, and so is its tokenizer."""
    for code in codes:
        signature = bleu(["一二三 가나 da"], ["一二三 가나 da"], code).signature
        assert f"tok:{tokenizer}" in signature


@pytest.mark.parametrize("code", ["zh_CN", "zho", "cmn", "ja_JP", "jpn", "jap"])
def test_ter_of_other_codes_of_a_language(code: str) -> None:
    """Characters are edited, where words have no spaces."""
    assert ter(["一二三"], ["一二四"], code).value == pytest.approx(100 / 3)


@pytest.mark.parametrize(
    ("metric", "language", "gone", "command"),
    [
        (bleu, "de", "sacrebleu", r"manyheads\[text\]"),
        (chrf, "de", "sacrebleu", r"manyheads\[text\]"),
        (ter, "de", "sacrebleu", r"manyheads\[text\]"),
        (bleu_lc_tok, "de", "sacremoses", r"manyheads\[text\]"),
    ],
)
def test_a_missing_package(
    metric: Metric, language: str, gone: str, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer is the command that installs it."""
    found = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name.partition(".")[0] == gone:
            raise ModuleNotFoundError(name, name=gone)
        return found(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=rf"'{gone}'.*pip install '{command}'"):
        metric(["a"], ["a"], language)


@pytest.mark.parametrize(
    ("codes", "package", "extra"),
    [
        (("ko", "ko_KR", "kor"), "mecab-ko", "korean"),
        (("ja", "ja_JP", "ja-JP", "jpn", "jap", "jpn_Jpan"), "mecab-python3", "japanese"),
    ],
)
def test_a_missing_dictionary(
    codes: tuple[str, ...], package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each language's extra, not sacrebleu's own, by whatever code the language goes."""
    monkeypatch.setattr(f"sacrebleu.tokenizers.tokenizer_{codes[0]}_mecab.MeCab", None)
    for code in codes:
        with pytest.raises(MissingExtraError, match=rf"'{package}'.*'manyheads\[{extra}\]'"):
            bleu(["a"], ["a"], code)


# --- Multi30k's published numbers ---------------------------------------------------------------


def test_bleu_lc_tok_by_hand() -> None:
    """Lower-cased, normalised and tokenised: raw text and the published form are the same."""
    outputs = ['EIN MANN, der "Hallo." sagt', "Zwei Hunde (braun) & eine Katze"]
    published = [
        "ein mann , der &quot; hallo &quot; . sagt",
        "zwei hunde ( braun ) &amp; eine katze",
    ]
    prepared = [lower_cased_tokens("de").prepare(text) for text in outputs]
    assert prepared == published
    found = bleu_lc_tok(outputs, [text.lower() for text in outputs], "de")
    assert found.value == pytest.approx(100)
    for part in ("case:lc", "tok:none", "norm:moses-de", "pretok:moses-de-escaped", "sacremoses:"):
        assert part in found.signature


@pytest.mark.parametrize(
    ("language", "text", "published"),
    [
        # The Perl scripts see the end of the line: the full stop moves behind the quotes.
        ("de", "Er sagt: „Come on.“", "er sagt : &quot; come on &quot; ."),
        ("fr", "Un coup d’œil", "un coup d &quot; œil"),
        ("en", "It's 5 o’clock.", "it &apos;s 5 o &apos;clock ."),
    ],
)
def test_oddities_of_the_published_files(language: str, text: str, published: str) -> None:
    """Kept, because numbers are compared with those of others."""
    assert lower_cased_tokens(language).prepare(text) == published


@pytest.mark.parametrize("language", ["de", "fr", "en"])
def test_the_published_files_of_multi30k(language: str) -> None:
    """Where the data are: every line of the validation split, made from the raw one."""
    folder = data_root(None) / "multi30k"
    if not (folder / "lc.norm.tok").is_dir():
        pytest.skip("multi30k is not here")
    raw, published = (
        path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
        for path in (folder / f"val.{language}", folder / "lc.norm.tok" / f"val.{language}")
    )
    prepare = lower_cased_tokens(language).prepare
    assert len(raw) == 1014
    assert [prepare(line) for line in raw] == published

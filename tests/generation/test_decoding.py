"""From texts to translations: every way to search, its options, and what is told of the tokens."""

from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import torch
from pydantic import TypeAdapter, ValidationError

from manyheads.asks.decode_config import DecodeConfig
from manyheads.data.tokenizers.tokenizer import END, START, Tokenizer, TokenizerConfig, Tokenizers
from manyheads.decode.step import Hypothesis
from manyheads.errors import UsageError
from manyheads.generation.batched_search import Job, batches
from manyheads.generation.text_decoding import Translation, translate
from manyheads.generation.token_details import describe
from manyheads.lens.measures.alignment_head import fallback, layers, read
from manyheads.models.seq2seq import Seq2Seq, Seq2SeqConfig
from manyheads.models.transformer import Transformer, TransformerConfig
from manyheads.nn.recording.trace import record
from tests.made import numbers

TEXTS = ["one two three", "", "nine", "   ", "six five", "ten one two", "seven"]


@cache
def tokenizers() -> Tokenizers:
    source, target = numbers(100, 0)
    shared = Tokenizer.train([*source, *target], TokenizerConfig(size=320))
    return Tokenizers(shared, shared)


@cache
def model() -> Transformer:
    """Random weights, large enough that outputs differ, and the end likely enough to come."""
    torch.manual_seed(1)
    net = Transformer(
        TransformerConfig(
            vocabulary=len(tokenizers().source),
            dim=16,
            heads=2,
            ffn_dim=32,
            encoder_layers=1,
            decoder_layers=2,
            dropout=0.0,
            tied=False,
        )
    )
    with torch.no_grad():
        net.output.weight.mul_(3)
        net.output.weight[END] += 0.4
    return net.eval()


def search(decode: DecodeConfig, texts: list[str] = TEXTS, **options: Any) -> list[Any]:
    return translate(model(), tokenizers(), texts, decode, **options)


def target(text: str) -> list[int]:
    return tokenizers().target.encode([text])[0]


# --- The table ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ({"temperature": 0.7}, "temperature is 0.7, but sampling is off: set sample = true"),
        ({"top_k": 5}, "top_k is 5, but sampling is off"),
        ({"top_p": 0.9}, "top_p is 0.9, but sampling is off"),
        ({"sample": True, "early_stopping": True}, "options of beam search"),
        ({"sample": True, "coverage_penalty": 0.2}, "options of beam search"),
        ({"groups": 2}, "groups is 2 and diversity 0.0"),
        ({"diversity": 0.5}, "groups is 1 and diversity 0.5"),
        ({"groups": 3, "diversity": 0.5}, "beams is 4 and groups 3: choose a multiple"),
        (
            {"beams": 1, "coverage_penalty": 0.2},
            "coverage_penalty is 0.2, .* no effect on one beam",
        ),
        (
            {"min_length": 9, "max_length": 9},
            "min_length is 9 and max_length, with the end token, 9",
        ),
        ({"temperature": 0.0, "sample": True}, "greater than or equal to 0.0001"),
        ({"top_p": 1.5, "sample": True}, "less than or equal to 1"),
        ({"top_k": 0, "sample": True}, "greater than or equal to 1"),
        ({"banned": [-1]}, "greater than or equal to 0"),
        ({"length_penalty": 1e308}, "it must be between -10 and 10"),
        ({"length_penalty": float("nan")}, "length_penalty is nan: it must be a finite number"),
        ({"beam": 3}, "nexpected keyword argument"),
    ],
)
def test_contradictions_are_refused(table: dict[str, Any], told: str) -> None:
    """Before anything is decoded, and in words that say what to change."""
    with pytest.raises(ValidationError, match=told):
        TypeAdapter(DecodeConfig).validate_python(table)


def test_a_recipe_may_name_every_key() -> None:
    """From TOML: lists are tuples."""
    table = {"beams": 6, "groups": 3, "diversity": 0.5, "banned": [0, 7], "renormalise": True}
    config = TypeAdapter(DecodeConfig).validate_python(table)
    assert (config.groups, config.banned) == (3, (0, 7))


# --- Every search -------------------------------------------------------------------------------

EVERY = {
    "greedy": DecodeConfig(beams=1),
    "beam": DecodeConfig(beams=3),
    "early stopping": DecodeConfig(beams=3, early_stopping=True),
    "coverage": DecodeConfig(beams=3, coverage_penalty=0.3),
    "diverse": DecodeConfig(beams=4, groups=2, diversity=0.8),
    "no repeats": DecodeConfig(beams=2, no_repeat_ngram=1),
    "forced end": DecodeConfig(beams=2, forced_end=True),
    "sample": DecodeConfig(sample=True, temperature=0.8),
    "nucleus": DecodeConfig(sample=True, top_p=0.7, top_k=20),
}
EVERY = {name: replace(decode, max_length=9) for name, decode in EVERY.items()}
every = pytest.mark.parametrize("decode", EVERY.values(), ids=EVERY)


def alike(ours: Translation, theirs: Translation) -> None:
    assert ours.text == theirs.text
    assert ours.tokens == theirs.tokens
    assert ours.score == pytest.approx(theirs.score, abs=1e-4)


@every
def test_a_text_is_its_own_affair(decode: DecodeConfig) -> None:
    """Alone, in another order, or in company: the same two translations; empty texts stay empty."""
    together = search(decode, n_best=2)
    assert [found[0].text for found in together][1:4:2] == ["", ""]
    backwards = search(decode, TEXTS[::-1], n_best=2)[::-1]
    for text, found, turned in zip(TEXTS, together, backwards, strict=True):
        (alone,) = search(decode, [text], n_best=2)
        for left, middle, right in zip(found, turned, alone, strict=True):
            alike(left, middle)
            alike(left, right)
    assert len({found[0].text for found in together}) > 3  # it is worth comparing


@every
def test_tokens_have_probabilities(decode: DecodeConfig) -> None:
    """One for each token, and for the end; their logarithms add up."""
    for found in search(decode):
        for each in found:
            assert len(each.token_log_probabilities) == bool(found[0].text) * (
                len(each.tokens) + each.finished
            )
            assert sum(each.token_log_probabilities) == pytest.approx(
                each.log_probability, abs=1e-4
            )


def test_options_do_what_they_say() -> None:
    """Shorter, longer, unrepeated, without a token, and forced to end."""
    plain = search(DecodeConfig(beams=1), ["nine"])[0][0]
    short = search(DecodeConfig(beams=1, max_length=3), ["nine"])[0][0]
    assert short.tokens == plain.tokens[:3]
    assert not short.finished
    ended = search(DecodeConfig(beams=1, max_length=3, forced_end=True), ["nine"])[0][0]
    assert ended.tokens == plain.tokens[:2]
    assert ended.finished
    for found in search(DecodeConfig(beams=2, min_length=30), ["nine", "six"]):
        assert len(found[0].tokens) >= 30  # longer than twice the source and 16
    for found in search(DecodeConfig(beams=2, no_repeat_ngram=1), ["nine", "six"]):
        assert len(set(found[0].tokens)) == len(found[0].tokens)
    banned = plain.tokens[0]
    without = search(DecodeConfig(beams=1, banned=(banned,)), ["nine"])[0][0]
    assert banned not in without.tokens


def test_banned_tokens_are_tokens() -> None:
    """Another model's ids are not mistaken for ours."""
    size = len(tokenizers().target)
    with pytest.raises(UsageError, match=f"Token 58100 is banned.* {size} tokens, 0 to {size - 1}"):
        search(DecodeConfig(banned=(3, 58100)))


def test_outputs_must_be_able_to_end() -> None:
    """The end may be banned only where the limit brings it."""
    with pytest.raises(UsageError, match=f"Token {END} is the end token.*set forced_end"):
        search(DecodeConfig(banned=(END,)))
    (found,) = search(DecodeConfig(beams=2, banned=(END,), forced_end=True, max_length=4), ["nine"])
    assert found[0].finished
    assert len(found[0].tokens) == 3


@pytest.mark.parametrize(
    "decode",
    [
        DecodeConfig(beams=1),
        DecodeConfig(beams=4),
        DecodeConfig(beams=4, min_length=60),
        DecodeConfig(sample=True),
    ],
    ids=["greedy", "beam", "longer", "sample"],
)
def test_learned_positions_limit_outputs(decode: DecodeConfig) -> None:
    """Twice a source of 20 tokens and 16 would be more than there are positions."""
    torch.manual_seed(0)
    size = len(tokenizers().source)
    config = replace(model().config, vocabulary=size, positions="learned", max_length=32)
    net = Transformer(config).eval()
    with torch.no_grad():
        net.output.weight[END] = 0.0  # no output ends early by chance
    text = "one two three four six seven nine ten " * 9
    while len(tokenizers().source.encode([text])[0]) > 20:
        text = text[:-1]
    for found in translate(net, tokenizers(), [text, "nine"], decode):
        assert all(len(each.tokens) + each.finished <= 32 for each in found)
    (found,) = translate(
        net, tokenizers(), [text], decode, prefixes=[target("eins zwei drei vier acht")]
    )
    assert len(found[0].tokens) + found[0].finished <= 32


def test_samples() -> None:
    """Each text draws by itself; a seed repeats them; the best of several comes first."""
    decode = DecodeConfig(sample=True)
    first, again, other = (search(decode, n_best=4, seed=seed) for seed in (5, 5, 6))
    assert first == again != other
    for found in first:
        scores = [each.score for each in found]
        assert scores == sorted(scores, reverse=True)
    assert len({each.text for each in first[0]}) > 1
    twice = search(decode, ["nine", "nine"])
    assert twice[0] == twice[1]  # a text that comes again is translated the same


def test_diverse_translations() -> None:
    """More of the n best begin differently."""
    plain = search(DecodeConfig(beams=4), n_best=4)
    diverse = search(DecodeConfig(beams=4, groups=4, diversity=5.0), n_best=4)

    def beginnings(results: list[list[Translation]]) -> int:
        return sum(len({tuple(each.tokens[:1]) for each in found}) for found in results)

    assert beginnings(diverse) > beginnings(plain)


def test_more_than_the_beams_widen_the_search() -> None:
    """In whole groups."""
    found = search(DecodeConfig(beams=2, groups=2, diversity=3.0), ["six five"], n_best=3)[0]
    assert len(found) == 3


def test_equal_texts_are_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    """What stays has the scores of before, best first; see also `test_search`."""
    plain = search(DecodeConfig(beams=4), n_best=4)
    decode = Tokenizer.decode

    def one_letter(self: Tokenizer, sequences: Any) -> list[str]:
        """Make many texts equal, as other segmentations of a text do."""
        return [text[:1] for text in decode(self, sequences)]

    monkeypatch.setattr(Tokenizer, "decode", one_letter)
    merged = search(DecodeConfig(beams=4), n_best=4)
    less = 0
    for before, after in zip(plain, merged, strict=True):
        texts = [each.text for each in after]
        assert len(set(texts)) == len(texts)
        scores = [each.score for each in after]
        assert scores == sorted(scores, reverse=True)
        firsts = {each.text[:1].strip(): each.score for each in reversed(before)}
        assert {each.text.strip(): each.score for each in after}.items() >= firsts.items()
        less += len(firsts) < len(before)
    assert less, "nothing was merged"


def test_long_texts_get_batches_of_their_own() -> None:
    """All outputs of a batch have room for so many tokens together, however long one is."""
    jobs = [
        Job(n, [5] * size, [], [], 4, 2 * size + 16, 0) for n, size in enumerate([9] * 90 + [999])
    ]
    assert [len(batch) for batch in batches(jobs[::-1])] == [64, 26, 1]
    assert [len(batch) for batch in batches([replace(job, limit=10**6) for job in jobs[:3]])] == [
        1,
        1,
        1,
    ]
    assert list(batches([])) == []


@pytest.mark.parametrize("name", ["greedy", "beam", "sample", "diverse"])
def test_outputs_are_whole_characters(name: str) -> None:
    """Of a model that knows nothing and loves bytes."""
    torch.manual_seed(3)
    net = Transformer(replace(model().config, dropout=0.0)).eval()
    with torch.no_grad():
        net.output.weight.mul_(3)
        net.output.weight[260:] -= 1.0  # behind the byte pieces
    texts = ["one", "two", "three four", "nine ten", "six"]
    for decode in (EVERY[name], replace(EVERY[name], no_repeat_ngram=2, max_length=9)):
        for found in translate(net, tokenizers(), texts, decode, n_best=2):
            for each in found:
                assert whole(tokenizers().target, each.tokens)


def whole(tokenizer: Tokenizer | Any, tokens: list[int]) -> bool:
    """Whether no byte of an output is half a character; U+FFFD itself would be EF BF BD."""
    pieces = [tokenizer.piece(token) for token in tokens]
    spelled = "".join(f" {each[3:5]}" if each.startswith("<0x") else "|" for each in pieces)
    try:
        return all(bytes.fromhex(run).decode() is not None for run in spelled.split("|"))
    except UnicodeDecodeError:
        return False


# --- Prefixes and constraints -------------------------------------------------------------------


@pytest.mark.parametrize("name", ["greedy", "beam", "sample", "diverse"])
def test_prefixes(name: str) -> None:
    """Every text has its own; none is none."""
    prefixes = [target("neun"), [], target("drei vier"), [], [], [], []]
    results = search(EVERY[name], prefixes=prefixes, n_best=2)
    for text, prefix, found in zip(TEXTS, prefixes, results, strict=True):
        if text.strip():
            assert all(each.tokens[: len(prefix)] == list(prefix) for each in found)
    free = search(EVERY[name], n_best=2)
    assert [found[0].text for found in results[3:]] == [found[0].text for found in free[3:]]


@pytest.mark.parametrize("beams", [1, 4])
def test_constraints(beams: int) -> None:
    """What must be there is there, in any company; the other texts are as they were."""
    decode = DecodeConfig(beams=beams, max_length=8)
    constraints = [[target("neun"), target("drei vier")], [], [target("acht")] * 2, [], [], [], []]
    results = search(decode, constraints=constraints)
    for phrases, found in zip(constraints, results, strict=True):
        for phrase in phrases:
            assert found[0].text.count(tokenizers().target.decode([phrase])[0]) >= phrases.count(
                phrase
            )
    for found, free in zip(results[4:], search(decode)[4:], strict=True):
        alike(found[0], free[0])
    for text, phrases, found in zip(TEXTS, constraints, results, strict=True):
        (alone,) = search(decode, [text], constraints=[phrases])
        alike(alone[0], found[0])


def test_what_constraints_need() -> None:
    """A beam search, and one list for each text."""
    phrases = [[target("neun")]]
    with pytest.raises(UsageError, match="but sample is true"):
        search(DecodeConfig(sample=True), ["nine"], constraints=phrases)
    with pytest.raises(UsageError, match="but groups is 2"):
        search(DecodeConfig(groups=2, diversity=0.5), ["nine"], constraints=phrases)
    with pytest.raises(UsageError, match="2 texts, but 1 constraints"):
        search(DecodeConfig(), ["nine", "six"], constraints=phrases)
    with pytest.raises(UsageError, match="1 texts, but 2 prefixes"):
        search(DecodeConfig(), ["nine"], prefixes=[[], []])


@pytest.mark.parametrize("token", [-1, 10_000, END])
def test_prefixes_and_constraints_are_tokens(token: int) -> None:
    """Of the target's vocabulary, but not its end."""
    told = f"has the token {token}: allowed are 0 to {len(tokenizers().target) - 1}"
    with pytest.raises(UsageError, match=f"A prefix {told}.* except the end token {END}"):
        search(DecodeConfig(), ["nine"], prefixes=[[*target("neun"), token]])
    with pytest.raises(UsageError, match=f"A constraint {told}.* except the end token {END}"):
        search(DecodeConfig(), ["nine"], constraints=[[target("neun"), [token]]])


# --- Details ------------------------------------------------------------------------------------


def test_details_cover_the_translation() -> None:
    """Characters belong to tokens, in order; only spaces belong to none."""
    for found in search(DecodeConfig(beams=2), details=True, n_best=2):
        for each in found:
            assert each.details is not None
            assert len(each.details) == len(each.tokens)
            said = "".join(each.text[token.begin : token.end] for token in each.details)
            assert said == each.text.replace(" ", "")
            for token, log_probability in zip(
                each.details, each.token_log_probabilities, strict=False
            ):
                assert torch.tensor(token.probability).log().item() == pytest.approx(
                    log_probability, abs=1e-5
                )
                assert token.source is None
    assert search(DecodeConfig(beams=1), ["nine"])[0][0].details is None


def test_characters_in_bytes() -> None:
    """é is two bytes: the second stands for it."""
    tokenizer = tokenizers().target
    (tokens,) = tokenizer.encode(["neun é 語"])
    text = tokenizer.decode([tokens])[0]
    assert text == "neun é 語"
    spans = [
        (each.text, text[each.begin : each.end])
        for each in describe(
            tokenizer, text, Hypothesis(tokens, -1.0, -1.0, True, [-0.5] * len(tokens))
        )
    ]
    assert "".join(span for _, span in spans) == "neuné語"
    assert [span for piece, span in spans if piece.startswith("<0x")] == ["", "é", "", "", "語"]


@pytest.mark.parametrize("recurrent", [False, True])
def test_alignment_is_the_recorded_attention(recurrent: bool) -> None:
    """The largest weight of each step over the source without its end, in any batch."""
    net: Any = model()
    if recurrent:
        torch.manual_seed(0)
        size = len(tokenizers().source)
        net = Seq2Seq(Seq2SeqConfig(vocabulary=size, dim=16, hidden_size=16, dropout=0.0)).eval()
    results = translate(net, tokenizers(), TEXTS, DecodeConfig(beams=2), n_best=2, align=True)
    for text, found in zip(TEXTS, results, strict=True):
        (ids,) = tokenizers().source.encode([text])
        pieces = tokenizers().source.pieces(text)
        for each in found:
            assert each.details is not None
            if not each.tokens:
                continue
            with record() as trace, torch.inference_mode():
                net(torch.tensor([[*ids, END]]), torch.tensor([[START, *each.tokens[:-1]]]))
            maps = layers(trace)
            weights = read(maps, fallback(maps))[0, :, :-1]
            for token, row in zip(each.details, weights, strict=True):
                assert token.source is not None
                assert token.share == pytest.approx(row.max().item(), abs=1e-5)
                assert row[[piece.end for piece in pieces].index(token.source.end)] == row.max()
                assert text[token.source.begin : token.source.end] == token.source.text.strip("▁")


def test_alignment_needs_attention() -> None:
    """A model that reads its source only once says so."""
    net = Seq2Seq(
        Seq2SeqConfig(vocabulary=len(tokenizers().source), dim=8, hidden_size=8, attention="none")
    ).eval()
    for align, coverage in ((True, 0.0), (False, 0.2)):
        decode = DecodeConfig(beams=2, coverage_penalty=coverage)
        with pytest.raises(UsageError, match="no attention over the source"):
            translate(net, tokenizers(), ["nine"], decode, align=align)
    assert translate(net, tokenizers(), ["nine"], DecodeConfig(beams=2), details=True)


def test_a_text_without_tokens() -> None:
    """sentencepiece's own sign for a space is a text, but nothing is left of it to read."""
    (found,) = search(DecodeConfig(beams=1), ["▁"], align=True)
    assert found[0].details
    assert all(token.source is None for token in found[0].details)

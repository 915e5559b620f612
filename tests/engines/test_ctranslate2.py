"""CTranslate2: the same answers as torch, or an error that says what is not the same."""

import copy
import itertools
import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
import pytest
import torch

import manyheads
from manyheads.asks.decode_config import DecodeConfig
from manyheads.asks.translate_request import TranslateRequest
from manyheads.documents.document_translation import translate_document
from manyheads.engine_export import export
from manyheads.errors import FolderError, MissingExtraError, UsageError
from manyheads.generation.token_scores import token_log_probabilities
from manyheads.looking.look_inside import look
from manyheads.measure.stored_model import evaluate
from manyheads.models.convert.ctranslate2 import to_ctranslate2
from manyheads.models.transformer import Transformer, TransformerConfig
from manyheads.project.folder import ModelFolder
from manyheads.tasks.translate.predictor import Translator
from manyheads.train.model_tensors import tensors
from tests.made import write_hashes
from tests.small import TRANSFORMERS

TEXTS = [
    "A man in a blue shirt is standing on a ladder cleaning a window.",
    "Two young girls are playing with a dog in the park.",
    "A brown dog runs.",
    "A group of people stand in front of a large building, and wait for the bus to arrive.",
    "",
    "Children play football in the snow while an old woman watches them from a bench.",
    "A woman with an umbrella \N{UMBRELLA} walks.",
]


def lively(config: TransformerConfig) -> Transformer:
    """A model whose biases and gains are drawn as well: fresh ones are 0 and 1."""
    with torch.random.fork_rng():
        torch.manual_seed(3)
        model = config.build().eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter), alpha=0.1)
    return model


def saved(model: Transformer, folder: Path, quantization: str | None = None) -> Any:
    """The model in CTranslate2; tokens are called by their numbers."""
    config = model.config
    sides = (config.vocabulary, config.target_vocabulary or config.vocabulary)
    names = [[str(token) for token in range(size)] for size in sides]
    spec = to_ctranslate2(config, tensors(model), *names, positions=64)
    spec.optimize(quantization)
    spec.save(str(folder))
    return ctranslate2.Translator(str(folder), device="cpu", intra_threads=1)


VARIANTS: dict[str, TransformerConfig] = dict(TRANSFORMERS)
BASE = TRANSFORMERS["transformer-tiny"]
for norm, activation, positions in itertools.product(
    ("pre", "post"),
    ("relu", "gelu", "gelu-tanh", "quick-gelu", "silu", "swiglu"),
    ("sinusoidal", "sinusoidal-halves", "learned", "rotary", "none"),
):
    config: Any = {"norm": norm, "activation": activation, "positions": positions}
    VARIANTS[f"{norm} {activation} {positions}"] = replace(BASE, **config)
for tied, target, scale, bias in itertools.product((True, False), (None, 9), (True, False), (0, 1)):
    VARIANTS[f"tied {tied}, target {target}, scale {scale}, bias {bias}"] = replace(
        BASE,
        tied=tied,
        target_vocabulary=target,
        scale_embedding=scale,
        output_bias=bool(bias),
        norm_eps=1e-3,
    )


@pytest.mark.parametrize("name", VARIANTS)
def test_every_variant_gives_the_same_probabilities(name: str, tmp_path: Path) -> None:
    model = lively(VARIANTS[name])
    end = model.config.end
    sources = [[3, 7, 4, end], [5, end], [8, 6, 3, 3, 5, 4, end]]  # special tokens differ
    outputs = [[4, 4, 8], [], [3, 5, 7, 8, 6, 3]]
    ours = np.concatenate(token_log_probabilities(model, sources, outputs))
    scored = saved(model, tmp_path).score_batch(
        *([list(map(str, tokens)) for tokens in side] for side in (sources, outputs))
    )
    theirs = np.concatenate([each.log_probs for each in scored])
    assert np.abs(ours - theirs).max() <= 1e-4 * np.abs(ours).max()


def test_conversion_leaves_the_model_as_it_is(tmp_path: Path) -> None:
    """CTranslate2 scales weights in place where it makes int8 of them."""
    model = lively(TRANSFORMERS["transformer-base"])
    before = copy.deepcopy(model.state_dict())
    saved(model, tmp_path, "int8")
    after = model.state_dict()
    assert all(torch.equal(tensor, after[name]) for name, tensor in before.items())


def test_what_it_has_no_equivalent_of_is_refused() -> None:
    config: Any = replace(BASE)
    object.__setattr__(config, "positions", "spiral")
    model = lively(BASE)
    with pytest.raises(UsageError, match="no positions 'spiral': it has sinusoidal, "):
        to_ctranslate2(config, tensors(model), [], [], positions=8)


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of a shipped model, with its export: look, don't touch."""
    out = tmp_path_factory.mktemp("exported") / "multi30k"
    made = export("multi30k-en-de", to="ctranslate2", texts=TEXTS, out=out)
    assert made.parity.difference <= 1e-4
    return out


@pytest.fixture(scope="module")
def both(exported: Path) -> tuple[Translator, Translator]:
    """The model on torch and on CTranslate2."""
    ours, theirs = (manyheads.load(exported, engine=name) for name in ("torch", "ctranslate2"))
    assert isinstance(ours, Translator)
    assert isinstance(theirs, Translator)
    return ours, theirs


D = DecodeConfig
SEARCHES: dict[str, dict[str, Any]] = {
    "greedy": {"options": D(beams=1)},
    "beam 4": {"options": D()},
    "beam 3, length penalty 0.6": {"options": D(beams=3, length_penalty=0.6)},
    "no length penalty": {"options": D(length_penalty=0.0)},
    "early stopping": {"options": D(early_stopping=True)},
    "prefix, greedy": {"options": D(beams=1), "prefixes": ["Zwei "] * len(TEXTS)},
    "no repetition, greedy": {"options": D(beams=1, no_repeat_ngram=2)},
    "no repetition": {"options": D(no_repeat_ngram=2, renormalise=True)},
    "banned": {"options": D(beams=1, banned=(300, 301, 302, 303))},
    "least length": {"options": D(beams=1, min_length=12)},
    "most length": {"options": D(max_length=6)},
    "forced end": {"options": D(max_length=6, forced_end=True)},
    "loops": {"options": D(beams=1, max_loop=1)},
}


@pytest.mark.parametrize("search", SEARCHES)
def test_searches_find_the_same(both: tuple[Translator, Translator], search: str) -> None:
    ours, theirs = (each.translate(TEXTS, **SEARCHES[search]) for each in both)
    texts = [[[each.text for each in some] for some in found] for found in (ours, theirs)]
    assert texts[0] == texts[1]
    loose = SEARCHES[search]["options"].renormalise  # over other tokens: ours bans some bytes too
    for mine, other in zip(itertools.chain(*ours), itertools.chain(*theirs), strict=True):
        assert mine.tokens == other.tokens
        assert mine.finished == other.finished
        assert other.score == pytest.approx(mine.score, abs=0.02 if loose else 1e-3)
        close = pytest.approx(mine.log_probability, abs=0.2 if loose else 1e-2)
        assert other.log_probability == close


@pytest.mark.parametrize("parameters", [{"n_best": 4}, {"beams": 2, "n_best": 5}])
def test_n_best(both: tuple[Translator, Translator], parameters: dict[str, Any]) -> None:
    """The best is the same; CTranslate2 looks a little further for the others."""
    ours, theirs = (each.translate(TEXTS, **parameters) for each in both)
    for text, mine, other in zip(TEXTS, ours, theirs, strict=True):
        assert other[0].tokens == mine[0].tokens
        assert len(other) == len(mine) == (parameters["n_best"] if text else 1)
        assert len({each.text for each in other}) == len(other)
        for left, right in zip(mine, other, strict=True):
            assert right.score >= left.score - 1e-3


def test_a_prefix_in_a_beam_search(both: tuple[Translator, Translator]) -> None:
    """CTranslate2 counts only what follows it; the score is of all tokens, as ours."""
    texts, prefixes = TEXTS[:4], ["Zwei "] * 4
    found = both[1].translate(texts, prefixes=prefixes)
    for text, (best, *others) in zip(texts, found, strict=True):
        assert others == []
        assert best.text.startswith("Zwei ")
        ids = both[0].tokenizers.source.encode([text])[0]
        terms = token_log_probabilities(both[0].model, [[*ids, 2]], [best.tokens])[0]
        assert best.score == pytest.approx(sum(terms) / len(terms), abs=1e-3)


def test_a_loop_is_left_to_torch(both: tuple[Translator, Translator]) -> None:
    """Where an output breaks a rule that CTranslate2 does not have; otherwise never."""
    ours, theirs = both
    fresh = manyheads.load(theirs.folder.path, engine="ctranslate2")
    assert isinstance(fresh, Translator)
    loaded: Any = fresh.model
    reference, asked = loaded.reference, []

    def noted() -> Any:
        asked.append(True)
        return reference()

    loaded.reference = noted
    fresh.translate(TEXTS)
    assert not asked
    prefixes = ["ein " * 40] * len(TEXTS)
    found = [each.translate(TEXTS, prefixes=prefixes) for each in (ours, fresh)]
    assert [each[0].text for each in found[0]] == [each[0].text for each in found[1]]
    assert asked


def test_answers_have_the_same_details(both: tuple[Translator, Translator]) -> None:
    """Probabilities, places and alignment of tokens; an empty text stays empty."""
    request = TranslateRequest(texts=tuple(TEXTS), align=True, probabilities=True, n_best=2)
    ours, theirs = (each.answer(request) for each in both)
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.notes == other.notes
        for left, right in zip(mine.n_best, other.n_best, strict=True):
            assert left.tokens is not None
            assert right.tokens is not None
            assert [t.token for t in left.tokens] == [t.token for t in right.tokens]
            assert [t.begin for t in left.tokens] == [t.begin for t in right.tokens]
            for a, b in zip(left.tokens, right.tokens, strict=True):
                assert b.probability == pytest.approx(a.probability, abs=1e-3)
                assert a.source == b.source


def test_equal_samples_count(both: tuple[Translator, Translator]) -> None:
    """As many as were asked for, or the share of each would not be its probability."""
    options = D(sample=True, temperature=0.1, top_k=1_000_000)
    for translator in both:
        (found,) = translator.translate(TEXTS[:1], options=options, n_best=8)
        assert len(found) == 8
        assert len({each.text for each in found}) < 8


def test_sampling(both: tuple[Translator, Translator]) -> None:
    """The seed decides, and the text: not what else is translated."""
    _, theirs = both
    options = D(sample=True, top_k=20, top_p=0.95, temperature=1.2)
    first = theirs.translate(TEXTS, options=options, n_best=3, seed=5)
    again = theirs.translate(TEXTS[:2], options=options, n_best=3, seed=5)
    other = theirs.translate(TEXTS[:2], options=options, n_best=3, seed=6)
    assert [[e.tokens for e in some] for some in first[:2]] == [
        [e.tokens for e in some] for some in again
    ]
    assert first[:2] != other
    # The probabilities are the model's, before the changes of sampling.
    best = first[0][0]
    ids = theirs.tokenizers.source.encode(TEXTS[:1])[0]
    terms = token_log_probabilities(both[0].model, [[*ids, 2]], [best.tokens])[0]
    assert best.log_probability == pytest.approx(sum(terms), abs=1e-2)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "coverage": ({"options": D(coverage_penalty=0.2)}, "`coverage_penalty`"),
    "groups": ({"options": D(groups=2, diversity=0.5)}, "`diversity`"),
    "constraints": ({"constraints": [[[17]]] * len(TEXTS)}, "constraints, such as"),
    "length penalty": ({"options": D(length_penalty=1.5)}, "`length_penalty` above 1"),
    "rules": (
        {"options": D(no_repeat_ngram=2, min_length=3)},
        "no `no_repeat_ngram` and `min_length` in a beam search",
    ),
    "length": ({"options": D(max_length=5000)}, "An output may have 5,000 tokens here"),
}


@pytest.mark.parametrize("option", REFUSED)
def test_options_that_it_lacks_are_refused(
    both: tuple[Translator, Translator], option: str
) -> None:
    parameters, told = REFUSED[option]
    both[0].translate(
        TEXTS[:1], **{k: v[:1] if k == "constraints" else v for k, v in parameters.items()}
    )
    with pytest.raises(UsageError, match=told.replace(".", r"\.")) as caught:
        both[1].translate(TEXTS, **parameters)
    assert "`engine='torch'`" in str(caught.value)


def test_looking_needs_torch(both: tuple[Translator, Translator]) -> None:
    with pytest.raises(UsageError, match="load the model with `engine='torch'`"):
        look(both[1], TEXTS[0])


def test_a_document(both: tuple[Translator, Translator]) -> None:
    """Markup is put back by alignment, which torch computes."""
    text = "# A dog\n\nA *brown* dog runs [here](a.html).\n"
    ours, theirs = (translate_document(each, text, format="markdown") for each in both)
    assert ours == theirs


def test_an_evaluation_names_the_engine(exported: Path, tmp_path: Path) -> None:
    """And does not set what is usual for texts."""
    own = shutil.copytree(exported, tmp_path / "own")
    for side, texts in (("en", TEXTS[:3]), ("de", ["Ein Mann.", "Zwei Kinder.", "Ein Hund."])):
        (tmp_path / f"few.{side}").write_text("".join(f"{text}\n" for text in texts), "utf-8")
    line = evaluate(own, data=str(tmp_path / "few"), engine="ctranslate2")
    assert line["engine"] == "ctranslate2"
    assert "few on ctranslate2: bleu" in (own / "README.md").read_text("utf-8")


# --- What is damaged, missing or of another model -----------------------------------------------


def _other_weights(folder: Path) -> None:
    record = folder / "engines/ctranslate2/engine.json"
    stored = json.loads(record.read_text("utf-8"))
    record.write_text(json.dumps(stored | {"weights": "0" * 64}), "utf-8")


def _cut_off(folder: Path) -> None:
    path = folder / "engines/ctranslate2/model.bin"
    path.write_bytes(path.read_bytes()[:-100])


def _later(folder: Path) -> None:
    record = folder / "engines/ctranslate2/engine.json"
    stored = json.loads(record.read_text("utf-8"))
    record.write_text(json.dumps(stored | {"format_version": 99}), "utf-8")


def _no_hashes(folder: Path) -> None:
    record = folder / "engines/ctranslate2/engine.json"
    stored = json.loads(record.read_text("utf-8"))
    record.write_text(json.dumps(stored | {"sha256": {}}), "utf-8")


def _another_file(folder: Path) -> None:
    (folder / "engines/ctranslate2/shared_vocabulary.txt").write_text("a", "utf-8")


def _half_a_record(folder: Path) -> None:
    record = folder / "engines/ctranslate2/engine.json"
    stored = json.loads(record.read_text("utf-8"))
    del stored["sha256"]
    record.write_text(json.dumps(stored), "utf-8")


DAMAGED: dict[str, tuple[Callable[[Path], object], str]] = {
    "other weights": (_other_weights, "was made from other weights"),
    "cut off": (_cut_off, r"model\.bin is not the file that was written"),
    "no file": (
        lambda folder: (folder / "engines/ctranslate2/model.bin").unlink(),
        r"model\.bin is missing",
    ),
    "no export": (lambda folder: shutil.rmtree(folder / "engines"), "has no engine 'ctranslate2'"),
    "later version": (_later, "has format_version 99; this Manyheads"),
    "half a record": (_half_a_record, r"engine\.json, sha256: "),
    "no hashes": (_no_hashes, r"no hash of config\.json, model\.bin, parity\.json"),
    "a file more": (_another_file, r"no hash of shared_vocabulary\.txt"),
    "no JSON": (
        lambda folder: (folder / "engines/ctranslate2/engine.json").write_text("{"),
        r"engine\.json cannot be read: .*\. Run `manyheads export`",
    ),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_export_is_refused(exported: Path, tmp_path: Path, damage: str) -> None:
    own = shutil.copytree(exported, tmp_path / "own")
    change, told = DAMAGED[damage]
    change(own)
    with pytest.raises(FolderError, match=told):
        manyheads.load(own, engine="ctranslate2")
    manyheads.load(own)  # the model itself is whole


def _not_utf_8(folder: Path) -> None:
    (folder / "engines/ctranslate2/config.json").write_bytes(b'{"bos_token": "\xff\xfe"}')


@pytest.mark.parametrize("damage", [_cut_off, _not_utf_8])
def test_a_file_that_ctranslate2_refuses(
    exported: Path, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    """Whatever the hashes say."""
    own = shutil.copytree(exported, tmp_path / "own")
    damage(own)
    write_hashes(own / "engines/ctranslate2/engine.json")
    with pytest.raises(FolderError, match="CTranslate2 cannot load"):
        manyheads.load(own, engine="ctranslate2")


def test_a_shipped_model_is_told_where_its_export_is() -> None:
    told = "has no engine 'ctranslate2'.*`to='ctranslate2'`.*runs/date-en-ko"
    with pytest.raises(FolderError, match=told):
        manyheads.load("date-en-ko", engine="ctranslate2")


@pytest.mark.parametrize("model", ["digits", "emoji-caption", "korean-spacing-lstm"])
def test_other_models_are_refused(model: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"{model} cannot be exported to CTranslate2"):
        export(model, to="ctranslate2", out=tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_without_the_extra(exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    for run in (
        lambda: export("date-en-ko", to="ctranslate2", out=tmp_path / "out"),
        lambda: manyheads.load(exported, engine="ctranslate2"),
    ):
        with pytest.raises(MissingExtraError, match=r"pip install 'manyheads\[ctranslate2\]'"):
            run()


@pytest.mark.parametrize("device", ["gpu", "cuda:77", "cpu:1"])
def test_a_device_that_it_lacks(exported: Path, device: str) -> None:
    with pytest.raises(UsageError, match=f"CTranslate2 has no device '{device}' here"):
        manyheads.load(exported, engine="ctranslate2", device=device)


def test_threads_of_torch_stay(exported: Path) -> None:
    """CTranslate2 sets OpenMP's number for the whole process."""
    torch.set_num_threads(2)
    loaded = manyheads.load(exported, engine="ctranslate2", threads=1)
    loaded(TEXTS[0])
    assert torch.get_num_threads() == 2


def test_quantized(tmp_path: Path) -> None:
    """Judged by the metric, so only where right answers are known; dates are generated."""
    with pytest.raises(UsageError, match="`data` or `texts`, not both"):
        export("date-en-ko", to="ctranslate2", texts=["Friday"], data="x", out=tmp_path / "x")
    made = export("date-en-ko", to="ctranslate2", quantization="int8", limit=60, out=tmp_path / "a")
    assert made.parity.metric == "exact"
    assert made.parity.lost is not None
    assert made.parity.lost <= 0.5
    whole = (ModelFolder(tmp_path / "a").path / "model.safetensors").stat().st_size
    assert made.size < whole + 2**20
    half = export("date-en-ko", to="ctranslate2", quantization="bfloat16", limit=60, out=made.model)
    assert half.model == made.model  # in place of the other
    record = json.loads((half.path / "engine.json").read_text("utf-8"))
    assert record["quantization"] == "bfloat16"
    assert record["versions"]["ctranslate2"] == ctranslate2.__version__
    found = manyheads.load(tmp_path / "a", engine="ctranslate2")
    assert found("Friday, 20 November 2026") == "2026년 11월 20일 금요일"

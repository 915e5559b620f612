"""Whole folders of Marian's format become ours, translate the same, and come back as they were."""

import json
import math
import re
import shutil
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from safetensors.torch import load_file, save_file

from manyheads.convert.marian_folder import from_marian, to_marian
from manyheads.convert.sources import WEIGHTS
from manyheads.engines.engine_parity import ParityError
from manyheads.errors import FolderError, NotFoundError, UsageError
from manyheads.measure.stored_model import evaluate
from manyheads.models.presets import PRESETS, register_preset
from manyheads.models.transformer import Transformer, TransformerConfig
from manyheads.predict.load import load
from manyheads.project.base_recipe import read_recipe
from manyheads.project.folder import ModelFolder
from manyheads.project.model_facts import describe
from manyheads.recipe_data.pair_splits import training_corpus
from manyheads.tasks.translate.predictor import Translator
from manyheads.tasks.translate.recipe import TranslateRecipe
from tests import opus
from tests.made import TRANSLATE, numbers, run, trained, write_numbers, write_recipe
from tests.models.test_marian import TRAINED
from tests.models.test_marian import load as load_golden


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Hugging Face folders of three kinds, and ours made of them. Copy one to change it."""
    base = tmp_path_factory.mktemp("marian")
    golden = load_golden(TRAINED)
    opus.write_letters(base / "letters", golden.config, golden.weights)
    opus.write_random(base / "separate", separate=True)
    opus.write_random(base / "pickled", pickled=True)
    for name in ("letters", "separate", "pickled"):
        from_marian(str(base / name), base / f"{name}-ours")
    return base


def translator(path: Path) -> Translator:
    found = load(path)
    assert isinstance(found, Translator)
    return found


# --- The same translations ----------------------------------------------------------------------


def test_translates_as_hugging_face_does(folders: Path) -> None:
    """From text to text: tokenizers, model, search and its configuration together."""
    texts = json.loads(load_golden(TRAINED).about["texts"])
    found = translator(folders / "letters-ours")(texts["texts"])
    assert found == texts["translations"]
    assert len(set(found)) >= 15


def test_what_repeats_itself_and_what_is_in_capitals_too(tmp_path: Path) -> None:
    """A search of ours would end the first, and read the others in sentence case."""
    opus.write_random(tmp_path / "theirs", max_length=64)
    from_marian(str(tmp_path / "theirs"), tmp_path / "ours")
    golden = Path(__file__).parents[1] / "golden" / "hf-marian-hard.json"
    recorded = json.loads(golden.read_text(encoding="utf-8"))
    ours = translator(tmp_path / "ours")
    assert (ours.decode.max_loop, ours.decode.recase) == (0, False)
    assert ours(recorded["texts"]) == recorded["translations"]


def test_old_and_new_files_are_one_model(folders: Path, tmp_path: Path) -> None:
    """A pickled file with tied matrices and positions in it, and what is stored today."""
    opus.write_random(tmp_path / "new")
    from_marian(str(tmp_path / "new"), tmp_path / "new-ours")
    old = load_file(folders / "pickled-ours" / "model.safetensors")
    new = load_file(tmp_path / "new-ours" / "model.safetensors")
    assert old.keys() == new.keys()
    assert all(torch.equal(old[name], new[name]) for name in old)


def test_two_vocabularies(folders: Path) -> None:
    ours = translator(folders / "separate-ours")
    config: Any = ours.model.config
    assert config.target_vocabulary not in (None, config.vocabulary)
    tokens = ours.translate(["The cat sits on the mat."])[0][0].tokens
    assert tokens
    assert max(tokens) < config.target_vocabulary


# --- There and back -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["letters", "separate", "pickled"])
def test_there_and_back_is_bitwise(folders: Path, tmp_path: Path, name: str) -> None:
    """Every file; where weights were pickled, safetensors with the same values."""
    to_marian(str(folders / f"{name}-ours"), tmp_path / "back")
    theirs, back = folders / name, tmp_path / "back"
    names = {path.name for path in theirs.iterdir()} - set(WEIGHTS)
    assert names == {path.name for path in back.iterdir()} - set(WEIGHTS)
    assert {"vocab.json", "source.spm", "target.spm", "generation_config.json"} <= names
    assert [
        each for each in names if (theirs / each).read_bytes() != (back / each).read_bytes()
    ] == []
    stored = load_file(back / "model.safetensors")
    if name == "pickled":
        expected = torch.load(theirs / "pytorch_model.bin", weights_only=True)
        assert "lm_head.weight" in expected.keys() - stored.keys()
    else:
        expected = load_file(theirs / "model.safetensors")
        assert stored.keys() == expected.keys()
    for key, tensor in stored.items():
        assert tensor.dtype == expected[key].dtype == torch.float16
        assert torch.equal(tensor, expected[key])


def test_our_own_model_in_their_format(tmp_path: Path) -> None:
    """Published and read again, it translates the same: all that it needs is in the folder."""
    made = to_marian(str(trained("translator")), tmp_path / "published")
    assert "2 * source + 16" in made.remarks[0]
    from_marian(str(tmp_path / "published"), tmp_path / "again")
    texts, _ = numbers(20, seed=7)
    expected = [best for best, *_ in translator(trained("translator")).translate(texts)]
    found = translator(tmp_path / "again")(texts)
    ended = [(e.text, f) for e, f in zip(expected, found, strict=True) if e.finished]
    assert len(ended) >= 15
    assert [e for e, _ in ended] == [f for _, f in ended]


def test_a_published_folder(tmp_path: Path) -> None:
    """What Hugging Face's classes look for, and a card with the head that the hub reads."""
    to_marian(str(trained("translator")), tmp_path / "published")
    names = {path.name for path in (tmp_path / "published").iterdir()}
    assert names == {
        "README.md",
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "source.spm",
        "target.spm",
        "tokenizer_config.json",
        "vocab.json",
    }
    card = (tmp_path / "published" / "README.md").read_text(encoding="utf-8")
    assert card.startswith("---\nlanguage:\n- en\n- de\npipeline_tag: translation\n")
    search = json.loads((tmp_path / "published" / "generation_config.json").read_text())
    vocabulary = json.loads((tmp_path / "published" / "vocab.json").read_text())
    last = len(vocabulary) - 1
    assert (search["num_beams"], search["pad_token_id"], search["eos_token_id"]) == (4, last, 1)
    assert search["decoder_start_token_id"] == vocabulary["<pad>"] == last


def test_ctranslate2_can_read_a_published_folder(tmp_path: Path) -> None:
    """Its converter pops the last token and row if that is the padding, and starts from zeros."""
    to_marian(str(trained("translator")), tmp_path / "published")
    vocabulary = json.loads((tmp_path / "published" / "vocab.json").read_text(encoding="utf-8"))
    assert sorted(vocabulary.values()) == list(range(len(vocabulary)))
    assert max(vocabulary, key=vocabulary.__getitem__) == "<pad>"
    assert vocabulary.keys() >= {"</s>", "<unk>", "<s>"}
    config = json.loads((tmp_path / "published" / "config.json").read_text(encoding="utf-8"))
    last = len(vocabulary) - 1
    assert config["pad_token_id"] == config["decoder_start_token_id"] == last
    weights = load_file(tmp_path / "published" / "model.safetensors")
    assert not weights["model.shared.weight"][last].any()
    assert weights["final_logits_bias"][0, last] < -1000


def test_two_vocabularies_are_for_hugging_face_only(tmp_path: Path) -> None:
    """CTranslate2's converter registers one vocabulary for both sides: the remark says so."""
    write_numbers(tmp_path, train=40)
    recipe = write_recipe(tmp_path / "separate.toml", TRANSLATE, tmp_path)
    run(recipe, tmp_path / "run", "tokenizer.shared=false", "train.steps=1")
    made = to_marian(str(tmp_path / "run"), tmp_path / "published")
    assert any("CTranslate2's converter does not" in remark for remark in made.remarks)
    assert (tmp_path / "published" / "target_vocab.json").exists()


def test_only_transformers_that_translate_are_published(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="digits is not a translating Transformer"):
        to_marian("digits", tmp_path / "out")
    with pytest.raises(UsageError, match=r"model\.norm is 'pre'; Marian's format has only 'post'"):
        to_marian("date-en-ko", tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@dataclass(frozen=True, kw_only=True)
class Halved(TransformerConfig):
    """A Transformer whose decoder sees half of what the encoder found."""

    def build(self) -> Transformer:
        model = super().build()
        model.encoder.register_forward_hook(lambda module, given, found: found / 2)
        return model


class Published(Halved):
    """One that claims the format although it has no place for that."""

    exports = ("marian", "ctranslate2")


@pytest.mark.parametrize(
    ("kind", "error", "told"),
    [
        (Halved, UsageError, "is not a translating Transformer"),
        (Published, ParityError, "log-probabilities of tokens differ by up to .* Nothing was kept"),
    ],
)
def test_what_the_format_has_no_place_for(
    tmp_path: Path, kind: type[Halved], error: type[Exception], told: str
) -> None:
    """An own model that is another model there is not written."""
    register_preset("halved", kind(norm="post"))
    try:
        write_numbers(tmp_path, train=40)
        recipe = write_recipe(tmp_path / "halved.toml", TRANSLATE, tmp_path)
        run(recipe, tmp_path / "run", 'model.preset="halved"', "train.steps=30")
        with pytest.raises(error, match=told):
            to_marian(str(tmp_path / "run"), tmp_path / "published")
    finally:
        del PRESETS["halved"]
    assert not (tmp_path / "published").exists()


# --- What the folder says -----------------------------------------------------------------------


def test_the_search_is_theirs(folders: Path) -> None:
    """Their max_length counts the start token, ours does not."""
    table = tomllib.loads((folders / "separate-ours" / "recipe.toml").read_text(encoding="utf-8"))
    pad = table["model"]["pad"]
    told = {"beams": 3, "max_length": 11, "forced_end": True, "banned": [pad], "renormalise": True}
    assert {key: table["decode"][key] for key in told} == told


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"num_beams": None}, {"beams": 1}),
        ({"length_penalty": 0.6}, {"length_penalty": 0.6}),
        ({"early_stopping": True}, {"early_stopping": True}),
        ({"max_new_tokens": 7}, {"max_length": 7}),
        ({"forced_eos_token_id": None}, {"forced_end": False}),
        ({"bad_words_ids": [[0]]}, {"banned": (), "renormalise": False}),  # the end is exempt
        ({"min_length": 3, "min_new_tokens": 5}, {"min_length": 5}),
        ({"bad_words_ids": [[5]], "suppress_tokens": [7, 5]}, {"banned": (5, 7)}),
        (
            {"do_sample": True, "num_beams": 1, "top_p": 0.9, "temperature": 0.7},
            {"sample": True, "top_k": 50, "top_p": 0.9, "temperature": 0.7},
        ),
        ({"no_repeat_ngram_size": 3, "min_length": 4}, {"no_repeat_ngram": 3, "min_length": 3}),
    ],
)
def test_the_search_is_read(
    folders: Path, tmp_path: Path, change: dict[str, Any], expected: dict[str, Any]
) -> None:
    _, recipe = _converted(folders, tmp_path, "generation_config.json", lambda c: c | change)
    assert {key: getattr(recipe.decode, key) for key in expected} == expected


def test_an_older_folder_has_its_search_in_config_json(folders: Path, tmp_path: Path) -> None:
    """Where the end is forced unless it says otherwise."""
    shutil.copytree(folders / "separate", tmp_path / "old")
    search = json.loads((tmp_path / "old" / "generation_config.json").read_text())
    (tmp_path / "old" / "generation_config.json").unlink()
    config = json.loads((tmp_path / "old" / "config.json").read_text())
    del config["forced_eos_token_id"], search["forced_eos_token_id"]
    opus.write_json(tmp_path / "old" / "config.json", config | search)
    from_marian(str(tmp_path / "old"), tmp_path / "ours")
    old, new = (
        cast(TranslateRecipe, ModelFolder(path).recipe)
        for path in (tmp_path / "ours", folders / "separate-ours")
    )
    assert old.decode == new.decode


def test_what_their_search_has_more_is_said(folders: Path, tmp_path: Path) -> None:
    change = {"repetition_penalty": 1.2, "early_stopping": "never"}
    made, _ = _converted(folders, tmp_path, "generation_config.json", lambda c: c | change)
    assert "repetition_penalty = 1.2" in made.remarks[0]
    assert "'never'" in made.remarks[1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"forced_bos_token_id": 5}, "forced_bos_token_id = 5"),
        ({"bad_words_ids": [[4, 5]]}, "sequences of tokens"),
        ({"begin_suppress_tokens": [4]}, r"begin_suppress_tokens = \[4\]"),
        ({"sequence_bias": [[[3], 1.0]]}, "sequence_bias"),
        ({"stop_strings": "."}, r"stop_strings = '\.'"),
        ({"guidance_scale": 2}, "guidance_scale = 2"),
        ({"something_new": 1}, "something_new = 1"),
        ({"do_sample": True, "num_beams": 2}, "samples with beams"),
        ({"do_sample": True, "num_beams": 1, "min_p": 0.1}, r"min_p = 0\.1"),
        ({"max_length": None}, "no max_length"),
    ],
)
def test_every_entry_that_changes_the_answer_is_said(
    folders: Path, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    """What is neither taken nor without effect; new entries, which nobody knows yet, too."""
    made, _ = _converted(folders, tmp_path, "generation_config.json", lambda c: c | change)
    assert len(made.remarks) == 1
    assert re.search(message, made.remarks[0])


def test_entries_without_an_effect_are_not_said(folders: Path, tmp_path: Path) -> None:
    change: dict[str, Any] = {"use_cache": False, "num_return_sequences": 3, "min_p": 0.1}
    change |= {"stop_strings": None, "num_beam_groups": 1, "suppress_tokens": []}
    change |= {"transformers_version": "9"}
    made, _ = _converted(folders, tmp_path, "generation_config.json", lambda c: c | change)
    assert made.remarks == []


def test_the_token_that_starts_an_output_is_that_of_the_search(
    folders: Path, tmp_path: Path
) -> None:
    """Theirs takes it from the generation configuration first."""
    change = {"decoder_start_token_id": 3}
    _, recipe = _converted(folders, tmp_path, "generation_config.json", lambda c: c | change)
    assert recipe.model["start"] == 3


def _converted(
    folders: Path, tmp_path: Path, name: str, change: Callable[[dict[str, Any]], Any]
) -> tuple[Any, Any]:
    """Convert the folder with one of its JSON files changed."""
    shutil.copytree(folders / "separate", tmp_path / "theirs")
    path = tmp_path / "theirs" / name
    opus.write_json(path, change(json.loads(path.read_text(encoding="utf-8"))))
    made = from_marian(str(tmp_path / "theirs"), tmp_path / "ours")
    return made, ModelFolder(tmp_path / "ours").recipe


def test_the_folder_says_where_it_comes_from(folders: Path) -> None:
    """In its card and to `manyheads info`: origin and licence, and nothing about training."""
    card = (folders / "letters-ours" / "README.md").read_text(encoding="utf-8")
    assert "| converted from | letters (marian) |" in card
    assert "| licence | cc-by-4.0 |" in card
    assert str(folders) not in card
    facts = describe(str(folders / "letters-ours"))
    assert facts["trained"]["origin"] == "letters"
    assert "steps" not in facts["trained"]


def test_every_file_is_checked(folders: Path, tmp_path: Path) -> None:
    """Theirs too: the numbers of vocab.json are as much of the model as its weights."""
    shutil.copytree(folders / "letters-ours", tmp_path / "ours")
    path = tmp_path / "ours" / "marian" / "vocab.json"
    path.write_bytes(path.read_bytes().replace(b'"\\u2581a"', b'"\\u2581k"'))
    with pytest.raises(FolderError, match=r"vocab\.json is not the file that was written"):
        load(tmp_path / "ours")


def test_its_training_data_are_not_here(folders: Path) -> None:
    """To measure it, or to go on with it, name your own."""
    recipe: Any = read_recipe(folders / "letters-ours" / "recipe.toml")
    with pytest.raises(UsageError, match=r"converted:letters.*with `data`"):
        training_corpus(recipe.data)
    with pytest.raises(UsageError, match="not here"):
        evaluate(translator(folders / "letters-ours"))


@pytest.mark.filterwarnings("ignore:text 1")  # random weights: notes on what they put out
def test_languages_and_prefix(tmp_path: Path) -> None:
    """A language code that is needed and not given is pointed out."""
    opus.write_random(tmp_path / "theirs")
    made = from_marian(str(tmp_path / "theirs"), tmp_path / "plain")
    assert (made.source, made.target) == ("eng", "kor")
    assert ">>kor<<, >>deu<<" in made.remarks[0]
    made = from_marian(
        str(tmp_path / "theirs"),
        tmp_path / "prefixed",
        source_language="en",
        target_language="ko",
        prefix=">>kor<<",
    )
    assert (made.source, made.target, made.remarks) == ("en", "ko", [])
    text = "The dog reads."
    assert translator(tmp_path / "prefixed")(text) == translator(tmp_path / "plain")(
        f">>kor<< {text}"
    )


# --- Mistakes -----------------------------------------------------------------------------------


def test_a_folder_in_use_is_left_alone(folders: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for write in (from_marian, to_marian):
        with pytest.raises(UsageError, match="is there already"):
            write(str(folders / "letters"), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def _damage(name: str, content: bytes | None) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        if content is None:
            (folder / name).unlink()
        else:
            (folder / name).write_bytes(content)

    return damage


def _other_vocabulary(folder: Path) -> None:
    path = folder / "vocab.json"
    numbers = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({piece: n + 1 for piece, n in numbers.items()}), encoding="utf-8")


def _other_end(folder: Path) -> None:
    path = folder / "vocab.json"
    swapped = json.loads(path.read_text(encoding="utf-8")) | {"</s>": 1, "<unk>": 0}
    path.write_text(json.dumps(swapped), encoding="utf-8")


def _other_weights(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    name = "model.encoder.layers.0.fc1.weight"
    save_file(weights | {name: weights[name][:7].clone()}, folder / "model.safetensors")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_damage("config.json", None), r"config\.json cannot be read: .*No such file"),
        (_damage("config.json", b"{"), r"config\.json cannot be read"),
        (_damage("model.safetensors", None), r"no weights: looked for model\.safetensors and pyt"),
        (_damage("model.safetensors", b"\0" * 64), r"model\.safetensors cannot be read"),
        (_damage("source.spm", None), r"source\.spm cannot be read"),
        (_other_vocabulary, r"numbers up to 13, the model has 13 tokens"),
        (_other_end, r"vocabulary has </s> as 1, the model as 0"),
        (_other_weights, r"not with its config\.json:\n- encoder.blocks.0.feedforward.expand"),
    ],
)
def test_damaged_folders_are_named(
    folders: Path, tmp_path: Path, damage: Callable[[Path], None], message: str
) -> None:
    """And nothing is left behind."""
    shutil.copytree(folders / "letters", tmp_path / "theirs")
    damage(tmp_path / "theirs")
    with pytest.raises(FolderError, match=message):
        from_marian(str(tmp_path / "theirs"), tmp_path / "ours")
    assert [path.name for path in tmp_path.iterdir()] == ["theirs"]


MALFORMED = {
    "empty": b"",
    "list": b"[]",
    "cut": b"{",
    "utf-16": b"\xff\xfe",
    "deep": b"[" * 5000,
    "tables": b'{"a":' * 500 + b"1" + b"}" * 500,
}


@pytest.mark.parametrize("content", MALFORMED.values(), ids=MALFORMED)
@pytest.mark.parametrize(
    "name",
    ["config.json", "generation_config.json", "tokenizer_config.json", "vocab.json"],
)
def test_malformed_files_are_named(
    folders: Path, tmp_path: Path, name: str, content: bytes
) -> None:
    """And nothing is left behind."""
    shutil.copytree(folders / "letters", tmp_path / "theirs")
    (tmp_path / "theirs" / name).write_bytes(content)
    with pytest.raises(FolderError, match=name.replace(".", r"\.")):
        from_marian(str(tmp_path / "theirs"), tmp_path / "ours")
    assert [path.name for path in tmp_path.iterdir()] == ["theirs"]


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("config.json", {"d_model": "wide"}, "d_model = 'wide'; it should be like 1024"),
        ("config.json", {"d_model": 1 << 20}, "the model has"),
        ("config.json", {"d_model": 10**30}, "d_model = 1000"),
        ("config.json", {"encoder_layers": 10**9}, "encoder_layers = 1000000000"),
        ("config.json", {"dropout": math.nan}, "dropout = nan"),
        ("config.json", {"dropout": 2.0}, "less than or equal to 1|dropout"),
        (
            "config.json",
            {"encoder_attention_heads": 0, "decoder_attention_heads": 0},
            "go together",
        ),
        ("config.json", {"encoder_attention_heads": 7, "decoder_attention_heads": 7}, "heads"),
        ("config.json", {"max_position_embeddings": 1 << 23}, "max_position_embeddings 8388608"),
        ("config.json", {"scale_embedding": [1]}, r"scale_embedding = \[1\]"),
        ("config.json", {"model_type": ["marian"]}, "model_type"),
        ("generation_config.json", {"num_beams": "many"}, "num_beams = 'many'"),
        ("generation_config.json", {"num_beams": 10**9}, "num_beams = 1000000000"),
        ("generation_config.json", {"length_penalty": math.nan}, "length_penalty = nan"),
        ("generation_config.json", {"bad_words_ids": [5]}, r"bad_words_ids = \[5\]"),
        ("generation_config.json", {"bad_words_ids": [[500]]}, "token 500, the model has 13"),
        ("generation_config.json", {"max_length": 3, "min_length": 9}, "do not go together"),
        ("generation_config.json", {"eos_token_id": [0, 5]}, "only that can end"),
        ("tokenizer_config.json", {"source_lang": 5}, "source_lang = 5"),
        ("tokenizer_config.json", {"unk_token": "<what>"}, "unk_token = '<what>'"),
        ("vocab.json", {"</s>": True}, "does not map pieces to ids"),
        ("vocab.json", {"\ud800": 3}, "not UTF-8"),
        ("vocab.json", {"more": 10**12}, "numbers up to 1000000000000"),
    ],
)
def test_wrong_values_are_named(
    folders: Path, tmp_path: Path, name: str, change: dict[str, Any], message: str
) -> None:
    """Of the wrong type, or of no size that could be; nothing is left behind."""
    shutil.copytree(folders / "letters", tmp_path / "theirs")
    path = tmp_path / "theirs" / name
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | change))
    with pytest.raises((FolderError, UsageError), match=message):
        from_marian(str(tmp_path / "theirs"), tmp_path / "ours")
    assert [path.name for path in tmp_path.iterdir()] == ["theirs"]


def test_a_pickle_that_runs_code_is_refused(folders: Path, tmp_path: Path) -> None:
    shutil.copytree(folders / "pickled", tmp_path / "theirs")
    path = tmp_path / "theirs" / "pytorch_model.bin"
    torch.save(torch.load(path, weights_only=True) | {"code": SimpleNamespace()}, path)
    with pytest.raises(FolderError, match=r"pytorch_model\.bin holds more than tensors"):
        from_marian(str(tmp_path / "theirs"), tmp_path / "ours")


# --- Names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["no-such-folder", "Helsinki-NLP/opus-mt-en-de", "../nowhere"])
def test_neither_folder_nor_name(tmp_path: Path, name: str) -> None:
    """A name on the hub begins with hf:, so a mistyped path is none."""
    with pytest.raises(NotFoundError, match=r"There is no file or folder .* hf:timm/"):
        from_marian(name, tmp_path / "ours")

"""Marian models become model folders, and our translators are written in Marian's format.

`models/convert` maps configurations and tensors; here files are found, checked and put together.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any, NamedTuple, cast

import torch
from pydantic import TypeAdapter
from torch import Tensor, nn

from manyheads.asks.decode_config import DecodeConfig
from manyheads.convert.converted_folder import model_folder
from manyheads.convert.foreign_files import check_fit, find_table, misfits, read_table
from manyheads.convert.search_settings import read_search
from manyheads.convert.sources import Source, opened
from manyheads.data.tokenizers.marian_tokenizer import (
    END,
    PAD,
    UNKNOWN,
    MarianTokenizer,
    read_marian,
)
from manyheads.data.tokenizers.tokenizer import Tokenizers
from manyheads.engines.engine_parity import Parity, ParityError
from manyheads.errors import FolderError, UsageError
from manyheads.files import new_folder, write_atomically, write_text
from manyheads.models.convert import marian_weights as marian
from manyheads.models.transformer import TransformerConfig
from manyheads.project.base_recipe import CONVERTED
from manyheads.project.card import card
from manyheads.project.folder import (
    ModelFolder,
    read_weights,
    refuse_used,
    write_json,
    write_tensors,
)
from manyheads.project.model_facts import count_parameters
from manyheads.project.paths import find_model
from manyheads.project.sentencepiece_files import load_vocabularies
from manyheads.recipe_data.text_data import PairData
from manyheads.tasks.translate.recipe import TranslateRecipe
from manyheads.train.model_tensors import restore

UNLIMITED = "ours ends an output at 2 * source + 16"
FOLDER = "marian"  # of a converted model: the files as they came, the weights left out
DRAWN, LONG = 8, 16  # sequences of random tokens that are compared, and their length
KEPT = {".json", ".md", ".spm", ".txt", ".yml"}


class Conversion(NamedTuple):
    """What was written, and what its user should know."""

    folder: Path
    parameters: int
    source: str
    target: str
    remarks: list[str]


def from_marian(
    source: str | Source,
    out: Path,
    *,
    source_language: str | None = None,
    target_language: str | None = None,
    prefix: str = "",
) -> Conversion:
    """Make a model folder of a Hugging Face Marian model, such as those of OPUS-MT.

    Args:
        source: a folder, a name on the hub such as "hf:Helsinki-NLP/opus-mt-en-de", or what is
            open of one.
        out: the folder to write; new or empty.
        source_language: in place of what the tokenizer's configuration says.
        target_language: the same.
        prefix: a language code such as ">>kor<<" for texts that begin with none.

    Raises:
        NotFoundError: no such folder.
        MissingExtraError: a name on the hub, without the package that fetches it.
        DataError: the hub cannot be reached.
        FolderError: files are missing, damaged, or do not belong together.
        UsageError: not a model that ours can be; `out` is in use.
    """
    refuse_used(out)
    with opened(source) as origin:
        files, about = origin.where, origin.about
        marian.read.check(about)
        settings = find_table(files / "tokenizer_config.json") or {}
        remarks = _check_tokenizer_config(settings, files)
        tokenizers = read_marian(files, prefix=prefix)
        with misfits(files):
            config, state = marian.read(about, origin.tensors)
            config = TypeAdapter(TransformerConfig).validate_python(asdict(config))
        check_fit(config, state, files)
        _check_tokens(tokenizers, config, files)
        told_search = {"forced_eos_token_id": 0} | dict(about)  # where there is no file of its own
        decode, start, of_search = read_search(files, told_search, config, UNLIMITED)
        config, remarks = replace(config, start=start), of_search + remarks
        data = PairData(
            train=f"{CONVERTED}{origin.origin}",
            valid=f"{CONVERTED}{origin.origin}",
            source=source_language or _language(settings, "source_lang", files) or "source",
            target=target_language or _language(settings, "target_lang", files) or "target",
        )
        recipe = TranslateRecipe(
            task="translate",
            data=data,
            converted=origin.converted("marian", prefix=prefix),
            model={"preset": "transformer-base"},
            decode=decode,
        )
        assert isinstance(tokenizers.source, MarianTokenizer)
        codes = tokenizers.source.codes
        if codes and not prefix:
            shown = ", ".join(codes[:8]) + (", ..." if len(codes) > 8 else "")
            remarks.append(
                f"The model knows language codes ({shown}): begin each text with one, or convert "
                "again with a `prefix`."
            )
        with model_folder(out, recipe, config, state) as folder:
            for path in files.iterdir():
                small = path.suffix in KEPT or path.name.startswith("LICENSE")
                if path.is_file() and small and not path.name.endswith(".index.json"):
                    write_atomically(folder / FOLDER / path.name, path.read_bytes())
        return Conversion(out, count_parameters(config), data.source, data.target, remarks)


def to_marian(model: str, out: Path) -> Conversion:
    """Write a translator as a folder that Hugging Face's MarianMTModel and MarianTokenizer load.

    So does CTranslate2's converter, unless each language has a vocabulary of its own.
    What was converted from that format gets its own files back, with the weights of today.

    Raises:
        NotFoundError: no such model.
        FolderError: the model's folder is damaged.
        UsageError: not a Transformer that Marian can be; `out` is in use.
        ParityError: what is written does not answer as the model does.
    """
    refuse_used(out)
    ours = ModelFolder(find_model(model))
    recipe = cast(TranslateRecipe, ours.recipe)
    config = cast(TransformerConfig, recipe.config())
    if "marian" not in config.exports:
        raise UsageError(
            f"{model} is not a translating Transformer: Marian's format has no place for others."
        )
    if recipe.tokenizer.tag:
        raise UsageError(
            f"Texts of {model} begin with a tag ({recipe.tokenizer.tag}): Marian's format has no "
            "place for one."
        )
    state = read_weights(ours.path / "model.safetensors")
    start, order = config.start, list(range(config.vocabulary))
    if not recipe.converted:
        config, state, order = marian.pad_last(config, state)
    about, tensors = marian.write(config, state)
    remarks: list[str] = []
    with new_folder(out) as folder:
        write_tensors(folder, tensors)
        if recipe.converted:
            for path in (ours.path / FOLDER).iterdir():
                write_atomically(folder / path.name, path.read_bytes())
        else:
            generation, remarks = _write_search(recipe.decode, config, order)
            write_json(folder / "config.json", about)
            write_json(folder / "generation_config.json", generation)
            _write_tokenizers(ours.path, folder, recipe.data, config, order, start)
            write_text(folder / "README.md", _published_card(ours, recipe))
        _compare(ours, read_table(folder / "config.json"), tensors, order)
    data = recipe.data
    return Conversion(out, count_parameters(config), data.source, data.target, remarks)


def _compare(
    ours: ModelFolder, about: Mapping[str, Any], tensors: dict[str, Tensor], order: list[int]
) -> None:
    """Read back what is written, and compare it with our model on random tokens."""
    own: Any = ours.recipe.config()
    config, state = marian.read(about, tensors)
    theirs = config.build().eval()
    restore(theirs, state, ours.path)
    new = torch.tensor(order).argsort()
    known = new.new_tensor([token for token in range(own.vocabulary) if token != own.pad])
    targets, renamed = known, new
    if own.target_vocabulary is not None:
        targets = renamed = torch.arange(own.target_vocabulary)
    draws = torch.Generator().manual_seed(0)
    source, target = (
        each[torch.randint(len(each), (DRAWN, LONG), generator=draws)] for each in (known, targets)
    )

    def run(model: nn.Module, source: Tensor, target: Tensor, start: int) -> Tensor:
        return model(source, nn.functional.pad(target, (1, 0), value=start))

    with torch.inference_mode():
        logits = run(ours.model(), source, target, own.start)[..., targets]
        found = run(theirs, new[source], renamed[target], config.start)[..., renamed[targets]]
    # One number that is added to all logits of a token changes nothing.
    difference = (logits.log_softmax(-1) - found.log_softmax(-1)).abs().max() / logits.abs().max()
    parity = Parity(
        data="random tokens",
        inputs=DRAWN,
        compared="log-probabilities of tokens",
        difference=float(difference),
        changed=0.0,
    )
    if failures := list(parity.failures("float32")):
        raise ParityError(
            f"{ours.name} in Marian's format is not what it is on torch: {'; '.join(failures)}. "
            "Nothing was kept.",
            parity,
        )


# --- Reading their files ------------------------------------------------------------------------


def _check_tokens(tokenizers: Tokenizers, config: TransformerConfig, folder: Path) -> None:
    """Make sure that vocabulary and model mean the same by their numbers."""
    limits = (config.vocabulary, config.target_vocabulary or config.vocabulary)
    # Only sources are padded: a vocabulary of the target's own may count its padding otherwise.
    special = ({END: config.end, PAD: config.pad}, {END: config.end})
    for tokenizer, limit, expected in zip(tokenizers, limits, special, strict=True):
        assert isinstance(tokenizer, MarianTokenizer)
        if len(tokenizer) > limit:
            raise FolderError(
                f"The vocabulary in {folder} has numbers up to {len(tokenizer) - 1}, the model has "
                f"{limit} tokens: they do not belong together. Get the whole folder again."
            )
        for token, number in expected.items():
            if tokenizer.vocabulary[token] != number:
                raise FolderError(
                    f"In {folder} the vocabulary has {token} as {tokenizer.vocabulary[token]}, the "
                    f"model as {number}: they do not belong together. Get the whole folder again."
                )


def _language(settings: Mapping[str, Any], key: str, folder: Path) -> str | None:
    value = settings.get(key)
    if not isinstance(value, str | None):
        raise FolderError(
            f"{folder / 'tokenizer_config.json'} has {key} = {value!r:.80}, which must be the name "
            "of a language. Correct it, or get the folder again."
        )
    return value


def _check_tokenizer_config(settings: Mapping[str, Any], folder: Path) -> list[str]:
    """Refuse special tokens of other names; say what is read otherwise."""
    special = {"eos_token": END, "pad_token": PAD, "unk_token": UNKNOWN}
    for key, usual in special.items():
        value = settings.get(key) or usual
        if (value.get("content") if isinstance(value, dict) else value) != usual:
            raise UsageError(
                f"{folder / 'tokenizer_config.json'} has {key} = {value!r:.80}; only {usual!r} "
                "can be converted."
            )
    remarks = [
        f"Their tokenizer has {key} = {settings[key]!r:.80}, and Manyheads has no "
        "equivalent: outputs may differ."
        for key in ("sp_model_kwargs", "additional_special_tokens", "extra_special_tokens")
        if settings.get(key)
    ]
    added = find_table(folder / "added_tokens.json") or {}
    more = [token for token in added if token not in special.values()]
    if more:
        remarks.append(
            f"Their tokenizer has added tokens ({', '.join(more)[:80]}), which are plain text here."
        )
    return remarks


# --- Writing their files ------------------------------------------------------------------------


def _write_search(
    decode: DecodeConfig, config: TransformerConfig, order: Sequence[int]
) -> tuple[dict[str, Any], list[str]]:
    """Make a generation configuration of a [decode] table; say what it leaves out."""
    settings = {
        "pad_token_id": config.pad,
        "eos_token_id": config.end,
        "decoder_start_token_id": config.start,
        "num_beams": 1 if decode.sample else decode.beams,
        "length_penalty": decode.length_penalty,
        "early_stopping": decode.early_stopping,
        "no_repeat_ngram_size": decode.no_repeat_ngram,
        "min_length": decode.min_length + 1 if decode.min_length else 0,  # with the start token
        "max_length": min((decode.max_length or config.max_length) + 1, config.max_length),
        "forced_eos_token_id": config.end if decode.forced_end else None,
        "bad_words_ids": [[order.index(token)] for token in decode.banned] or None,
        "renormalize_logits": decode.renormalise,
        "do_sample": decode.sample,
    }
    if decode.sample:
        settings |= {
            "temperature": decode.temperature,
            "top_k": decode.top_k or 0,
            "top_p": decode.top_p,
        }
    left = [
        f"[decode] has {field.name} = {getattr(decode, field.name)!r}, which their search has not."
        for field in fields(decode)
        if field.name in ("coverage_penalty", "groups", "diversity")
        and getattr(decode, field.name) != field.default
    ]
    if config.target_vocabulary is not None:
        left.append(
            "Each language has a vocabulary of its own: Hugging Face reads that, CTranslate2's "
            "converter does not."
        )
    if decode.max_length is None:
        left.append(
            "Ours ends an output at 2 * source + 16 tokens at the latest; theirs at "
            f"{settings['max_length']}."
        )
    return settings, left


def _write_tokenizers(
    ours: Path,
    folder: Path,
    data: PairData,
    config: TransformerConfig,
    order: Sequence[int],
    start: int,
) -> None:
    """Write sentencepiece models, and vocabularies that give each piece the number it has there.

    `order` has our number of each of theirs, `start` is our start token.
    """
    found = load_vocabularies(ours)
    names = [*found] if len(found) == 2 else [*found, *found]
    vocabularies = ("vocab.json", "target_vocab.json")
    for name, side, vocabulary in zip(names, ("source", "target"), vocabularies, strict=True):
        tokenizer = found[name]
        write_atomically(folder / f"{side}.spm", tokenizer.model)
        if side == "source" or len(found) == 2:
            numbers = order if len(found) == 1 else range(len(tokenizer))
            pieces = {tokenizer.piece(ours): theirs for theirs, ours in enumerate(numbers)}
            write_json(folder / vocabulary, pieces)
    write_json(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "MarianTokenizer",
            "source_lang": data.source,
            "target_lang": data.target,
            "separate_vocabs": len(found) == 2,
            "bos_token": found[names[0]].piece(start),
            "eos_token": END,
            "pad_token": PAD,
            "unk_token": UNKNOWN,
            "model_max_length": config.max_length,
        },
    )


def _published_card(folder: ModelFolder, recipe: TranslateRecipe) -> str:
    title, _, rest = card(folder).partition("\n")
    template = Path(__file__).with_name("marian_card.md").read_text("utf-8").removesuffix("\n")
    data = recipe.data
    return template.format(source=data.source, target=data.target, title=title, rest=rest)

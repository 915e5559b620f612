"""Marian models become model folders, and our translators are written in Marian's format.

`models/convert` maps configurations and tensors; here files are found, checked and put together.
"""

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple, cast

from safetensors.torch import load_file, save_file
from torch import Tensor

from manyheads.app.convert.foreign_files import (
    fetch_model,
    looks_like_hub_name,
    read_license,
    read_table,
    read_tensors,
)
from manyheads.app.data.tables import PairData
from manyheads.app.pipelines.translate import TranslateRecipe
from manyheads.app.project.card import card, write_card
from manyheads.app.project.folder import (
    ModelFolder,
    new_folder,
    refuse_used,
    write_atomically,
    write_json,
    write_manifest,
)
from manyheads.app.project.info import count_parameters
from manyheads.app.project.paths import find_model
from manyheads.app.project.recipe import CONVERTED, Converted, write_recipe
from manyheads.app.project.vocabulary import load_vocabularies
from manyheads.data.tokenizers.marian import END, PAD, UNKNOWN, MarianTokenizer, read_marian
from manyheads.data.tokenizers.tokenizer import Tokenizers
from manyheads.errors import FolderError, NotFoundError, UsageError
from manyheads.models.convert import marian
from manyheads.models.presets import build
from manyheads.models.transformer import TransformerConfig
from manyheads.tasks.decoding import DecodeConfig
from manyheads.train.checkpoint import restore

FOLDER = "marian"  # of a converted model: the files as they came, the weights left out
KEPT = {".json", ".md", ".spm", ".txt", ".yml"}
WEIGHTS = ("model.safetensors", "pytorch_model.bin")
# What their search can do and ours cannot, and the value that switches it off.
SEARCH = {
    "do_sample": False,
    "encoder_no_repeat_ngram_size": 0,
    "exponential_decay_length_penalty": None,
    "forced_bos_token_id": None,
    "num_beam_groups": 1,
    "repetition_penalty": 1.0,
    "suppress_tokens": None,
}


class Conversion(NamedTuple):
    """What was written, and what its user should know."""

    folder: Path
    parameters: int
    source: str
    target: str
    remarks: list[str]


def from_marian(
    source: str,
    out: Path,
    *,
    source_language: str | None = None,
    target_language: str | None = None,
    prefix: str = "",
) -> Conversion:
    """Make a model folder of a Hugging Face Marian model, such as those of OPUS-MT.

    Args:
        source: a folder, or a name on the hub such as "Helsinki-NLP/opus-mt-en-de".
        out: the folder to write; new or empty.
        source_language: in place of what the tokenizer's configuration says.
        target_language: the same.
        prefix: a language code such as ">>kor<<" for texts that begin with none.

    Raises:
        NotFoundError: no such folder.
        MissingExtraError: a name on the hub, without the package that fetches it.
        FolderError: files are missing, damaged, or do not belong together.
        UsageError: not a model that ours can be; `out` is in use.
    """
    refuse_used(out)
    files = _find(source)
    about = read_table(files / "config.json")
    config, state = marian.read(about, _read_weights(files))
    try:
        restore(build(config), state, files)
    except FolderError as error:
        differences = str(error).partition("\n")[2].rpartition("\n")[0]
        raise FolderError(
            f"The weights in {files} do not fit its config.json:\n{differences}\n"
            "Get the whole folder again."
        ) from error
    tokenizers = read_marian(files, prefix=prefix)
    _check_tokens(tokenizers, config, files)
    decode, remarks = _read_search(files, about, config)
    told = read_table(files / "tokenizer_config.json", needed=False)
    # A path means nothing on other machines.
    origin = files.resolve().name if Path(source).expanduser().is_dir() else source
    data = PairData(
        train=f"{CONVERTED}{origin}",
        valid=f"{CONVERTED}{origin}",
        source=source_language or told.get("source_lang") or "source",
        target=target_language or told.get("target_lang") or "target",
    )
    recipe = TranslateRecipe(
        task="translate",
        data=data,
        converted=Converted(
            format="marian", origin=origin, license=read_license(files), prefix=prefix
        ),
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
    with new_folder(out) as folder:
        (folder / FOLDER).mkdir()
        for path in _kept(files):
            shutil.copyfile(path, folder / FOLDER / path.name)
        save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
        (folder / "recipe.toml").write_text(write_recipe(recipe, config), encoding="utf-8")
        write_manifest(folder, recipe)
    write_card(ModelFolder(out))
    return Conversion(out, count_parameters(config), data.source, data.target, remarks)


def to_marian(model: str, out: Path) -> Conversion:
    """Write a translator as a folder that Hugging Face's MarianMTModel and MarianTokenizer load.

    What was converted from that format gets its own files back, with the weights of today.

    Raises:
        NotFoundError: no such model.
        FolderError: the model's folder is damaged.
        UsageError: not a Transformer that Marian can be; `out` is in use.
    """
    refuse_used(out)
    ours = ModelFolder(find_model(model))
    recipe = cast(TranslateRecipe, ours.recipe)
    config = cast(TransformerConfig, recipe.config())
    if recipe.task != "translate" or "marian" not in config.exports:
        raise UsageError(
            f"{model} is not a translating Transformer: Marian's format has no place for others."
        )
    about, tensors = marian.write(config, load_file(ours.path / "model.safetensors"))
    remarks: list[str] = []
    with new_folder(out) as folder:
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
        if recipe.converted:
            for path in (ours.path / FOLDER).iterdir():
                shutil.copyfile(path, folder / path.name)
        else:
            generation, remarks = _write_search(recipe.decode, config)
            write_json(folder / "config.json", about)
            write_json(folder / "generation_config.json", generation)
            _write_tokenizers(ours.path, folder, recipe.data, config)
            (folder / "README.md").write_text(_published_card(ours, recipe), encoding="utf-8")
    return Conversion(
        out, count_parameters(config), recipe.data.source, recipe.data.target, remarks
    )


# --- Reading their files ------------------------------------------------------------------------


def _find(source: str) -> Path:
    """Find a folder; fetch it from the hub if it is a name there."""
    path = Path(source).expanduser()
    if path.is_dir():
        if not (path / "config.json").exists():
            raise FolderError(
                f"{path} has no config.json: it is not the folder of a Hugging Face model."
            )
        return path
    if not looks_like_hub_name(source):
        raise NotFoundError(
            f"There is no folder {source!r}. Give the folder of a Hugging Face Marian model, or "
            'its name on the hub, such as "Helsinki-NLP/opus-mt-en-de".'
        )
    small = [f"*{suffix}" for suffix in sorted(KEPT)] + ["LICENSE*"]
    return fetch_model(source, small, WEIGHTS)


def _read_weights(folder: Path) -> dict[str, Tensor]:
    for path in (folder / name for name in WEIGHTS):
        if path.exists():
            try:
                return read_tensors(path)
            except FolderError as error:
                raise FolderError(f"The weights in {folder} cannot be read: {error}") from error
    raise FolderError(
        f"{folder} has no weights: looked for {' and '.join(WEIGHTS)}. Get the whole folder again."
    )


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


def _read_search(
    folder: Path, about: Mapping[str, Any], config: TransformerConfig
) -> tuple[DecodeConfig, list[str]]:
    """Make a [decode] table of their generation configuration; say what it leaves out."""
    # Without a file of its own, search is configured in config.json, where 0 is the forced end.
    path = folder / "generation_config.json"
    told = read_table(path) if path.exists() else {"forced_eos_token_id": 0} | dict(about)
    remarks = [
        f"Their search has {key} = {told[key]!r}, which ours has not: outputs may differ."
        for key, off in SEARCH.items()
        if told.get(key, off) not in (off, None)
    ]
    if told.get("early_stopping") == "never":
        remarks.append("Their search has early_stopping = 'never'; ours stops a little earlier.")
    banned = [words for words in told.get("bad_words_ids") or [] if words != [config.end]]
    if any(len(words) > 1 for words in banned):
        remarks.append("Their search bans sequences of tokens (bad_words_ids); ours, single ones.")
    ids = tuple(words[0] for words in banned if len(words) == 1)
    length = told.get("max_new_tokens") or (told.get("max_length") or 0) - 1  # with a start token
    if told.get("forced_eos_token_id") not in (None, config.end):
        raise UsageError(
            f"{path} forces the token {told['forced_eos_token_id']} at the end, but the model's "
            f"end is {config.end}."
        )
    penalty = told.get("length_penalty")
    decode = DecodeConfig(
        beams=told.get("num_beams") or 1,
        length_penalty=1.0 if penalty is None else penalty,
        early_stopping=told.get("early_stopping") is True,
        no_repeat_ngram=told.get("no_repeat_ngram_size") or 0,
        min_length=max((told.get("min_length") or 0) - 1, 0),
        max_length=length if length > 0 else None,
        forced_end=told.get("forced_eos_token_id") is not None,
        banned=ids,
        renormalise=bool(ids and told.get("renormalize_logits")),
    )
    return decode, remarks


def _kept(folder: Path) -> Iterator[Path]:
    """List what is kept as it is: everything small that says something."""
    for path in sorted(folder.iterdir()):
        is_kept = path.suffix in KEPT or path.name.startswith("LICENSE")
        if path.is_file() and is_kept and not path.name.endswith(".index.json"):
            yield path


# --- Writing their files ------------------------------------------------------------------------


def _write_search(
    decode: DecodeConfig, config: TransformerConfig
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
        "bad_words_ids": [[token] for token in decode.banned] or None,
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
    if decode.max_length is None:
        left.append(
            "Ours ends an output at 2 * source + 16 tokens at the latest; theirs at "
            f"{settings['max_length']}."
        )
    return settings, left


def _write_tokenizers(ours: Path, folder: Path, data: PairData, config: TransformerConfig) -> None:
    """Write sentencepiece models, and vocabularies that give each piece the number it has there."""
    found = load_vocabularies(ours)
    names = [*found] if len(found) == 2 else [*found, *found]
    vocabularies = ("vocab.json", "target_vocab.json")
    for name, side, vocabulary in zip(names, ("source", "target"), vocabularies, strict=True):
        tokenizer = found[name]
        write_atomically(folder / f"{side}.spm", tokenizer.model)
        if side == "source" or len(found) == 2:
            pieces = {tokenizer.piece(number): number for number in range(len(tokenizer))}
            write_json(folder / vocabulary, pieces)
    write_json(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "MarianTokenizer",
            "source_lang": data.source,
            "target_lang": data.target,
            "separate_vocabs": len(found) == 2,
            "bos_token": found[names[0]].piece(config.start),
            "eos_token": END,
            "pad_token": PAD,
            "unk_token": UNKNOWN,
            "model_max_length": config.max_length,
        },
    )


def _published_card(folder: ModelFolder, recipe: TranslateRecipe) -> str:
    """Our card, with the head that the hub reads and with their way to use the model."""
    title, _, rest = card(folder).partition("\n")
    data = recipe.data
    return (
        f"---\nlanguage:\n- {data.source}\n- {data.target}\npipeline_tag: translation\n"
        f"library_name: transformers\ntags:\n- translation\n- marian\n---\n\n{title}\n\n"
        "Trained with Manyheads, published in Hugging Face's Marian format:\n\n```python\n"
        "from transformers import MarianMTModel, MarianTokenizer\n\n"
        'tokenizer = MarianTokenizer.from_pretrained("...")\n'
        'model = MarianMTModel.from_pretrained("...")\n'
        'batch = tokenizer(["..."], return_tensors="pt", padding=True)\n'
        "print(tokenizer.batch_decode(model.generate(**batch), skip_special_tokens=True))\n"
        f"```\n{rest}"
    )

"""How another library searches: its generation configuration becomes a [decode] table."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from annotated_types import Ge, Gt, Le
from pydantic import BaseModel, ConfigDict, FiniteFloat, ValidationError

from manyheads.asks.decode_config import DecodeConfig
from manyheads.convert.foreign_files import find_table
from manyheads.errors import FolderError, UsageError
from manyheads.models.encoder_decoder import DecoderConfig
from manyheads.project.folder import validated

TABLES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
SEARCH = dict.fromkeys(TABLES["none"]) | TABLES["search"]
SAMPLING = {"top_h": None} | TABLES["sampling"]
Token = Annotated[int, Ge(0)]
Length = Annotated[int, Ge(0)]


class _Search(BaseModel):
    """What is taken of a generation configuration, with its defaults."""

    model_config = ConfigDict(strict=True, extra="ignore")

    num_beams: Annotated[int, Ge(1), Le(1024)] = 1
    length_penalty: FiniteFloat = 1.0
    early_stopping: bool | str = False
    no_repeat_ngram_size: Length = 0
    min_length: Length = 0  # with the start token
    min_new_tokens: Length = 0  # without
    max_length: Length = 0  # likewise; 0: not stated
    max_new_tokens: Length = 0
    forced_eos_token_id: Token | list[Token] | None = None
    eos_token_id: Token | list[Token] | None = None
    decoder_start_token_id: Token | None = None
    bad_words_ids: list[list[Token]] = []
    suppress_tokens: list[Token] = []
    renormalize_logits: bool = False
    do_sample: bool = False
    temperature: Annotated[FiniteFloat, Gt(0)] = 1.0
    top_k: Length = 50
    top_p: Annotated[FiniteFloat, Gt(0), Le(1)] = 1.0


def read_search(
    folder: Path, about: Mapping[str, Any], config: DecoderConfig, unlimited: str
) -> tuple[DecodeConfig, int, list[str]]:
    """Make a [decode] table of their generation configuration.

    Returns:
        The table, the token that starts an output, and what the table leaves out.

    Args:
        folder: of the model.
        about: what configures search without a generation_config.json.
        config: of the model.
        unlimited: how long outputs become where nothing says it.

    Raises:
        FolderError: a value is wrong.
        UsageError: other tokens end an output.
    """
    path = folder / "generation_config.json"
    settings = find_table(path)
    where, strange = folder / "config.json" if settings is None else path, settings or {}
    settings = dict(about) if settings is None else settings
    stated = {key: value for key, value in settings.items() if value is not None}
    try:
        read = _Search.model_validate(stated)
    except ValidationError as error:
        detail = error.errors()[0]
        key = str(detail["loc"][0])
        raise FolderError(
            f"{where} has {key} = {stated[key]!r:.80}: {detail['msg']}. Correct it, or get the "
            "folder again."
        ) from None
    known = {*_Search.model_fields, *SEARCH, *SAMPLING, *TABLES["harmless"]}
    off = SEARCH | (SAMPLING if read.do_sample else {}) | dict.fromkeys(strange.keys() - known)
    remarks = [
        f"Their search has {key} = {settings[key]!r:.80}, and Manyheads has no "
        "equivalent: outputs may differ."
        for key in sorted(off)
        if settings.get(key) not in (None, off[key], [], {})
    ]
    if isinstance(read.early_stopping, str):
        remarks.append(
            f"Their search has early_stopping = {read.early_stopping!r}; ours stops a little "
            "earlier."
        )
    for key in ("eos_token_id", "forced_eos_token_id"):
        ends = getattr(read, key)
        if ends not in (None, config.end, [config.end]):
            raise UsageError(
                f"{where} has {key} = {ends}, but the model's end is {config.end}: only that can "
                "end an output here."
            )
    banned = [words for words in read.bad_words_ids if words not in ([], [config.end])]
    if any(len(words) > 1 for words in banned):
        remarks.append("Their search bans sequences of tokens (bad_words_ids); ours, single ones.")
    ids = [words[0] for words in banned if len(words) == 1] + read.suppress_tokens
    sizes = (getattr(config, name, None) for name in ("target_vocabulary", "vocabulary"))
    size: int = next(filter(None, sizes), 0)
    for token in (*ids, read.decoder_start_token_id or 0):
        if token >= size:
            raise FolderError(
                f"{where} has the token {token}, the model has {size}: they do not belong "
                "together. Get the whole folder again."
            )
    length = read.max_new_tokens or read.max_length - 1  # with a start token
    if length <= 0:
        remarks.append(
            f"Their search has no max_length, and would stop after about 20 tokens; {unlimited}."
        )
    values: dict[str, Any] = {
        "beams": read.num_beams,
        "length_penalty": read.length_penalty,
        "early_stopping": read.early_stopping is True,
        "no_repeat_ngram": read.no_repeat_ngram_size,
        "min_length": max(read.min_length - 1, read.min_new_tokens, 0),
        "max_length": length if length > 0 else None,
        "forced_end": read.forced_eos_token_id is not None,
        "banned": tuple(dict.fromkeys(ids)),
        "renormalise": bool(ids and read.renormalize_logits),
        # Rules of ours: their search writes what the model wants, and reads what stands there.
        "max_loop": 0,
        "recase": False,
    }
    if read.do_sample and read.num_beams == 1:
        values |= {"sample": True, "early_stopping": False, "temperature": read.temperature}
        values |= {"top_k": read.top_k or None, "top_p": read.top_p}
    elif read.do_sample:
        remarks.append("Their search samples with beams (do_sample); ours takes the best.")
    decode = validated(DecodeConfig, values, where, "The settings do not go together.")
    start = read.decoder_start_token_id
    return decode, config.start if start is None else start, remarks

"""Hugging Face's models of images and texts become model folders: matchers and captioners.

`models/convert` maps settings and tensors; here files are found, checked and put together. The
tokenizer is kept in the folder hf, as one file.
"""

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from manyheads.convert.converted_folder import ConvertedImages, model_folder
from manyheads.convert.foreign_files import check_fit, find_table, misfits
from manyheads.convert.preprocessing import from_transformers, preprocessing
from manyheads.convert.search_settings import read_search
from manyheads.convert.sources import Source, assumed, nearest_preset
from manyheads.data.tokenizers import hub_tokenizers as hub
from manyheads.data.tokenizers.marian_tokenizer import read_vocabulary
from manyheads.errors import FolderError, UsageError
from manyheads.files import write_atomically
from manyheads.models.captioner import CaptionerConfig
from manyheads.models.convert import families
from manyheads.models.matcher import MatcherConfig
from manyheads.models.resize import resize
from manyheads.models.sized_tables import Size
from manyheads.project.base_recipe import CONVERTED
from manyheads.project.folder import write_preprocessing
from manyheads.project.model_facts import count_parameters
from manyheads.recipe_data.caption_data import CaptionData
from manyheads.tasks.caption.recipe import CaptionRecipe
from manyheads.tasks.match.recipe import MatchData, MatchRecipe

FOLDER = "hf"  # of a converted model: the tokenizer
UNLIMITED = "ours ends a text at 128 tokens"
TokenizerOfHub = hub.HubTokenizer | hub.SiglipTokenizer


@dataclass(frozen=True)
class _Tokens:
    """A tokenizer, the file that holds it, and the names of its special tokens."""

    tokenizer: TokenizerOfHub
    file: str
    content: bytes
    settings: dict[str, Any]  # tokenizer_config.json, or special_tokens_map.json

    def special(self, key: str, folder: Path) -> int:
        name = self.settings.get(key)
        name = name.get("content") if isinstance(name, dict) else name
        found = self.tokenizer.number(name) if isinstance(name, str) else None
        if found is None:
            raise FolderError(
                f"The tokenizer of {folder} has {key} = {name!r:.80}, which its vocabulary lacks. "
                "Get the whole folder again."
            )
        return found


def is_image_text(source: Source) -> bool:
    """Say whether a source is a CLIP or SigLIP with texts, or a captioner.

    Weights decide; those of the hub are fetched when the other files are in order.
    """
    about = source.about
    if not isinstance(about.get("model_type"), str) or not families.has_texts(about):
        return False
    if source.revision is not None:
        from_transformers(source.processor, about.get("encoder", about)["model_type"], source.where)
        _read_tokens(source.where)
    captions = about["model_type"] == "vision-encoder-decoder"
    return captions or any(name.startswith("text_model.") for name in source.tensors)


def from_image_text(
    source: Source, out: Path, *, image_size: Size | None = None
) -> ConvertedImages:
    """Make a model folder of a CLIP, a SigLIP or a VisionEncoderDecoder.

    Raises:
        MissingExtraError: the package that reads the tokenizer is not installed.
        FolderError: files are missing, damaged, or do not belong together.
        UsageError: not a model that ours can be.
    """
    if not source.where.is_dir():
        raise UsageError(f"{source.where} is a file: give the whole folder, with the tokenizer.")
    kind = str(source.about["model_type"])
    with misfits(source.where):
        config, state = families.IMAGE_TEXT[kind](source.about, source.tensors)
        if image_size is not None:
            config, state = resize(config, state, image_size, "hf")
        image = TypeAdapter(type(config.image)).validate_python(asdict(config.image))
        config = TypeAdapter(type(config)).validate_python({**vars(config), "image": image})
        state = {name: tensor.contiguous().clone() for name, tensor in state.items()}
    check_fit(config, state, source.where)
    tokens = _read_tokens(source.where)
    if len(tokens.tokenizer) > config.vocabulary:
        raise FolderError(
            f"The tokenizer of {source.where} has {len(tokens.tokenizer)} tokens, the model "
            f"{config.vocabulary}: they do not belong together. Get the whole folder again."
        )
    config = replace(config, encoder=nearest_preset(config.image))
    recipe, config, remarks = (
        _matcher(config, source, tokens, kind)
        if hasattr(config, "embedding")
        else _captioner(config, source)
    )
    image = config.image
    with model_folder(out, recipe, config, state) as folder:
        write_atomically(folder / FOLDER / tokens.file, tokens.content)
        write_preprocessing(folder, recipe.image)
    size = (image.height, image.width)
    return ConvertedImages(out, count_parameters(config), 0, size, remarks, recipe.task)


# --- Recipes ------------------------------------------------------------------------------------


def _matcher(
    config: MatcherConfig, source: Source, tokens: _Tokens, kind: str
) -> tuple[MatchRecipe, MatcherConfig, list[str]]:
    """Write the recipe of a matcher; of its texts' special tokens the tokenizer knows best."""
    front, behind = tokens.tokenizer.around()
    if not behind:
        front = [tokens.special("bos_token", source.where)] if kind == "clip" else []
        behind = [tokens.special("eos_token", source.where)]
    if len(front) > 1 or len(behind) > 1:
        raise UsageError(
            f"The tokenizer of {source.where} puts {len(front)} tokens in front of a text and "
            f"{len(behind)} behind it; one each is supported."
        )
    if config.text_pool == "end" and behind != [config.end]:
        raise UsageError(
            f"In {source.where} texts end with the token {behind[0]}, but the model reads the "
            f"token {config.end}: they do not belong together."
        )
    start = front[0] if front else None
    config = replace(config, start=start, end=behind[0])
    remarks = []
    if config.text_pool == "last":
        config = replace(config, pad=tokens.special("pad_token", source.where))
        if "attention_mask" in (tokens.settings.get("model_input_names") or []):
            remarks.append(
                "The tokenizer asks for a mask of padding, which hides it from texts; SigLIP "
                "learned to read it, and here it does."
            )
    tables, more = _tables("matcher-vit-ti", config, source, kind)
    data = f"{CONVERTED}{source.origin}"
    recipe = MatchRecipe(task="match", data=MatchData(train=data, valid=data), **tables)
    return recipe, config, [*remarks, *more]


def _captioner(
    config: CaptionerConfig, source: Source
) -> tuple[CaptionRecipe, CaptionerConfig, list[str]]:
    about = {**source.about["decoder"], **source.about}
    decode, start, remarks = read_search(source.where, about, config, UNLIMITED)
    config = replace(config, start=start)
    kind = str(source.about["encoder"]["model_type"])
    tables, more = _tables("captioner-vit-ti", config, source, kind)
    data = f"{CONVERTED}{source.origin}"
    captions = CaptionData(train=data, valid=data)
    recipe = CaptionRecipe(task="caption", data=captions, decode=decode, **tables)
    return recipe, config, [*remarks, *more]


def _tables(
    preset: str, config: Any, source: Source, kind: str
) -> tuple[dict[str, Any], list[str]]:
    prepared = from_transformers(source.processor, kind, source.where)
    size = (config.image.height, config.image.width)
    tables = {
        "image": preprocessing(prepared, size, "RGB", source.where),
        "converted": source.converted("hf", architecture=source.about["model_type"]),
        "model": {"preset": preset, "encoder": config.encoder, "image": asdict(config.image)},
    }
    return tables, [assumed(kind)] if source.processor is None else []


# --- Tokenizers ---------------------------------------------------------------------------------


def _read_tokens(folder: Path) -> _Tokens:
    """Read a tokenizer in whichever form the folder has it."""
    settings = find_table(folder / "special_tokens_map.json") or {}
    settings |= find_table(folder / "tokenizer_config.json") or {}
    kind = str(settings.get("tokenizer_class", ""))
    special = [
        name.get("content", "") if isinstance(name, dict) else name
        for key, name in settings.items()
        if key.endswith("_token") and isinstance(name, str | dict)
    ]
    file = hub.FAST
    # SigLIP's own steps before its sentencepiece model are in no tokenizer.json.
    if kind == "SiglipTokenizer" and (folder / "spiece.model").is_file():
        file, content = hub.SIGLIP, (folder / "spiece.model").read_bytes()
    elif (folder / hub.FAST).is_file():
        content = (folder / hub.FAST).read_bytes()
    elif (folder / "vocab.json").is_file() and (folder / "merges.txt").is_file():
        vocabulary, merges = read_vocabulary(folder / "vocab.json"), _text(folder / "merges.txt")
        if kind.startswith("CLIP"):
            content = hub.clip_byte_pairs(vocabulary, merges, special)
        else:
            spaced = settings.get("add_prefix_space") is True
            content = hub.byte_pairs(vocabulary, merges, special, prefix_space=spaced)
    elif (folder / "sentencepiece.bpe.model").is_file():
        file, content = hub.XLM, (folder / "sentencepiece.bpe.model").read_bytes()
    else:
        raise FolderError(
            f"{folder} has no tokenizer that is understood: looked for {hub.FAST}, vocab.json with "
            "merges.txt, spiece.model of SigLIP, and sentencepiece.bpe.model. Get the whole folder "
            "again."
        )
    return _Tokens(hub.read_tokenizer(file, content), file, content, settings)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise FolderError(f"{path} cannot be read: {error}. Get the folder again.") from error

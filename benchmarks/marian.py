"""Tiny Marian models of Hugging Face: their logits, what their search finds, their tokenizer."""

import itertools
import json
import tempfile
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from benchmarks.peers import import_peer, transformers_library
from benchmarks.references import SEED, randomise
from manyheads.asks.decode_config import DecodeConfig
from manyheads.convert.marian_folder import from_marian, to_marian
from manyheads.data.tokenizers.marian_tokenizer import read_marian
from manyheads.generation.text_decoding import translate
from manyheads.models.convert import marian_weights as marian
from manyheads.models.transformer import Transformer
from manyheads.predict.load import load
from manyheads.tasks.translate.predictor import Translator
from manyheads.train.model_tensors import restore
from tests import made
from tests.marian_search import LIMIT, SETTINGS, Setting, search
from tests.opus import (
    ENGLISH,
    HARD,
    KOREAN,
    LETTERS,
    write_letters,
    write_random,
    write_tokenizers,
)

TINY: dict[str, Any] = {
    "vocab_size": 24,
    "d_model": 8,
    "encoder_layers": 2,
    "decoder_layers": 1,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 16,
    "decoder_ffn_dim": 16,
    "activation_function": "swish",
    "scale_embedding": True,
    "max_position_embeddings": 16,
    "pad_token_id": 19,
    "decoder_start_token_id": 19,
    "eos_token_id": 0,
    "forced_eos_token_id": 0,
}
SEPARATE = {"share_encoder_decoder_embeddings": False, "decoder_vocab_size": 20}
# The tokens of the trained model: the end, what is unknown, ten letters, and padding.
FIRST, LAST, PAD = 2, 11, 12
TRAINED = TINY | {
    "vocab_size": PAD + 1,
    "d_model": 32,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "max_position_embeddings": 32,
    "pad_token_id": PAD,
    "decoder_start_token_id": PAD,
}
STEPS = 250
SENTENCES = 24
SIDES = ("source", "target")


@dataclass(frozen=True)
class MarianReference:
    """A model as its library stores it, a padded batch, and what it answers."""

    version: str
    config: dict[str, Any]
    tensors: dict[str, Tensor]
    source: Tensor
    target: Tensor
    logits: Tensor

    def ours(self) -> Transformer:
        """Convert the model."""
        config, state = marian.read(self.config, self.tensors)
        model = Transformer(config).eval()
        restore(model, state, Path("the converted model"))
        return model

    def difference(self) -> float:
        """Return the largest difference of the logits, relative to the largest logit."""
        with torch.inference_mode():
            logits = self.ours()(self.source, self.target)
        return ((logits - self.logits).abs().max() / self.logits.abs().max()).item()

    def changed(self) -> bool:
        """Say whether our conversion there and back changes a tensor or its type."""
        _, tensors = marian.write(*marian.read(self.config, self.tensors))
        return tensors.keys() != self.tensors.keys() or any(
            tensor.dtype != tensors[name].dtype or not torch.equal(tensor, tensors[name])
            for name, tensor in self.tensors.items()
        )


def references() -> dict[str, Callable[[], MarianReference]]:
    """List the models with random weights; each is built when it is called."""
    return {
        "hf-marian": lambda: _random(TINY),
        "hf-marian-relu-separate": lambda: _random(
            TINY | SEPARATE | {"activation_function": "relu", "decoder_layers": 3}
        ),
        "hf-marian-gelu-untied": lambda: _random(
            TINY
            | SEPARATE
            | {
                "tie_word_embeddings": False,
                "activation_function": "gelu",
                "scale_embedding": False,
                "encoder_layers": 1,
            }
        ),
        "hf-marian-wide": lambda: _random(
            TINY
            | {
                "vocab_size": 500,
                "d_model": 96,
                "encoder_layers": 6,
                "decoder_layers": 6,
                "encoder_attention_heads": 8,
                "decoder_attention_heads": 8,
                "encoder_ffn_dim": 384,
                "decoder_ffn_dim": 384,
            }
        ),
    }


def _random(config: dict[str, Any]) -> MarianReference:
    return _reference(*random_model(config))


def random_model(config: dict[str, Any]) -> tuple[Any, Tensor, Tensor]:
    """Build a model of the library with random weights, and a padded batch."""
    transformers = transformers_library()
    model = transformers.MarianMTModel(transformers.MarianConfig(**config)).eval()
    frozen = {name for name, parameter in model.named_parameters() if not parameter.requires_grad}
    positions = {name: model.get_parameter(name).clone() for name in frozen}
    randomise(model, config["d_model"], SEED)
    generator = torch.Generator().manual_seed(SEED)
    with torch.no_grad():
        for name, table in positions.items():  # the sinusoids are not weights
            model.get_parameter(name).copy_(table)
        bias = model.final_logits_bias
        bias.copy_(torch.randn(bias.shape, generator=generator))
    return model, *_batch(config, generator)


def _batch(config: dict[str, Any], generator: torch.Generator) -> tuple[Tensor, Tensor]:
    pad = config["pad_token_id"]
    source = torch.randint(1, config["vocab_size"], (3, 7), generator=generator)
    source[source == pad] = 1
    source[1, 4:], source[2, 6:] = pad, pad
    target = torch.randint(1, min(20, config["vocab_size"]), (3, 5), generator=generator)
    target[:, 0] = config["decoder_start_token_id"]
    return source, target


def _reference(model: Any, source: Tensor, target: Tensor) -> MarianReference:
    with tempfile.TemporaryDirectory() as name:  # names in files are not those in memory
        model.save_pretrained(name)
        config = json.loads((Path(name) / "config.json").read_text(encoding="utf-8"))
        stored = load_file(Path(name) / "model.safetensors")
        tensors = {key: tensor.clone() for key, tensor in stored.items()}
    present = (source != config["pad_token_id"]).long()
    with torch.inference_mode():
        logits = model(input_ids=source, attention_mask=present, decoder_input_ids=target).logits
    return MarianReference(version("transformers"), config, tensors, source, target, logits.clone())


@dataclass(frozen=True)
class SearchReference:
    """A model that has learned something, and what its library's search makes of a batch."""

    model: MarianReference
    outputs: dict[Setting, list[list[int]]]  # without start and end

    def differences(self) -> Iterator[tuple[str, float]]:
        """Yield, setting by setting, the share of sentences with other tokens than ours."""
        ours = self.model.ours()
        for setting, theirs in self.outputs.items():
            found = search(ours, self.model.source, setting)
            yield f"hf-marian generate {setting}", _share(theirs, found)


def searched() -> SearchReference:
    """Let the trained model search a padded batch with every setting."""
    model = trained()
    sources, _ = words(SENTENCES, seed=10_000)
    source, present = padded(sources)
    reference = _reference(model, source, source[:, :3].clone())
    outputs = {setting: _generate(model, source, present, setting) for setting in SETTINGS}
    return SearchReference(reference, outputs)


@cache
def trained() -> Any:
    """Train a Marian briefly: a word backwards, some of its letters doubled at random.

    What is random cannot be learned, so there is much for a search to decide. As in the published
    models the padding has an embedding of zeros; a bias makes it likely unless it is banned.
    """
    transformers = transformers_library()
    with torch.random.fork_rng():
        torch.manual_seed(SEED)
        model = transformers.MarianMTModel(transformers.MarianConfig(**TRAINED))
        optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
        for step in range(STEPS):
            sources, targets = words(64, seed=step)
            source, present = padded(sources)
            labels, scored = padded(targets)
            optimizer.zero_grad()
            model(
                input_ids=source,
                attention_mask=present,
                labels=labels.masked_fill(scored == 0, -100),
            ).loss.backward()
            optimizer.step()
            with torch.no_grad():
                model.model.shared.weight[PAD] = 0.0
    with torch.no_grad():
        for parameter in model.parameters():  # stored in 16 bits, as large models often are
            parameter.copy_(parameter.half().float())
        model.final_logits_bias[0, PAD] = 4.0
    return model.eval()


def words(count: int, *, seed: int) -> tuple[list[list[int]], list[list[int]]]:
    """Draw words and what becomes of them, both with the end token."""
    generator = torch.Generator().manual_seed(seed)

    def draw(low: int, high: int, size: int) -> list[int]:
        return torch.randint(low, high, (size,), generator=generator).tolist()

    sources = [draw(FIRST, LAST + 1, length) for length in draw(1, 9, count)]
    targets = [
        [letter for letter in word[::-1] for _ in range(draw(1, 3, 1)[0] if letter < 6 else 1)]
        for word in sources
    ]
    return [[*word, 0] for word in sources], [[*word, 0] for word in targets]


def padded(rows: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """Return a batch of token ids, and 1 where they are not padding."""
    longest = max(map(len, rows))
    batch = torch.tensor([[*row, *[PAD] * (longest - len(row))] for row in rows])
    return batch, (batch != PAD).long()


def _generate(model: Any, source: Tensor, present: Tensor, setting: Setting) -> list[list[int]]:
    arguments: dict[str, Any] = {
        "num_beams": setting.beams,
        "max_length": 1 + setting.max_length,  # theirs counts the start token
        "forced_eos_token_id": 0 if setting.forced_end else None,
        "renormalize_logits": setting.renormalise,
        "do_sample": False,
    }
    if setting.beams > 1:
        arguments["length_penalty"] = setting.length_penalty
        arguments["early_stopping"] = setting.early_stopping
    if setting.banned:
        arguments["bad_words_ids"] = [[PAD]]
    found = model.generate(input_ids=source, attention_mask=present, **arguments)
    return [row[: row.index(0)] if 0 in row else row for row in found[:, 1:].tolist()]


# --- From text to text --------------------------------------------------------------------------

LINES = 50
SCENES = [
    f"{who} {does} {where}."
    for who in ("A man", "Two children", "A brown dog", "A woman in a red hat", "Three people")
    for does in ("is sitting", "walk", "plays with a ball", "are looking at a bird", "runs")
    for where in ("on the street", "in front of a white house")
]
TEXTS = [
    *ENGLISH,
    *KOREAN[:4],
    ">>kor<< The dog reads a letter.",
    ">>kor<<It was blue!",
    ">>xyz<< It was blue!",
    "a >> b << c >>kor<<",
    "  two  spaces   and a tab\tin between ",
    "ＦＵＬＬ width ﬁ ligature … “quotes” – dash",
    "Ж and 猫 and 🐈 are unknown",
    "",
]


@dataclass(frozen=True)
class TokenizerReference:
    """The ids of Hugging Face's tokenizer for each text, and the text that it makes of ids."""

    source: list[list[int]]
    target: list[list[int]]
    decoded: list[str]


def tokenized(folder: Path) -> TokenizerReference:
    """Let Hugging Face's tokenizer read TEXTS; ids come without the end."""
    tokenizer = transformers_library().MarianTokenizer.from_pretrained(folder)
    target = [row[:-1] for row in tokenizer(text_target=TEXTS).input_ids]
    return TokenizerReference(
        [row[:-1] for row in tokenizer(TEXTS).input_ids],
        target,
        tokenizer.batch_decode(target, skip_special_tokens=True),
    )


def letters() -> list[str]:
    """Texts that the trained model translates."""
    sources, _ = words(SENTENCES, seed=20_000)
    return [" ".join(LETTERS[token - FIRST] for token in word[:-1]) for word in sources]


def write_trained(folder: Path) -> None:
    """Write the trained model as a whole folder."""
    reference = _reference(trained(), *_two_tokens())
    weights = {name: tensor.half() for name, tensor in reference.tensors.items()}
    write_letters(folder, reference.config, weights)


def _two_tokens() -> tuple[Tensor, Tensor]:
    return torch.tensor([[FIRST, 0]]), torch.tensor([[PAD]])


def translated(folder: Path, texts: Sequence[str]) -> list[str]:
    """Translate with Hugging Face's tokenizer, model and search, as the folder says."""
    transformers = transformers_library()
    tokenizer = transformers.MarianTokenizer.from_pretrained(folder)
    # Ours computes in 32 bits, too, whatever the weights are stored in.
    model = transformers.MarianMTModel.from_pretrained(folder, dtype="float32").eval()
    batch = tokenizer(list(texts), return_tensors="pt", padding=True)
    found: list[str] = tokenizer.batch_decode(model.generate(**batch), skip_special_tokens=True)
    return found


def text_differences() -> Iterator[tuple[str, float]]:
    """Compare tokenizers and translations, ours of their models and theirs of ours."""
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)
        for separate, normalise in itertools.product((False, True), (False, True)):
            folder = base / f"{separate}-{normalise}"
            folder.mkdir()
            write_tokenizers(folder, separate=separate, normalise=normalise)
            theirs, ours = tokenized(folder), read_marian(folder)
            title = f"MarianTokenizer{', separate vocabularies' * separate}"
            title += ", nmt_nfkc" * normalise
            yield f"{title}: source", _share(theirs.source, ours.source.encode(TEXTS))
            yield f"{title}: target", _share(theirs.target, ours.target.encode(TEXTS))
            yield f"{title}: decoded", _share(theirs.decoded, ours.target.decode(theirs.target))
        write_trained(base / "letters")
        from_marian(str(base / "letters"), base / "converted")
        found = load(base / "converted")
        assert isinstance(found, Translator)
        theirs_text = translated(base / "letters", letters())
        yield "hf-marian converted, from text to text", _share(theirs_text, found(letters()))
        for separate in (False, True):
            folder = base / f"random-{separate}"
            write_random(folder, separate=separate, max_length=64)
            from_marian(str(folder), base / f"converted-{separate}")
            found = load(base / f"converted-{separate}")
            assert isinstance(found, Translator)
            title = "hf-marian, texts that repeat themselves or in capitals"
            title += ", separate vocabularies" * separate
            yield title, _share(translated(folder, HARD), found(HARD))
        to_marian(str(base / "converted"), base / "back")
        again = translated(base / "back", letters())
        yield "hf-marian converted there and back", _share(theirs_text, again)
        published = made.trained("translator")
        to_marian(str(published), base / "published")
        texts, _ = made.numbers(SENTENCES, seed=7)
        found = load(published)
        assert isinstance(found, Translator)
        answers = [best for best, *_ in found.translate(texts)]
        pairs = zip(translated(base / "published", texts), answers, strict=True)
        # What was cut off was cut at another limit: ours goes by the length of the source.
        ended = [(theirs, ours.text) for theirs, ours in pairs if ours.finished]
        share = _share(*zip(*ended, strict=True))
        yield f"manyheads published as Marian, from text to text, {len(ended)} texts", share
        numbers, _ = made.numbers(LINES, seed=8)
        yield from _greedy_differences(str(published), numbers, base / "greedy")
        yield from _greedy_differences("multi30k-en-de", SCENES, base / "shipped")


def _greedy_differences(
    model: str, texts: Sequence[str], folder: Path
) -> Iterator[tuple[str, float]]:
    """Publish one of our models; compare greedy translations with both libraries that read it."""
    to_marian(model, folder / "hf")
    library, transformers = import_peer("ctranslate2"), transformers_library()
    converter = import_peer("ctranslate2.converters").TransformersConverter(str(folder / "hf"))
    converter.convert(str(folder / "ct2"))
    tokenizer = transformers.MarianTokenizer.from_pretrained(folder / "hf")
    theirs = transformers.MarianMTModel.from_pretrained(folder / "hf").eval()
    ours = load(model)
    assert isinstance(ours, Translator)
    expected = [
        best for best, *_ in translate(ours.model, ours.tokenizers, texts, DecodeConfig(beams=1))
    ]
    batch = tokenizer(list(texts), return_tensors="pt", padding=True)
    ids = theirs.generate(**batch, num_beams=1).tolist()
    engine = library.Translator(
        str(folder / "ct2"), compute_type="float32", intra_threads=1, inter_threads=1
    )
    pieces = [tokenizer.convert_ids_to_tokens(row) for row in tokenizer(list(texts)).input_ids]
    found = engine.translate_batch(pieces, beam_size=1)
    best = [tokenizer.convert_tokens_to_ids(each.hypotheses[0]) for each in found]
    ended = [n for n, each in enumerate(expected) if each.finished]
    for name, rows in (("Hugging Face", ids), ("CTranslate2", best)):
        answers = tokenizer.batch_decode(rows, skip_special_tokens=True)
        share = _share([answers[n] for n in ended], [expected[n].text for n in ended])
        yield f"{Path(model).name} published, greedy in {name}, {len(ended)} texts", share


# --- To be tested without them ------------------------------------------------------------------


def record(folder: Path) -> Iterator[Path]:
    """Write golden files: models, answers, what search finds, what the tokenizer does."""
    for name, build in references().items():
        if name != "hf-marian-wide":
            model = build()
            yield _save(folder / name, model, {"logits": model.logits}, {})
    found = searched()
    outputs = torch.full((len(SETTINGS), SENTENCES, LIMIT), -1, dtype=torch.int16)
    for row, setting in enumerate(SETTINGS):
        for sentence, tokens in enumerate(found.outputs[setting]):
            outputs[row, sentence, : len(tokens)] = torch.tensor(tokens)
    with tempfile.TemporaryDirectory() as name:
        write_trained(Path(name))
        texts = {"texts": letters(), "translations": translated(Path(name), letters())}
    half = replace(found.model, tensors={k: t.half() for k, t in found.model.tensors.items()})
    settings = [asdict(setting) for setting in SETTINGS]
    about = {"settings": json.dumps(settings), "texts": json.dumps(texts)}
    yield _save(folder / "hf-marian-trained", half, {"outputs": outputs}, about)
    with tempfile.TemporaryDirectory() as name:
        write_tokenizers(Path(name))
        models = {f"{side}.spm": (Path(name) / f"{side}.spm").read_bytes() for side in SIDES}
        content = {
            "version": version("transformers"),
            "models": {key: b64encode(model).decode() for key, model in models.items()},
            "vocabulary": json.loads((Path(name) / "vocab.json").read_text(encoding="utf-8")),
            "texts": TEXTS,
            **asdict(tokenized(Path(name))),
        }
    with tempfile.TemporaryDirectory() as name:
        write_random(Path(name), max_length=64)
        found_texts = {"texts": HARD, "translations": translated(Path(name), HARD)}
    path = folder / "hf-marian-hard.json"
    path.write_text(json.dumps(found_texts, ensure_ascii=False), encoding="utf-8")
    yield path
    path = folder / "hf-marian-tokenizer.json"
    path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    yield path


def _save(
    path: Path, model: MarianReference, answers: dict[str, Tensor], about: dict[str, str]
) -> Path:
    path = path.with_suffix(".safetensors")
    weights = {f"weights.{name}": tensor for name, tensor in model.tensors.items()}
    save_file(
        weights | {"source": model.source, "target": model.target} | answers,
        path,
        {
            "library": "transformers",
            "version": model.version,
            "torch": torch.__version__,
            "seed": str(SEED),
            "config": json.dumps(model.config),
            **about,
        },
    )
    return path


def _share(theirs: Sequence[object], ours: Sequence[object]) -> float:
    """Return the share that differs."""
    return sum(a != b for a, b in zip(theirs, ours, strict=True)) / len(theirs)

"""Real lines through our predictor with the engine ctranslate2, text in to text out.

Against a plain loop around CTranslate2 with the same export, tokenizer and options, which it sorts
and batches by itself, with one worker as it is by default and with a worker a thread, and against
Hugging Face's generate with the same weights, which gets batches of like length. The lines
are the first 1,000 of Multi30k's validation set. `transformer-tiny` is the shipped multi30k-en-de;
the larger model is it four times side by side, so that it is as wide as `transformer-base` and yet
translates: with random weights nothing would end.
"""

import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.ctranslate import fingerprint
from benchmarks.peers import hf_marian
from benchmarks.protocol import Case, Contender
from manyheads.data.batching.batches import pad
from manyheads.data.text.corpus import read_parallel
from manyheads.engine_export import export
from manyheads.errors import UsageError
from manyheads.files import write_text
from manyheads.models.transformer import Transformer
from manyheads.predict.load import load
from manyheads.project.engine_files import engine_files
from manyheads.project.folder import ModelFolder, write_manifest, write_vocabularies
from manyheads.project.folder import write_weights as store
from manyheads.project.paths import find_data, find_model
from manyheads.project.sentencepiece_files import load_vocabularies
from manyheads.tasks.translate.predictor import Translator

TITLE = "Translating with CTranslate2 behind the predictor"
BAR = "at least 0.95 times the plain loop, 3 times Hugging Face"
LINES = 1000
ROWS = 256  # texts x beams in a batch, as our predictor takes them
HF_BATCH = 32
COPIES = 4
MODEL = "multi30k-en-de"
KEPT: list[Any] = []  # folders that go when the process ends


def cases() -> Iterator[Case]:
    (valid,) = find_data("multi30k/val", None, (".en", ".de"))
    lines = read_parallel(valid, "en", "de").source[:LINES]
    folders = {"transformer-tiny": find_model(MODEL), "as wide as transformer-base": widened()}
    for name, folder in folders.items():
        engines = {kind: _exported(folder, kind) for kind in ("float32", "int8")}
        for beams in (1, 4):
            yield _case(name, folder, engines, lines, beams)


def widened() -> Path:
    """Store a model that is the shipped one `COPIES` times side by side, with the same outputs."""
    source = ModelFolder(find_model(MODEL))
    small: Any = source.model()
    config = small.config
    wide = Transformer(
        replace(
            config,
            dim=COPIES * config.dim,
            heads=COPIES * config.heads,
            ffn_dim=COPIES * config.ffn_dim,
            positions="learned",
            tied=False,
            scale_embedding=False,
        )
    ).eval()
    own = small.state_dict()
    with torch.no_grad():
        for name, parameter in wide.named_parameters():
            parameter.copy_(_tiled(name, own, small))
    out = _folder() / "wide"
    out.mkdir()
    recipe = (source.path / "recipe.toml").read_text(encoding="utf-8")
    for key in ("dim", "heads", "ffn_dim"):
        before, after = getattr(config, key), getattr(wide.config, key)
        recipe = recipe.replace(f"\n{key} = {before}\n", f"\n{key} = {after}\n")
    for before, after in (
        ('positions = "sinusoidal"', 'positions = "learned"'),
        ("tied = true", "tied = false"),
        ("scale_embedding = true", "scale_embedding = false"),
        ('save_dtype = "float16"', 'save_dtype = "float32"'),
    ):
        recipe = recipe.replace(before, after)
    write_text(out / "recipe.toml", recipe)
    store(out, wide, "float32")
    write_vocabularies(out, load_vocabularies(source.path))
    write_manifest(out, source.recipe)
    return out


def _tiled(name: str, own: dict[str, Tensor], small: Any) -> Tensor:
    """Put a weight where each copy of the small model finds its own."""
    if name == "positions.table":
        return small.positions.table.repeat(1, COPIES)
    if name in ("embedding.weight", "target_embedding.weight"):
        return own["embedding.weight"].repeat(1, COPIES) * small.scale
    if name == "output.weight":  # the sum over the copies is the small model's logit
        return own["embedding.weight"].repeat(1, COPIES) / COPIES
    weight = own[name]
    if weight.dim() == 1 and "qkv" not in name:
        return weight.repeat(COPIES)
    parts = weight.chunk(3) if "qkv" in name else (weight,)
    if weight.dim() == 1:
        return torch.cat([part.repeat(COPIES) for part in parts])
    return torch.cat([torch.block_diag(*[part] * COPIES) for part in parts])


def _exported(folder: Path, quantization: str) -> Path:
    out = _folder() / folder.name
    made = export(folder, to="ctranslate2", quantization=quantization, out=out, limit=50)
    assert made.model is not None
    return made.model


def _folder() -> Path:
    KEPT.append(tempfile.TemporaryDirectory())
    return Path(KEPT[-1].name)


def _case(name: str, folder: Path, engines: dict[str, Path], lines: list[str], beams: int) -> Case:
    native = _translator(folder, "torch", beams)
    ours = {kind: _translator(path, "ctranslate2", beams) for kind, path in engines.items()}
    contenders = [
        Contender("manyheads", kind, partial(_call, each, lines)) for kind, each in ours.items()
    ]
    contenders += [
        Contender(f"plain loop{named}", kind, partial(_plain, each, plain, lines, beams))
        for kind, each in ours.items()
        for named, plain in _plain_translators(engines[kind], kind).items()
    ]
    contenders.append(Contender("manyheads, torch", "fp32", partial(_call, native, lines)))
    contenders += _hugging_face(native, lines, beams)
    search = f"beam {beams}" if beams > 1 else "greedy"
    return Case(
        title=f"{name}, {search}, {len(lines):,} lines",
        unit="lines/s",
        amount=len(lines),
        contenders=contenders,
        bar=BAR,
        fingerprint=partial(fingerprint, native.model),
    )


def _translator(folder: Path, engine: str, beams: int) -> Translator:
    found = load(folder, engine=engine, threads=torch.get_num_threads())
    assert isinstance(found, Translator)
    found.decode = replace(found.decode, beams=beams)
    return found


def _call(translator: Translator, lines: list[str]) -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # notes on the answers
        return translator(lines)


def _plain_translators(folder: Path, kind: str) -> dict[str, Any]:
    """Load an export as CTranslate2 does by default, and with a worker for each thread."""
    import ctranslate2

    path = str(engine_files(ModelFolder(folder), "ctranslate2"))
    threads = torch.get_num_threads()
    made = {
        name: ctranslate2.Translator(
            path, compute_type=kind, inter_threads=workers, intra_threads=threads // workers
        )
        for name, workers in (("", 1), (", a worker a thread", threads))
    }
    torch.set_num_threads(threads)  # it sets OpenMP's number for the whole process
    return made


def _plain(translator: Translator, plain: Any, lines: list[str], beams: int) -> object:
    """Do what somebody writes who has CTranslate2 and a tokenizer."""
    engine: Any = translator.model
    sources, end = translator.tokenizers.source, engine.config.end
    results = plain.translate_batch(
        [[engine.source[token] for token in [*ids, end]] for ids in sources.encode(lines)],
        beam_size=beams,
        patience=2 if beams > 1 else 1,
        max_batch_size=ROWS // beams,
        max_decoding_length=128,
    )
    ids = [[engine.ids[name] for name in each.hypotheses[0]] for each in results]
    return translator.tokenizers.target.decode(ids)


def _hugging_face(native: Translator, lines: list[str], beams: int) -> list[Contender]:
    """Let Marian's class generate; it has no learned positions, so not for the wide model."""
    model: Any = native.model
    if model.config.positions == "learned":
        return []
    try:
        peer: Any = hf_marian(model.config, model.state_dict()).eval()
    except UsageError:  # not installed here: `make bench` has it
        return []
    found: list[Contender] = []
    for variant, dtype in (("fp32", torch.float32), ("bf16 weights", torch.bfloat16)):
        found.append(
            Contender("Hugging Face", variant, _generate(peer, dtype, native, lines, beams))
        )
    return found


def _generate(
    peer: Any, dtype: torch.dtype, native: Translator, lines: list[str], beams: int
) -> Callable[[], object]:
    from copy import deepcopy

    ready, model = deepcopy(peer).to(dtype), native.model
    config: Any = model.config

    def work() -> object:
        encoded = [[*ids, config.end] for ids in native.tokenizers.source.encode(lines)]
        order = sorted(range(len(lines)), key=lambda n: len(encoded[n]))
        outputs: list[list[int]] = [[] for _ in lines]
        with torch.inference_mode():
            for first in range(0, len(order), HF_BATCH):
                rows = order[first : first + HF_BATCH]
                source = pad([encoded[n] for n in rows], config.pad)
                made = ready.generate(
                    input_ids=source,
                    attention_mask=(source != config.pad).long(),
                    num_beams=beams,
                    do_sample=False,
                    max_new_tokens=128,
                )
                special = (config.pad, config.start, config.end)
                for n, row in zip(rows, made.tolist(), strict=True):
                    outputs[n] = [token for token in row if token not in special]
        return native.tokenizers.target.decode(outputs)

    return work

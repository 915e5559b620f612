"""Alignment error of each attention head of a translator on known word links."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import torch
from torch import Tensor, nn

from manyheads.data.batching.batches import pad
from manyheads.data.text.word_links import Link
from manyheads.data.tokenizers.tokenizer import Tokenizers
from manyheads.generation.special_ids import special_ids
from manyheads.generation.token_details import attention_over_source, spans
from manyheads.lens.measures.alignment_head import (
    AlignmentHead,
    Errors,
    Reference,
    count,
    read,
    readers,
)
from manyheads.lens.measures.word_figures import tokens_of
from manyheads.nn.recording.trace import LayerId

ROWS = 32  # texts per batch: the maps of all heads are computed


def reads_source(model: nn.Module) -> bool:
    """Return whether a translator's decoder attends to the source."""
    layer_ids = (getattr(part, "layer_id", None) for part in model.modules())
    return any(isinstance(layer_id, LayerId) and layer_id.kind == "cross" for layer_id in layer_ids)


@torch.inference_mode()
def alignment_errors(
    model: nn.Module,
    tokenizers: Tokenizers,
    sources: Sequence[str],
    outputs: Sequence[str],
    links: Sequence[Sequence[Link]],
    candidates: Callable[[Mapping[int, Tensor]], Sequence[AlignmentHead]] = readers,
) -> dict[AlignmentHead, Errors]:
    """Count for every alignment head how many of the word links of each pair it misses.

    `candidates` returns the heads to test; by default all.
    """
    found: dict[AlignmentHead, Errors] = {}
    ids = special_ids(model)
    device = next(model.parameters()).device
    order = sorted(range(len(sources)), key=lambda index: len(sources[index]))
    for first in range(0, len(order), ROWS):
        rows = order[first : first + ROWS]
        encoded = tokenizers.source.encode([sources[row] for row in rows])
        source = pad([[*tokens, ids.end] for tokens in encoded], ids.pad).to(device)
        target = tokenizers.target.encode([outputs[row] for row in rows])
        maps = attention_over_source(model, source, target, start=ids.start, padding=ids.pad)
        references = [
            list(_references(tokenizers, sources[row], outputs[row], links[row])) for row in rows
        ]
        lengths = torch.tensor([len(tokens) for tokens in encoded])
        real = torch.arange(source.shape[1]) < lengths[:, None]  # the end is not counted
        for reader in candidates(maps):
            weights = read(maps, reader).cpu().masked_fill(~real[:, None], -1.0)
            most = weights.argmax(dim=2).tolist()
            each = [count(*pair) for pair in zip(most, references, strict=True)]
            each.append(found.get(reader, Errors(0, 0)))
            found[reader] = Errors(*map(sum, zip(*each, strict=True)))
    return found


def _references(
    tokenizers: Tokenizers, source: str, output: str, links: Sequence[Link]
) -> Iterator[Reference]:
    if not links:
        return
    sides = spans(tokenizers.source, source), spans(tokenizers.target, output)
    for link in links:
        columns = {column for span in link.sources for column in tokens_of(sides[0], *span)}
        rows = set(tokens_of(sides[1], *link.target))
        if rows and columns:
            yield Reference(rows, columns)

"""Measure how well each attention of a translator follows words whose origin is known."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import torch
from torch import Tensor, nn

from manyheads.data.batches import pad
from manyheads.data.links import Link
from manyheads.data.tokenizer import Tokenizers
from manyheads.lens.alignment import Errors, Reader, Reference, count, read, readers
from manyheads.lens.word_figures import tokens_of
from manyheads.nn.trace import Site
from manyheads.tasks.decoding import special_ids
from manyheads.tasks.details import attention_over_source, spans

ROWS = 32  # texts at a time: every map of every head is computed


def reads_source(model: nn.Module) -> bool:
    """Say whether a translator's decoder attends to the source."""
    sites = (getattr(part, "site", None) for part in model.modules())
    return any(isinstance(site, Site) and site.kind == "cross" for site in sites)


@torch.inference_mode()
def alignment_errors(
    model: nn.Module,
    tokenizers: Tokenizers,
    sources: Sequence[str],
    outputs: Sequence[str],
    links: Sequence[Sequence[Link]],
    ask: Callable[[Mapping[int, Tensor]], Sequence[Reader]] = readers,
) -> dict[Reader, Errors]:
    """Count for every reader how many links between texts and their translations it misses.

    Args:
        model: a translator.
        tokenizers: of its two sides.
        sources: raw texts.
        outputs: their translations.
        links: what comes from where, for each of them.
        ask: which readers; all of them if not given.

    Raises:
        UsageError: the model has no attention over the source.
    """
    found: dict[Reader, Errors] = {}
    ids = special_ids(model)
    device = next(model.parameters()).device
    order = sorted(range(len(sources)), key=lambda index: len(sources[index]))
    for first in range(0, len(order), ROWS):
        rows = order[first : first + ROWS]
        encoded = tokenizers.source.encode([sources[row] for row in rows])
        source = pad([[*tokens, ids.end] for tokens in encoded], ids.pad).to(device)
        said = tokenizers.target.encode([outputs[row] for row in rows])
        maps = attention_over_source(model, source, said, start=ids.start, padding=ids.pad)
        references = [
            list(_references(tokenizers, sources[row], outputs[row], links[row])) for row in rows
        ]
        lengths = torch.tensor([len(tokens) for tokens in encoded])
        real = torch.arange(source.shape[1]) < lengths[:, None]  # the end is not counted
        for reader in ask(maps):
            weights = read(maps, reader).cpu().masked_fill(~real[:, None], -1.0)
            most = weights.argmax(dim=2).tolist()
            each = [count(*pair) for pair in zip(most, references, strict=True)]
            each.append(found.get(reader, Errors(0, 0)))
            found[reader] = Errors(*map(sum, zip(*each, strict=True)))
    return found


def _references(
    tokenizers: Tokenizers, source: str, output: str, links: Sequence[Link]
) -> Iterator[Reference]:
    """Turn links between characters into links between tokens."""
    if not links:
        return
    sides = spans(tokenizers.source, source), spans(tokenizers.target, output)
    for link in links:
        columns = {column for span in link.sources for column in tokens_of(sides[0], *span)}
        rows = set(tokens_of(sides[1], *link.target))
        if rows and columns:
            yield Reference(rows, columns)

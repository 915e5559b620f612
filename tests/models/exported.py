"""Presets through torch.export with a batch of any size, run by `test_export.py`.

The length of a text is open too, and the width of a printed line; not in recurrent layers, which a
graph holds unrolled. Their names may be given; else every one is exported.

The test suite checks shapes at run time (jaxtyping's hook), which would fix the sizes that are to
stay open; so this program runs without the hook. It prints what it found as JSON.
"""

import json
import sys
import warnings

import torch
from torch import Tensor
from torch.export import Dim

from manyheads.models.line_reader import LineReaderConfig
from manyheads.models.model_config import ModelConfig
from manyheads.models.seq2seq import Seq2SeqConfig
from manyheads.models.tagger import RecurrentTaggerConfig
from tests.small import ALL, STAGED, TRANSFORMERS, VITS, Both, Images, inputs, randomise

RECURRENT = (Seq2SeqConfig, RecurrentTaggerConfig)

VARIANTS: dict[str, ModelConfig] = {
    "rotary": TRANSFORMERS["rotary"],
    "relative positions": VITS["relative positions"],
    "attention pool": VITS["2-D sinusoids, attention pool"],
    "swin as timm pads": STAGED["swin as timm pads"],
}


# Beyond their table, sinusoids are computed anew: another graph, so 16 tokens are the most.
TOKENS = 16
ROWS = {0: Dim.DYNAMIC}


def sides(config: ModelConfig) -> tuple[dict[int, object], ...]:
    """What is open of each input."""
    if isinstance(config, Images):
        return (ROWS,)
    if isinstance(config, LineReaderConfig):
        return ({0: Dim.DYNAMIC, 3: Dim.DYNAMIC},)
    if isinstance(config, Both):
        return (ROWS, {0: Dim.DYNAMIC, 1: Dim("target", max=TOKENS)})
    if isinstance(config, RECURRENT):
        return (ROWS, ROWS)
    return tuple({0: Dim.DYNAMIC, 1: Dim(side, max=TOKENS)} for side in ("source", "target"))


def other(tensor: Tensor, open_sizes: dict[int, object], rows: int) -> Tensor:
    """So many other rows; what is open besides is so much longer."""
    tensor = torch.stack([tensor[row % 2] for row in range(rows)])
    if tensor.is_floating_point():
        tensor = tensor + torch.arange(rows)[:, None, None, None] / rows
    for axis in set(open_sizes) - {0}:
        tensor = torch.cat((tensor, tensor.narrow(axis, 1, rows)), dim=axis)
    return tensor


def gap(config: ModelConfig) -> float:
    """Export with two rows; return the largest relative gap to eager with one and with three."""
    model, arguments = randomise(config.build()).eval(), inputs(config)
    shapes = sides(config)[: len(arguments)]
    program = torch.export.export(model, arguments, dynamic_shapes=shapes).module()
    gaps = []
    for rows in (1, 3):
        given = [other(*each, rows) for each in zip(arguments, shapes, strict=True)]
        with torch.inference_mode():
            for expected, actual in zip(
                outputs(model(*given)), outputs(program(*given)), strict=True
            ):
                assert expected.shape == actual.shape, (expected.shape, actual.shape)
                gaps.append((expected - actual).abs().max() / expected.abs().max())
    return max(gaps).item()


def outputs(found: Tensor | tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """What a model gives: logits, or a matcher's vectors of images and of texts."""
    return found if isinstance(found, tuple) else (found,)


def main() -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    every = {**ALL, **VARIANTS}
    names = sys.argv[1:] or [*every]
    found: dict[ModelConfig, float | str] = {}  # at test size, some presets are the same model
    for config in map(every.__getitem__, names):
        if config not in found:
            try:
                found[config] = gap(config)
            except Exception as error:  # reported, and refused by the test
                found[config] = f"{type(error).__name__}: {error}"
    print(json.dumps({name: found[every[name]] for name in names}))


if __name__ == "__main__":
    main()

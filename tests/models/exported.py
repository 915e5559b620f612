"""Every preset through torch.export with a batch of any size, run by `test_export.py`.

The length of a text is open too, except in recurrent layers, which a graph holds unrolled.

The test suite checks shapes at run time (jaxtyping's hook), which would fix the sizes that are to
stay open; so this program runs without the hook. It prints what it found as JSON.
"""

import json
import warnings

import torch
from torch import Tensor
from torch.export import Dim

from manyheads.models.config import ModelConfig
from manyheads.models.seq2seq import Seq2SeqConfig
from manyheads.models.tagger import RecurrentTaggerConfig
from tests.small import ALL, STAGED, TRANSFORMERS, VITS, Images, inputs, randomise

RECURRENT = (Seq2SeqConfig, RecurrentTaggerConfig)

VARIANTS: dict[str, ModelConfig] = {
    "rotary": TRANSFORMERS["rotary"],
    "relative positions": VITS["relative positions"],
    "attention pool": VITS["2-D sinusoids, attention pool"],
    "swin as timm pads": STAGED["swin as timm pads"],
}


def other(tensor: Tensor, rows: int, longer: int) -> Tensor:
    """So many other rows; and a text has so many more tokens."""
    tensor = torch.stack([tensor[row % 2] for row in range(rows)])
    if tensor.ndim == 4:
        return tensor + torch.arange(rows)[:, None, None, None] / rows
    return torch.cat((tensor, tensor[:, 1 : 1 + longer]), dim=1)


def gap(config: ModelConfig) -> float:
    """Export with two rows; return the largest relative gap to eager with one and with three."""
    model, arguments = randomise(config.build()).eval(), inputs(config)
    # Beyond their table, sinusoids are computed anew: another graph, so 16 tokens are the most.
    sides = (
        [{0: Dim.DYNAMIC}]
        if isinstance(config, Images)
        else [{0: Dim.DYNAMIC}, {0: Dim.DYNAMIC}]
        if isinstance(config, RECURRENT)
        else [{0: Dim.DYNAMIC, 1: Dim(side, max=16)} for side in ("source", "target")]
    )
    shapes = tuple(sides[: len(arguments)])
    program = torch.export.export(model, arguments, dynamic_shapes=shapes).module()
    gaps = []
    for rows in (1, 3):
        more = 0 if isinstance(config, RECURRENT) else rows
        longer = [other(each, rows, more) for each in arguments]
        with torch.inference_mode():
            expected, actual = model(*longer), program(*longer)
        assert expected.shape == actual.shape, (expected.shape, actual.shape)
        gaps.append((expected - actual).abs().max() / expected.abs().max())
    return max(gaps).item()


def main() -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    found: dict[ModelConfig, float | str] = {}  # at test size, some presets are the same model
    for config in {**ALL, **VARIANTS}.values():
        if config not in found:
            try:
                found[config] = gap(config)
            except Exception as error:  # reported, and refused by the test
                found[config] = f"{type(error).__name__}: {error}"
    print(json.dumps({name: found[config] for name, config in {**ALL, **VARIANTS}.items()}))


if __name__ == "__main__":
    main()

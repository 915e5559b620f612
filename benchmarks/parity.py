"""`python -m benchmarks.parity`: our models with the weights of others must give their answers."""

import sys
import warnings
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from benchmarks import (
    attributions,
    drawn_models,
    hub,
    image_encoders,
    image_models,
    image_text,
    interventions,
    marian,
    preprocessing,
)
from benchmarks.references import randomise, references
from manyheads.errors import ManyheadsError
from tests.torch_reference import decoder_of, encoder_of

BAR = 1e-4  # largest difference, relative to the largest number of the answer
DIM = 32


def main() -> int:
    failed = 0
    try:
        for name, difference in differences():
            passed = difference <= BAR  # false for NaN too
            failed += not passed
            print(f"{'equal ' if passed else 'DIFFER'} {difference:8.1e}  {name}", flush=True)
    except ManyheadsError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    print(f"{failed} of the comparisons failed" if failed else f"all within {BAR:g}")
    return 1 if failed else 0


def differences() -> Iterator[tuple[str, float]]:
    """Compare with every library in turn."""
    for name, build in references().items():
        yield name, build().difference()
    for name, build_image in image_models.references().items():
        yield name, build_image().difference()
    yield from image_encoders.differences()
    yield from image_text.differences()
    for name, build_marian in marian.references().items():
        reference = build_marian()
        yield name, reference.difference()
        yield f"{name}, there and back", float(reference.changed())
    for name, build_explained in attributions.references().items():
        yield name, build_explained().difference()
    yield from interventions.differences()
    yield from preprocessing.differences()
    yield from hub.differences()
    yield "100 drawn models: the share that answers otherwise", drawn_models.wrong_share()
    # Of searches and texts, the share that differs: none may.
    yield from marian.searched().differences()
    yield from marian.text_differences()
    for norm_first in (False, True):
        for activation in ("relu", "gelu"):
            order = "pre-norm" if norm_first else "post-norm"
            yield f"torch.nn.Transformer {order} {activation}", _torch(norm_first, activation)


def _torch(norm_first: bool, activation: str) -> float:
    with warnings.catch_warnings():  # of a fast path that pre-norm does not take
        warnings.simplefilter("ignore")
        theirs = nn.Transformer(
            DIM,
            nhead=4,
            num_encoder_layers=2,
            num_decoder_layers=2,
            dim_feedforward=4 * DIM,
            dropout=0.0,
            activation=activation,
            batch_first=True,
            norm_first=norm_first,
        )
    randomise(theirs, DIM, seed=0)
    assert isinstance(theirs.encoder, nn.TransformerEncoder)
    assert isinstance(theirs.decoder, nn.TransformerDecoder)
    encoder, decoder = encoder_of(theirs.encoder), decoder_of(theirs.decoder)
    generator = torch.Generator().manual_seed(0)
    source = torch.randn(3, 7, DIM, generator=generator)
    target = torch.randn(3, 5, DIM, generator=generator)
    present = torch.ones(3, 7, dtype=torch.bool)
    present[1, 4:] = False  # a padded source
    causal = torch.ones(5, 5, dtype=torch.bool).tril()
    with torch.no_grad():
        expected: Tensor = theirs(
            source,
            target,
            tgt_mask=~causal,
            src_key_padding_mask=~present,
            memory_key_padding_mask=~present,
        )
        mask = present[:, None, None]
        answer = decoder(target, encoder(source, mask), mask)
    return ((answer - expected).abs().max() / expected.abs().max()).item()


if __name__ == "__main__":
    sys.exit(main())

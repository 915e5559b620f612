"""Embeddings are found by the ids that are looked up, in every model of text."""

import pytest
import torch
from torch import Tensor, nn

from manyheads.errors import UsageError
from manyheads.lens.trace.embeddings import changed, embeddings
from manyheads.models.presets import build
from tests.small import OTHERS, READERS, SEQ2SEQS, TRANSFORMERS, inputs, randomise

TEXTS = {**TRANSFORMERS, **SEQ2SEQS, **READERS}
TEXTS |= {name: config for name, config in OTHERS.items() if name != "mlp"}  # type: ignore[misc]


@pytest.mark.parametrize("name", TEXTS)
def test_the_source_is_read_and_replaced(name: str) -> None:
    """Its own vectors change nothing; others do; a shared table serves the target as before."""
    config = TEXTS[name]
    model = randomise(build(config)).eval()
    source, *rest = inputs(config)
    looked_up: list[Tensor] = []

    def run() -> Tensor:
        with torch.no_grad():
            answer: Tensor = model(source, *rest)
        return answer

    plain = run()
    vectors = embeddings(model, source, run)
    tables = [part.weight[source] for part in model.modules() if isinstance(part, nn.Embedding)]
    assert any(torch.equal(vectors, table) for table in tables)
    with changed(model, source, lambda x: looked_up.append(x) or vectors):  # type: ignore[func-returns-value]
        assert torch.equal(run(), plain)
    assert len(looked_up) == 1
    with changed(model, source, lambda x: 2 * x):
        assert not torch.equal(run(), plain)
    assert torch.equal(run(), plain)  # nothing stays


def test_other_ids_are_not_mistaken_for_these() -> None:
    """Equal numbers are not the same tensor: a target may say what the source says."""
    config = TRANSFORMERS["transformer-base"]
    model = randomise(build(config)).eval()
    ids = torch.tensor([[5, 6]])
    plain, other = model(ids, ids.clone()), model(ids + 1, ids.clone())
    table = model.get_submodule("embedding")
    assert isinstance(table, nn.Embedding)
    with changed(model, ids, lambda _: table.weight[ids + 1]):
        assert torch.equal(model(ids, ids.clone()), other)  # the source's, not the target's
    assert not torch.equal(plain, other)
    with (
        pytest.raises(UsageError, match="did not look up these token ids"),
        changed(model, ids, lambda x: x),
    ):
        model(ids.clone(), ids.clone())

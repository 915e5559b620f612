"""Heads that do nothing or the same, on an attention whose weights are known."""

import pytest
import torch

from manyheads.lens.measures.idle_heads import HeadStatistics, write_shares
from manyheads.nn.attention.attention import MultiHeadAttention
from manyheads.nn.layers.masks import causal_mask
from manyheads.nn.recording.attention_record import AttentionRecord
from manyheads.nn.recording.trace import record
from tests.lens import examples
from tests.small import IMAGES

DIM, HEADS, SIZE = 8, 4, 2


def attention() -> MultiHeadAttention:
    torch.manual_seed(0)
    made = MultiHeadAttention(DIM, HEADS)
    torch.nn.init.normal_(made.qkv.weight, std=2.0)
    return made.eval()


def rows(head: int, part: int) -> slice:
    """The rows of a head's queries (0), keys (1) or values (2)."""
    return slice(part * DIM + head * SIZE, part * DIM + (head + 1) * SIZE)


def watched(made: MultiHeadAttention, *, causal: bool = False) -> HeadStatistics:
    watch = HeadStatistics()
    for length in (5, 7, 4):
        x = torch.randn(1, length, DIM)
        with record() as trace, torch.inference_mode():
            made(x, causal_mask(length) if causal else None)
        watch.add(trace)
    return watch


def test_a_uniform_head() -> None:
    """Without queries all keys are equal, also under a mask, where later rows see more."""
    made = attention()
    with torch.no_grad():
        made.qkv.weight[rows(1, 0)] = 0
        made.qkv.bias[rows(1, 0)] = 0
    for causal in (False, True):
        entropies = [head.entropy for head in watched(made, causal=causal).heads(made)]
        assert entropies[1] == pytest.approx(1.0, abs=1e-5)
        assert max(entropies[0], *entropies[2:]) < 0.9


def test_a_head_that_rests_on_the_first_token() -> None:
    """And one that rests on the last of texts of different lengths."""
    made, watch = attention(), HeadStatistics()
    with torch.no_grad():
        made.qkv.weight[:16] = 0
        made.qkv.bias[:8] = 50.0  # all queries equal
        made.qkv.bias[8:16] = 0
        made.qkv.weight[rows(0, 1), 0] = 1.0  # key of head 0: the first feature
        made.qkv.weight[rows(1, 1), 1] = 1.0
    for length in (5, 7, 4):
        x = torch.zeros(1, length, DIM)
        x[0, 0, 0] = 1.0
        x[0, -1, 1] = 1.0
        with record() as trace, torch.inference_mode():
            made(x)
        watch.add(trace)
    first, last, *_ = watch.heads(made)
    assert (first.place, last.place) == ("the first token", "the last token")
    assert first.favourite > 0.99
    assert last.favourite > 0.99


def test_copied_heads() -> None:
    """The same maps: no distance; all other pairs are apart."""
    made = attention()
    with torch.no_grad():
        for part in (0, 1):
            made.qkv.weight[rows(3, part)] = made.qkv.weight[rows(1, part)]
            made.qkv.bias[rows(3, part)] = made.qkv.bias[rows(1, part)]
    found = {each.numbers: each.distance for each in watched(made).duplicates()}
    assert found.pop((2, 4)) == pytest.approx(0.0, abs=1e-6)
    assert len(found) == 5
    assert min(found.values()) > 0.2


def test_total_variation_by_hand() -> None:
    """One head reads only itself, another all of four tokens: 3/4 is elsewhere."""
    made, watch = attention(), HeadStatistics()
    with torch.no_grad():
        made.qkv.weight[:16] = 0
        made.qkv.bias[:16] = 0
        made.qkv.weight[rows(0, 0)] = 100 * torch.eye(2, DIM)
        made.qkv.weight[rows(0, 1)] = torch.eye(2, DIM)
    x = torch.zeros(1, 4, DIM)
    x[0, :, :2] = torch.tensor([[1.0, 0], [0, 1], [-1, 0], [0, -1]])
    with record() as trace, torch.inference_mode():
        made(x)
    watch.add(trace)
    found = {each.numbers: each.distance for each in watch.duplicates()}
    assert found[1, 2] == pytest.approx(0.75)


def test_a_head_that_writes_nothing() -> None:
    """Whatever it reads: values or outputs of 0."""
    made = attention()
    with torch.no_grad():
        made.qkv.weight[rows(0, 2)] = 0
        made.out.weight[:, 2 * SIZE : 3 * SIZE] = 0
    ((_, shares),) = write_shares(made)
    assert shares[0] == shares[2] == 0
    assert min(shares[1], shares[3]) > 0.3


def test_a_large_map_is_read_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """A query at a time gives what the whole map gives, also under a mask and for windows."""
    torch.manual_seed(0)
    made = attention()
    whole = watched(made, causal=True)
    monkeypatch.setattr("manyheads.lens.measures.idle_heads.PIECE", 30)
    torch.manual_seed(0)
    made = attention()
    pieces = watched(made, causal=True)
    for one, other in zip(whole.heads(made), pieces.heads(made), strict=True):
        assert one.entropy == pytest.approx(other.entropy, abs=1e-5)
        assert (one.number, one.place) == (other.number, other.place)
    for a, b in zip(whole.duplicates(), pieces.duplicates(), strict=True):
        assert a.distance == pytest.approx(b.distance, abs=1e-5)


@pytest.mark.parametrize("name", ["swin-t", "swin as timm pads"])
def test_padding_asks_for_nothing(name: str) -> None:
    """Every token of the image is one query of each attention; the padding of windows is none."""
    trace = examples.recorded(IMAGES[name])
    watch = HeadStatistics()
    watch.add(trace)
    partitions = {
        each.layer_id: each.partition for each in trace if isinstance(each, AttentionRecord)
    }
    assert any(each is not None and (each.token_index() < 0).any() for each in partitions.values())
    for layer_id, sums in watch._sums.items():
        partition = partitions[layer_id]
        assert partition is not None
        assert sums.queries == partition.grid[0] * partition.grid[1]

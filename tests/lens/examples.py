"""Small real models, recorded, and views with weights made by hand."""

import torch
from torch import Tensor

from manyheads.lens.view.image_view import ImageView, image_view
from manyheads.lens.view.text_view import MapView, TextView, text_view
from manyheads.models.image_encoder import Pool
from manyheads.models.model_config import ModelConfig
from manyheads.models.presets import build
from manyheads.models.transformer import Transformer, TransformerConfig
from manyheads.models.vit import Vit, VitConfig
from manyheads.nn.attention.softmax import SoftmaxRecord
from manyheads.nn.recording.attention_record import AttentionRecord, Partition
from manyheads.nn.recording.trace import LayerId, Trace, record
from tests.small import inputs, randomise

TRANSFORMER = TransformerConfig(
    vocabulary=13, dim=8, heads=2, ffn_dim=16, encoder_layers=2, decoder_layers=2, dropout=0.0
)
VIT = VitConfig(
    height=4, width=6, channels=1, patch=2, dim=8, layers=2, heads=2, ffn_dim=16, classes=3
)

SOURCE = ["▁Friday", ",", "▁20", "▁November", "▁2026", "</s>"]
OUTPUT = ["▁2026", "년", "▁11", "월", "▁20", "일", "▁금요일", "</s>"]
LOOKS_AT = [4, 4, 3, 3, 2, 2, 0, 5]  # the source token that each output token comes from


def transformer() -> tuple[Transformer, Tensor, Tensor]:
    """A model with one source of 4 tokens and one decoder input of 3."""
    torch.manual_seed(0)
    model = Transformer(TRANSFORMER).eval()
    return model, torch.tensor([[5, 6, 7, 2]]), torch.tensor([[1, 8, 9]])


def text_trace(*, encoder_only: bool = False) -> Trace:
    model, source, target = transformer()
    with record() as trace, torch.no_grad():
        model(source, target)
    if encoder_only:
        trace.records[:] = [each for each in trace if each.layer_id.stack == "encoder"]
    return trace


def small_text_view() -> TextView:
    return text_view(
        text_trace(),
        source=["a", "b", "c", "</s>"],
        output=["x", "y", "</s>"],
        probabilities=[0.5, 0.25, 1.0],
    )


def small_image_view(pool: Pool) -> ImageView:
    torch.manual_seed(0)
    model = Vit(VitConfig(**{**vars(VIT), "pool": pool})).eval()
    with record() as trace, torch.no_grad():
        model(torch.randn(1, 1, 4, 6))
    return image_view(trace, width=6, height=4, classes=[("three", 0.75), ("이", 0.25)])


def recorded(config: ModelConfig) -> Trace:
    """One image through a small model with random weights."""
    model = randomise(build(config)).eval()
    with record() as trace, torch.no_grad():
        model(inputs(config)[0][:1])
    return trace


def record_of(layer_id: LayerId, weights: Tensor) -> SoftmaxRecord:
    """A record whose map is these weights: scores are their logarithms, keys are the identity."""
    size = weights.shape[-1]
    q = weights.log() * size**0.5
    return SoftmaxRecord(layer_id, q[None], torch.eye(size).expand(1, len(weights), -1, -1))


def whole_maps(record: AttentionRecord) -> Tensor:
    """The maps over all tokens of every example; zeros between windows."""
    partition = record.partition
    return record.weights() if partition is None else spread_windows(partition, record.weights())


def spread_windows(partition: Partition, weights: Tensor) -> Tensor:
    """Lay the maps of all windows into one over all tokens, place by place."""
    index = partition.token_index()
    tokens = partition.grid[0] * partition.grid[1]
    weights = weights.unflatten(0, (-1, len(index)))
    whole = weights.new_zeros(len(weights), weights.shape[2], tokens, tokens)
    for window, place in enumerate(index):
        (inside,) = torch.where(place >= 0)
        rows, columns = torch.meshgrid(place[inside], place[inside], indexing="ij")
        whole[:, :, rows, columns] = weights[:, window][:, :, inside][:, :, :, inside]
    return whole


def date_view(layers: int = 3, heads: int = 4) -> TextView:
    """The translation of a date; later layers look more sharply."""
    generator = torch.Generator().manual_seed(0)
    trace = Trace()
    for layer in range(layers):
        scores = torch.randn(heads, len(OUTPUT), len(SOURCE), generator=generator)
        scores[:, torch.arange(len(OUTPUT)), LOOKS_AT] += 1 + 2.0 * layer
        trace.records.append(record_of(LayerId("decoder", layer, "cross"), scores.softmax(dim=-1)))
    chances = [0.99, 1.0, 0.98, 1.0, 0.93, 1.0, 0.61, 1.0]
    return text_view(trace, source=SOURCE, output=OUTPUT, probabilities=chances)


def map_view(weights: list[list[float]], layer: int = 1) -> MapView:
    """A map of one head."""
    rows = [str(row) for row in range(len(weights))]
    columns = [str(column) for column in range(len(weights[0]))]
    layer_id = f"decoder layer {layer} cross"
    return MapView(layer_id, "decoder cross", layer, "", [""], rows, columns, weights, [weights])

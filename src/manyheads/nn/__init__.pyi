"""Public names, for type checkers and editors; programs import each when it is used."""

from manyheads.nn.attention.attention import MultiHeadAttention, attend
from manyheads.nn.attention.conv import ConvProjectedAttention
from manyheads.nn.attention.linear_attention import LinearAttention
from manyheads.nn.attention.recurrent_attention import (
    AdditiveScore,
    DotScore,
    GeneralScore,
    GlobalAttention,
)
from manyheads.nn.attention.relative import (
    RelativeAttention,
    RelativeBias,
    RelativeGridPositions,
)
from manyheads.nn.attention.rotary import Rotary
from manyheads.nn.attention.softmax import attention_weights
from manyheads.nn.attention.window import WindowedAttention
from manyheads.nn.blocks.block import DecoderBlock, EncoderBlock, GridBlock
from manyheads.nn.blocks.pool import (
    AttentionPool,
    ClassAndMeanPool,
    ClassToken,
    MeanPool,
    PatchMeanPool,
    SequencePool,
    TwoTokens,
)
from manyheads.nn.blocks.stack import Decoder, Encoder
from manyheads.nn.layers.cache import KeyValue, KeyValueCache
from manyheads.nn.layers.dropout import Dropout
from manyheads.nn.layers.feedforward import FeedForward, GatedFeedForward, QuickGELU
from manyheads.nn.layers.head import Head
from manyheads.nn.layers.layer_scale import LayerScale
from manyheads.nn.layers.linear import Linear
from manyheads.nn.layers.masks import causal_mask, padding_mask
from manyheads.nn.layers.output_head import OutputFn, logits
from manyheads.nn.layers.positions import (
    GridPositions,
    LearnedPositions,
    NoGridPositions,
    NoPositions,
    SinusoidalGridPositions,
    SinusoidalPositions,
)
from manyheads.nn.layers.residual import PostNorm, PreNorm
from manyheads.nn.layers.stochastic_depth import StochasticDepth
from manyheads.nn.recording.attention_record import (
    ALL,
    AttentionContext,
    AttentionRecord,
    Partition,
    ValueRecord,
    record_values,
    take,
)
from manyheads.nn.recording.beam_candidates import record_candidates
from manyheads.nn.recording.decode_steps import DecodeStep, Search
from manyheads.nn.recording.features import record_features
from manyheads.nn.recording.token_grid import TokenGrid
from manyheads.nn.recording.trace import LayerId, Trace, active, record
from manyheads.nn.recording.tracking import (
    current_grid,
    prepend_tokens,
    start_image,
    start_text,
    step_context,
    track_conv,
    track_modules,
)
from manyheads.nn.rnn import GRU, LSTM, RNN, Recurrent, RecurrentStack
from manyheads.nn.vision.merge import PatchMerging
from manyheads.nn.vision.patch import ConvPatches, LinearPatches, OverlappingPatches
from manyheads.nn.vision.stem import ConvStem

__all__ = ["ALL", "GRU", "LSTM", "RNN", "AdditiveScore", "AttentionContext", "AttentionPool"]
__all__ += ["AttentionRecord", "ClassAndMeanPool", "ClassToken", "ConvPatches"]
__all__ += ["ConvProjectedAttention", "ConvStem", "DecodeStep", "Decoder", "DecoderBlock"]
__all__ += ["DotScore", "Dropout", "Encoder", "EncoderBlock", "FeedForward", "GatedFeedForward"]
__all__ += ["GeneralScore", "GlobalAttention", "GridBlock", "GridPositions", "Head", "KeyValue"]
__all__ += ["KeyValueCache", "LayerId", "LayerScale", "LearnedPositions", "Linear"]
__all__ += ["LinearAttention", "LinearPatches", "MeanPool", "MultiHeadAttention", "NoGridPositions"]
__all__ += ["NoPositions", "OutputFn", "OverlappingPatches", "Partition", "PatchMeanPool"]
__all__ += ["PatchMerging", "PostNorm", "PreNorm", "QuickGELU", "Recurrent", "RecurrentStack"]
__all__ += ["RelativeAttention", "RelativeBias", "RelativeGridPositions", "Rotary", "Search"]
__all__ += ["SequencePool", "SinusoidalGridPositions", "SinusoidalPositions", "StochasticDepth"]
__all__ += ["TokenGrid", "Trace", "TwoTokens", "ValueRecord", "WindowedAttention", "active"]
__all__ += ["attend", "attention_weights", "causal_mask", "current_grid", "logits", "padding_mask"]
__all__ += ["prepend_tokens", "record", "record_candidates", "record_features", "record_values"]
__all__ += ["start_image", "start_text", "step_context", "take", "track_conv", "track_modules"]

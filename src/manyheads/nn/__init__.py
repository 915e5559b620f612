"""Tensor parts that models are composed of: attention, blocks, layers, vision, recording."""

from typing import TYPE_CHECKING

from manyheads.lazy import lazy

if TYPE_CHECKING:
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
    from manyheads.nn.blocks.block import DecoderBlock, EncoderBlock
    from manyheads.nn.blocks.grid_block import GridBlock
    from manyheads.nn.blocks.pool import (
        AttentionPool,
        ClassToken,
        MeanPool,
        PatchMeanPool,
        SequencePool,
        TwoTokens,
    )
    from manyheads.nn.blocks.stack import Decoder, Encoder
    from manyheads.nn.layers.cache import KeyValue, KeyValueCache
    from manyheads.nn.layers.dropout import Dropout
    from manyheads.nn.layers.feedforward import FeedForward, GatedFeedForward
    from manyheads.nn.layers.head import Head
    from manyheads.nn.layers.layer_scale import LayerScale
    from manyheads.nn.layers.linear import Linear
    from manyheads.nn.layers.masks import causal_mask, padding_mask
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
    from manyheads.nn.recording.attention_record import AttentionContext, AttentionRecord
    from manyheads.nn.recording.trace import LayerId, Trace, record
    from manyheads.nn.recording.tracking import start_image
    from manyheads.nn.rnn import GRU, LSTM, RNN, Recurrent, RecurrentStack
    from manyheads.nn.vision.merge import PatchMerging
    from manyheads.nn.vision.overlap import OverlappingPatches
    from manyheads.nn.vision.patch import ConvPatches, LinearPatches
    from manyheads.nn.vision.stem import ConvStem

__all__ = ["GRU", "LSTM", "RNN", "AdditiveScore", "AttentionContext", "AttentionPool"]
__all__ += ["AttentionRecord", "ClassToken", "ConvPatches", "ConvProjectedAttention", "ConvStem"]
__all__ += ["Decoder", "DecoderBlock", "DotScore", "Dropout", "Encoder", "EncoderBlock"]
__all__ += ["FeedForward", "GatedFeedForward", "GeneralScore", "GlobalAttention", "GridBlock"]
__all__ += ["GridPositions", "Head", "KeyValue", "KeyValueCache", "LayerId", "LayerScale"]
__all__ += ["LearnedPositions", "Linear", "LinearAttention", "LinearPatches", "MeanPool"]
__all__ += ["MultiHeadAttention", "NoGridPositions", "NoPositions", "OverlappingPatches"]
__all__ += ["PatchMeanPool", "PatchMerging", "PostNorm", "PreNorm", "Recurrent", "RecurrentStack"]
__all__ += ["RelativeAttention", "RelativeBias", "RelativeGridPositions", "Rotary", "SequencePool"]
__all__ += ["SinusoidalGridPositions", "SinusoidalPositions", "StochasticDepth", "Trace"]
__all__ += ["TwoTokens", "WindowedAttention", "attend", "attention_weights", "causal_mask"]
__all__ += ["padding_mask", "record", "start_image"]

__getattr__ = lazy(__name__, __file__)

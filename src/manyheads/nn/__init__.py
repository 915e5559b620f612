"""Tensor parts that models are composed of: attention, blocks, layers, vision, recording."""

from manyheads.lazy import lazy

HOMES = {
    "nn.attention.attention": "MultiHeadAttention attend",
    "nn.attention.conv": "ConvProjectedAttention",
    "nn.attention.linear_attention": "LinearAttention",
    "nn.attention.recurrent_attention": "AdditiveScore DotScore GeneralScore GlobalAttention",
    "nn.attention.relative": "RelativeAttention RelativeBias RelativeGridPositions",
    "nn.attention.rotary": "Rotary",
    "nn.attention.softmax": "attention_weights",
    "nn.attention.window": "WindowedAttention",
    "nn.blocks.block": "DecoderBlock EncoderBlock GridBlock",
    "nn.blocks.pool": (
        "AttentionPool ClassAndMeanPool ClassToken MeanPool PatchMeanPool SequencePool TwoTokens"
    ),
    "nn.blocks.stack": "Decoder Encoder",
    "nn.layers.cache": "KeyValue KeyValueCache",
    "nn.layers.dropout": "Dropout",
    "nn.layers.feedforward": "FeedForward GatedFeedForward QuickGELU",
    "nn.layers.head": "Head",
    "nn.layers.layer_scale": "LayerScale",
    "nn.layers.linear": "Linear",
    "nn.layers.masks": "causal_mask padding_mask",
    "nn.layers.output_head": "OutputFn logits",
    "nn.layers.positions": (
        "GridPositions LearnedPositions NoGridPositions NoPositions SinusoidalGridPositions "
        "SinusoidalPositions"
    ),
    "nn.layers.residual": "PostNorm PreNorm",
    "nn.layers.stochastic_depth": "StochasticDepth",
    "nn.recording.attention_record": (
        "ALL AttentionContext AttentionRecord Partition ValueRecord record_values take"
    ),
    "nn.recording.beam_candidates": "record_candidates",
    "nn.recording.decode_steps": "DecodeStep Search",
    "nn.recording.features": "record_features",
    "nn.recording.token_grid": "TokenGrid",
    "nn.recording.trace": "LayerId Trace active record",
    "nn.recording.tracking": (
        "current_grid prepend_tokens start_image start_text step_context track_conv track_modules"
    ),
    "nn.rnn": "GRU LSTM RNN Recurrent RecurrentStack",
    "nn.vision.merge": "PatchMerging",
    "nn.vision.patch": "ConvPatches LinearPatches OverlappingPatches",
    "nn.vision.stem": "ConvStem",
}
__all__, __getattr__, __dir__ = lazy(__name__, HOMES)

"""The Transformer of "Attention is all you need" from tensors, in one file, trained on dates.

    python examples/from_scratch.py                 # trains, scores, translates a few
    python examples/from_scratch.py --steps 300     # a first look, not yet good

Read it beside the paper (Vaswani et al. 2017, https://arxiv.org/abs/1706.03762): every step names
its section or equation. The model needs nothing but torch's tensors, and no layer of torch.nn:
`nn.Module` and `nn.Parameter` only keep the list of what is learned. Dropout (section 5.4) is left
out. The data are English dates and their Korean translations, generated (extra `demo`), in tokens
of one word or one digit.
A test copies the weights into the model of the package and compares the outputs
(tests/test_from_scratch.py).
"""

import argparse
import math
import re
import sys
import time

import torch
from torch import Tensor, nn

PAD, START, END = 0, 1, 2  # fills up a batch; begins a target; ends it

# --- The model ----------------------------------------------------------------------------------
# Shapes: B sentences, T tokens, h heads, d = d_model, d_k = d / h. Masks are True where a query may
# attend to a key.


def attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """Equation (1): softmax(Q K^T / sqrt(d_k)) V, over (B, h, T, d_k)."""
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    # Section 3.2.3: illegal connections become -inf before the softmax, so their weight is 0.
    weights = torch.softmax(scores.masked_fill(~mask, -math.inf), dim=-1)
    return weights @ v


class MultiHeadAttention(nn.Module):
    """Section 3.2.2: MultiHead(Q, K, V) = Concat(head_1, ..., head_h) W^O."""

    def __init__(self, d: int, h: int) -> None:
        super().__init__()
        self.w_q, self.w_k, self.w_v = (matrix(h, d, d // h) for _ in range(3))  # one per head
        self.w_o = matrix(d, d)

    def forward(self, x: Tensor, source: Tensor, mask: Tensor) -> Tensor:
        """Queries come from x (B, T, d); keys and values come from source (B, S, d)."""
        q = torch.einsum("btd,hdk->bhtk", x, self.w_q)  # x W_i^Q for every head i at once
        k = torch.einsum("bsd,hdk->bhsk", source, self.w_k)
        v = torch.einsum("bsd,hdk->bhsk", source, self.w_v)
        heads = attention(q, k, v, mask)
        return heads.transpose(1, 2).flatten(2) @ self.w_o  # Concat: (B, T, h, d_k) -> (B, T, d)


class FeedForward(nn.Module):
    """Section 3.3, equation (2): max(0, x W_1 + b_1) W_2 + b_2, for each position alike."""

    def __init__(self, d: int, d_ff: int) -> None:
        super().__init__()
        self.w_1, self.b_1 = matrix(d, d_ff), nn.Parameter(torch.zeros(d_ff))
        self.w_2, self.b_2 = matrix(d_ff, d), nn.Parameter(torch.zeros(d))

    def forward(self, x: Tensor) -> Tensor:
        """Expand, ReLU, contract."""
        return (x @ self.w_1 + self.b_1).clamp(min=0) @ self.w_2 + self.b_2


class LayerNorm(nn.Module):
    """Section 3.1, after Ba et al. 2016: mean 0 and variance 1 over d, then gain and bias."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.gain, self.bias = nn.Parameter(torch.ones(d)), nn.Parameter(torch.zeros(d))

    def forward(self, x: Tensor) -> Tensor:
        """Normalise each token's vector by itself."""
        centred = x - x.mean(dim=-1, keepdim=True)
        variance = centred.square().mean(dim=-1, keepdim=True)
        return centred / (variance + 1e-5).sqrt() * self.gain + self.bias


class EncoderLayer(nn.Module):
    """Section 3.1: self-attention, then feed-forward; each is LayerNorm(x + Sublayer(x))."""

    def __init__(self, d: int, h: int, d_ff: int) -> None:
        super().__init__()
        self.attention, self.norm_1 = MultiHeadAttention(d, h), LayerNorm(d)
        self.feed_forward, self.norm_2 = FeedForward(d, d_ff), LayerNorm(d)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Every source token attends to every source token."""
        x = self.norm_1(x + self.attention(x, x, mask))
        return self.norm_2(x + self.feed_forward(x))


class DecoderLayer(nn.Module):
    """Section 3.1: masked self-attention, encoder-decoder attention, feed-forward."""

    def __init__(self, d: int, h: int, d_ff: int) -> None:
        super().__init__()
        self.attention, self.norm_1 = MultiHeadAttention(d, h), LayerNorm(d)
        self.cross, self.norm_2 = MultiHeadAttention(d, h), LayerNorm(d)
        self.feed_forward, self.norm_3 = FeedForward(d, d_ff), LayerNorm(d)

    def forward(self, x: Tensor, memory: Tensor, causal: Tensor, source_mask: Tensor) -> Tensor:
        """Target tokens attend to those before them, then to the encoder's output (3.2.3)."""
        x = self.norm_1(x + self.attention(x, x, causal))
        x = self.norm_2(x + self.cross(x, memory, source_mask))
        return self.norm_3(x + self.feed_forward(x))


class Transformer(nn.Module):
    """Figure 1: embeddings and positions, N encoder layers, N decoder layers, output layer."""

    def __init__(self, vocabulary: int, d: int = 128, h: int = 4, d_ff: int = 256, n: int = 2):
        super().__init__()
        # Section 3.4: one matrix for both embeddings and the output layer.
        self.embedding = nn.Parameter(torch.randn(vocabulary, d) * d**-0.5)
        self.encoder = nn.ModuleList(EncoderLayer(d, h, d_ff) for _ in range(n))
        self.decoder = nn.ModuleList(DecoderLayer(d, h, d_ff) for _ in range(n))

    def embed(self, tokens: Tensor) -> Tensor:
        """Section 3.4: embeddings times sqrt(d_model). Section 3.5: plus positional encodings."""
        d = self.embedding.shape[1]
        x = self.embedding[tokens] * math.sqrt(d)
        return x + positional_encoding(tokens.shape[1], d).to(x.dtype)

    def encode(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """Source ids (B, S) -> the memory (B, S, d), and a mask (B, 1, 1, S) that hides padding."""
        mask = (source != PAD)[:, None, None, :]
        x = self.embed(source)
        for layer in self.encoder:
            x = layer(x, mask)
        return x, mask

    def decode(self, target: Tensor, memory: Tensor, source_mask: Tensor) -> Tensor:
        """Target ids (B, T) -> logits of the next token (B, T, vocabulary)."""
        # Section 3.2.3: position t may attend to positions 0..t, the lower triangle.
        causal = torch.ones(target.shape[1], target.shape[1], dtype=torch.bool).tril()
        x = self.embed(target)
        for layer in self.decoder:
            x = layer(x, memory, causal, source_mask)
        return x @ self.embedding.T  # section 3.4: the same matrix; the softmax is in the loss

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Teacher forcing: all positions of the target at once, each sees those before it."""
        return self.decode(target, *self.encode(source))


def positional_encoding(length: int, d: int) -> Tensor:
    """Section 3.5: PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos of the same."""
    position = torch.arange(length, dtype=torch.float64)[:, None]
    angle = position / 10000 ** (torch.arange(0, d, 2, dtype=torch.float64) / d)
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(1)  # sin, cos, sin, cos, ...


def matrix(*shape: int) -> nn.Parameter:
    """Draw a matrix from Glorot & Bengio's uniform distribution (the paper does not say)."""
    inputs, outputs = shape[-2], shape[-1] * (shape[0] if len(shape) == 3 else 1)
    limit = math.sqrt(6 / (inputs + outputs))
    return nn.Parameter(torch.empty(shape).uniform_(-limit, limit))


# --- Training -----------------------------------------------------------------------------------


def loss(logits: Tensor, labels: Tensor, smoothing: float = 0.1) -> Tensor:
    """Cross-entropy with label smoothing (section 5.4), over the labels that are not padding."""
    log_probability = logits - logits.logsumexp(dim=-1, keepdim=True)  # log of the softmax
    right = log_probability.gather(-1, labels[..., None]).squeeze(-1)
    smoothed = (1 - smoothing) * right + smoothing * log_probability.mean(dim=-1)
    return -smoothed[labels != PAD].mean()


def learning_rate(step: int, d: int, warmup: int) -> float:
    """Equation (3): rises linearly for `warmup` steps, then falls with 1 / sqrt(step)."""
    return float(d**-0.5 * min(step**-0.5, step * warmup**-1.5))


def train(
    model: Transformer, pairs: list[tuple[list[int], list[int]]], steps: int, batch: int = 64
) -> list[float]:
    """Take `steps` steps on random batches; return the loss of each."""
    # Section 5.3: Adam with these constants.
    adam = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
    losses, begin = [], time.perf_counter()
    for step in range(1, steps + 1):
        drawn = [pairs[i] for i in torch.randint(len(pairs), (batch,)).tolist()]
        source = padded([source for source, _ in drawn])
        target = padded([[START, *target, END] for _, target in drawn])
        # The decoder reads the target shifted right (section 3.1) and predicts the token after it.
        error = loss(model(source, target[:, :-1]), target[:, 1:])
        adam.param_groups[0]["lr"] = learning_rate(step, model.embedding.shape[1], warmup=400)
        adam.zero_grad()
        error.backward()
        adam.step()
        losses.append(error.item())
        if step % 20 == 0 or step == steps:
            print(f"step {step}: loss {error.item():.3f}, {time.perf_counter() - begin:.0f} s")
    return losses


@torch.no_grad()
def translate(model: Transformer, sources: list[list[int]], most: int = 40) -> list[list[int]]:
    """Greedy decoding: append the most probable token until END, one token at a time."""
    memory, mask = model.encode(padded(sources))
    target = torch.full((len(sources), 1), START)
    for _ in range(most):
        newest = model.decode(target, memory, mask)[:, -1].argmax(dim=-1, keepdim=True)
        target = torch.cat((target, newest), dim=1)
        if (target == END).any(dim=1).all():
            break
    return [row[1 : row.index(END) if END in row else None] for row in target.tolist()]


def padded(rows: list[list[int]]) -> Tensor:
    """Stack rows of token ids to a rectangle, filled up with PAD."""
    longest = max(len(row) for row in rows)
    return torch.tensor([row + [PAD] * (longest - len(row)) for row in rows])


# --- Dates, in words and digits -----------------------------------------------------------------

TOKEN = re.compile(r" ?(?:\d|[^\W\d]+|[^\w ])")  # a digit, a word or a sign, with a space before


class Vocabulary:
    """One vocabulary for both languages (the paper has one too, of byte pairs: section 5.1)."""

    def __init__(self, texts: list[str]) -> None:
        self.tokens = sorted({token for text in texts for token in TOKEN.findall(text)})
        self.ids = {token: number for number, token in enumerate(self.tokens, END + 1)}

    def __len__(self) -> int:
        """Count the ids, the three special ones included."""
        return END + 1 + len(self.tokens)

    def encode(self, text: str) -> list[int]:
        """Text to ids; a token that never occurred in training is left out."""
        return [self.ids[token] for token in TOKEN.findall(text) if token in self.ids]

    def decode(self, ids: list[int]) -> str:
        """Ids to text."""
        return "".join(self.tokens[number - END - 1] for number in ids if number > END)


def main() -> None:
    """Train, count exact answers to dates on days never seen in training, and show three."""
    from manyheads.data.synthetic.dates import generate
    from manyheads.errors import ManyheadsError

    parser = argparse.ArgumentParser(description="Train a Transformer made of tensors on dates.")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--pairs", type=int, default=20_000, help="to train on")
    parser.add_argument("--held-out", type=int, default=500, help="dates to measure with")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    torch.manual_seed(arguments.seed)
    torch.set_num_threads(1)
    try:
        dates = generate("train", size=arguments.pairs)
    except ManyheadsError as error:  # Babel is missing
        sys.exit(str(error))
    vocabulary = Vocabulary([text for each in dates for text in (each.source, each.target)])
    pairs = [(vocabulary.encode(each.source), vocabulary.encode(each.target)) for each in dates]
    model = Transformer(len(vocabulary))
    parameters = sum(each.numel() for each in model.parameters())
    print(f"{parameters:,} parameters, {len(vocabulary)} tokens, {len(pairs):,} pairs")
    train(model, pairs, arguments.steps)
    held_out = generate("valid", size=arguments.held_out)
    answers = [
        vocabulary.decode(ids)
        for ids in translate(model, [vocabulary.encode(each.source) for each in held_out])
    ]
    right = sum(answer == each.target for answer, each in zip(answers, held_out, strict=True))
    print(f"{right / len(held_out):.1%} of {len(held_out)} dates on days never seen are exact")
    for text in ("Friday, 20 November 2026", "11/20/26", "Nov 20, 2026, 15:05"):
        print(f"{text} -> {vocabulary.decode(translate(model, [vocabulary.encode(text)])[0])}")


if __name__ == "__main__":
    main()

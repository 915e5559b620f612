# The first hour, in English and Korean: `python scripts/first_hour.py` builds the two pages and the
# two notebooks from this file. A cell begins with a line of "# %%":
#
#   # %% [markdown] en      text of one language, as comments; its Korean (ko) follows
#   # %%                    code of both; «a|b» is a in English and b in Korean
#   # %% output             what the cell before prints, as comments; a test compares
#   # %% output varies      the same, for numbers that depend on the machine: not compared
#   # %% picture NAME       docs/images/first-hour-NAME.png: what the cell before draws
#   # %% exercise NAME      a function to fill in; `check NAME` follows
#   # %% solution NAME      at the end; `wrong NAME` is only for the tests (tests/test_first_hour.py)

# %% [markdown] en
# # The first hour
#
# You have just read "Attention is all you need" (Vaswani et al. 2017). Here every part of it runs on a sentence of your own,
# inside a translator that is trained, and you compute by hand what the model computes. Then you train a translator from 200
# pairs and look into a Vision Transformer ("An image is worth 16x16 words", Dosovitskiy et al. 2021).
#
# Seven exercises ask for a few lines each. The cell behind an exercise checks your answer and says what is wrong with it;
# solutions are at the end. Section numbers and equations are those of the 2017 paper. All of it runs in less than five
# minutes on two CPU cores.
# %% [markdown] ko
# # 첫 한 시간
#
# "Attention is all you need"(Vaswani et al. 2017)를 막 읽으셨다면, 이 페이지에서 논문의 모든 부분을 자기 문장으로 실행해 볼 수 있습니다. 이미 학습된
# 번역기의 속에서 모델이 계산하는 값을 손으로 똑같이 계산합니다. 그다음에는 문장 쌍 200개로 번역기를 직접 학습하고, Vision Transformer("An image is
# worth 16x16 words", Dosovitskiy et al. 2021)의 속도 들여다봅니다.
#
# 연습 문제는 일곱 개이고, 각각 몇 줄이면 됩니다. 문제 바로 뒤의 셀이 답을 확인하고, 틀렸다면 무엇이 틀렸는지 알려 줍니다. 풀이는 맨 끝에 있습니다. 절 번호와 식
# 번호는 2017년 논문의 것입니다. CPU 코어 두 개로 전부 실행하는 데 5분이 걸리지 않습니다.

# %% [markdown] en
# ## Before you start
#
# From the repository, in an environment that has Manyheads (`make demo` makes one in `.venv`):
#
# ```bash
# pip install -c constraints.txt --extra-index-url https://download.pytorch.org/whl/cpu '.[plot]' jupyterlab
# jupyter lab docs/first-hour.ipynb
# ```
#
# The page [first-hour.md](first-hour.md) shows the same with its results; this text is there in [Korean](first-hour.ko.md),
# too. The first cell has your sentence: change it, and run everything again.
# %% [markdown] ko
# ## 시작하기 전에
#
# 저장소 폴더에서, Manyheads가 설치된 환경에서 실행하세요(`make demo`가 `.venv`에 만들어 줍니다).
#
# ```bash
# pip install -c constraints.txt --extra-index-url https://download.pytorch.org/whl/cpu '.[plot]' jupyterlab
# jupyter lab docs/first-hour.ko.ipynb
# ```
#
# [first-hour.ko.md](first-hour.ko.md)는 같은 내용을 결과와 함께 보여 줍니다. [영어](first-hour.md)로도 있습니다. 첫 번째 코드 셀에 문장이 있습니다.
# 자기 문장으로 바꾸고 처음부터 다시 실행해 보세요.
# %%
import math
import random
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import torch
from PIL import Image

import manyheads

# «Your own: English, everyday.|자기 문장으로 바꾸세요: 영어 일상 문장.»
sentence = "I will call you back tomorrow."

# «A Transformer of 9.3M parameters, English to German.|매개변수 930만 개의 Transformer, 영어에서 독일어로.»
translate = manyheads.load("en-de")
answer = translate(sentence)
print(answer)


def check(*conditions):
    """«Print the sentence of the first condition that does not hold.|성립하지 않는 첫 번째 조건의 문장을 출력합니다.»"""
    for holds, advice in conditions:
        try:
            right, problem = bool(holds()), ""
        except Exception as error:
            right, problem = False, f" ({type(error).__name__}: {error})"
        if not right:
            print("«Not yet:|아직 아닙니다:»", advice + problem)
            return
    print("«Right.|정답입니다.»")


# %% output
# Ich rufe dich morgen zurück.


# %% [markdown] en
# ## 1 · The formula in five lines
#
# Scaled dot-product attention (section 3.2.1, equation 1):
#
# $$\operatorname{Attention}(Q, K, V) = \operatorname{softmax}\left(\frac{QK^\top}{\sqrt{d_k}}\right)V$$
#
# Each query is compared with every key; the softmax turns the scores of one query into weights that add up to 1; the output is
# the weighted mean of the values. Here queries, keys and values are all the token vectors of your sentence, so each token
# becomes a mixture of the tokens that resemble it. Before it has learned projections, a token resembles itself most.
# %% [markdown] ko
# ## 1 · 다섯 줄로 쓰는 식
#
# 스케일드 닷 프로덕트 어텐션입니다(3.2.1절, 식 1).
#
# $$\operatorname{Attention}(Q, K, V) = \operatorname{softmax}\left(\frac{QK^\top}{\sqrt{d_k}}\right)V$$
#
# 쿼리 하나를 모든 키와 비교하고, 소프트맥스가 그 점수를 합이 1인 가중치로 바꿉니다. 출력은 밸류의 가중 평균입니다. 여기서는 문장의 토큰 벡터가 쿼리이자 키이자
# 밸류이므로, 각 토큰은 자신과 닮은 토큰들이 섞인 벡터가 됩니다. 학습된 사영이 아직 없으면 토큰은 자기 자신과 가장 닮았습니다.
# %%
def attention(q, k, v):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    weights = torch.softmax(scores, dim=-1)
    return weights @ v, weights


tokens = translate.read_tokens(sentence)
source = torch.tensor([tokens.ids])  # «one sentence of token ids|토큰 번호로 바꾼 문장 하나»
with torch.no_grad():
    # «The token vectors: (1, tokens, 192).|토큰 벡터: (1, 토큰, 192).»
    x = translate.model.embed(translate.model.embedding, source)
mixed, weights = attention(x, x, x)
print(tokens.names)
print(
    tuple(weights.shape),
    "«each row adds up to 1:|각 행의 합은 1:»",
    torch.allclose(weights.sum(-1), torch.ones(1, x.shape[1])),
)
# %% output
# ['▁I', '▁will', '▁call', '▁you', '▁back', '▁tomorrow', '.', '</s>']
# (1, 8, 8) «each row adds up to 1:|각 행의 합은 1:» True


# %% [markdown] en
# **Exercise 1.** Write the left half yourself: the weights of queries `q` for keys `k`, both of shape (..., tokens, size).
# %% [markdown] ko
# **연습 1.** 왼쪽 절반을 직접 써 보세요. 쿼리 `q`의 키 `k`에 대한 가중치이고, 둘 다 (..., 토큰, 크기) 모양입니다.
# %% exercise weights
def my_weights(q, k):
    return ...  # «your turn|여기를 채우세요»


# %% check weights
torch.manual_seed(0)
q, k = torch.randn(2, 3, 16), torch.randn(2, 5, 16)
check(
    (
        lambda: my_weights(q, k).shape == (2, 3, 5),
        "«one weight for each query (row) and key (column): multiply q by the transpose of k, q @ k.transpose(-2, -1).|쿼리(행)와 키(열)마다 가중치가 하나씩 있어야 합니다. q에 k의 전치를 곱하세요: q @ k.transpose(-2, -1).»",
    ),
    (
        lambda: torch.allclose(my_weights(q, k).sum(-1), torch.ones(2, 3)),
        "«the weights of one query have to add up to 1: take the softmax over keys, dim=-1.|쿼리 하나의 가중치는 합이 1이어야 합니다. 소프트맥스를 키 방향(dim=-1)으로 하세요.»",
    ),
    (
        lambda: torch.allclose(my_weights(q, k), attention(q, k, k)[1]),
        "«the scores are divided by sqrt(d_k), the root of the size of one query (16 here), before the softmax.|소프트맥스 전에 점수를 sqrt(d_k), 곧 쿼리 크기(여기서는 16)의 제곱근으로 나눠야 합니다.»",
    ),
)


# %% solution weights
def my_weights(q, k):
    return torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)


# %% wrong weights
def my_weights(q, k):
    return torch.softmax(q.transpose(-2, -1) @ q, dim=-1)


# %% wrong weights
def my_weights(q, k):
    return torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-2)


# %% wrong weights
def my_weights(q, k):
    return torch.softmax(q @ k.transpose(-2, -1), dim=-1)


# %% wrong weights
def my_weights(q, k):
    return torch.softmax(q @ k.transpose(-2, -1) / q.shape[-1], dim=-1)


# %% [markdown] en
# ## 2 · The model does exactly this
#
# `manyheads.record()` keeps the queries and keys of every attention while the model runs; the answer stays bitwise the same. A
# hook of torch keeps what goes into the first attention of the encoder and what comes out. Then seven lines compute the output
# by hand: equation 1 with the recorded queries and keys, the heads side by side, and the output projection (section 3.2.2).
# %% [markdown] ko
# ## 2 · 모델도 정확히 이렇게 계산합니다
#
# `manyheads.record()`는 모델이 실행되는 동안 모든 어텐션의 쿼리와 키를 기록합니다. 답은 비트 하나까지 그대로입니다. torch의 훅으로 인코더의 첫 번째 어텐션에 들어간 값과
# 나온 값도 남겨 둡니다. 그다음 일곱 줄로 그 출력을 손으로 계산합니다. 기록된 쿼리와 키로 식 1을 계산하고, 헤드를 나란히 이어 붙이고, 출력 사영을 곱합니다(3.2.2절).
# %%
layer = translate.model.encoder.blocks[0].attention
kept = {}
hook = layer.register_forward_hook(
    lambda _, inputs, output: kept.update(x=inputs[0], output=output)
)
with manyheads.record() as trace:
    print(translate(sentence))
hook.remove()
first = trace.records[0]
print(first.layer_id, tuple(first.q.shape))  # «sentence, head, token, size|문장, 헤드, 토큰, 크기»
# %% output
# Ich rufe dich morgen zurück.
# encoder layer 1 self (1, 6, 8, 32)
# %%
with torch.no_grad():
    q, k = trace.records[0].q, trace.records[0].k
    v = layer.qkv(kept["x"]).chunk(3, dim=-1)[2]  # x W^V
    v = v.unflatten(-1, (layer.heads, -1)).transpose(1, 2)
    weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)
    heads = weights @ v
    by_hand = layer.out(heads.transpose(1, 2).flatten(2))  # Concat(head_1, ..., head_6) W^O
    print(torch.allclose(by_hand, kept["output"], atol=1e-5))
# %% output
# True

# %% [markdown] en
# True: what you have read in the paper is what the translator has just done with your sentence. Leave the square root out, and
# it is not:
# %% [markdown] ko
# True입니다. 논문에서 읽은 식 그대로를 번역기가 방금 이 문장에 적용했습니다. 제곱근을 빼면 더 이상 같지 않습니다.
# %%
with torch.no_grad():
    unscaled = torch.softmax(q @ k.transpose(-2, -1), dim=-1) @ v
    print(torch.allclose(layer.out(unscaled.transpose(1, 2).flatten(2)), kept["output"], atol=1e-5))
# %% output
# False


# %% [markdown] en
# ## 3 · Heads
#
# Section 3.2.2: six attentions side by side, each of width 192 / 6 = 32, each with projections of its own. Each head has a map
# of its own: rows are queries, columns are keys, and the darkest square is its largest weight. In layer 5, head 2 mostly reads
# the token before; of the others much goes to the end token. Draw `trace.records[0]`: in layer 1
# all heads give most of their weight to the end token.
# %% [markdown] ko
# ## 3 · 헤드
#
# 3.2.2절의 멀티 헤드 어텐션입니다. 어텐션 여섯 개가 나란히 있고, 각각의 너비는 192 / 6 = 32이며 사영도 따로 있습니다. 헤드마다 어텐션 맵이 다릅니다. 행이 쿼리, 열이
# 키이고, 가장 진한 칸이 그 맵에서 가장 큰 가중치입니다. 5층의 2번 헤드는 주로 바로 앞 토큰을 읽고, 다른 헤드들의 가중치는 많은 부분이 끝 토큰으로 갑니다. `trace.records[0]`도 그려 보세요.
# 1층에서는 대부분의 헤드가 가중치를 거의 모두 끝 토큰에 줍니다.
# %%
def draw(maps, rows, columns, wide=3):
    """«Draw maps side by side, one for each head.|맵을 헤드마다 하나씩 나란히 그립니다.»"""
    figure, axes = plt.subplots(
        -(-len(maps) // wide),
        min(wide, len(maps)),
        squeeze=False,
        figsize=(11, 3.7 * -(-len(maps) // wide)),
    )
    for number, (axis, each) in enumerate(zip(axes.flat, maps, strict=False), 1):
        axis.imshow(each.numpy(), cmap="Blues", vmin=0)
        axis.set_title(number)
        axis.set_xticks(range(len(columns)), columns, rotation=90)
        axis.set_yticks(range(len(rows)), rows)
    figure.tight_layout()
    plt.show()


draw(trace.records[4].weights()[0], tokens.names, tokens.names)  # «layer 5|5층»
# %% picture heads Attention maps of the six heads in encoder layer 5|인코더 5층의 헤드 여섯 개의 어텐션 맵


# %% [markdown] en
# **Exercise 2.** Cut vectors of shape (batch, tokens, width) into heads: (batch, heads, tokens, width / heads). The check
# compares with the queries that the model has just used.
# %% [markdown] ko
# **연습 2.** (배치, 토큰, 너비) 모양의 벡터를 헤드로 나누세요: (배치, 헤드, 토큰, 너비 / 헤드 수). 모델이 방금 쓴 쿼리와 비교해 확인합니다.
# %% exercise split
def split(x, heads):
    return ...  # «your turn|여기를 채우세요»


# %% check split
with torch.no_grad():
    queries = layer.qkv(kept["x"]).chunk(3, dim=-1)[0].contiguous()  # (1, «tokens|토큰», 192)
check(
    (
        lambda: split(queries, 6).shape == first.q.shape,
        "«the shape has to be (batch, heads, tokens, width / heads): first cut the last axis, then exchange the axes of tokens and heads.|모양이 (배치, 헤드, 토큰, 너비 / 헤드 수)여야 합니다. 먼저 마지막 축을 나누고, 토큰 축과 헤드 축을 바꾸세요.»",
    ),
    (
        lambda: torch.allclose(split(queries, 6), first.q, atol=1e-6),
        "«the shape is right, but numbers of different tokens are mixed: view(batch, heads, tokens, size) alone reads memory across tokens. Use view(batch, tokens, heads, size) and then transpose(1, 2).|모양은 맞지만 서로 다른 토큰의 값이 섞였습니다. view(배치, 헤드, 토큰, 크기)만으로는 메모리를 토큰 경계와 어긋나게 읽습니다. view(배치, 토큰, 헤드, 크기)를 한 뒤 transpose(1, 2)를 하세요.»",
    ),
)


# %% solution split
def split(x, heads):
    batch, tokens, width = x.shape
    return x.view(batch, tokens, heads, width // heads).transpose(1, 2)


# %% wrong split
def split(x, heads):
    batch, tokens, width = x.shape
    return x.view(batch, tokens, heads, width // heads)


# %% wrong split
def split(x, heads):
    batch, tokens, width = x.shape
    return x.view(batch, heads, tokens, width // heads)


# %% [markdown] en
# ## 4 · Masks
#
# The decoder learns every position of the target at once (teacher forcing), so position t must not see the positions behind it
# (section 3.2.3). Their scores are set to minus infinity before the softmax; the weights above the diagonal are 0. Changing the
# last token of the target therefore changes nothing that was said before it.
# %% [markdown] ko
# ## 4 · 마스크
#
# 디코더는 타깃의 모든 위치를 한꺼번에 학습합니다(teacher forcing). 그래서 위치 t는 그 뒤의 위치를 보면 안 됩니다(3.2.3절). 소프트맥스 전에 그 점수를 음의 무한대로 바꾸므로
# 대각선 위의 가중치는 0입니다. 따라서 타깃의 마지막 토큰을 바꿔도 그 앞의 예측은 하나도 달라지지 않습니다.
# %%
model, vocabulary = translate.model, translate.tokenizers.target
written = vocabulary.encode([answer])[0]
target = torch.tensor([[model.config.start, *written]])
with torch.no_grad(), manyheads.record() as forced:
    logits = model(source, target)  # «the next token at each position|위치마다 다음 토큰»
    other = target.clone()
    other[0, -1] = model.config.end
    changed = model(source, other)
masked = next(
    each for each in forced.records if str(each.layer_id) == "decoder layer 1 self"
).weights()
print("«above the diagonal:|대각선 위:»", masked.triu(1).abs().max().item())
print(
    torch.allclose(logits[:, :-1], changed[:, :-1], atol=1e-4),
    torch.allclose(logits, changed, atol=1e-4),
)
# %% output
# «above the diagonal:|대각선 위:» 0.0
# True False


# %% [markdown] en
# **Exercise 3.** Make the mask of `n` positions: a boolean matrix, True where a query (row) may attend to a key (column).
# %% [markdown] ko
# **연습 3.** 위치 `n`개의 마스크를 만드세요. 쿼리(행)가 키(열)를 봐도 되는 곳이 True인 불리언 행렬입니다.
# %% exercise causal
def causal(n):
    return ...  # «your turn|여기를 채우세요»


# %% check causal
check(
    (
        lambda: causal(4).dtype == torch.bool and causal(4).shape == (4, 4),
        "«a boolean tensor of n x n is needed: torch.ones(n, n, dtype=torch.bool) is one that hides nothing.|n x n 크기의 불리언 텐서가 필요합니다. torch.ones(n, n, dtype=torch.bool)은 아무것도 가리지 않는 마스크입니다.»",
    ),
    (
        lambda: causal(4).diagonal().all(),
        "«a position may attend to itself, so the diagonal is True. Otherwise the first one could attend to nothing.|위치는 자기 자신을 볼 수 있으므로 대각선은 True입니다. 아니면 첫 번째 위치가 볼 수 있는 것이 없습니다.»",
    ),
    (
        lambda: not causal(4).triu(1).any(),
        "«True above the diagonal lets a position see the words that it has to predict: keep the lower triangle (tril).|대각선 위가 True이면 예측해야 할 단어가 미리 보입니다. 아래 삼각형(tril)만 남기세요.»",
    ),
    (
        lambda: causal(4).sum() == 10,
        "«position t attends to all of 0..t, not only to the newest: 1 + 2 + 3 + 4 places are True.|위치 t는 가장 가까운 것만이 아니라 0..t 전부를 봅니다. True가 1 + 2 + 3 + 4개여야 합니다.»",
    ),
)


# %% solution causal
def causal(n):
    return torch.ones(n, n, dtype=torch.bool).tril()


# %% wrong causal
def causal(n):
    return torch.full((n, n), -math.inf).triu(1)


# %% wrong causal
def causal(n):
    return torch.ones(n, n, dtype=torch.bool).tril(-1)


# %% wrong causal
def causal(n):
    return torch.ones(n, n, dtype=torch.bool).triu()


# %% wrong causal
def causal(n):
    return torch.eye(n, dtype=torch.bool)


# %% [markdown] en
# ## 5 · Positions
#
# Attention by itself sees a set, not a sequence: shuffle the tokens, and the outputs are shuffled with them, unchanged. Only the
# positional encoding that is added to the embeddings (section 3.5) makes "dog bites man" differ from "man bites dog".
# %% [markdown] ko
# ## 5 · 위치 인코딩
#
# 어텐션만으로는 순서열이 아니라 집합을 봅니다. 토큰을 섞으면 출력도 똑같이 섞일 뿐 값은 그대로입니다. 임베딩에 더하는 위치 인코딩(3.5절)이 있어야 영어의 "dog bites man"과
# "man bites dog"이 달라집니다.
# %%
shuffled = torch.randperm(x.shape[1], generator=torch.Generator().manual_seed(1))
with torch.no_grad():
    print(
        "«without positions:|위치 인코딩 없이:»",
        torch.allclose(layer(x)[:, shuffled], layer(x[:, shuffled]), atol=1e-4),
    )
    placed, moved = model.positions(x), model.positions(x[:, shuffled])
    print(
        "«with positions:|위치 인코딩을 더하면:»",
        torch.allclose(layer(placed)[:, shuffled], layer(moved), atol=1e-4),
    )
# %% output
# «without positions:|위치 인코딩 없이:» True
# «with positions:|위치 인코딩을 더하면:» False


# %% [markdown] en
# **Exercise 4.** Write the table of section 3.5, shape (length, d): PE(pos, 2i) = sin(pos / 10000^(2i/d)), and
# PE(pos, 2i+1) = cos of the same. The check compares with the model's table.
# %% [markdown] ko
# **연습 4.** 3.5절의 표를 (길이, d) 모양으로 쓰세요. PE(pos, 2i) = sin(pos / 10000^(2i/d))이고 PE(pos, 2i+1)은 같은 값의 cos입니다. 모델의 표와 비교해 확인합니다.
# %% exercise positions
def positional_encoding(length, d):
    return ...  # «your turn|여기를 채우세요»


# %% check positions
check(
    (
        lambda: positional_encoding(10, 192).shape == (10, 192),
        "«the shape is (length, d): one row for each position.|모양은 (길이, d)입니다. 위치마다 한 행입니다.»",
    ),
    (
        lambda: torch.allclose(
            positional_encoding(10, 192)[0, :4].double(), torch.tensor([0.0, 1, 0, 1]).double()
        ),
        "«row 0 is 0, 1, 0, 1, ...: sines are in the even columns and cosines in the odd ones, in turns.|0번 행은 0, 1, 0, 1, ...입니다. 짝수 열에는 사인, 홀수 열에는 코사인이 번갈아 들어갑니다.»",
    ),
    (
        lambda: torch.allclose(
            positional_encoding(10, 192).float(), model.positions.table[:10], atol=1e-5
        ),
        "«the wavelengths differ: in columns 2i and 2i + 1 the exponent is 2i / d, which is 0 in the first two columns.|파장이 다릅니다. 2i열과 2i + 1열의 지수는 둘 다 2i / d이고, 처음 두 열에서는 0입니다.»",
    ),
)


# %% solution positions
def positional_encoding(length, d):
    position = torch.arange(length)[:, None]
    angle = position / 10000 ** (torch.arange(0, d, 2) / d)
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(1)


# %% wrong positions
def positional_encoding(length, d):
    return torch.arange(length)[:, None] / 10000 ** (torch.arange(0, d, 2) / d)


# %% wrong positions
def positional_encoding(length, d):
    angle = torch.arange(length)[:, None] / 10000 ** (torch.arange(0, d, 2) / d)
    return torch.cat((angle.sin(), angle.cos()), dim=1)


# %% wrong positions
def positional_encoding(length, d):
    angle = torch.arange(length)[:, None] / 10000 ** (torch.arange(d // 2) / d)
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(1)


# %% [markdown] en
# ## 6 · Cross-attention
#
# In encoder-decoder attention (section 3.2.3) the queries come from the decoder, keys and values from the encoder. Its map has a
# row for each token that is written and a column for each token of the source: it shows which words the model reads for each
# word that it writes. The picture has the mean over the heads of both decoder layers. "back" belongs to "call" in English and
# ends the sentence as "zurück" in German.
# %% [markdown] ko
# ## 6 · 인코더-디코더 어텐션
#
# 인코더-디코더 어텐션(3.2.3절)에서 쿼리는 디코더에서, 키와 밸류는 인코더에서 옵니다. 맵의 행은 쓰는 토큰, 열은 원문의 토큰이므로, 단어 하나를 쓸 때마다 어떤 단어를 읽는지
# 보여 줍니다. 그림은 디코더의 두 층 각각에서 헤드를 평균한 것입니다. 영어에서 "call"에 딸린 "back"이 독일어에서는 문장 끝의 "zurück"이 됩니다.
# %%
cross = [each.weights()[0].mean(0) for each in forced.records if each.layer_id.kind == "cross"][:2]
output = [vocabulary.piece(token) for token in [*written, model.config.end]]
draw(cross, output, tokens.names, wide=2)
# %% picture cross Mean cross-attention of decoder layers 1 and 2|디코더 1층과 2층의 인코더-디코더 어텐션, 헤드의 평균


# %% [markdown] en
# **Exercise 5.** From a map (written tokens, source tokens) list for each written token the source token with the largest weight.
# %% [markdown] ko
# **연습 5.** 맵(쓴 토큰, 원문 토큰)에서, 쓴 토큰마다 가중치가 가장 큰 원문 토큰을 나열하세요.
# %% exercise strongest
def strongest(weights, source_tokens):
    return ...  # «your turn|여기를 채우세요»


# %% check strongest
# «Two written tokens, three of the source.|쓴 토큰 두 개, 원문 토큰 세 개.»
small = torch.tensor([[0.1, 0.9, 0.0], [0.5, 0.2, 0.3]])
check(
    (
        lambda: len(strongest(small, ["a", "b", "c"])) == 2,
        "«one name for each written token, so for each row: take the argmax over columns, dim=-1.|쓴 토큰, 곧 행마다 이름이 하나씩 필요합니다. 열 방향(dim=-1)으로 argmax를 하세요.»",
    ),
    (
        lambda: all(isinstance(each, str) for each in strongest(small, ["a", "b", "c"])),
        "«the answer is a list of tokens: use the argmax as an index into source_tokens.|답은 토큰의 목록입니다. argmax를 source_tokens의 인덱스로 쓰세요.»",
    ),
    (
        lambda: list(strongest(small, ["a", "b", "c"])) == ["b", "a"],
        "«these are not the largest weights of the rows: 0.9 is in column b, 0.5 in column a.|행에서 가장 큰 가중치가 아닙니다. 0.9는 b열에, 0.5는 a열에 있습니다.»",
    ),
)


# %% solution strongest
def strongest(weights, source_tokens):
    return [source_tokens[column] for column in weights.argmax(dim=-1).tolist()]


# %% wrong strongest
def strongest(weights, source_tokens):
    return [source_tokens[column] for column in weights.argmax(dim=0).tolist()]


# %% wrong strongest
def strongest(weights, source_tokens):
    return weights.argmax(dim=-1).tolist()


# %% wrong strongest
def strongest(weights, source_tokens):
    return [source_tokens[column] for column in weights.argmin(dim=-1).tolist()]


# %% [markdown] en
# ## 7 · A translator from 200 pairs of your own
#
# Now from nothing: 200 pairs of numbers, English words to Korean ones ("forty-two", "사십이": 4, 10, 2), and 60 others to
# measure with. Replace `pairs` by your own lines of source, tab, target.
#
# Training shows the decoder the right target and asks for the next token at every position. So one list of ids is used twice.
#
# **Exercise 6.** From the ids of a target make what the decoder reads and what it has to say: both start at the same time, and at
# each position the label is the token that comes next.
# %% [markdown] ko
# ## 7 · 직접 만든 문장 쌍 200개로 학습하는 번역기
#
# 이번에는 처음부터 만듭니다. 영어로 쓴 수와 한국어로 쓴 수의 쌍 200개로 학습하고("forty-two", "사십이"), 다른 60개로 잽니다. `pairs`를 원문, 탭, 번역문으로 된 자기 줄로
# 바꿔도 됩니다.
#
# 학습할 때는 디코더에게 올바른 타깃을 보여 주고, 모든 위치에서 다음 토큰을 묻습니다. 그래서 번호 목록 하나를 두 번 씁니다.
#
# **연습 6.** 타깃의 번호로 디코더가 읽을 것과 답해야 할 것을 만드세요. 둘은 길이가 같고, 각 위치의 정답은 바로 다음에 올 토큰입니다.
# %% exercise shift
def shift(ids, start, end):
    return ..., ...  # «read by the decoder, expected of it|디코더가 읽을 것, 답해야 할 것»


# %% check shift
check(
    (
        lambda: (
            len(shift([7, 8, 9], 1, 2)) == 2
            and len(shift([7, 8, 9], 1, 2)[0]) == len(shift([7, 8, 9], 1, 2)[1]) == 4
        ),
        "«both lists have one more token than the target: the start token in front of one, the end token behind the other.|두 목록 모두 타깃보다 토큰이 하나 많습니다. 하나에는 앞에 시작 토큰, 다른 하나에는 뒤에 끝 토큰이 붙습니다.»",
    ),
    (
        lambda: list(shift([7, 8, 9], 1, 2)[0]) != list(shift([7, 8, 9], 1, 2)[1]),
        "«with the same list twice the model learns to copy what it reads: the labels have to be one token ahead.|같은 목록을 두 번 쓰면 모델은 읽은 것을 베끼는 법만 배웁니다. 정답은 한 토큰 앞서 있어야 합니다.»",
    ),
    (
        lambda: [list(each) for each in shift([7, 8, 9], 1, 2)] == [[1, 7, 8, 9], [7, 8, 9, 2]],
        "«the decoder reads start, 7, 8, 9 and has to say 7, 8, 9, end.|디코더는 시작, 7, 8, 9를 읽고 7, 8, 9, 끝을 답해야 합니다.»",
    ),
)


# %% solution shift
def shift(ids, start, end):
    return [start, *ids], [*ids, end]


# %% wrong shift
def shift(ids, start, end):
    return ids[:-1], ids[1:]


# %% wrong shift
def shift(ids, start, end):
    return [start, *ids], [start, *ids]


# %% wrong shift
def shift(ids, start, end):
    return [*ids, end], [start, *ids]


# %%
NUMERALS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen",
    "zero ten twenty thirty forty fifty sixty seventy eighty ninety",
)
ONES, TENS = (words.split() for words in NUMERALS)


def english(n):
    if n < 20:
        return ONES[n]
    if n < 100:
        return TENS[n // 10] + (f"-{ONES[n % 10]}" if n % 10 else "")
    return f"{ONES[n // 100]} hundred" + (f" {english(n % 100)}" if n % 100 else "")


def korean(n):
    words = ""
    for digit, unit in zip(f"{n:03}", ("백", "십", ""), strict=True):
        if digit != "0":  # «a 1 is said at the end only|1은 맨 끝에서만 읽습니다»
            words += ("" if unit and digit == "1" else "영일이삼사오육칠팔구"[int(digit)]) + unit
    return words


numbers = random.Random(0).sample(range(1, 1000), 260)
pairs = [f"{english(n)}\t{korean(n)}" for n in numbers]
print(len(pairs), pairs[0], "|", pairs[1])
# %% output
# 260 eight hundred sixty-five	팔백육십오 | three hundred ninety-five	삼백구십오

# %% [markdown] en
# A recipe says the rest. The model is that of the paper, small, with the norm in front of each sub-layer (`norm = "pre"`), which
# needs less care in training. The training takes half a minute on one core.
# %% [markdown] ko
# 나머지는 레시피가 정합니다. 모델은 논문의 것을 작게 한 것이고, 서브층 앞에 정규화를 둡니다(`norm = "pre"`). 이쪽이 학습하기 쉽습니다. 코어 하나로 30초쯤 걸립니다.
# %%
folder = Path(tempfile.mkdtemp())
(folder / "pairs.tsv").write_text("\n".join(pairs[:200]) + "\n", encoding="utf-8")
(folder / "valid.tsv").write_text("\n".join(pairs[200:]) + "\n", encoding="utf-8")
(folder / "mine.toml").write_text(
    """
task = "translate"

[data]
train = "pairs.tsv"
valid = "valid.tsv"
source = "en"
target = "ko"

[tokenizer]
size = 330

[model]
preset = "transformer-tiny"
encoder_layers = 2
decoder_layers = 2
dropout = 0.1
norm = "pre"

[train]
steps = 300
max_tokens = 1500
learning_rate = 2e-3
schedule = "cosine"
warmup = 50
validate_every = 300
save_every = 300
threads = 1

[decode]
beams = 1

[evaluate]
metrics = ["exact"]
""",
    encoding="utf-8",
)
result = manyheads.train(folder / "mine.toml", f"data.root={folder}", out=folder / "run")
print(
    f"{result['value']:.0f}% «of 60 numbers never seen are exactly right|(한 번도 보지 못한 수 60개 중 정확히 맞힌 비율)»"
)
# %% output varies
# 83% «of 60 numbers never seen are exactly right|(한 번도 보지 못한 수 60개 중 정확히 맞힌 비율)»
# %%
mine = manyheads.load(folder / "run")
for n in numbers[200:206]:
    print(
        english(n),
        "->",
        mine(english(n)),
        "«right|맞음»" if mine(english(n)) == korean(n) else f"(«not|정답:» {korean(n)})",
    )
# %% output varies
# nine hundred fifty-nine -> 구백오십구 «right|맞음»
# twenty-eight -> 이백이십팔 («not|정답:» 이십팔)
# eight hundred ninety-three -> 팔백구십삼 «right|맞음»
# six hundred fifty-one -> 육백오십일 «right|맞음»
# eight hundred seventy-two -> 팔백칠십이 «right|맞음»
# six hundred twenty-one -> 육백이십일 «right|맞음»

# %% [markdown] en
# 200 pairs teach this much because numbers are made by a rule. Sentences are not: the shipped `enko-en-ko` has learned from
# 29,269 pairs and still fails outside documentation ([results](results.md)). The folder is a model like the shipped ones:
# `manyheads.load`, `record` and `look` work with it.
# %% [markdown] ko
# 수는 규칙으로 만들어지므로 200쌍으로도 이만큼 배웁니다. 문장은 그렇지 않습니다. 함께 배포되는 `enko-en-ko`는 29,269쌍으로 학습했지만 문서가 아닌 글에는 여전히
# 약합니다([결과](results.md)).
# 만들어진 폴더는 배포된 모델과 똑같은 모델 폴더라서 `manyheads.load`, `record`, `look`이 그대로 됩니다.

# %% [markdown] en
# ## 8 · The same attention reads a picture
#
# A Vision Transformer cuts a picture into patches; each patch is a token, and a class token in front of them collects what the
# answer needs (Dosovitskiy et al. 2021, section 3.1). Draw a digit of your own with "#" and "+" (half as bright); this model has
# seen bright digits on a dark ground only, so ink on paper must be inverted first:
# %% [markdown] ko
# ## 8 · 같은 어텐션이 이미지를 읽습니다
#
# Vision Transformer는 이미지를 패치로 자릅니다. 패치 하나가 토큰 하나이고, 맨 앞의 클래스 토큰이 답에 필요한 것을 모읍니다(Dosovitskiy et al. 2021, 3.1절). "#"과 "+"(절반 밝기)로
# 숫자를 하나 그려 보세요. 이 모델은 어두운 바탕의 밝은 숫자만 보았으므로, 흰 종이에 쓴 숫자는 먼저 반전해야 합니다.
# %%
drawing = """
..####+.
..+++##.
.....#+.
..+###+.
..+##+..
...#+...
..+#....
..##....
"""
brightness = {".": 0, "+": 128, "#": 255}
pixels = torch.tensor([[brightness[mark] for mark in row] for row in drawing.split()])
picture = Image.fromarray(pixels.byte().numpy())
# «A ViT of 4 layers with 4 heads; patches of 2 x 2.|4층, 헤드 4개, 2 x 2 패치의 ViT.»
classify = manyheads.load("digits")
print(classify(picture))
# %% output
# 7


# %% [markdown] en
# **Exercise 7.** Cut an 8 x 8 picture into patches of 2 x 2, row by row: shape (16, 4).
# %% [markdown] ko
# **연습 7.** 8 x 8 이미지를 2 x 2 패치로 자르세요. 왼쪽 위부터 한 줄씩 차례로, (16, 4) 모양입니다.
# %% exercise patches
def patches(pixels, size):
    return ...  # «your turn|여기를 채우세요»


# %% check patches
board = torch.arange(64).reshape(8, 8)
check(
    (
        lambda: patches(board, 2).shape == (16, 4),
        "«(8 / 2) x (8 / 2) = 16 patches of 2 x 2 = 4 pixels are needed: shape (16, 4).|(8 / 2) x (8 / 2) = 16개의 패치에 2 x 2 = 4개의 픽셀, 곧 (16, 4) 모양이어야 합니다.»",
    ),
    (
        lambda: patches(board, 2)[0].tolist() == [0, 1, 8, 9],
        "«the first patch is the square at the top left, pixels 0, 1, 8, 9: reshape alone cuts rows into strips. Cut both axes, reshape(4, 2, 4, 2), and exchange the two in the middle.|첫 번째 패치는 왼쪽 위의 정사각형, 곧 픽셀 0, 1, 8, 9입니다. reshape만으로는 행이 띠 모양으로 잘립니다. 두 축을 모두 나누고(reshape(4, 2, 4, 2)) 가운데 두 축을 바꾸세요.»",
    ),
    (
        lambda: patches(board, 2)[1].tolist() == [2, 3, 10, 11],
        "«the second patch is to the right of the first: go along rows of patches, not down columns.|두 번째 패치는 첫 번째의 오른쪽에 있습니다. 아래로가 아니라 옆으로 가세요.»",
    ),
)


# %% solution patches
def patches(pixels, size):
    rows, columns = pixels.shape
    cut = pixels.reshape(rows // size, size, columns // size, size)
    return cut.transpose(1, 2).reshape(-1, size * size)


# %% wrong patches
def patches(pixels, size):
    return pixels.reshape(4, 4, 4)


# %% wrong patches
def patches(pixels, size):
    return pixels.reshape(-1, size * size)


# %% wrong patches
def patches(pixels, size):
    cut = pixels.reshape(4, size, 4, size).permute(2, 0, 1, 3)
    return cut.reshape(-1, size * size)


# %% [markdown] en
# The seven lines again, with nothing changed, for the first layer of the ViT. Then the maps of the class token in the last
# layer: how much each of the four heads reads of each patch.
# %% [markdown] ko
# 앞의 일곱 줄을 그대로 ViT의 첫 번째 층에 써 봅니다. 그다음은 마지막 층에서 클래스 토큰의 맵입니다. 헤드 네 개가 각 패치를 얼마나 읽는지 보여 줍니다.
# %%
vit = classify.model.encoder.blocks[0].attention
seen = {}
hook = vit.register_forward_hook(lambda _, inputs, output: seen.update(x=inputs[0], output=output))
with manyheads.record() as glance:
    classify(picture)
hook.remove()
with torch.no_grad():
    q, k = glance.records[0].q, glance.records[0].k
    v = vit.qkv(seen["x"]).chunk(3, dim=-1)[2]
    v = v.unflatten(-1, (vit.heads, -1)).transpose(1, 2)
    weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)
    heads = weights @ v
    by_hand = vit.out(heads.transpose(1, 2).flatten(2))
    print(torch.allclose(by_hand, seen["output"], atol=1e-5))
# %% output
# True
# %%
# «Heads, rows and columns of patches.|헤드, 패치의 행, 패치의 열.»
last = glance.records[3].weights()[0, :, 0, 1:].reshape(4, 4, 4)
figure, axes = plt.subplots(1, 5, figsize=(11, 2.5))
axes[0].imshow(pixels.numpy(), cmap="gray")
for number, (axis, each) in enumerate(zip(axes[1:], last, strict=True), 1):
    axis.imshow(each.numpy(), cmap="Blues", vmin=0)
    axis.set_title(number)
for axis in axes:
    axis.set_axis_off()
plt.show()
# %% picture digit The drawing, and what the class token reads in the last layer, by head|그린 숫자와, 마지막 층에서 클래스 토큰이 읽는 곳(헤드별)

# %% [markdown] en
# ## Where to go from here
#
# - Build all of it: [examples/from_scratch.py](../examples/from_scratch.py) is the whole Transformer from tensors in one file, with
#   the section of the paper at every step; a test shows that it equals the model used here. `python examples/from_scratch.py`
#   (extra `demo`) trains it on dates: 4.5 minutes of processor time on one core, then 93.0% of 500 dates on days that it has
#   never seen are exactly right ([results](results.md)).
# - Look at any sentence without code: `manyheads look en-de "I will call you back tomorrow."` writes a page to explore
#   ([looking](looking.md)), and `manyheads serve --open` has a path of eight steps under *Learn*.
# - Every idea with its equation, code and experiment, and what is often said wrong: [the atlas](atlas.md).
# - The path of a training run through the code, in thirteen files: [the tour](tour.md).
# - Your own pairs: [a translator](translation.md). Your own pictures: [a classifier](vision.md).
# %% [markdown] ko
# ## 다음에 갈 곳
#
# - 전부 직접 만들기: [examples/from_scratch.py](../examples/from_scratch.py)는 텐서만으로 만든 Transformer 전체를 한 파일에 담았습니다. 단계마다 논문의 절 번호가 있고, 여기서 쓴
#   모델과 같다는 것을 테스트가 보여 줍니다. `python examples/from_scratch.py`(추가 구성 요소 `demo`)는 이 모델을 날짜로 학습합니다. 코어 하나의 프로세서 시간으로 4분
#   30초이고, 한 번도 보지 못한 날짜 500개 중 93.0%를 정확히 맞혔습니다([결과](results.md)).
# - 코드 없이 들여다보기: `manyheads look en-de "I will call you back tomorrow."`는 살펴볼 수 있는 페이지를 만듭니다([looking](looking.md)). `manyheads serve --open`의 *배우기*에는
#   여덟 단계로 된 길이 있습니다.
# - 모든 아이디어를 식, 코드, 실험과 함께, 흔한 오해까지: [아틀라스](atlas.ko.md).
# - 학습 한 번이 지나가는 길을 파일 열세 개로: [둘러보기](tour.md).
# - 자기 문장 쌍으로 [번역기](translation.md)를, 자기 이미지로 [분류기](vision.md)를.

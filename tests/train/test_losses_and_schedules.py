"""What is minimised, and how fast: both checked by hand and against torch."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from manyheads.train import losses
from manyheads.train.losses import projected_cross_entropy, smoothed_cross_entropy
from manyheads.train.schedule import (
    SCHEDULES,
    constant,
    cosine,
    inverse_sqrt,
    learning_rate,
    linear,
)
from manyheads.train.train_config import Restart, TrainConfig

# --- Cross-entropy ------------------------------------------------------------------------------


def test_the_lectures_table() -> None:
    """T16: p = .8 .6 .7 .5 .9 -> -log p = .223 .511 .357 .693 .105, mean .378."""
    probabilities = [0.8, 0.6, 0.7, 0.5, 0.9]  # of "Je", "suis", "un", "étudiant" and the end
    # Two classes: the true one and all the others; softmax(log p, log(1 - p)) = (p, 1 - p).
    logits = torch.tensor([[math.log(p), math.log(1 - p)] for p in probabilities])
    true = torch.zeros(5, dtype=torch.long)
    each = [smoothed_cross_entropy(logits[n : n + 1], true[:1], 0.0).item() for n in range(5)]
    assert [round(loss, 3) for loss in each] == [0.223, 0.511, 0.357, 0.693, 0.105]
    assert round(smoothed_cross_entropy(logits, true, 0.0).item() / 5, 3) == 0.378


def test_smoothing_by_hand() -> None:
    """The true class gets 1 - s + s/C, the others s/C: with p = (3/4, 1/4) and s = .2."""
    logits = torch.tensor([[math.log(3), 0.0]])
    expected = -0.9 * math.log(3 / 4) - 0.1 * math.log(1 / 4)
    loss = smoothed_cross_entropy(logits, torch.tensor([0]), 0.2)
    assert loss.item() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("scale", [1.0, 50.0])
def test_equals_torch(smoothing: float, scale: float) -> None:
    """Value and gradient of F.cross_entropy(label_smoothing), also where softmax is hard."""
    torch.manual_seed(0)
    logits = (scale * torch.randn(6, 7)).requires_grad_()
    targets = torch.tensor([0, 6, 3, 3, 1, 5])
    ours = smoothed_cross_entropy(logits, targets, smoothing)
    theirs = F.cross_entropy(logits, targets, label_smoothing=smoothing, reduction="sum")
    torch.testing.assert_close(ours, theirs)
    (our_grad,) = torch.autograd.grad(3 * ours, logits)  # 3: the incoming gradient must be used
    (their_grad,) = torch.autograd.grad(3 * theirs, logits)
    torch.testing.assert_close(our_grad, their_grad, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_fused_output_layer_is_the_layer_and_the_loss(
    bias: bool, smoothing: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Value and all gradients, with rows in several parts and the last one short."""
    monkeypatch.setattr(losses, "ROWS", 3)
    torch.manual_seed(0)
    layer = nn.Linear(5, 11, bias=bias).double()
    x = torch.randn(7, 5, dtype=torch.double, requires_grad=True)
    targets = torch.randint(11, (7,))
    fused = projected_cross_entropy(layer, x, targets=targets, smoothing=smoothing)
    plain = smoothed_cross_entropy(layer(x), targets, smoothing)
    torch.testing.assert_close(fused, plain, check_dtype=False)
    ours = torch.autograd.grad(3 * fused, [x, *layer.parameters()])
    theirs = torch.autograd.grad(3 * plain, [x, *layer.parameters()])
    for our, their in zip(ours, theirs, strict=True):
        torch.testing.assert_close(our, their, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("rows", [2, 6, 100])
def test_r_drop_is_half_of_its_equation(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Liang et al. 2021, (4): both copies' cross-entropy + alpha / 2 (KL(p||q) + KL(q||p))."""
    monkeypatch.setattr(losses, "ROWS", rows)
    torch.manual_seed(0)
    layer = nn.Linear(5, 11).double()
    x = torch.randn(2 * 7, 5, dtype=torch.double, requires_grad=True)
    targets = torch.randint(11, (7,))
    fused = projected_cross_entropy(layer, x, targets=targets, smoothing=0.1, r_drop=5.0)
    logits = layer(x)
    both = F.cross_entropy(logits, targets.repeat(2), label_smoothing=0.1, reduction="sum")
    p, q = logits.log_softmax(1).split(7)
    divergence = (p.exp() * (p - q)).sum() + (q.exp() * (q - p)).sum()
    plain = (both + 5.0 / 2 * divergence) / 2
    torch.testing.assert_close(fused, plain)
    ours = torch.autograd.grad(fused, [x, *layer.parameters()])
    theirs = torch.autograd.grad(plain, [x, *layer.parameters()])
    for our, their in zip(ours, theirs, strict=True):
        torch.testing.assert_close(our, their)


def test_r_drop_of_equal_copies_is_the_plain_loss() -> None:
    """Without dropout the copies agree: nothing to draw together."""
    torch.manual_seed(0)
    layer, x, targets = nn.Linear(5, 11), torch.randn(7, 5), torch.randint(11, (7,))
    once = projected_cross_entropy(layer, x, targets=targets, smoothing=0.1)
    twice = projected_cross_entropy(
        layer, torch.cat((x, x)), targets=targets, smoothing=0.1, r_drop=5.0
    )
    torch.testing.assert_close(once, twice)


def test_the_fused_output_layer_computes_where_its_weights_are() -> None:
    """Tensors that are made without saying where lie on a device without values here."""
    layer, x, targets = nn.Linear(5, 11), torch.randn(14, 5), torch.randint(11, (7,))
    x.requires_grad_()
    with torch.device("meta"):
        loss = projected_cross_entropy(layer, x, targets=targets, smoothing=0.1, r_drop=5.0)
        smoothed = smoothed_cross_entropy(layer(x[:7]), targets, 0.1)
    (loss + smoothed).backward()
    assert x.grad is not None
    assert loss.device == smoothed.device == x.grad.device == torch.device("cpu")


def test_the_fused_output_layer_under_autocast() -> None:
    """Products in bf16 as autocast does them, the loss itself in fp32."""
    torch.manual_seed(0)
    layer, x, targets = nn.Linear(16, 50), torch.randn(9, 16), torch.randint(50, (9,))
    x.requires_grad_()
    exact = smoothed_cross_entropy(layer(x), targets, 0.1)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        fused = projected_cross_entropy(layer, x, targets=targets, smoothing=0.1)
        plain = smoothed_cross_entropy(layer(x), targets, 0.1)
    assert fused.dtype == torch.float32
    # Autocast adds the bias in bf16, too; the fused layer in fp32.
    torch.testing.assert_close(fused, plain, rtol=1e-3, atol=0)
    assert fused.item() != exact.item()
    (ours,) = torch.autograd.grad(fused, x)
    (theirs,) = torch.autograd.grad(exact, x)
    torch.testing.assert_close(ours, theirs, atol=0.02, rtol=0.05)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("scale", [0.3, 3.0, 30.0])
def test_bf16_logits_lose_no_more_than_their_products(
    bias: bool, smoothing: float, scale: float
) -> None:
    """Against fp64: as near as log-probabilities in fp32 behind products in bf16.

    At the largest scale some targets are sure, and others have a probability of 0 in bf16.
    """
    torch.manual_seed(0)
    layer, x = nn.Linear(64, 500, bias=bias), torch.randn(300, 64)
    nn.init.normal_(layer.weight, std=scale / 8)
    targets = torch.randint(500, (300,))
    targets[::2] = layer(x).argmax(dim=1)[::2]
    parameters = [each.detach() for each in layer.parameters()]
    weight, offset = parameters[0], parameters[1] if bias else None
    exact = [each.double().requires_grad_() for each in (x, *parameters)]
    true = F.cross_entropy(
        F.linear(exact[0], exact[1], exact[2] if bias else None),
        targets,
        label_smoothing=smoothing,
        reduction="sum",
    )
    wanted = torch.autograd.grad(true, exact)
    given = x[None], weight, offset, targets, smoothing
    wide, low = losses._in_fp32(*given, 0.0, torch.bfloat16), losses._in_bf16(*given)
    assert low.loss.item() == pytest.approx(wide.loss.item(), rel=1e-3)
    for ours, theirs, want in zip(low[1:], wide[1:], wanted, strict=False):
        if ours is not None and theirs is not None:
            assert (ours - want).norm() <= 1.1 * (theirs - want).norm() + 3e-3 * want.norm()


@pytest.mark.filterwarnings("ignore:Input #0 requires gradient and is not a double")
def test_gradient_by_finite_differences() -> None:
    """Its hand-written gradient, p - q, is the slope of its value (in fp32, so coarsely)."""
    torch.manual_seed(0)
    logits = torch.randn(3, 5, requires_grad=True)
    targets = torch.tensor([0, 4, 2])
    assert torch.autograd.gradcheck(
        lambda x: smoothed_cross_entropy(x, targets, 0.1), logits, eps=1e-2, atol=1e-2, rtol=1e-2
    )


def test_the_gradient_of_each_item_sums_to_zero() -> None:
    """p - q: both are distributions, so raising all logits together changes nothing."""
    torch.manual_seed(0)
    logits = torch.randn(4, 9, requires_grad=True)
    smoothed_cross_entropy(logits, torch.tensor([1, 2, 3, 4]), 0.1).backward()
    assert logits.grad is not None
    torch.testing.assert_close(logits.grad.sum(1), torch.zeros(4), atol=1e-6, rtol=0)


def test_half_precision_logits() -> None:
    """Logits of bf16 are summed in fp32, and their gradient comes back in bf16."""
    torch.manual_seed(0)
    logits = torch.randn(5, 300).bfloat16().requires_grad_()
    targets = torch.arange(5)
    loss = smoothed_cross_entropy(logits, targets, 0.1)
    assert loss.dtype == torch.float32
    expected = F.cross_entropy(
        logits.detach().float(), targets, label_smoothing=0.1, reduction="sum"
    )
    torch.testing.assert_close(loss.detach(), expected)
    loss.backward()
    assert logits.grad is not None
    assert logits.grad.dtype == torch.bfloat16


def test_sums_add_up() -> None:
    """Accumulation: two halves of a batch have the loss and gradient of the whole."""
    torch.manual_seed(0)
    logits, targets = torch.randn(6, 4, requires_grad=True), torch.randint(0, 4, (6,))
    whole = smoothed_cross_entropy(logits, targets, 0.1)
    halves = smoothed_cross_entropy(logits[:3], targets[:3], 0.1) + smoothed_cross_entropy(
        logits[3:], targets[3:], 0.1
    )
    torch.testing.assert_close(whole, halves)
    for left, right in zip(
        torch.autograd.grad(whole, logits), torch.autograd.grad(halves, logits), strict=True
    ):
        torch.testing.assert_close(left, right)


def test_a_sure_and_right_model_still_has_a_loss() -> None:
    """Smoothing: being certain is not the optimum; s / C on the others is."""
    smoothing, classes = 0.1, 5
    target = torch.tensor([0])
    best = torch.full((1, classes), smoothing / classes).log()
    best[0, 0] = math.log(1 - smoothing + smoothing / classes)
    certain = torch.tensor([[50.0, 0, 0, 0, 0]])
    assert smoothed_cross_entropy(best, target, smoothing) < smoothed_cross_entropy(
        certain, target, smoothing
    )
    logits = best.clone().requires_grad_()
    smoothed_cross_entropy(logits, target, smoothing).backward()
    assert logits.grad is not None
    torch.testing.assert_close(logits.grad, torch.zeros(1, classes), atol=1e-6, rtol=0)


# --- Learning rates -----------------------------------------------------------------------------


def test_inverse_square_root_is_the_papers() -> None:
    """Equation 3: d^-.5 min(step^-.5, step warmup^-1.5), relative to its peak at `warmup`."""
    d, warmup = 512, 4000
    peak = d**-0.5 * warmup**-0.5
    for step in (1, 10, 3999, 4000, 4001, 16_000, 100_000):
        paper = d**-0.5 * min(step**-0.5, step * warmup**-1.5)
        assert inverse_sqrt(step, warmup, 100_000) == pytest.approx(paper / peak)
    assert inverse_sqrt(16_000, warmup, 100_000) == 0.5  # four times the steps, half the rate


def test_cosine_by_hand() -> None:
    """Up to 1 in 10 steps, then half a cosine over the other 100: (1 + cos(pi/3)) / 2 = .75."""
    values = [cosine(step, 10, 110) for step in (1, 5, 10, 60, 110, 200)]
    assert values == pytest.approx([0.1, 0.5, 1.0, 0.5, 0.0, 0.0])
    assert cosine(10 + 33, 10, 10 + 99) == pytest.approx(0.75)


def test_linear_by_hand() -> None:
    """Up to 1 in 10 steps, then down to 0 over the other 100."""
    values = [linear(step, 10, 110) for step in (1, 5, 10, 35, 110, 200)]
    assert values == pytest.approx([0.1, 0.5, 1.0, 0.75, 0.0, 0.0])


def test_constant_by_hand() -> None:
    """Up to 1 in 10 steps, and there it stays."""
    assert [constant(step, 10, 110) for step in (1, 5, 10, 110, 999)] == [0.1, 0.5, 1, 1, 1]


@pytest.mark.parametrize("name", SCHEDULES)
@settings(deadline=None, derandomize=True, max_examples=50)
@given(warmup=st.integers(0, 50), after=st.integers(1, 50))
def test_every_schedule_rises_then_falls(name: str, warmup: int, after: int) -> None:
    """A factor in [0, 1], never up again after the warm-up, and 1 at its end."""
    schedule, steps = SCHEDULES[name], warmup + after  # type: ignore[index]
    factors = [schedule(step, warmup, steps) for step in range(1, steps + 1)]
    assert all(0 <= factor <= 1 for factor in factors)
    rise, fall = factors[:warmup], factors[max(warmup - 1, 0) :]
    assert rise == sorted(rise)
    assert fall == sorted(fall, reverse=True)
    assert rise == pytest.approx([step / warmup for step in range(1, warmup + 1)])


@pytest.mark.parametrize("name", SCHEDULES)
def test_the_rate_is_a_pure_function_of_the_step(name: str) -> None:
    """A resumed run needs no scheduler state: the same step has the same rate, in any order."""
    config = TrainConfig(steps=100, warmup=10, learning_rate=0.02, schedule=name)  # type: ignore[arg-type]
    forward = [learning_rate(step, config) for step in range(1, 101)]
    backward = [learning_rate(step, config) for step in range(100, 0, -1)]
    assert forward == backward[::-1]
    assert max(forward) == learning_rate(10, config) == 0.02


def test_a_warm_restart_begins_the_schedule_anew() -> None:
    """Up to the restart as if the run ended there; then a run of the rest, at a lower peak."""
    once = TrainConfig(steps=60, warmup=10, learning_rate=0.02)
    rest = TrainConfig(steps=40, warmup=10, learning_rate=0.01)
    both = TrainConfig(
        steps=100, warmup=10, learning_rate=0.02, restart=Restart(step=60, scale=0.5)
    )
    found = [learning_rate(step, both) for step in range(1, 101)]
    assert found[:60] == [learning_rate(step, once) for step in range(1, 61)]
    assert found[60:] == [learning_rate(step, rest) for step in range(1, 41)]


def test_a_restart_after_the_end() -> None:
    """It would do nothing: refused."""
    with pytest.raises(ValueError, match="restart before the end"):
        TrainConfig(steps=100, restart=Restart(step=100))

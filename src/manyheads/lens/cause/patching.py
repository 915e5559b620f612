"""Activation patching: put what was computed for another input in one place, and see the effect.

The score of a run is a difference of two logits, such as that of the answers to both inputs. The
effect of a patch is the share of the way from one input's score to the other's: 0 changes nothing,
1 does what changing the whole input does. Patching the other input into this one denoises; with
the two exchanged it noises. Source: Vig et al. 2020; Meng et al. 2022; Zhang and Nanda 2024.
"""

from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor

from manyheads.cancellation import raise_if_cancelled
from manyheads.errors import UsageError
from manyheads.nn.editing.edits import Edit, edit, recorded
from manyheads.nn.editing.seam import HEAD, STATE, ActivationRecord
from manyheads.nn.recording.trace import LayerId, Trace, record

Weights = Float[Tensor, "row *head query key"]
Run = Callable[[int], Float[Tensor, " row"]]  # scores of this many copies of one input
Links = Sequence[tuple[Sequence[int], Sequence[int]]]  # tokens that stand for each other
ROWS = 64  # copies in a batch
SMALL = 1e-6  # a difference of scores that is none


def linked(one: Sequence[int], other: Sequence[int]) -> list[int]:
    """Find for each token of one sequence its counterpart in another.

    Equal tokens stand for each other. A span that differs is stretched over the other's span; where
    the other has nothing, the token that follows there, or its last, is the counterpart.

    Examples:
        >>> linked([5, 6, 7, 2], [5, 9, 8, 7, 2]), linked([5, 6, 7, 2], [5, 2])
        ([0, 1, 3, 4], [0, 1, 1, 1])
    """
    found = []
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    for _, begin, end, first, last in matcher.get_opcodes():
        for place in range(end - begin):
            step = place * (last - first) // (end - begin)
            found.append(min(first + step, len(other) - 1))
    return found


def words(spans: Sequence[Sequence[int] | None], text: str) -> list[list[int]]:
    """Group tokens into words, which white space divides; a token without a span is one.

    Examples:
        >>> words([[0, 3], [4, 6], [6, 8], None], "The bicy")
        [[0], [1, 2], [3]]
    """
    groups: list[list[int]] = []
    end: int | None = None
    for token, span in enumerate(spans):
        between = " " if span is None or end is None else text[end : span[0] + 1]
        if any(each.isspace() for each in between):
            groups.append([token])
        else:
            groups[-1].append(token)
        end = None if span is None else span[1]
    return groups


def share(scores: Tensor, own: float, other: float) -> Tensor:
    """Turn scores into shares of the way from one input's score to the other's.

    Raises:
        UsageError: the two scores are equal.
    """
    if abs(other - own) < SMALL:
        raise UsageError("Both inputs have the same score, so no part of them can explain it.")
    return (scores - own) / (other - own)


@torch.no_grad()
def patch_states(
    run: Run, source: Trace, stack: str, layers: int, links: Links
) -> Float[Tensor, "layer_and_input link"]:
    """Score one input with the residual stream of another at each layer and each group of tokens.

    Args:
        run: runs the input.
        source: of the other input: one pass, recorded with `record(states=True)`.
        stack: "encoder" or "decoder".
        layers: the number of its layers; the first row is what enters them.
        links: for each group the tokens of the input, and those of the other.
    """
    # Layers before the patch are computed once: encoders of blocks can go on behind one.
    first = LayerId(stack, 0, "added attention")
    resumes = stack != "decoder" and any(each.layer_id == first for each in source)
    with record(states=True) as own:
        if resumes:
            run(1)
    rows = []
    for layer in range(layers + 1):
        site = LayerId(stack, layer - 1, STATE)
        start = recorded(own, site) if resumes and layer else None
        rows.append(_patched(run, recorded(source, site), links, stack, layer, start))
    return torch.stack(rows)


def _patched(
    run: Run, other: Tensor, links: Links, stack: str, layer: int, start: Tensor | None
) -> Tensor:
    scores = []
    for first in range(0, len(links), ROWS):
        raise_if_cancelled()
        some = links[first : first + ROWS]

        def put(x: Tensor, some: Links = some) -> Tensor:
            x = x.clone()
            for row, (tokens, others) in enumerate(some):
                x[row, list(tokens)] = other[0, list(others)].to(x)
            return x

        with edit() as changes:
            if start is not None:
                changes.resume(stack, layer, start)
            changes.state(stack, layer).apply(put)
            scores.append(run(len(some)))
    return torch.cat(scores)


@torch.no_grad()
def patch_heads(
    run: Run, source: Trace, site: LayerId, tokens: Sequence[int] | None = None
) -> Float[Tensor, " head"]:
    """Score one input with the output of each head of another, one head at a time.

    Args:
        run: runs the input.
        source: of the other input: one pass, recorded with `record(states=True)`.
        site: the heads' outputs, such as `LayerId("decoder", 0, "cross head")`.
        tokens: for each token of the input its counterpart in the other; None: the same.
    """
    other = recorded(source, site)
    other = other if tokens is None else other[:, :, list(tokens)]

    def put(x: Tensor) -> Tensor:
        if x.shape[1:] != other.shape[1:]:
            raise UsageError(
                f"{site}: the inputs have {x.shape[2]} and {other.shape[2]} tokens: give the "
                "counterpart of each token."
            )
        x = x.clone()
        for row in range(len(x)):
            x[row, row] = other[0, row].to(x)
        return x

    raise_if_cancelled()
    with edit() as changes:
        changes.at(site).apply(put)
        return run(other.shape[1])


def attribute(
    run: Run,
    source: Trace,
    sites: Sequence[LayerId],
    tokens: dict[str, Sequence[int]],
    *,
    steps: int = 1,
    stack: str = "encoder",
) -> dict[LayerId, Float[Tensor, "*head token"]]:
    """Estimate the effect of every patch at once: (other - own) times the gradient of the score.

    Three passes: the recorded one of the other input, one of this, and its gradients. With `steps`
    the gradient is the mean over that many points between the two inputs, at the midpoints of equal
    parts, of what enters the first layer of `stack`. Source: Nanda 2023; Syed et al. 2023;
    Hanna et al. 2024 for the integrated form.

    Args:
        run: runs the input.
        source: of the other input.
        sites: residual states or outputs of heads.
        tokens: for each stack the counterpart of each token; a stack that is left out has the same.
        steps: passes with gradients; 1 is the plain form, at the input itself.
        stack: whose input is moved.

    Returns:
        Effects in units of the score, a number for each token, and of heads for each head.
    """
    entry = LayerId(stack, -1, STATE)

    def counterpart(site: LayerId) -> Tensor:
        other = recorded(source, site)
        places = tokens.get(site.stack)
        return other if places is None else other.index_select(-2, torch.tensor(places))

    own: dict[LayerId, Tensor] = {}
    sums: dict[LayerId, Tensor] = {}
    for step in range(steps):
        raise_if_cancelled()
        way = (step + 0.5) / steps if steps > 1 else 0.0
        with torch.enable_grad(), edit() as changes, record(states=True, gradients=True) as trace:
            if steps > 1:
                moved = partial(torch.lerp, end=counterpart(entry), weight=way)
                changes.state(stack, 0).apply(moved)
            score = run(1).sum()
        kept = {site: recorded(trace, site) for site in sites}
        found = torch.autograd.grad(score, list(kept.values()), allow_unused=True)
        for (site, x), gradient in zip(kept.items(), found, strict=True):
            value = torch.zeros_like(x) if gradient is None else gradient
            sums[site] = sums.get(site, 0) + value / steps
            if steps == 1:
                own[site] = x.detach()
    if steps > 1:
        with torch.no_grad(), record(states=True) as plain:
            run(1)
        own = {site: recorded(plain, site) for site in sites}
    return {
        site: ((counterpart(site) - own[site]) * gradient).sum(dim=-1)[0]
        for site, gradient in sums.items()
    }


def head_sites(trace: Trace) -> list[LayerId]:
    """List where heads wrote their outputs, in the order in which they ran."""
    kept = (r.layer_id for r in trace if isinstance(r, ActivationRecord))
    return list(dict.fromkeys(each for each in kept if each.kind.endswith(f" {HEAD}")))


def depth(trace: Trace, stack: str) -> int:
    """Count the layers of a stack; 0 if it did not run."""
    kept = (r.layer_id for r in trace if isinstance(r, ActivationRecord))
    return 1 + max((s.layer for s in kept if s.stack == stack and s.kind == STATE), default=-1)


def end_early(changes: Edit, stack: str, layer: int, last: int) -> None:
    """Let what follows a stack read the state after an earlier layer instead of the last.

    Of a decoder that is the logit lens, final norm included; of an encoder the DecoderLens
    (Langedijk et al. 2024), or what an image's class would be. Also in a search.
    """
    kept: list[Tensor] = []

    def keep(x: Tensor) -> Tensor:
        kept.append(x)
        return x

    if layer != last:
        changes.state(stack, layer).apply(keep)
        changes.state(stack, last).apply(lambda _: kept.pop())


def uniform(weights: Weights) -> Weights:
    """Attend to all keys that are not hidden alike."""
    seen = (weights > 0).to(weights)
    return seen / seen.sum(dim=-1, keepdim=True).clamp_min(1)


def permuted(weights: Weights, seed: int = 0) -> Weights:
    """Give the weights of each row to its keys in another, random order; hidden keys stay so."""
    generator = torch.Generator().manual_seed(seed)
    draws = torch.rand(weights.shape, generator=generator).to(weights)
    order = draws.masked_fill(weights <= 0, 2.0).argsort(dim=-1)  # seen keys first, shuffled
    seen = (weights > 0).to(torch.uint8).argsort(dim=-1, descending=True, stable=True)
    return torch.zeros_like(weights).scatter(-1, seen, weights.gather(-1, order))


def without_largest(weights: Weights) -> Weights:
    """Set the largest weight of each row to 0, and scale the rest to sum to 1."""
    rest = weights.scatter(-1, weights.argmax(dim=-1, keepdim=True), 0.0)
    return rest / rest.sum(dim=-1, keepdim=True).clamp_min(torch.finfo(weights.dtype).tiny)

"""Greedy search: always the most likely next token."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from manyheads.cancellation import raise_if_cancelled
from manyheads.decode.constraints import Rule, apply_rules
from manyheads.decode.step import Hypothesis, State, Step
from manyheads.decode.traced_decoder import traced_step
from manyheads.nn.shapes import Sources

# Finished sentences stay in the batch until the unfinished ones are at most this share of it:
# a small batch costs a step almost as much as a large one, and leaving it costs a copy.
CROWDED = 0.75


@torch.inference_mode()
def greedy_search(
    model: Step[State],
    source: Sources,
    max_lengths: Sequence[int],
    *,
    start: int,
    end: int,
    length_penalty: float = 1.0,
    rules: Sequence[Rule] = (),
) -> list[Hypothesis]:
    """Decode every sentence to its end token or its max_lengths tokens, whichever comes first.

    There is nothing to rank, so length_penalty changes only the reported score. The arguments are
    those of `beam_search`.
    """
    count = len(source)
    outputs: list[list[int]] = [[] for _ in range(count)]
    values: list[list[float]] = [[] for _ in range(count)]
    total = [0.0] * count
    finished = [False] * count
    alive = list(range(count))  # rows of the batch -> sentences
    over: set[int] = set()  # those of them that have ended
    model = traced_step(model)
    state = model.start(source, 1, max(max_lengths))
    tokens = torch.full((count, 1), start, device=source.device)
    prefixes = torch.empty((count, 1, 0), dtype=torch.long, device=source.device)
    while alive:
        raise_if_cancelled()
        log_probabilities, state = model.step(tokens, state)
        log_probabilities = apply_rules(rules, log_probabilities, prefixes, alive, end=end)
        best, tokens = _argmax(log_probabilities)
        prefixes = torch.cat((prefixes, tokens[..., None]), dim=2)
        stay = []
        taken = zip(alive, tokens[:, 0].tolist(), best[:, 0].tolist(), strict=True)
        for row, (sentence, token, value) in enumerate(taken):
            if sentence in over:
                continue
            total[sentence] += value
            values[sentence].append(value)
            finished[sentence] = token == end
            if not finished[sentence]:
                outputs[sentence].append(token)
            if finished[sentence] or len(outputs[sentence]) == max_lengths[sentence]:
                over.add(sentence)
            else:
                stay.append(row)
        if len(stay) <= CROWDED * len(alive):
            alive = [alive[row] for row in stay]
            rows = torch.tensor(stay, dtype=torch.long, device=source.device)
            tokens, prefixes = tokens[rows], prefixes[rows]
            if alive:
                state = model.keep(state, rows)
    return [
        Hypothesis(output, logp, logp / len(terms) ** length_penalty, done, terms)
        for output, logp, done, terms in zip(outputs, total, finished, values, strict=True)
    ]


def _argmax(
    log_probabilities: Float[Tensor, "*batch vocabulary"],
) -> tuple[Float[Tensor, "*batch"], Int[Tensor, "*batch"]]:
    """The largest value of each row and its index: the first, where several are equal."""
    if log_probabilities.device.type != "cpu":
        best, tokens = log_probabilities.max(dim=-1)
        return best, tokens
    # On a CPU torch compares one value at a time; numpy does as many as a register holds.
    tokens = torch.from_numpy(log_probabilities.numpy().argmax(axis=-1))
    return log_probabilities.gather(-1, tokens[..., None])[..., 0], tokens

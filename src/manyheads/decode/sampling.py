"""Sampling: draw the next token from the model's distribution."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from manyheads.cancellation import raise_if_cancelled
from manyheads.decode.constraints import Rule, apply_rules
from manyheads.decode.step import Hypothesis, State, Step
from manyheads.decode.traced_decoder import traced_step
from manyheads.nn.shapes import Sources
from manyheads.streams import generator

Scores = Float[Tensor, "*batch vocabulary"]


def keep_top_k(scores: Scores, k: int) -> Scores:
    """Keep only the k most likely tokens (Fan et al. 2018), and those that tie with the last."""
    worst = scores.topk(min(k, scores.shape[-1])).values[..., -1:]
    return scores.masked_fill(scores < worst, -torch.inf)


def keep_top_p(scores: Scores, p: float) -> Scores:
    """Keep only the nucleus: the smallest set of most likely tokens with probability p together.

    Holtzman et al. 2020, "The Curious Case of Neural Text Degeneration".
    """
    ranked, order = scores.log_softmax(dim=-1).sort(dim=-1, descending=True, stable=True)
    probabilities = ranked.double().exp()
    before = probabilities.cumsum(dim=-1) - probabilities  # of all likelier ones together
    outside = torch.zeros_like(scores, dtype=torch.bool).scatter(-1, order, before >= p)
    return scores.masked_fill(outside, -torch.inf)


@dataclass(frozen=True)
class Sampling:
    """How the distribution is changed before drawing: temperature, then top k, then top p."""

    temperature: float = 1.0  # below 1 sharpens, above 1 flattens
    top_k: int | None = None
    top_p: float = 1.0

    def __call__(self, scores: Scores) -> Scores:
        """Return log-probabilities up to a constant."""
        # The largest is 0, so that nothing overflows at a temperature near 0.
        scores = (scores - scores.amax(dim=-1, keepdim=True)) / self.temperature
        if self.top_k is not None:
            scores = keep_top_k(scores, self.top_k)
        return keep_top_p(scores, self.top_p) if self.top_p < 1 else scores


@torch.inference_mode()
def sample(
    model: Step[State],
    source: Sources,
    max_lengths: Sequence[int],
    seeds: Sequence[int],
    *,
    start: int,
    end: int,
    sampling: Sampling = Sampling(),
    samples: int = 1,
    length_penalty: float = 1.0,
    rules: Sequence[Rule] = (),
) -> list[list[Hypothesis]]:
    """Draw outputs for every sentence, in the order in which they were drawn.

    Sample j (of `samples`) of a sentence is drawn from the stream "sample" j of the sentence's own
    seed, so it depends neither on the batch nor on the number of samples. The probabilities
    reported are the model's, after the rules but before `sampling`. The other arguments are those
    of `beam_search`.
    """
    count, device = len(source), source.device
    streams = [[generator(seed, "sample", j) for j in range(samples)] for seed in seeds]
    outputs: list[list[list[int]]] = [[[] for _ in range(samples)] for _ in range(count)]
    values: list[list[list[float]]] = [[[] for _ in range(samples)] for _ in range(count)]
    finished = [[False] * samples for _ in range(count)]
    alive = list(range(count))  # rows of the batch -> sentences
    model = traced_step(model)
    state = model.start(source, samples, max(max_lengths))
    tokens = torch.full((count, samples), start, device=device)
    prefixes = torch.empty((count, samples, 0), dtype=torch.long, device=device)
    while alive:
        raise_if_cancelled()
        log_probabilities, state = model.step(tokens, state)
        log_probabilities = apply_rules(rules, log_probabilities, prefixes, alive, end=end)
        drawn = torch.tensor(
            [[each.random() for each in streams[n]] for n in alive],
            dtype=torch.double,  # in fp32 the largest of them would be 1
            device=device,
        )
        tokens = _draw(sampling(log_probabilities), drawn)
        chances = log_probabilities.gather(2, tokens[..., None])[..., 0].tolist()
        stay = []
        for row, sentence in enumerate(alive):
            for j, token in enumerate(tokens[row].tolist()):
                if not finished[sentence][j]:
                    values[sentence][j].append(chances[row][j])
                    finished[sentence][j] = token == end
                    outputs[sentence][j] += [token] * (token != end)
            if prefixes.shape[2] + 1 < max_lengths[sentence] and not all(finished[sentence]):
                stay.append(row)
        tokens = tokens.masked_fill(tokens == end, start)  # what has ended idles behind it
        prefixes = torch.cat((prefixes, tokens[..., None]), dim=2)
        if len(stay) < len(alive):  # finished sentences leave the batch
            alive = [alive[row] for row in stay]
            rows = torch.tensor(stay, dtype=torch.long, device=device)
            tokens, prefixes = tokens[rows], prefixes[rows]
            if alive:
                state = model.keep(state, rows)
    return [
        [
            Hypothesis(output, sum(terms), sum(terms) / len(terms) ** length_penalty, done, terms)
            for output, terms, done in zip(*of_sentence, strict=True)
        ]
        for of_sentence in zip(outputs, values, finished, strict=True)
    ]


def _draw(
    scores: Float[Tensor, "sentence sample vocabulary"], drawn: Float[Tensor, "sentence sample"]
) -> Int[Tensor, "sentence sample"]:
    """Turn numbers from 0 to 1 into tokens by the cumulative distribution."""
    ends = scores.double().log_softmax(dim=-1).exp().cumsum(dim=-1)
    # Scaled by the last sum instead of 1: rounding must not leave a gap at the end.
    places = torch.searchsorted(ends, drawn[..., None] * ends[..., -1:], right=True)
    # A finished output that is still in the batch may have no continuation: any token will do.
    return places[..., 0].clamp(max=scores.shape[-1] - 1)

"""T2: do the gates of a trained LSTM control what enters, stays in and leaves the cell?"""

from functools import partial

import torch
from torch import Tensor

from manyheads.labs.bench import Bench, Measured, Outcome, Size
from manyheads.labs.findings import interval, mean, more, over, values
from manyheads.labs.lab_training import fresh
from manyheads.labs.symbols import FIRST, accuracy, delayed_recall, learn_labels, one_way
from manyheads.lens.panels import number
from manyheads.nn.recording.trace import record
from manyheads.nn.rnn import RecurrentRecord

GATES = ("input", "forget", "output")
PLACES = ("noise before", "kept", "noise after", "question")


def places(tokens: Tensor, symbols: int) -> dict[str, Tensor]:
    """Return a mask (text, token) for each role of a token."""
    mark, question = FIRST + symbols, FIRST + symbols + 1
    kept = (tokens == mark).roll(1, dims=1)
    behind = kept.long().cumsum(dim=1) > 0
    noise = (tokens >= FIRST) & (tokens < mark) & ~kept
    return {
        "noise before": noise & ~behind,
        "kept": kept,
        "noise after": noise & behind,
        "question": tokens == question,
    }


def measure(size: Size, seed: int) -> Measured:
    """Train an LSTM to remember a symbol, and measure its gates."""
    distances = range(1, size.distance + 1)
    train = delayed_recall(distances, size.train, size.symbols, seed=seed, name="train")
    texts = delayed_recall([size.distance], size.texts, size.symbols, seed=seed, name="gates")
    vocabulary = FIRST + size.symbols + 2
    model = fresh(one_way("lstm", vocabulary, size.symbols, size.hidden, size.hidden), seed)
    learn_labels(model, train, texts, 5e-3, seed=seed, steps=size.steps, max_tokens=size.max_tokens)
    batch = texts.batch(texts.kept, epoch=0)
    with record() as trace, torch.inference_mode():
        model(batch.tokens.to(next(model.parameters()).device), batch.scored)
    (kept,) = [each for each in trace if isinstance(each, RecurrentRecord)]
    gates = {name: gate.cpu() for name, gate in kept.gates.items()}
    where = places(batch.tokens, size.symbols)
    measured: Measured = {"accuracy": accuracy(model, texts)}
    for name in GATES:
        measured[name] = {place: gates[name][mask].mean().item() for place, mask in where.items()}
    # The value that a step adds to the cell: gate times |candidate|.
    written = (gates["input"] * gates["candidate"]).abs()
    measured["written"] = {place: written[mask].mean().item() for place, mask in where.items()}
    measured["stays"] = stays(gates["forget"], where["noise after"], written, where["kept"])
    one = batch.tokens[0] != 0
    measured["example"] = {name: gates[name][0, one].mean(dim=1).tolist() for name in GATES}
    special = {FIRST + size.symbols: "keep:", FIRST + size.symbols + 1: "?"}
    tokens = batch.tokens[0][one].tolist()
    measured["tokens"] = [special.get(token, str(token - FIRST)) for token in tokens]
    return measured


def stays(forget: Tensor, noise: Tensor, written: Tensor, kept: Tensor) -> float:
    """Share of the value written at the symbol to remember that is in the cell at the end.

    A cell is multiplied by its forget gate at every step; units are weighted by that value.
    """
    survives = forget.where(noise[..., None], 1.0).prod(dim=1)  # text unit
    amount = (written * kept[..., None]).sum(dim=1)
    return ((survives * amount).sum() / amount.sum()).item()


def conclude(measured: list[Measured], size: Size) -> str:
    """Conclude which gates open at which tokens."""

    def word(gate: str, a: str, b: str) -> str:
        return more(values(measured, gate, a), values(measured, gate, b))

    written = interval([f["written"]["kept"] / f["written"]["noise after"] for f in measured]).mean
    return (
        f"Right in {mean(measured, 'accuracy')}% of the texts, the LSTM "
        f"writes {number(written)} times as much at the symbol to keep as at noise behind it "
        f"(its input gate is {word('input', 'kept', 'noise after')} open there), still holds "
        f"{number(100 * over(measured, 'stays').mean)}% of that after "
        f"{size.distance} symbols of noise, and its output gate is "
        f"{word('output', 'question', 'noise after')} open at the question."
    )


def run(bench: Bench, size: Size) -> Outcome:
    """Train with each seed."""
    measured = bench.each_seed("LSTM", partial(measure, size))
    by_place = {
        row: {place: over(measured, row, place) for place in PLACES} for row in (*GATES, "written")
    }
    first = measured[0]
    return conclude(measured, size), {
        "by_place": by_place,
        "altogether": [
            ["right answers, %", over(measured, "accuracy")],
            ["share of what was written that stays", over(measured, "stays")],
        ],
        "example": {
            "values": [first["example"][gate] for gate in GATES],
            "rows": list(GATES),
            "columns": first["tokens"],
        },
        "written": by_place["written"],
    }

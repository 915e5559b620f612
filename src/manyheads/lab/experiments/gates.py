"""T2: an LSTM's gates decide what enters, stays in and leaves the cell. Do they, once trained?"""

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from manyheads.lab.bench import Bench, Lab, Measured, Scale
from manyheads.lab.findings import Findings, interval, more
from manyheads.lab.learn import fresh, learn
from manyheads.lab.symbols import BATCH, FIRST, asking, keeping, training
from manyheads.lens.panels import Bars, Heat, Table, number
from manyheads.models.tagger import RecurrentTaggerConfig
from manyheads.nn.recurrent import RecurrentRecord
from manyheads.nn.trace import record
from manyheads.tasks.tokenwise import TokenTrainConfig
from manyheads.tasks.tokenwise import measure as score

GATES = ("input", "forget", "output")
PLACES = ("noise before", "kept", "noise after", "question")


@dataclass(frozen=True, kw_only=True)
class Size:
    """What is learned."""

    steps: int
    distance: int  # of the longest texts, and of those that are looked at
    texts: int
    train: int = 20000
    symbols: int = 8
    hidden: int = 32
    max_tokens: int = 2048


SIZES: dict[Scale, Size] = {
    "full": Size(steps=3000, distance=16, texts=256),
    "quick": Size(steps=150, distance=6, texts=64, train=3000),
    "smoke": Size(steps=2, distance=3, texts=4, train=20, symbols=3, hidden=4, max_tokens=64),
}


def places(tokens: Tensor, symbols: int) -> dict[str, Tensor]:
    """Say of every token which part it plays: masks (text, token)."""
    mark, question = FIRST + symbols, FIRST + symbols + 1
    marked = tokens == mark
    kept = marked.roll(1, dims=1)
    behind = kept.long().cumsum(dim=1) > 0
    noise = (tokens >= FIRST) & (tokens < mark) & ~kept
    return {
        "noise before": noise & ~behind,
        "kept": kept,
        "noise after": noise & behind,
        "question": tokens == question,
    }


def measure(size: Size, seed: int) -> Measured:
    """Train an LSTM to keep a symbol, and read its gates."""
    config = training(TokenTrainConfig, size.steps, size.max_tokens, 5e-3)
    train = keeping(range(1, size.distance + 1), size.train, size.symbols, seed=seed, name="train")
    texts = keeping([size.distance], size.texts, size.symbols, seed=seed, name="gates")
    model = fresh(
        RecurrentTaggerConfig(
            vocabulary=FIRST + size.symbols + 2,
            classes=size.symbols,
            cell="lstm",
            dim=size.hidden,
            hidden=size.hidden,
            bidirectional=False,
            dropout=0.0,
        ),
        seed,
    )
    learn(model, asking(train, texts, config, seed=seed), config, seed=seed)
    batch = texts.batch(texts.kept, epoch=0)
    with record() as trace, torch.inference_mode():
        model(batch.tokens.to(next(model.parameters()).device), batch.scored)
    (kept,) = [each for each in trace if isinstance(each, RecurrentRecord)]
    gates = {name: gate.cpu() for name, gate in kept.gates.items()}
    where = places(batch.tokens, size.symbols)
    found: Measured = {"accuracy": score(model, texts, BATCH)["accuracy"]}
    for name in GATES:
        found[name] = {place: gates[name][mask].mean().item() for place, mask in where.items()}
    # What a step writes into the cell: gate times candidate, whatever its sign.
    written = (gates["input"] * gates["candidate"]).abs()
    found["written"] = {place: written[mask].mean().item() for place, mask in where.items()}
    found["stays"] = stays(gates["forget"], where["noise after"], written, where["kept"])
    one = batch.tokens[0] != 0
    found["example"] = {name: gates[name][0, one].mean(dim=1).tolist() for name in GATES}
    found["tokens"] = [_name(int(token), size.symbols) for token in batch.tokens[0][one]]
    return found


def stays(forget: Tensor, noise: Tensor, written: Tensor, kept: Tensor) -> float:
    """Share of what was written at the symbol to keep that is still in the cell at the end.

    A cell is multiplied by its forget gate at every step; units count by what was written in them.
    """
    survives = forget.where(noise[..., None], 1.0).prod(dim=1)  # text unit
    amount = (written * kept[..., None]).sum(dim=1)
    return ((survives * amount).sum() / amount.sum()).item()


def _name(token: int, symbols: int) -> str:
    special = {FIRST + symbols: "keep:", FIRST + symbols + 1: "?"}
    return special.get(token, str(token - FIRST))


def conclude(found: list[Measured], size: Size) -> str:
    """Say which gates open where."""

    def of(what: str, place: str) -> list[float]:
        return [each[what][place] for each in found]

    def word(what: str, a: str, b: str) -> str:
        return more(of(what, a), of(what, b))

    written = interval(
        [a / b for a, b in zip(of("written", "kept"), of("written", "noise after"), strict=True)]
    ).mean
    return (
        f"Right in {number(interval([f['accuracy'] for f in found]).mean)}% of the texts, the LSTM "
        f"writes {number(written)} times as much at the symbol to keep as at noise behind it "
        f"(its input gate is {word('input', 'kept', 'noise after')} open there), still holds "
        f"{number(100 * interval([f['stays'] for f in found]).mean)}% of that after "
        f"{size.distance} symbols of noise, and its output gate is "
        f"{word('output', 'question', 'noise after')} open at the question."
    )


def run(bench: Bench) -> Findings:
    """Train with each seed."""
    size = bench.choose(SIZES)
    found = bench.each_seed("LSTM", partial(measure, size))
    rows = (*GATES, "written")
    return Findings(
        conclude(found, size),
        [
            Table(
                "Mean over units, by what a token is",
                ["gate", *PLACES],
                [[row, *(interval([f[row][p] for f in found]) for p in PLACES)] for row in rows],
            ),
            Table(
                "Altogether",
                ["measure", "value"],
                [
                    ["right answers, %", interval([f["accuracy"] for f in found])],
                    ["share of what was written that stays", interval([f["stays"] for f in found])],
                ],
            ),
        ],
        [
            Heat(
                "One text: how far open, mean over units",
                "token",
                "gate",
                [found[0]["example"][gate] for gate in GATES],
                rows=list(GATES),
                columns=found[0]["tokens"],
            ),
            Bars(
                "What is written into the cell",
                "|input gate x candidate|",
                list(PLACES),
                [interval([f["written"][p] for f in found]) for p in PLACES],
            ),
        ],
    )


LAB = Lab(
    method=(
        "A one-way LSTM tagger learns to keep one marked symbol through noise until it is asked "
        "for. Then the recorder reads its gates on unseen texts. 'Written' is |input gate x "
        "candidate|; what stays is the product of the forget gates over the noise, units weighted "
        "by what was written into them."
    ),
    limits=(
        "Means over units: single units divide the work among them, and a model may keep a symbol "
        "in a way that no mean shows. One task, made for gates; language asks for more at once."
    ),
    run=run,
)

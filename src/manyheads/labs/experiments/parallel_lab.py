"""T19: a recurrent network needs one step per token; attention learns from all at once."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from manyheads.data.tokenizers.tokenizer import END, START
from manyheads.decode.constraints import SuppressTokens
from manyheads.decode.greedy import greedy_search
from manyheads.labs.bench import Bench, Measured, Outcome, Size
from manyheads.labs.lab_training import fresh, parameters
from manyheads.labs.symbols import widths
from manyheads.labs.timing import best_of
from manyheads.lens.panels import number
from manyheads.models.model_config import ModelConfig
from manyheads.models.seq2seq import Seq2SeqConfig
from manyheads.models.transformer import TransformerConfig
from manyheads.streams import stream


def models(size: Size) -> dict[str, ModelConfig]:
    """Two translators with about the same number of parameters."""
    dim = size.dim
    lstm = dict[str, Any](vocabulary=size.vocabulary, dim=dim, hidden_size=5 * dim // 4)
    transformer = dict[str, Any](encoder_layers=1, decoder_layers=1)
    return {
        "LSTM": Seq2SeqConfig(attention="none", dropout=0.0, **lstm),
        "Transformer": TransformerConfig(**transformer, **widths(size.vocabulary, dim)),
    }


def steps_in_a_row(name: str, length: int) -> int:
    """Number of sequential steps to read a text, with one layer per side.

    A recurrent layer: one per token, on both sides. Attention: one per side for any length.
    """
    return 2 * length if name == "LSTM" else 2


def time_at(length: int, size: Size) -> Measured:
    """Time one text: a training step, and generation token by token."""
    built = {name: fresh(config, 1) for name, config in models(size).items()}
    torch.manual_seed(stream(1, "lab parallel", length))
    device = next(built["LSTM"].parameters()).device
    tokens = torch.randint(END + 2, size.vocabulary, (1, length), device=device)

    def learning(model: Any) -> None:
        model.train()
        model(tokens, tokens).logsumexp(dim=-1).sum().backward()
        model.zero_grad(set_to_none=True)

    def writing(model: Any) -> None:
        model.eval()
        rules = [SuppressTokens([END])]
        greedy_search(model, tokens, [length], start=START, end=END, rules=rules)

    def timed(work: Callable[[Any], None]) -> dict[str, float]:
        return best_of(size.rounds, {name: partial(work, model) for name, model in built.items()})

    learned, written = timed(learning), timed(writing) if length <= size.written else {}
    return {
        name: {
            "parameters": parameters(model),
            "learning": 1e6 * learned[name] / length,
            "writing": 1e6 * written[name] / length if written else None,
            "steps": steps_in_a_row(name, length),
        }
        for name, model in built.items()
    }


def conclude(measured: dict[int, Measured], where: str) -> str:
    """Conclude which is cheaper per token, at the shortest and at the longest length."""
    short, long = min(measured), max(measured)
    most = max(n for n, each in measured.items() if each["LSTM"]["writing"] is not None)

    def ratio(length: int, what: str) -> str:
        value = measured[length]["LSTM"][what] / measured[length]["Transformer"][what]
        if value >= 1:
            return f"{number(value)} times as long as the Transformer"
        return f"{number(value)} of the Transformer's time"

    return (
        f"On {where}, learning from one text of {short} tokens takes the LSTM "
        f"{ratio(short, 'learning')} a token, of {long} tokens {ratio(long, 'learning')}, though "
        f"it must take {number(measured[long]['LSTM']['steps'])} steps in a row there and "
        f"attention {measured[long]['Transformer']['steps']}; writing {most} tokens, one after "
        f"another for both, takes it {ratio(most, 'writing')} a token. That is what a token costs "
        "there, not what hardware that computes in parallel gains."
    )


def run(bench: Bench, size: Size) -> Outcome:
    """Time both models at every length."""
    measured = bench.measured("{} tokens", size.lengths, time_at, size)
    threads = torch.get_num_threads()
    where = "a GPU" if torch.cuda.is_available() else f"{threads} thread{'s' * (threads > 1)}"
    return conclude(measured, where), {"measured": measured}

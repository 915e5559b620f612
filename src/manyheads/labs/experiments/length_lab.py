"""T3, T4: one vector for a whole source gets worse with length; attention reads all of it."""

from dataclasses import replace
from typing import Any

from manyheads.asks.decode_config import DecodeConfig
from manyheads.asks.evaluate_request import EvaluateConfig
from manyheads.data.text.corpus import Corpus
from manyheads.data.tokenizers.tokenizer import Tokenizers
from manyheads.generation.text_decoding import translate
from manyheads.labs.bench import Bench, Measured, Outcome, Size
from manyheads.labs.findings import by_size, leader, mean, values, verdict
from manyheads.labs.lab_training import fresh, learn, parameters, training
from manyheads.labs.symbols import Symbols, random_texts, translator
from manyheads.models.model_config import ModelConfig
from manyheads.models.seq2seq import Seq2SeqConfig
from manyheads.tasks.translate.recipe import TranslateTrainConfig
from manyheads.tasks.translate.task import TranslateTask

ONE_VECTOR, LOOKING, TRANSFORMER = "LSTM, one vector", "LSTM with attention", "Transformer"


def models(size: Size) -> dict[str, ModelConfig]:
    """Three models with about the same number of parameters."""
    vocabulary = len(Symbols(size.symbols))
    sizes = dict[str, Any](vocabulary=vocabulary, dim=3 * size.dim // 4, hidden_size=2 * size.dim)
    lstm = Seq2SeqConfig(attention="none", dropout=0.0, **sizes)
    return {
        ONE_VECTOR: lstm,
        LOOKING: replace(lstm, hidden_size=7 * size.dim // 4, attention="general"),
        TRANSFORMER: translator(vocabulary, size.dim),
    }


def right(output: str, wanted: str) -> float:
    """Share of correct symbols by position, in percent; extra symbols are ignored."""
    predicted, expected = output.split(), wanted.split()
    return 100 * sum(a == b for a, b in zip(predicted, expected, strict=False)) / len(expected)


def measure(name: str, size: Size, seed: int) -> Measured:
    """Train one model, and measure copying at every length."""
    lengths = range(1, size.longest + 1)
    texts = random_texts(size.train, lengths, size.symbols, seed=seed, name="train")
    config = training(TranslateTrainConfig, size.steps, 2e-3, max_tokens=size.max_tokens)
    model = fresh(models(size)[name], seed)
    tokenizer = Symbols(size.symbols)
    both, exact = Tokenizers(tokenizer, tokenizer), EvaluateConfig(metrics=("exact",))
    train, valid = (Corpus(each, each, "symbols") for each in (texts, texts[:2]))  # copies
    learned = learn(model, TranslateTask(train, valid, both, config, exact, seed=seed))
    measured: Measured = {"parameters": parameters(model), "loss": learned.loss}
    for length in size.lengths:
        wanted = random_texts(size.texts, [length], size.symbols, seed=seed, name=f"test {length}")
        answers = translate(model, both, wanted, DecodeConfig(beams=1))
        pairs = [(best[0].text, text) for best, text in zip(answers, wanted, strict=True)]
        measured[str(length)] = {
            "right": sum(right(*pair) for pair in pairs) / len(pairs),
            "exact": 100 * sum(a == b for a, b in pairs) / len(pairs),
        }
    return measured


def conclude(measured: dict[str, list[Measured]], size: Size) -> str:
    """Compare the shortest with the longest training length, and the models."""

    def of(model: str, length: int) -> list[float]:
        return values(measured[model], str(length), "right")

    def percent(model: str, length: int) -> str:
        return f"{mean(measured[model], str(length), 'right')}%"

    # Shorter ones are measured, too, but all of them are in the training data.
    new = [n for n in size.lengths if size.symbols**n > size.train and n <= size.longest]
    short, long, beyond = new[0], new[-1], max(size.lengths)
    falls = verdict(of(ONE_VECTOR, long), of(ONE_VECTOR, short)) < 0
    helps = verdict(of(LOOKING, long), of(ONE_VECTOR, long)) > 0
    best = leader({model: of(model, beyond) for model in measured})
    keeps = ", ".join(f"{percent(model, beyond)} ({model})" for model in measured)
    return (
        f"With one vector for the source, {'fewer' if falls else 'not fewer'} symbols come out "
        f"right of {long} ({percent(ONE_VECTOR, long)}) than of {short} "
        f"({percent(ONE_VECTOR, short)}); attention "
        f"{'brings' if helps else 'does not surely bring'} more ({percent(LOOKING, long)}, the "
        f"Transformer {percent(TRANSFORMER, long)}); at {beyond} symbols, longer than any in "
        f"training, they keep {keeps}; {best} keeps most."
    )


def run(bench: Bench, size: Size) -> Outcome:
    """Train each model with each seed."""
    measured = bench.seeded("{}", models(size), measure, size)
    return conclude(measured, size), {"measured": by_size(measured, size.lengths)}

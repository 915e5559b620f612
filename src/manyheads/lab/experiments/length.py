"""T3, T4: one vector for a whole source suffers from length; attention looks at all of it again."""

from dataclasses import dataclass
from functools import partial

from manyheads.data.tokenizer import Tokenizers
from manyheads.lab.bench import Bench, Lab, Measured, Scale
from manyheads.lab.findings import Findings, curves, interval, leader, table, verdict
from manyheads.lab.learn import fresh, learn
from manyheads.lab.symbols import Symbols, copying, random_texts, training
from manyheads.lens.panels import Lines, number
from manyheads.models.presets import Config
from manyheads.models.seq2seq import Seq2SeqConfig
from manyheads.models.transformer import TransformerConfig
from manyheads.tasks.decoding import DecodeConfig, translate
from manyheads.tasks.translate import TranslateTrainConfig


@dataclass(frozen=True, kw_only=True)
class Size:
    """What is learned and measured."""

    steps: int
    longest: int  # symbols of a training text
    lengths: tuple[int, ...]  # measured; those above `longest` were never seen
    texts: int  # a length
    train: int = 20000
    symbols: int = 10
    dim: int = 64
    max_tokens: int = 2048


SIZES: dict[Scale, Size] = {
    "full": Size(steps=3500, longest=24, lengths=(2, 4, 8, 12, 16, 20, 24, 28, 32), texts=100),
    "quick": Size(steps=60, longest=8, lengths=(2, 4, 8, 12), texts=20, train=1000, max_tokens=512),
    "smoke": Size(
        steps=2, longest=3, lengths=(2, 4), texts=2, train=10, symbols=4, dim=8, max_tokens=64
    ),
}

ONE_VECTOR, LOOKING, TRANSFORMER = "LSTM, one vector", "LSTM with attention", "Transformer"


def models(size: Size) -> dict[str, Config]:
    """Three models of about as many parameters."""
    vocabulary = len(Symbols(size.symbols))
    lstm = Seq2SeqConfig(
        vocabulary=vocabulary,
        dim=3 * size.dim // 4,
        hidden=2 * size.dim,
        attention="none",
        dropout=0.0,
    )
    return {
        ONE_VECTOR: lstm,
        LOOKING: Seq2SeqConfig(
            vocabulary=vocabulary,
            dim=3 * size.dim // 4,
            hidden=7 * size.dim // 4,
            attention="general",
            dropout=0.0,
        ),
        TRANSFORMER: TransformerConfig(
            vocabulary=vocabulary,
            dim=size.dim,
            heads=4,
            hidden=2 * size.dim,
            encoder_layers=2,
            decoder_layers=2,
            dropout=0.0,
            norm="pre",
        ),
    }


def right(output: str, wanted: str) -> float:
    """Share of the symbols that stand where they should, in percent; those beyond do not count."""
    said, asked = output.split(), wanted.split()
    return 100 * sum(a == b for a, b in zip(said, asked, strict=False)) / len(asked)


def measure(name: str, size: Size, seed: int) -> Measured:
    """Train one model, and let it copy texts of every length."""
    texts = random_texts(
        size.train, range(1, size.longest + 1), size.symbols, seed=seed, name="train"
    )
    config = training(TranslateTrainConfig, size.steps, size.max_tokens, 2e-3)
    model = fresh(models(size)[name], seed)
    task = copying(texts, texts[:2], size.symbols, config, seed=seed)
    learned = learn(model, task, config, seed=seed)
    tokenizer = Symbols(size.symbols)
    found: Measured = {
        "parameters": sum(p.numel() for p in model.parameters()),
        "loss": learned.loss,
    }
    for length in size.lengths:
        asked = random_texts(size.texts, [length], size.symbols, seed=seed, name=f"test {length}")
        answers = translate(model, Tokenizers(tokenizer, tokenizer), asked, DecodeConfig(beams=1))
        outputs = [best[0].text for best in answers]
        pairs = list(zip(outputs, asked, strict=True))
        found[str(length)] = {
            "right": sum(right(*pair) for pair in pairs) / len(pairs),
            "exact": 100 * sum(a == b for a, b in pairs) / len(pairs),
        }
    return found


def conclude(found: dict[str, list[Measured]], size: Size) -> str:
    """Compare the shortest with the longest that was learned, and models with each other."""

    def of(model: str, length: int) -> list[float]:
        return [each[str(length)]["right"] for each in found[model]]

    # Shorter ones are asked too, but all of them stood in the training texts.
    new = [n for n in size.lengths if size.symbols**n > size.train and n <= size.longest]
    short, long, beyond = new[0], new[-1], max(size.lengths)
    falls = verdict(of(ONE_VECTOR, long), of(ONE_VECTOR, short)) < 0
    helps = verdict(of(LOOKING, long), of(ONE_VECTOR, long)) > 0
    best = leader({model: of(model, beyond) for model in found})
    keeps = ", ".join(f"{number(interval(of(m, beyond)).mean)}% ({m})" for m in found)
    return (
        f"With one vector for the source, {'fewer' if falls else 'not fewer'} symbols come out "
        f"right of {long} ({number(interval(of(ONE_VECTOR, long)).mean)}%) than of {short} "
        f"({number(interval(of(ONE_VECTOR, short)).mean)}%); attention "
        f"{'brings' if helps else 'does not surely bring'} more "
        f"({number(interval(of(LOOKING, long)).mean)}%, the Transformer "
        f"{number(interval(of(TRANSFORMER, long)).mean)}%); at {beyond} symbols, longer than any "
        f"in training, they keep {keeps}; {best} keeps most."
    )


def run(bench: Bench) -> Findings:
    """Train each model with each seed."""
    size = bench.choose(SIZES)
    found = {name: bench.each_seed(name, partial(measure, name, size)) for name in models(size)}

    return Findings(
        conclude(found, size),
        [
            table("Symbols right, %, by length of the text", found, size.lengths, "right"),
            table("Texts without a mistake, %, by length", found, size.lengths, "exact"),
        ],
        [
            Lines(
                f"Copying (learned up to {size.longest} symbols)",
                "symbols of the text",
                y,
                curves(found, size.lengths, what),
            )
            for y, what in (("symbols right, %", "right"), ("texts without a mistake, %", "exact"))
        ],
    )


LAB = Lab(
    method=(
        "Three encoder-decoders of about equal size learn to copy texts of random symbols, from "
        "the same texts in the same number of updates: an LSTM whose decoder knows the source as "
        "one vector, an LSTM that attends to all of its encoder's states (general score), and a "
        "Transformer. Then each copies, by greedy decoding, texts of every length that are drawn "
        "anew; of the shortest there are so few that training has seen them. A symbol is right if "
        "it stands in its place."
    ),
    limits=(
        "Random symbols cannot be compressed, as sentences can, so one vector is at its worst "
        "here; small models and few updates: a wider vector, or longer training, moves the length "
        "at which it fails. Translation quality by length of real sentences is in docs/results.md."
    ),
    run=run,
)

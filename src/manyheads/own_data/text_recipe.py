"""A recipe for texts: size, vocabulary, steps and batch from the data, the machine and minutes."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from manyheads.data.text.formats import Pair
from manyheads.own_data.prepared import Options, recipe_path
from manyheads.own_data.speed import Speed, measure
from manyheads.strict_json import dumps

VALIDATIONS = 10
FULL = 0.9  # of the minutes: the rest is for reading, checkpoints and the last measurement
_WORD = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True)
class Size:
    """A model for so many examples, and how it is trained."""

    examples: float  # up to
    layers: tuple[int, int]
    dim: int
    dropout: float
    batch: int  # tokens
    epochs: int  # passes after which such a model learns by heart


# From the recipes of this package: multi30k-en-de-tiny (29,000 pairs), en-de (190,000), and
# transformer-base for what is larger.
SIZES = (
    Size(5_000, (2, 2), 128, 0.3, 1024, 80),
    Size(50_000, (4, 4), 128, 0.3, 2048, 60),
    Size(500_000, (6, 2), 192, 0.1, 4096, 20),
    Size(math.inf, (6, 3), 256, 0.1, 8192, 10),
)


@dataclass(frozen=True)
class Texts:
    """Examples, divided; without `target` plain text, `labelled` if targets are classes."""

    path: Path
    parts: Mapping[str, Sequence[Pair]]
    source: str
    target: str | None
    labelled: bool = False

    @property
    def train(self) -> Sequence[Pair]:
        """What is trained on."""
        return self.parts["train"]

    @property
    def what(self) -> str:
        """A word for the examples."""
        return "sentences" if self.labelled or self.target is None else "pairs"

    def files(self) -> dict[str, str]:
        """Write the parts, one example a line."""
        ending = "tsv" if self.target else "txt"
        return {
            f"{name}.{ending}": "".join(
                f"{pair.source}\t{pair.target}\n" if self.target else f"{pair.source}\n"
                for pair in pairs
            )
            for name, pairs in self.parts.items()
        }


def recipe_for(
    texts: Texts, out: Path, options: Options
) -> tuple[str, dict[str, str], Sequence[str]]:
    """Return the recipe, the files of its data folder, and what to expect."""
    size = next(each for each in SIZES if len(texts.train) <= each.examples)
    files = texts.files()
    speed = measure(_write(texts, size, 1000, 100, "{root}", None, out), files, options.hardware)
    steps, minutes, every = _steps(size, speed, options.minutes)
    root = str(out.absolute())
    recipe = _write(texts, size, steps, every, root, speed, out, minutes)
    return recipe, files, _expect(texts, steps, minutes, speed, options)


def _steps(size: Size, speed: Speed | None, minutes: float) -> tuple[int, float, int]:
    """Return steps, the minutes that they take, and steps between validations."""
    if speed is None:
        return 1000 * size.epochs, math.nan, 1000
    seconds = 60 * minutes * FULL - VALIDATIONS * speed.validation
    possible = max(20, int(seconds / speed.step))
    steps = min(possible, max(200, size.epochs * speed.steps_per_epoch))
    every = max(10, steps // VALIDATIONS)
    steps = every * max(1, steps // every)
    spent = steps * speed.step + steps // every * speed.validation
    return steps, spent / FULL / 60, every


def _write(
    texts: Texts,
    size: Size,
    steps: int,
    every: int,
    root: str,
    speed: Speed | None,
    out: Path,
    minutes: float = math.nan,
) -> str:
    ending = "tsv" if texts.target else "txt"
    encoder, decoder = size.layers
    count = len(texts.train)
    timed = "not timed: no such machine here"
    precision = "auto"
    if speed is not None:
        timed = f"about {minutes:.0f} minutes at {speed.units:,.0f} tokens a second, measured here"
        precision = speed.precision
    task = "translate" if texts.target else "generate"
    metric = "exact" if texts.labelled else "chrf" if texts.target else "loss"
    what = f"{count:,} {texts.what} to train on, made from {texts.path.name}"
    lines: list[tuple[str, str]] = [
        (f"# {what}", ""),
        ("#", ""),
        (f"#   manyheads train {recipe_path(out)}", ""),
        ("", ""),
        (f'task = "{task}"', "a label is learned as a translation" if texts.labelled else ""),
        ("seed = 1", "the same again; another number shows how much is luck"),
        ("", ""),
        ("[data]", ""),
        (f"root = {dumps(root)}", "change it when you move the folder"),
        (f'train = "train.{ending}"', ""),
        (f'valid = "val.{ending}"', f"{len(texts.parts['val']):,}: choose the weights to keep"),
        (f'test = "test.{ending}"', f"{len(texts.parts['test']):,}: for the last word, once"),
    ]
    if texts.target:
        lines += [(f'source = "{texts.source}"', ""), (f'target = "{texts.target}"', "")]
    lines += [
        ("", ""),
        ("[tokenizer]", ""),
        (
            f"size = {vocabulary_size(side for pair in texts.train for side in pair[1:])}",
            "parts of words: more only where the words are many",
        ),
        ("", ""),
        ("[model]", ""),
        (f'preset = "{"transformer-tiny" if texts.target else "gpt-tiny"}"', ""),
        (f"dim = {size.dim}", f"a size for {count:,} {texts.what}: larger learns by heart"),
        (f"heads = {size.dim // 32}", ""),
        (f"ffn_dim = {size.dim * 4}", ""),
    ]
    if texts.target:
        lines += [
            (f"encoder_layers = {encoder}", "reading is worth more layers than writing"),
            (f"decoder_layers = {decoder}", ""),
            ('norm = "pre"', "trains steadily, also in few steps"),
        ]
    else:
        lines.append((f"layers = {encoder}", ""))
    lines += [
        (f"dropout = {size.dropout}", "against learning by heart"),
        ("", ""),
        ("[train]", ""),
        (f"steps = {steps}", timed),
        (f"max_tokens = {size.batch}", "of a batch: few examples need many small steps"),
        ("learning_rate = 2e-3", ""),
        ('schedule = "cosine"', "down to zero at the last step"),
        (f"warmup = {max(1, steps // 10)}", ""),
        *([("label_smoothing = 0.1", "")] if texts.target else []),
        (f'precision = "{precision}"', "the faster one here" if speed else ""),
        (f"validate_every = {every}", f"{steps // every} times"),
        (f"save_every = {every}", "what a stopped run can go on from"),
    ]
    if texts.target:
        lines += [
            (f'early_stop = {{ metric = "val_{metric}", patience = 4 }}', "keep the best weights"),
            ("", ""),
            ("[evaluate]", ""),
            (
                f'metrics = ["{metric}"{"" if texts.labelled else ", " + dumps("bleu")}]',
                "chrF is steadier than BLEU on few sentences" if metric == "chrf" else "",
            ),
        ]
    return "".join(f"{key}  # {why}\n" if why else f"{key}\n" for key, why in lines)


def vocabulary_size(texts: Iterable[str]) -> int:
    """Choose a size: a piece should occur often, and the characters and bytes must fit."""
    signs, words = set[str](), 0
    for text in texts:
        signs.update(text)
        words += len(_WORD.findall(text))
    characters = len(signs)
    wanted = min(8000, max(500, words // 20))
    step = 100 if wanted < 1000 else 500
    return max(wanted // step * step, -(-(characters + 400) // 100) * 100)


def _expect(
    texts: Texts, steps: int, minutes: float, speed: Speed | None, options: Options
) -> list[str]:
    count = len(texts.train)
    lines = [
        f"{count:,} {texts.what} to train on, {len(texts.parts['val']):,} to validate, "
        f"{len(texts.parts['test']):,} to test"
    ]
    if speed is None:
        lines.append("nothing was timed: this machine has no GPU. Train where there is one.")
    else:
        passes = steps / max(1, speed.steps_per_epoch)
        lines.append(
            f"{speed.parameters:,} parameters, {speed.units:,.0f} tokens a second here "
            f"({speed.device}, {speed.precision}): {steps:,} steps are about {minutes:.0f} "
            f"minutes and {passes:.1f} passes over the data"
        )
        if passes < 5 and minutes > 0.5 * options.minutes:
            lines.append("so few passes teach little: give more `minutes`, or a GPU")
        elif minutes < 0.7 * options.minutes:
            lines.append("more steps would only learn these by heart")
    known = Counter(word for pair in texts.train for word in _WORD.findall(pair.source.lower()))
    held = [word for pair in texts.parts["val"] for word in _WORD.findall(pair.source.lower())]
    new = sum(word not in known for word in held) / max(1, len(held))
    lines.append(f"{100 * new:.0f}% of the words in the validation sources are in no training one")
    if texts.labelled:
        lines.append("a label is written letter by letter; the share of right ones is val_exact")
    elif texts.target is not None and count < 20_000:
        lines.append(
            f"{count:,} pairs are too few for general language: expect sentences like these, with "
            "the words of these. A translator of these languages that is continued with "
            "`base_model` does better."
            if count >= 2000
            else f"{count:,} pairs are too few to learn a language from: expect phrases learned by "
            "heart. Continue a translator of these languages with `base_model`."
        )
    elif texts.target is not None:
        lines.append("expect usable translations of sentences like these, less of others")
    if len(texts.parts["val"]) < 200:
        lines.append(
            f"{len(texts.parts['val'])} validation examples are few: differences of a point or "
            "two are luck"
        )
    return lines

"""A recipe for texts: size, vocabulary, steps and batch from the data, the machine and minutes."""

import math
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from manyheads.data.text.formats import Pair
from manyheads.own_data.continued import Base
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
CONTINUED = Size(math.inf, (0, 0), 0, 0.0, 2048, 12)  # its layers are those of the model
FEW = 20_000  # pairs


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
    texts: Texts, out: Path, options: Options, base: Base | None = None
) -> tuple[str, dict[str, str], Sequence[str]]:
    """Return the recipe, the files of its data folder, and what to expect."""
    size = next(each for each in SIZES if len(texts.train) <= each.examples)
    draft = _Draft(texts, CONTINUED if base else size, out, base)
    files = texts.files()
    speed = measure(draft.write("{root}"), files, options.hardware)
    draft.plan(speed, options.minutes)
    return draft.write(str(out.absolute())), files, _expect(draft, options)


@dataclass
class _Draft:
    """A recipe while it is made: first to be timed, then with the steps that the minutes allow."""

    texts: Texts
    size: Size
    out: Path
    base: Base | None
    speed: Speed | None = None
    steps: int = 1000
    every: int = 100  # steps between validations
    minutes: float = math.nan

    def plan(self, speed: Speed | None, minutes: float) -> None:
        """Choose steps: as many as the minutes allow, and no more than the data are worth."""
        self.speed = speed
        if speed is None:
            self.steps, self.every = 1000 * self.size.epochs, 1000
            return
        seconds = 60 * minutes * FULL
        count = min(VALIDATIONS, max(2, int(seconds / 4 / speed.validation)))
        seconds -= count * speed.validation
        possible = max(20, int(seconds / speed.step))
        steps = min(possible, max(200, self.size.epochs * speed.steps_per_epoch))
        self.every = max(10, steps // count)
        self.steps = self.every * max(1, steps // self.every)
        validations = self.steps // self.every + (self.base is not None)
        spent = self.steps * speed.step + validations * speed.validation
        self.minutes = spent / FULL / 60

    def write(self, root: str) -> str:
        """Write the recipe; a comment says why a value is what it is."""
        texts, base = self.texts, self.base
        what = f"# {len(texts.train):,} {texts.what} to train on, made from {texts.path.name}"
        if base is not None:
            what += f"; continues {base.name}"
        text = f"{what}\n#\n#   manyheads train {shlex.quote(str(recipe_path(self.out)))}\n"
        lines = [
            ("", ""),
            (f'task = "{"translate" if texts.target else "generate"}"', self._task()),
            ("seed = 1", "the same again; another number shows how much is luck"),
            *self._data(root),
            *([] if base else self._model()),
            *self._train(),
        ]
        text += "".join(f"{key}  # {why}\n" if why else f"{key}\n" for key, why in lines)
        if base is not None:
            text += f"\n# What is continued, as it was made.\n{base.tables()}"
        return text

    def _task(self) -> str:
        return "a label is learned as if it were a translation" if self.texts.labelled else ""

    def _data(self, root: str) -> list[tuple[str, str]]:
        texts, ending = self.texts, "tsv" if self.texts.target else "txt"
        lines = [
            ("", ""),
            ("[data]", ""),
            (f"root = {dumps(root)}", "change it when you move the folder"),
            (f'train = "train.{ending}"', ""),
            (f'valid = "val.{ending}"', f"{len(texts.parts['val']):,}: choose the weights to keep"),
            (f'test = "test.{ending}"', f"{len(texts.parts['test']):,}: for the last word, once"),
        ]
        if "general" in texts.parts:
            lines += [
                ('additional = ["general.tsv"]', "what it learned before, against forgetting"),
                ('general = "general-val.tsv"', "scored too: what it must not forget"),
            ]
        if texts.target:
            lines += [(f'source = "{texts.source}"', ""), (f'target = "{texts.target}"', "")]
        return lines

    def _model(self) -> list[tuple[str, str]]:
        texts, size = self.texts, self.size
        encoder, decoder = size.layers
        lines = [
            ("", ""),
            ("[tokenizer]", ""),
            (
                f"size = {vocabulary_size(side for pair in texts.train for side in pair[1:])}",
                "parts of words: more only where the words are many",
            ),
            ("", ""),
            ("[model]", ""),
            (f'preset = "{"transformer-tiny" if texts.target else "gpt-tiny"}"', ""),
            (f"dim = {size.dim}", f"for {len(texts.train):,} {texts.what}: larger learns by heart"),
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
        return [*lines, (f"dropout = {size.dropout}", "against learning by heart")]

    def _train(self) -> list[tuple[str, str]]:
        texts, speed, base = self.texts, self.speed, self.base
        metric = "exact" if texts.labelled else "chrf"
        timed = "not timed: there is no such machine here"
        if speed is not None:
            timed = f"about {self.minutes:.0f} minutes at {speed.units:,.0f} tokens a second here"
        rate, why = "2e-3", ""
        if base is not None:
            mixed = "general" in texts.parts
            rate = "3e-4" if mixed else "1e-4"
            why = "low: it has learned already" + ("" if mixed else ", and nothing is mixed in")
        lines = [
            ("", ""),
            ("[train]", ""),
            (f"steps = {self.steps}", timed),
            (f"max_tokens = {self.size.batch}", "of a batch: few examples need many small steps"),
            (f"learning_rate = {rate}", why),
            ('schedule = "cosine"', "down to zero at the last step"),
            (f"warmup = {max(1, self.steps // 10)}", ""),
            *([("label_smoothing = 0.1", "")] if texts.target else []),
            (f'precision = "{speed.precision if speed else "auto"}"', "the faster one"),
            (f"validate_every = {self.every}", f"{self.steps // self.every} times"),
            *([("validate_first = true", "what it is worth before")] if base else []),
            (f"save_every = {self.every}", "what a stopped run can go on from"),
        ]
        if not texts.target:
            return lines
        second = "" if texts.labelled else ', "bleu"'
        return [
            *lines,
            (f'early_stop = {{ metric = "val_{metric}", patience = 4 }}', "keeps the best weights"),
            ("", ""),
            ("[evaluate]", ""),
            (
                f'metrics = ["{metric}"{second}]',
                "chrF is steadier than BLEU on few sentences" if second else "",
            ),
        ]


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


def _expect(draft: _Draft, options: Options) -> list[str]:
    texts, speed, steps, minutes = draft.texts, draft.speed, draft.steps, draft.minutes
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
        if passes < 5 and minutes > 0.5 * options.minutes and draft.base is None:
            lines.append("so few passes teach little: give more `minutes`, or a GPU")
        elif minutes < 0.7 * options.minutes:
            lines.append("more steps would only learn these by heart")
    known = {word for pair in texts.train for word in _WORD.findall(pair.source.lower())}
    held = [word for pair in texts.parts["val"] for word in _WORD.findall(pair.source.lower())]
    new = sum(word not in known for word in held) / max(1, len(held))
    lines.append(f"{100 * new:.0f}% of the words in the validation sources are in no training one")
    if texts.labelled:
        lines.append("a label is written letter by letter; the share of right ones is val_exact")
    elif draft.base is not None:
        lines.append("training ends with the scores before and after, on yours and on the general")
    elif texts.target is not None and count < FEW:
        lines.append(
            f"{count:,} pairs are too few to learn a language from: expect sentences like these, "
            "in the words of these. A translator of these languages, continued with `base_model`, "
            "does better."
        )
    elif texts.target is not None:
        lines.append("expect usable translations of sentences like these, less of others")
    if len(texts.parts["val"]) < 200:
        lines.append(
            f"{len(texts.parts['val'])} validation examples are few: differences of a point or "
            "two are luck"
        )
    return lines

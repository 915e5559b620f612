"""A recipe for texts: size, vocabulary, steps and batch from the data, the machine and minutes."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from manyheads.data.text.formats import Pair
from manyheads.errors import MissingExtraError
from manyheads.measure.text_metrics import TEXT_METRICS
from manyheads.own_data.continued import AGAIN, Base
from manyheads.own_data.prepared import Options
from manyheads.own_data.speed import FULL, VALIDATIONS, Draft, Speed, measure
from manyheads.strict_json import dumps

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

    @property
    def ending(self) -> str:
        """Of the files."""
        return "tsv" if self.target else "txt"

    def files(self) -> dict[str, str]:
        """Write the parts, one example a line."""
        line = "{0.source}\t{0.target}\n" if self.target else "{0.source}\n"
        texts = {name: "".join(map(line.format, pairs)) for name, pairs in self.parts.items()}
        return {f"{name}.{self.ending}": text for name, text in texts.items()}


def recipe_for(
    texts: Texts, out: Path, options: Options, base: Base | None = None
) -> tuple[str, dict[str, str], Sequence[str]]:
    """Return the recipe, the files of its data folder, and what to expect."""
    size = next(each for each in SIZES if len(texts.train) <= each.examples)
    draft = _Draft(data=texts, size=CONTINUED if base else size, out=out, base=base)
    files = texts.files()
    speed = measure(draft.write("{root}"), files, options.hardware)
    draft.plan(speed, options.minutes)
    return draft.write(str(out.absolute())), files, draft.expect(options.minutes)


@dataclass(kw_only=True)
class _Draft(Draft):
    data: Texts
    size: Size
    base: Base | None

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
        self.minutes = (self.steps * speed.step + validations * speed.validation) / FULL / 60

    def write(self, root: str) -> str:
        """Write the recipe."""
        texts, size, base = self.data, self.size, self.base
        general = texts.parts.get("general", ())
        again = min(AGAIN, max(0, len(general) // len(texts.train) - 1))
        lines = self.fill(
            "text_recipe.template",
            pairs=texts.what == "pairs",
            root=dumps(root),
            continues=f"; continues {base.name}" if base else "",
            general=bool(general),
            mixed=dumps(["general.tsv", *["train.tsv"] * again]),
            alone=base and not general,
            new=texts.target and not base,
            vocabulary=vocabulary_size(side for pair in texts.train for side in pair[1:]),
            preset="transformer-tiny" if texts.target else "gpt-tiny",
            heads=size.dim // 32,
            ffn_dim=size.dim * 4,
            bleu=_bleu(texts.target) if texts.what == "pairs" else "",
        )
        return "\n".join([*lines, base.tables() if base else ""])

    def expect(self, minutes: float) -> list[str]:
        """Say what so many minutes of training can teach."""
        texts, speed = self.data, self.speed
        passes = self.steps / max(1, speed.steps_per_epoch) if speed else math.inf
        hurried = passes < 5 and self.minutes > 0.5 * minutes and self.base is None
        known = {word for pair in texts.train for word in _WORD.findall(pair.source.lower())}
        held = [word for pair in texts.parts["val"] for word in _WORD.findall(pair.source.lower())]
        translator, few = texts.what == "pairs" and self.base is None, len(texts.train) < FEW
        return self.fill(
            "text_expectations.template",
            passes=passes,
            hurried=hurried,
            spare=self.minutes < 0.7 * minutes and not hurried,
            new=100 * sum(word not in known for word in held) / max(1, len(held)),
            small=translator and few,
            large=translator and not few,
            uncertain=len(texts.parts["val"]) < 200,
            general=" and on the general" if "general" in texts.parts else "",
        )


def _bleu(language: str | None) -> str:
    """Write the second metric, or why there is none: some languages need a package for it."""
    try:
        TEXT_METRICS["bleu"](["text"], ["text"], language or "")
    except MissingExtraError as error:
        if error.extra == "text":  # without which nothing is scored
            raise
        return f"]  # no bleu, as {error}"
    return ', "bleu"]  # chrF is steadier than BLEU on few sentences'


def vocabulary_size(texts: Iterable[str]) -> int:
    """Choose a size: a piece should occur often, and the characters and bytes must fit."""
    signs, words = set[str](), 0
    for text in texts:
        signs.update(text)
        words += len(_WORD.findall(text))
    wanted = min(8000, max(500, words // 20))
    step = 100 if wanted < 1000 else 500
    return max(wanted // step * step, -(-(len(signs) + 400) // 100) * 100)

"""The experiments and their questions; listing them imports nothing heavy."""

from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from manyheads.errors import NotFoundError, nearest

if TYPE_CHECKING:
    from manyheads.labs.bench import Lab


class Entry(NamedTuple):
    """An experiment: its atlas entries and its question."""

    atlas: tuple[str, ...]
    question: str


CATALOGUE: dict[str, Entry] = {
    "length": Entry(("T3", "T4"), "Do long inputs suffer when the source is one vector?"),
    "recall": Entry(("T19",), "How far back can a model remember one symbol?"),
    "parallel": Entry(("T19",), "What does a token cost in a longer text, learning and writing?"),
    "scale": Entry(("T5a", "E3"), "Why are scores divided by the square root of their width?"),
    "heads": Entry(("T9", "E9"), "What do several heads cost, and what do they bring?"),
    "depth": Entry(("T11",), "What do residual connections and norms do for deep stacks?"),
    "positions": Entry(("T8", "E1"), "What does a model lose that does not know positions?"),
    "basis": Entry(("T8a", "E11"), "Are the columns of the sinusoids a basis, and orthogonal?"),
    "gates": Entry(("T2",), "Do an LSTM's gates open for what must be kept?"),
    "loss": Entry(("T16",), "What is the loss of a sentence, token by token?"),
    "patches": Entry(("V1", "E6"), "How many tokens is a picture, and what do they cost?"),
    "grid": Entry(("V3", "V7", "E13"), "How much do positions matter for pictures?"),
    "bias": Entry(("V10", "E13"), "What does a convolution know before it has learned?"),
    "distance": Entry(("V11", "E4"), "How far does each layer of a ViT and of a CNN look?"),
    "resolution": Entry(("V12", "V16"), "What does a larger picture cost?"),
    "transfer": Entry(("V9",), "What does pre-training bring where labels are few?"),
    "tongues": Entry(("M2",), "Does one captioner for five languages help each, or hurt?"),
    "towers": Entry(("M2",), "Softmax or sigmoid over pairs, and how large a batch?"),
    "reading": Entry(("M2",), "Does a line reader score columns (CTC) or write its letters?"),
    "params": Entry(("V8", "E5", "E12"), "How many weights do well-known models have, and where?"),
}


def entry(name: str) -> Entry:
    """Look up the entry of an experiment.

    Raises:
        NotFoundError: there is no such experiment.
    """
    if name not in CATALOGUE:
        raise NotFoundError(
            f"There is no lab {name!r}{nearest(name, CATALOGUE)}Labs: {', '.join(CATALOGUE)}."
        )
    return CATALOGUE[name]


def find(name: str) -> "Lab":
    """Import an experiment."""
    entry(name)
    lab: Lab = import_module(f"manyheads.labs.experiments.{name}").LAB
    return lab

"""The house's date corpus, for experiments that want real strings: English in, Korean out."""

from functools import lru_cache

from manyheads.data.dates import generate
from manyheads.data.text import Corpus
from manyheads.data.tokenizer import PairTokenizerConfig, Tokenizer, Tokenizers
from manyheads.tasks.translate import EvaluateConfig, TranslateTask, TranslateTrainConfig


@lru_cache(maxsize=2)
def dates(train: int, valid: int) -> tuple[Corpus, Corpus, Tokenizer]:
    """Draw pairs of days that differ between the two, and learn one vocabulary.

    Raises:
        MissingExtraError: Babel is not installed.
    """
    corpora = []
    for split, size in (("train", train), ("valid", valid)):
        pairs = generate(split, size=size)
        corpora.append(
            Corpus([p.source for p in pairs], [p.target for p in pairs], f"dates:{split}")
        )
    lines = corpora[0].source + corpora[0].target
    return corpora[0], corpora[1], Tokenizer.train(lines, PairTokenizerConfig(size=600))


def translating_dates(
    train: int, valid: int, config: TranslateTrainConfig, *, seed: int
) -> tuple[TranslateTask, int]:
    """Make the task, and say how large its vocabulary is."""
    known, unseen, tokenizer = dates(train, valid)
    both = Tokenizers(tokenizer, tokenizer)
    task = TranslateTask(known, unseen, both, config, EvaluateConfig(metrics=("exact",)), seed=seed)
    return task, len(tokenizer)

"""The synthetic date corpus as a translation task of experiments: English to Korean."""

from functools import lru_cache

from manyheads.asks.evaluate_request import EvaluateConfig
from manyheads.data.synthetic.dates import generate
from manyheads.data.text.corpus import Corpus
from manyheads.data.tokenizers.tokenizer import PairTokenizerConfig, Tokenizer, Tokenizers
from manyheads.tasks.translate.recipe import TranslateTrainConfig
from manyheads.tasks.translate.task import TranslateTask


@lru_cache(maxsize=2)
def dates(train: int, valid: int) -> tuple[Corpus, Corpus, Tokenizer]:
    """Generate training and validation pairs with different days, and learn a shared vocabulary."""
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
    """Build the task; return it and the size of its vocabulary."""
    known, unseen, tokenizer = dates(train, valid)
    both = Tokenizers(tokenizer, tokenizer)
    task = TranslateTask(known, unseen, both, config, EvaluateConfig(metrics=("exact",)), seed=seed)
    return task, len(tokenizer)

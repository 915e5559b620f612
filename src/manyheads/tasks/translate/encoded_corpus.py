"""The token ids of a corpus that does not fit into memory, in files of the run folder."""

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

from manyheads.data.text.corpus import Corpus, StreamedCorpus
from manyheads.data.tokenizers.token_store import TokenStore, encode_on_disk
from manyheads.data.tokenizers.tokenizer import TokenizerConfig
from manyheads.fit.inputs import digest
from manyheads.project.sentencepiece_files import Vocabularies, tokenizers
from manyheads.recipe_data.text_data import PairData
from manyheads.train.ranks import on_first


def encoded_corpus(
    corpus: Corpus | StreamedCorpus,
    vocabularies: Vocabularies,
    data: PairData,
    tokenizer: TokenizerConfig,
    cache: Path,
    say: Callable[[str], None],
    *,
    texts: bool,
) -> TokenStore | None:
    """Encode a large corpus into files, or find them; None for one that fits into memory.

    `texts` keeps the texts too, for segmentations and noise that are drawn in each epoch.
    """
    if isinstance(corpus, Corpus):
        return None
    say(f"encoding {corpus.origin} into {cache}")

    def pairs() -> Iterator[tuple[str, str]]:
        for number, pair in enumerate(corpus.pairs(), 1):
            yield pair
            if number % 1_000_000 == 0:
                say(f"encoded {number:,} pairs")

    columns = data.model_dump_json(
        include={"source", "target", "source_column", "target_column", "exclude"}
    )
    models = [hashlib.sha256(each.model).hexdigest() for each in vocabularies.values()]
    key = digest(*corpus.hashes, *models, columns, f"texts={texts}, {tokenizer}")

    def encoded() -> TokenStore:
        return encode_on_disk(pairs(), tokenizers(vocabularies, tokenizer), cache, key, texts=texts)

    on_first(lambda: encoded() and None)
    return encoded()  # which finds the files

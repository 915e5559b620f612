"""Which attention follows words of known origin: planted ones are found, and that of dates."""

from collections.abc import Sequence
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor, nn

import manyheads
from manyheads.data.synthetic.dates import generate
from manyheads.data.text.corpus import Corpus
from manyheads.data.text.word_links import Link
from manyheads.data.tokenizers.tokenizer import Piece, Tokenizers
from manyheads.errors import UsageError
from manyheads.lens.measures.alignment_head import AlignmentHead, Errors, choose
from manyheads.models.seq2seq import Seq2Seq, Seq2SeqConfig
from manyheads.models.transformer import Transformer, TransformerConfig
from manyheads.nn.attention.recurrent_attention import record_scores
from manyheads.nn.recording.attention_record import AttentionContext
from manyheads.nn.recording.trace import LayerId
from manyheads.tasks.translate.predictor import Translator
from manyheads.tasks.translate.word_alignment import alignment_errors, known_links, reads_source

PAD, START, END = 0, 1, 2
LETTERS = "abcdefgh"  # the tokens from 3 on
WORDS = ["ab", "hgfedcba", "c", "", "face", "deaf"] * 10  # more than a batch, of many lengths


class Letters:
    """Every letter is a token."""

    def __len__(self) -> int:
        return 3 + len(LETTERS)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        return [[3 + LETTERS.index(letter) for letter in text] for text in texts]

    def decode(self, sequences: Sequence[Sequence[int]]) -> list[str]:
        return ["".join(map(self.piece, tokens)) for tokens in sequences]

    def piece(self, token: int) -> str:
        return LETTERS[token - 3]

    def pieces(self, text: str) -> list[Piece]:
        (ids,) = self.encode([text])
        return [Piece(text[n], token, n, n + 1) for n, token in enumerate(ids)]


class Backwards(nn.Module):
    """Spells backwards: layer 1 looks, in its second head, at the letter that is to be written.

    Layer 2 looks there one step later, and more at the end, which is not counted, than at letters.
    """

    config = SimpleNamespace(pad=PAD, start=START, end=END)

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))  # which says where the model is

    def forward(self, source: Tensor, target: Tensor, scored: Tensor) -> None:
        steps, places = torch.arange(target.shape[1]), torch.arange(source.shape[1])
        lengths = (source > END).sum(dim=1)[:, None, None]
        now = (places == lengths - 1 - steps[:, None]).float()  # batch, step, place
        end = (places == lengths).float()
        nowhere = torch.ones_like(now)
        record_scores(
            9 * torch.stack((nowhere, now), 1),
            context=AttentionContext(LayerId("decoder", 0, "cross")),
        )
        late = 5 * now.roll(1, dims=1) + 9 * end
        record_scores(
            torch.stack((late, nowhere), 1),
            context=AttentionContext(LayerId("decoder", 1, "cross")),
        )


def backwards(text: str) -> list[Link]:
    length = len(text)
    return [Link((n, n + 1), ((length - 1 - n, length - n),)) for n in range(length)]


def errors(links: list[list[Link]]) -> dict[AlignmentHead, Errors]:
    outputs = [word[::-1] for word in WORDS]
    tokenizers = Tokenizers(Letters(), Letters())
    return alignment_errors(Backwards(), tokenizers, WORDS, outputs, links)


def test_planted_heads_are_found() -> None:
    """In batches of texts of many lengths; each letter is a reference, and is counted once."""
    found = errors(list(map(backwards, WORDS)))
    assert len(found) == 2 * (4 + 2 + 1)
    assert {each.of for each in found.values()} == {sum(map(len, WORDS))}
    assert found[AlignmentHead(layer=0, head=1)].wrong == 0
    assert found[AlignmentHead(layer=1, head=0, late=True)].wrong == 0
    assert found[AlignmentHead(layer=1, head=0)].wrong > 0
    assert found[AlignmentHead(layer=0, head=0)].wrong > 0  # the first letter is read everywhere
    assert choose(found) == AlignmentHead(layer=0)  # of equals, the mean of the layer


def test_a_link_of_several_tokens_is_one_reference() -> None:
    """Two letters that come from two: wrong as soon as one of them is."""
    links = [
        [Link((0, 2), ((len(word) - 2, len(word)),))] if len(word) > 1 else [] for word in WORDS
    ]
    found = errors(links)
    assert found[AlignmentHead(layer=0, head=1)] == Errors(0, 40)
    assert found[AlignmentHead(layer=0, head=0)] == Errors(
        30, 40
    )  # right for "ab", where both are all


def test_a_model_that_reads_its_source_once_offers_none() -> None:
    config = Seq2SeqConfig(vocabulary=11, dim=4, hidden_size=4, attention="none")
    blind = Seq2Seq(config).eval()
    assert not reads_source(blind)
    with pytest.raises(UsageError, match="no attention over the source"):
        alignment_errors(blind, Tokenizers(Letters(), Letters()), ["a"], ["a"], [backwards("a")])
    assert reads_source(Seq2Seq(Seq2SeqConfig(vocabulary=11, dim=4, hidden_size=4)))
    small = TransformerConfig(
        vocabulary=11, dim=4, heads=1, ffn_dim=4, encoder_layers=1, decoder_layers=1
    )
    assert reads_source(Transformer(small))


def dates(split: str, size: int) -> Corpus:
    pairs = generate(split, size=size)
    return Corpus(
        [pair.source for pair in pairs],
        [pair.target for pair in pairs],
        f"dates:{split}",
        links=[pair.links for pair in pairs],
    )


def wrong_numbers(corpus: Corpus) -> Errors:
    """How often the shipped date translator's own choice names a wrong word for a number."""
    translator = manyheads.load("date-en-ko")
    assert isinstance(translator, Translator)
    assert translator.alignment is not None
    reader = translator.alignment.reader
    outputs = translator(corpus.source)
    links = [
        [link for link in found if output[slice(*link.target)].isdigit()]
        for found, output in zip(known_links(corpus, outputs), outputs, strict=True)
    ]
    assert sum(map(bool, links)) > 0.95 * len(corpus)  # the outputs that are right
    (found,) = alignment_errors(
        translator.model, translator.tokenizers, corpus.source, outputs, links, lambda _: [reader]
    ).values()
    return found


def test_numbers_of_dates_come_from_the_right_words() -> None:
    """T4: >= 95% of output numbers, by the attention that validation dates have chosen."""
    found = wrong_numbers(dates("valid", 66))
    assert found.of > 200
    assert found.percent <= 5


@pytest.mark.full
def test_numbers_of_test_dates_come_from_the_right_words() -> None:
    """The same on dates that nothing was chosen on: docs/results.md has the figure."""
    found = wrong_numbers(dates("test", 3300))
    assert found.of > 11_000
    assert found.percent <= 5

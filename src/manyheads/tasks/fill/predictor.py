"""Masked language models: a stored one, called with texts that have blanks."""

from collections.abc import Callable, Sequence

from manyheads.asks.fill_request import FillAnswer, FillRequest, Proposal
from manyheads.asks.load_options import LoadOptions
from manyheads.data.tokenizers.tokenizer import END
from manyheads.models.masked_lm import MaskedLanguageModel
from manyheads.predict.text_reader import TextInput, TokenOutput, TokenPredictor, check_texts
from manyheads.predict.unusual import unknown_note
from manyheads.project.folder import ModelFolder
from manyheads.tasks.fill.task import BLANK, MASK, Filling, encode_masked, fill, masked_pieces


class MaskFiller(TokenPredictor):
    """Call it with a text in which <mask> stands for a token."""

    request = FillRequest
    model: MaskedLanguageModel

    def __init__(self, folder: ModelFolder, options: LoadOptions = LoadOptions()) -> None:
        super().__init__(folder, options)
        self.tokenizer = folder.tokenizers().source

    @property
    def pieces(self) -> Sequence[Callable[[int], str]]:
        """Of the one vocabulary."""
        return (self.tokenizer.piece,)

    def read_tokens(self, text: str) -> TextInput:
        """Split a text, its end included; <mask> is one token."""
        pieces = masked_pieces(self.tokenizer, text)
        ids = [*encode_masked(self.tokenizer, text), END]
        names = [BLANK if token == MASK else self.tokenizer.piece(token) for token in ids]
        return TextInput(ids, names, [*([piece.begin, piece.end] for piece in pieces), None])

    def outputs(self, text: str, ids: Sequence[int], best: Sequence[int]) -> TokenOutput:
        """Give the most probable token at every place; the answer has it where <mask> was."""
        filled = [found if token == MASK else token for token, found in zip(ids, best, strict=True)]
        names = [self.tokenizer.piece(token) for token in best]
        return TokenOutput(list(best), names, self.tokenizer.decode([filled])[0])

    def __call__(self, text: str) -> str:
        """Fill every <mask> of a text with its most probable token."""
        return self.fill(text, top=1)[0][0].text

    def respond(self, request: FillRequest) -> list[FillAnswer]:
        """Answer a request: one answer for each of its texts.

        Raises:
            UsageError: a text has no <mask>.
        """
        return [
            FillAnswer(
                text=text,
                blanks=tuple(
                    tuple(Proposal(**proposal._asdict()) for proposal in blank)
                    for blank in self.fill(text, top=request.top)
                ),
                notes=unknown_note(self.tokenizer, text.replace(BLANK, " ")),
            )
            for text in request.texts
        ]

    def fill(self, text: str, *, top: int = 5) -> list[list[Filling]]:
        """Propose the `top` most probable tokens for each <mask> of a text, with probabilities."""
        check_texts([text])
        with self.engine.running():
            return fill(self.model, self.tokenizer, text, top=top)

"""Predictors of language models: continue a prompt, score a text, fill a blank."""

from collections.abc import Callable, Sequence

from manyheads.app.predictors.text_predictor import TextPredictor
from manyheads.app.predictors.text_reader import (
    TextInput,
    TokenOutput,
    TokenPredictor,
    check_seed,
    check_texts,
)
from manyheads.app.predictors.unusual import unknown_note
from manyheads.app.project.folder import ModelFolder
from manyheads.asks.fill_request import FillAnswer, FillRequest, Proposal
from manyheads.asks.generate_request import Continuation, GenerateAnswer, GenerateRequest
from manyheads.asks.load_options import LoadOptions
from manyheads.data.tokenizers.tokenizer import END, START
from manyheads.decode.sampling import Sampling
from manyheads.models.causal_lm import CausalLanguageModel
from manyheads.models.masked_lm import MaskedLanguageModel
from manyheads.tasks.language import (
    BLANK,
    MASK,
    Completion,
    Filling,
    ScoredToken,
    complete,
    encode_masked,
    fill,
    masked_pieces,
    token_scores,
)
from manyheads.tasks.token_details import spans


class Generator(TextPredictor, TokenPredictor):
    """Call it with a prompt or a list of prompts."""

    request = GenerateRequest
    model: CausalLanguageModel

    def __init__(self, folder: ModelFolder, options: LoadOptions = LoadOptions()) -> None:
        super().__init__(folder, options)
        self.tokenizer = folder.tokenizers().target

    @property
    def pieces(self) -> Sequence[Callable[[int], str]]:
        """Of the one vocabulary."""
        return (self.tokenizer.piece,)

    def read_tokens(self, text: str) -> TextInput:
        """Split a text, behind the start token."""
        ids = [START, *self.tokenizer.encode([text])[0]]
        names = [self.tokenizer.piece(token) for token in ids]
        return TextInput(ids, names, [None, *spans(self.tokenizer, text)])

    def outputs(self, text: str, ids: Sequence[int], best: Sequence[int]) -> TokenOutput:
        """Give the next tokens of the text itself, and what is most probable behind it."""
        output = [*ids[1:], best[-1]]
        names = [self.tokenizer.piece(token) for token in output]
        return TokenOutput(output, names, self(text), given=len(ids) - 1)

    def answers(self, texts: Sequence[str]) -> list[str]:
        """Continue each prompt greedily; the prompt is part of the answer."""
        return [best.text for best, *_ in self.complete(texts)]

    def respond(self, request: GenerateRequest) -> list[GenerateAnswer]:
        """Answer a request: one answer for each of its texts."""
        found = self.complete(
            request.texts,
            tokens=request.tokens,
            beams=request.beams or 1,
            sampling=request.sampling,
            n_best=request.n_best,
            seed=request.seed,
        )
        return [
            GenerateAnswer(
                prompt=prompt,
                texts=tuple(
                    Continuation(
                        text=each.text,
                        log_probability=each.log_probability,
                        finished=each.finished,
                    )
                    for each in best
                ),
                notes=unknown_note(self.tokenizer, prompt),
            )
            for prompt, best in zip(request.texts, found, strict=True)
        ]

    def complete(
        self,
        prompts: Sequence[str],
        *,
        tokens: int = 64,
        beams: int = 1,
        sampling: Sampling | None = None,
        n_best: int = 1,
        seed: int = 1,
    ) -> list[list[Completion]]:
        """Continue each prompt by at most so many tokens.

        Args:
            prompts: raw texts; an empty one begins a text of its own.
            tokens: the most that are written.
            beams: of a search for the most probable continuation, 1 is greedy; at least n_best.
            sampling: draw from this distribution instead of searching.
            n_best: continuations a prompt: so many draws, or the best of the beams.
            seed: of the draws; what is drawn for a prompt depends on this and the prompt alone.
        """
        check_texts(prompts)
        check_seed(seed)
        with self.engine.running():
            return complete(
                self.model,
                self.tokenizer,
                prompts,
                tokens=tokens,
                beams=beams,
                sampling=sampling,
                n_best=n_best,
                seed=seed,
            )

    def score(self, texts: Sequence[str]) -> list[list[ScoredToken]]:
        """Say how likely each token of each text is after those before it, its end included.

        The sum of a text's log-probabilities is that of the text; the exponential of minus their
        mean is its perplexity.
        """
        check_texts(texts)
        with self.engine.running():
            return token_scores(self.model, self.tokenizer, texts)


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

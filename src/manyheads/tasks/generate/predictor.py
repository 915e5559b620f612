"""Language models: a stored one, called with beginnings of texts."""

from collections.abc import Callable, Sequence

from manyheads.asks.generate_request import Continuation, GenerateAnswer, GenerateRequest
from manyheads.asks.load_options import LoadOptions
from manyheads.data.tokenizers.tokenizer import START
from manyheads.decode.sampling import Sampling
from manyheads.generation.token_details import spans
from manyheads.models.causal_lm import CausalLanguageModel
from manyheads.predict.text_reader import (
    TextInput,
    TextPredictor,
    TokenOutput,
    TokenPredictor,
    check_seed,
    check_texts,
)
from manyheads.predict.unusual import unknown_note
from manyheads.project.folder import ModelFolder
from manyheads.tasks.generate.task import Completion, ScoredToken, complete, token_scores


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
        completions = self.complete(
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
                        text=each.text, log_probability=each.log_probability, finished=each.finished
                    )
                    for each in best
                ),
                notes=unknown_note(self.tokenizer, prompt),
            )
            for prompt, best in zip(request.texts, completions, strict=True)
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

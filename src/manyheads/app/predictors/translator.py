"""Translators: a stored encoder-decoder, called with raw text."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from manyheads.app.predictors.predictor import LoadOptions
from manyheads.app.predictors.text_predictor import TextPredictor
from manyheads.app.predictors.text_reader import TextInput, check_seed, check_texts
from manyheads.app.project.alignment import stored
from manyheads.app.project.folder import ModelFolder
from manyheads.app.requests import (
    SourceToken,
    TranslateAnswer,
    TranslatedText,
    TranslatedToken,
    TranslateRequest,
    changed,
)
from manyheads.errors import UsageError
from manyheads.tasks.decoding import DecodeConfig, Translation, special_ids, translate
from manyheads.tasks.token_details import OutputToken, spans


class Translator(TextPredictor):
    """Call it with a text or a list of texts."""

    def __init__(
        self,
        folder: ModelFolder,
        languages: tuple[str, str],
        decode: DecodeConfig,
        options: LoadOptions = LoadOptions(),
    ) -> None:
        """Load a translator.

        Args:
            folder: of the model.
            languages: codes of source and target.
            decode: how to search unless told otherwise: the recipe's [decode] table.
            options: engine, device, threads.
        """
        super().__init__(folder, options)
        self.source, self.target = languages
        self.decode = decode
        self.tokenizers = folder.tokenizers()
        self.alignment = stored(folder)  # the attention head that aligns words with the source

    @property
    def pieces(self) -> Sequence[Callable[[int], str]]:
        """Of the source and of the target."""
        return self.tokenizers.source.piece, self.tokenizers.target.piece

    def read_tokens(self, text: str) -> TextInput:
        """Split a source, its end included."""
        sources = self.tokenizers.source
        ids = [*sources.encode([text])[0], special_ids(self.model).end]
        return TextInput(
            ids, [sources.piece(token) for token in ids], [*spans(sources, text), None]
        )

    def encode(self, tokens: Tensor) -> Tensor:
        """Read a source, and the start of a translation."""
        start = torch.full_like(tokens[:, :1], special_ids(self.model).start)
        found: Tensor = self.model(tokens, start)
        return found

    def answers(self, texts: Sequence[str]) -> list[str]:
        """Translate each text."""
        return [best.text for best, *_ in self.translate(texts)]

    def answer(self, request: TranslateRequest) -> list[TranslateAnswer]:
        """Answer a request: one answer for each of its texts.

        Raises:
            UsageError: settings contradict those of the model's [decode] table, or the model has
                no attention to align with.
        """
        found = self.translate(
            request.texts,
            n_best=request.n_best,
            options=request.decode(self.decode),
            prefixes=[request.prefix] * len(request.texts),
            seed=request.seed,
            details=request.probabilities,
            align=request.align,
        )
        return [
            TranslateAnswer(
                source=text,
                translation=best[0].text,
                n_best=tuple(_translated_text(each) for each in best),
            )
            for text, best in zip(request.texts, found, strict=True)
        ]

    def translate(
        self,
        texts: Sequence[str],
        *,
        beams: int | None = None,
        n_best: int = 1,
        options: DecodeConfig | None = None,
        prefixes: Sequence[str] | None = None,
        constraints: Sequence[Sequence[Sequence[int]]] | None = None,
        seed: int = 1,
        details: bool = False,
        align: bool = False,
    ) -> list[list[Translation]]:
        """Return the n_best translations of each text with their scores.

        Args:
            texts: raw texts.
            beams: of the search, 1 is greedy; that of the options if None.
            n_best: translations a text; more than `beams` widen the search.
            options: how to search; the recipe's [decode] table if None.
            prefixes: for each text what its translations begin with.
            constraints: for each text sequences of target tokens that its translations contain.
            seed: of sampling.
            details: describe the tokens of each translation.
            align: with the token of the text that each comes from.
        """
        check_texts(texts)
        check_seed(seed)
        options = self.decode if options is None else options
        if (beams is not None and beams < 1) or n_best < 1:
            raise UsageError(f"beams is {beams} and n_best {n_best}: both must be at least 1.")
        if beams is not None:
            options = changed(options, beams=beams)
        with self.engine.running():
            return translate(
                self.model,
                self.tokenizers,
                texts,
                options,
                n_best=n_best,
                prefixes=None if prefixes is None else self.tokenizers.target.encode(prefixes),
                constraints=constraints,
                seed=seed,
                details=details,
                align=align,
                reader=None if self.alignment is None else self.alignment.reader,
            )


def _translated_text(translation: Translation) -> TranslatedText:
    details = translation.details
    return TranslatedText(
        text=translation.text,
        score=translation.score,
        finished=translation.finished,
        tokens=None if details is None else tuple(map(_translated_token, details)),
    )


def _translated_token(token: OutputToken) -> TranslatedToken:
    """Round what is told of a token."""
    source = None
    if token.source is not None and token.share is not None:
        piece, share = token.source, round(token.share, 4)
        source = SourceToken(token=piece.text, begin=piece.begin, end=piece.end, share=share)
    return TranslatedToken(
        token=token.text,
        probability=round(token.probability, 6),
        begin=token.begin,
        end=token.end,
        source=source,
    )

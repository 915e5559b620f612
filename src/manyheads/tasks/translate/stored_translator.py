"""What is stored with a translator besides its weights, and the notes on its translations."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from manyheads.decode.loops import loops
from manyheads.predict.changed_numbers import changed_numbers, numbers_of
from manyheads.predict.fewer_sentences import fewer_sentences
from manyheads.predict.source_text import SourceText, read_source
from manyheads.predict.unusual import reasons, unsure_of_translation, without_numbers
from manyheads.project.domain import stored_domain

if TYPE_CHECKING:
    from manyheads.asks.decode_config import DecodeConfig
    from manyheads.data.tokenizers.tokenizer import Tokenizers
    from manyheads.generation.text_decoding import Translation
    from manyheads.project.folder import ModelFolder


class StoredTranslator:
    """Reads sources and writes notes; a server does so where the weights are not loaded."""

    folder: "ModelFolder"

    def read_folder(self, folder: "ModelFolder", tokenizers: "Tokenizers") -> None:
        """Read what is stored.

        Raises:
            FolderError: the limits of usual texts are damaged.
        """
        self.folder = folder
        self.tokenizers = tokenizers
        recipe: Any = folder.recipe
        self.source: str = recipe.data.source  # languages
        self.target: str = recipe.data.target
        self.decode: DecodeConfig = recipe.decode  # how to search unless told otherwise
        self.domain = stored_domain(folder)  # what is usual for its texts
        self._numbers = recipe.augment.numbers > 0  # training showed it numbers of all kinds
        config: Any = recipe.config()
        self.longest = int(recipe.train.max_length)  # source tokens in training, the end included
        # Positions twice as far as any in training are tried; the rest of a text is left out.
        self.most = min(2 * self.longest, config.token_limit)

    def source_length(self, text: str) -> int:
        """Count the tokens of a source, its end included."""
        return len(self.tokenizers.source.encode([text])[0]) + 1

    def read_source(self, text: str, *, recase: bool | None = None) -> SourceText:
        """Return a text as the model reads it; `recase` is that of the [decode] table if None."""
        recase = self.decode.recase if recase is None else recase
        return read_source(text, self.tokenizers.source, self.most, recase=recase)

    def notes(
        self,
        text: str,
        best: "Translation",
        options: "DecodeConfig | None" = None,
        *,
        searched: bool = True,
    ) -> Iterator[str]:
        """Say what to know about a translation: what was changed, and what is unusual.

        Args:
            text: raw text.
            best: its best translation.
            options: those of the search.
            searched: nothing was demanded of the translation, such as a prefix.
        """
        options = self.decode if options is None else options
        if not text.strip():
            return
        source = self.read_source(text, recase=options.recase)
        if source.left_out:
            yield (
                f"only the first {len(source.text):,} of {len(text):,} characters were translated: "
                f"a text may have {self.most} tokens. `file` translates long lines sentence by "
                "sentence."
            )
        elif len(text.encode()) >= self.longest:  # hardly ever more tokens than bytes
            tokens = self.source_length(source.text)
            if tokens > self.longest:
                yield (
                    f"it has {tokens} tokens, more than any in training ({self.longest}): `file` "
                    "translates long lines sentence by sentence."
                )
        if source.capitals:
            yield (
                "it is written in capitals, which the model does not know: it was translated in "
                "sentence case. `recase=False` leaves it as it is."
            )
        if why := "; ".join(self._reasons(source.text, best)):
            yield (
                f"it is unlike what {self.folder.name} was trained on "
                f"({self.folder.recipe.data.train}): {why}. Check the translation."
            )
        missing, new = changed_numbers(source.text, best.text, self.target)
        if missing and searched:
            instead = f", {', '.join(new)} instead" if new else ""
            yield (
                f"its numbers are not those of the text: {', '.join(missing)} missing{instead}. "
                "Check the translation."
            )
        if fewer := fewer_sentences(source.text, best.text, self.source):
            yield (
                f"it has {fewer[0]} sentences and the translation {fewer[1]}: something may be "
                "left out. `file` translates sentence by sentence."
            )
        unsure = unsure_of_translation(self.folder.name, best, self.domain)
        if unsure and searched and not options.sample:  # drawn or forced: as was asked for
            yield f"{unsure}. Check it."
        if options.max_loop and loops(best.tokens, options.max_loop):
            yield "the translation repeats itself."
        if not best.finished:
            yield "the translation was cut off at the length limit."

    def unusual(self, text: str, best: "Translation") -> bool:
        """Tell whether a text, as the model reads it, or its best translation is noted."""
        unsure = unsure_of_translation(self.folder.name, best, self.domain)
        return bool(unsure) or any(self._reasons(text, best))

    def measured(self, text: str, translation: str) -> str:
        """Return the text that the limits of usual ones are for; `text` is as the model reads it.

        Its numbers are usual if training showed all kinds of them and the translation says them.
        """
        said = self._numbers and numbers_of(text).keys() <= numbers_of(translation).keys()
        return without_numbers(text) if said else text

    def _reasons(self, text: str, best: "Translation") -> Iterator[str]:
        measured = self.measured(text, best.text)
        return reasons(self.tokenizers.source, measured, best, self.domain)

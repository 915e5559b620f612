"""The [data] tables of recipes: where the data of a task come from."""

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, model_validator

from manyheads.app.project.recipe import DataTable, Recipe
from manyheads.data.augment.augment import Augmentation
from manyheads.data.images.caption_collector import CaptionColumns
from manyheads.data.images.image_set import Preprocessing
from manyheads.data.text.languages import is_language_code


class PairData(DataTable):
    """Parallel text: "dates:SPLIT" is generated, everything else is a path."""

    has_pairs = True

    valid: str
    source: str
    target: str
    # Further corpora, trained on together with `train`; one that is named n times counts n times.
    additional: tuple[str, ...] = ()
    # Corpora, or .tsv files with any number of columns, of which no line may be trained on.
    exclude: tuple[str, ...] = ()
    source_column: int | str | None = None  # of a table; None: named by the language, or the first
    target_column: int | str | None = None

    @model_validator(mode="after")
    def _generated_data_alone(self) -> Self:
        if self.train.startswith("dates:") and (self.additional or self.exclude):
            raise ValueError("additional and exclude are for corpora in files, not for dates:")
        return self

    @property
    def language_pair(self) -> tuple[str, str]:
        """Those of the two sides."""
        return self.source, self.target

    @property
    def columns(self) -> tuple[int | str | None, int | str | None]:
        """Columns of a table: source and target."""
        return self.source_column, self.target_column


class ImageData(DataTable):
    """Images.

    Folders, tables (.csv, .tsv, .jsonl), .parquet and .tar files (a pattern with *), a name on the
    hub, or "digits". Without labels, a folder needs no class folders.
    """

    has_images = True

    valid: str | None = None  # else hold_out images of train
    hold_out: int = Field(default=0, ge=0)
    random_state: int = Field(default=0, ge=0)
    image: str = "image"  # column of a table
    label: str = "label"
    # What to do about an image that cannot be read: stop there, or leave it out. To leave them out
    # every image is opened once at the beginning.
    on_error: Literal["stop", "skip"] = "stop"

    @property
    def columns(self) -> tuple[str, str | None]:
        """Columns of a table: images, and labels if they are read."""
        return self.image, None

    @property
    def label_separator(self) -> str | None:
        """Text between the labels of one image; None: one label per image."""
        return None

    def split_name(self, split: str) -> str | None:
        """Name a split; images held out of the training data have no name of their own."""
        if split == "valid" and self.valid is None:
            return f"{self.hold_out:,} images of {self.train}"
        return super().split_name(split)


class LabelledImageData(ImageData):
    """Images with their classes."""

    multi_label: bool = False  # any number of classes per image
    separator: str = Field(default=";", min_length=1)  # between them, in a text

    @property
    def columns(self) -> tuple[str, str | None]:
        """Columns of a table: images and labels."""
        return self.image, self.label

    @property
    def label_separator(self) -> str | None:
        """Text between the labels of one image; None: one label per image."""
        return self.separator if self.multi_label else None


def _language_code(text: str) -> str:
    if not is_language_code(text):
        raise ValueError(f"{text!r:.50} is not the code of a language, such as en or pt-BR")
    return text


Language = Annotated[str, AfterValidator(_language_code)]
Column = Annotated[str, StringConstraints(min_length=1)]


def _columns(value: object) -> object:
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list | tuple) or not value:
        raise ValueError(f"{value!r:.50} is neither a column nor a list of columns")
    return value


Columns = Annotated[tuple[Column, ...], BeforeValidator(_columns)]


class CaptionData(ImageData):
    """Images with texts in one or several languages.

    Folders of images with .txt files beside them, tables (.csv, .tsv, .jsonl), .parquet and .tar
    files (a pattern with *), COCO's .json, or a name on the hub. A name with [column=value] behind
    it has these rows of a table only: "noto72.parquet[split=train]".

    Tables whose texts are in columns of their languages name them in `texts`. All other data have
    one column of texts, and one language or a column of it.
    """

    has_captions = True

    texts: Mapping[Language, Columns] = {}  # for each language its columns, of texts or lists
    caption: Column | None = None  # else "caption"
    language: Language | None = None  # else "en"
    language_column: Column | None = None
    # That language_column, or the names of text files, may name; empty: all that they do.
    languages: tuple[Language, ...] = ()
    images: str | None = None  # folder of the images that a table or COCO's file names

    @property
    def language_pair(self) -> tuple[str | None, None]:
        """That of the texts, if it is one."""
        return self.language, None

    @property
    def drawn(self) -> bool:
        """Whether there are texts only, and images are drawn of them."""
        return False

    @model_validator(mode="after")
    def _one_way_to_name_texts(self) -> Self:
        others = ("caption", "language", "language_column", "languages")
        if self.texts and (given := [key for key in others if getattr(self, key)]):
            raise ValueError(
                f"texts names the columns of each language, so leave out {' and '.join(given)}"
            )
        if self.language is not None and self.language_column is not None:
            raise ValueError("the language is either the same for all texts or in a column")
        if self.languages and self.language_column is None:
            default = self.language or "en"
            if default not in self.languages:
                raise ValueError(f"languages lacks {default}, the language of texts without one")
        return self

    @property
    def caption_columns(self) -> CaptionColumns:
        """Columns of a table: images, texts and their languages."""
        return CaptionColumns(
            image=self.image,
            texts=self.texts or None,
            caption=self.caption or "caption",
            default_language=self.language or "en",
            language=self.language_column,
            languages=self.languages,
            named=bool(self.texts or self.caption or self.language_column),
        )


class ReadData(CaptionData):
    """Printed lines and their texts: images of lines, or texts that are drawn in `fonts`.

    Texts are the lines of a text file, or `column` of a .tsv file.
    """

    has_images = False  # not of one size

    fonts: str | None = None  # folder of .ttf and .otf files
    held_out_fonts: tuple[str, ...] = ()  # names of fonts not trained on: of the test lines
    valid_fonts: tuple[str, ...] = ()  # likewise, of the validation lines; () is those of training
    column: int | None = Field(default=None, ge=1)
    # Another column to draw lines of as well, such as another language, and so many of its texts.
    also_column: int | None = Field(default=None, ge=1)
    also_share: float = Field(default=0.2, gt=0, le=1)
    # Share of training lines whose letters and digits are replaced by random ones, so that what is
    # printed counts and not only what is likely.
    random_share: float = Field(default=0.0, ge=0, le=1)

    @property
    def drawn(self) -> bool:
        """Whether there are texts only, and images are drawn of them."""
        return self.fonts is not None

    @model_validator(mode="after")
    def _fonts_for_texts(self) -> Self:
        of_fonts = ("held_out_fonts", "valid_fonts", "column", "also_column")
        if self.fonts is None and (given := [key for key in of_fonts if getattr(self, key)]):
            raise ValueError(
                f"{' and '.join(given)} without fonts: name the folder of fonts to draw texts in, "
                "or leave them out to learn from images of lines"
            )
        if self.fonts is not None and self.valid is None:
            raise ValueError("valid is missing: the texts of the validation lines")
        return self


class SentenceData(DataTable):
    """Single sentences: text files, one sentence a line."""

    valid: str
    column: int | None = Field(default=None, ge=1)  # of a .tsv file


class LanguageData(SentenceData):
    """Sentences of a language model."""

    # Files that the vocabulary is learned from; data.train if empty. A language model that is to
    # start a translator with one vocabulary for both languages learns it from both.
    vocabulary: tuple[str, ...] = ()


class ImageRecipe(Recipe):
    """Fields that recipes of image models share."""

    data: ImageData
    image: Preprocessing = Preprocessing()
    augment: Augmentation = Augmentation()

    @model_validator(mode="after")
    def _shifts_within_the_image(self) -> Self:
        side = min(self.image.height, self.image.width)
        if self.augment.shift >= side:
            raise ValueError(
                f"augment.shift is {self.augment.shift}, but the images have only {side} pixels in "
                "a direction: choose fewer"
            )
        return self

    def derived(self) -> dict[str, int]:
        """Size and channels of the images."""
        return {
            "channels": self.image.channels,
            "height": self.image.height,
            "width": self.image.width,
        }


class CaptionRecipe(ImageRecipe):
    """Fields that recipes of models of images and texts share."""

    data: CaptionData

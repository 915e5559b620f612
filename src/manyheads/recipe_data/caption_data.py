"""The [data] tables of images with texts."""

from collections.abc import Mapping
from typing import Annotated, Self

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, model_validator

from manyheads.data.images.captioned_images import CaptionColumns
from manyheads.data.text.languages import is_language_code
from manyheads.recipe_data.image_data import ImageData, ImageRecipe


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
        if self.texts and (named := [key for key in others if getattr(self, key)]):
            raise ValueError(
                f"texts names the columns of each language, so leave out {' and '.join(named)}"
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
        default = self.language or "en"
        return CaptionColumns(
            image=self.image,
            texts=self.texts or {default: (self.caption or "caption",)},
            default_language=default,
            language=self.language_column,
            languages=self.languages,
            named=bool(self.texts or self.caption or self.language_column),
        )


class ReadData(CaptionData):
    """Printed lines and their texts: images of lines, or texts that are drawn in `fonts`.

    Texts are the lines of a text file, or `column` of a .tsv file.
    """

    has_images = False  # not of one size

    # Folders of .ttf and .otf files, or patterns such as "fonts/Nanum*.ttf".
    fonts: str | tuple[str, ...] | None = None
    held_out_fonts: tuple[str, ...] = ()  # names of fonts not trained on: of the test lines
    valid_fonts: tuple[str, ...] = ()  # likewise, of the validation lines; () is those of training
    column: int | None = Field(default=None, ge=1)
    # Another column to draw lines of as well, such as another language, and so many of its texts.
    also_column: int | None = Field(default=None, ge=1)
    also_share: float = Field(default=0.2, gt=0, le=1)
    # Share of training lines whose letters and digits are replaced by random ones, so that what is
    # printed counts and not only what is likely.
    random_share: float = Field(default=0.0, ge=0, le=1)
    # Share of training lines that are replaced by made prices, codes, times and addresses.
    code_share: float = Field(default=0.0, ge=0, le=1)

    @property
    def drawn(self) -> bool:
        """Whether there are texts only, and images are drawn of them."""
        return self.fonts is not None

    @model_validator(mode="after")
    def _fonts_for_texts(self) -> Self:
        of_fonts = ("held_out_fonts", "valid_fonts", "column", "also_column")
        if self.fonts is None and (named := [key for key in of_fonts if getattr(self, key)]):
            raise ValueError(
                f"{' and '.join(named)} without fonts: name the folder of fonts to draw texts in, "
                "or leave them out to learn from images of lines"
            )
        if self.fonts is not None and self.valid is None:
            raise ValueError("valid is missing: the texts of the validation lines")
        return self


class CaptionRecipe(ImageRecipe):
    """Fields that recipes of models of images and texts share."""

    data: CaptionData

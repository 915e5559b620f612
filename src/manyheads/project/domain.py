"""What is usual for a model: a translator's texts and outputs, or images; from manyheads.json."""

from pydantic import BaseModel, ConfigDict, Field

from manyheads.project.folder import ModelFolder, store_entry, stored_entry


class Domain(BaseModel):
    """The entry in manyheads.json: limits on sources, and on how sure a translation must be.

    Nearly all validation sources keep the limits on sources, and nearly all right translations that
    on the output. Costs are minus the scores of the vocabulary's pieces, nats if it is a unigram
    vocabulary.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    data: str
    texts: int
    script: str  # of most letters of the sources: LATIN, HANGUL, ...
    foreign: float = Field(ge=0)  # share of a source's letters that belong to another script
    text: float = Field(ge=0)  # cost a character of a source
    word: float = Field(ge=0)  # cost of its most costly word
    unknown: float = Field(ge=0)  # share of its characters that the vocabulary does not have
    output: float = Field(ge=0)  # minus the log-probability a token of its translation
    # Percent of the right and of the wrong validation translations that exceed a limit; None: of
    # an older version, which did not ask what is right.
    noted_right: float | None = None
    noted_wrong: float | None = None


def stored_domain(folder: ModelFolder) -> Domain | None:
    """Read the limits that are stored with a model; None if they were not measured."""
    again = f"Remove the entry; evaluating {folder.path} sets it anew."
    return stored_entry(folder, "domain", Domain, again)


def store_domain(folder: ModelFolder, domain: Domain) -> None:
    """Keep the limits with their model."""
    store_entry(folder, "domain", domain.model_dump())


class ImageDomain(BaseModel):
    """The entry about images: between which limits nearly all training images are.

    What is measured, and its units, are those of `ImageMeasures`.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    data: str
    images: int
    limits: dict[str, tuple[float, float]]


def stored_image_domain(folder: ModelFolder) -> ImageDomain | None:
    """Read the limits on images; None if they were not measured."""
    again = f"Remove the entry; evaluating {folder.path} sets it anew."
    return stored_entry(folder, "image_domain", ImageDomain, again)


def store_image_domain(folder: ModelFolder, domain: ImageDomain) -> None:
    """Keep the limits on images with their model."""
    store_entry(folder, "image_domain", domain.model_dump(mode="json"))

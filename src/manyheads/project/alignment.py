"""The attention head that aligns a translator's words with the source, as manyheads.json has it."""

from pydantic import BaseModel, Field

from manyheads.lens.measures.alignment_head import AlignmentHead, Chosen
from manyheads.project.folder import ModelFolder, stored_entry


class Entry(BaseModel):
    """The entry in manyheads.json; layers and heads count from 1, null is the mean of all."""

    layer: int | None = Field(ge=1)
    head: int | None = Field(ge=1)
    step: str = Field(pattern="^(written|read)$")
    error: float  # percent
    references: int
    usual: float  # percent, of the rule that is used without measuring
    ways: int  # how many were compared
    data: str

    @property
    def chosen(self) -> Chosen:
        """Convert it to what the lens reads."""
        reader = AlignmentHead(
            layer=None if self.layer is None else self.layer - 1,
            head=None if self.head is None else self.head - 1,
            late=self.step == "read",
        )
        why = (
            f"chosen from {self.ways} heads and means of heads by {self.references:,} words of "
            f"{self.data} whose source is known: wrong for {self.error:.1f}% of them, the mean of "
            f"the last layer but one for {self.usual:.1f}%"
        )
        return Chosen(reader=reader, why=why, error=round(self.error / 100, 4))


def stored(folder: ModelFolder) -> Chosen | None:
    """Read the choice that is stored with a model; None if it was not measured."""
    again = f"Remove the entry, or evaluate {folder.path} again with `alignment=True`."
    entry = stored_entry(folder, "alignment", Entry, again)
    return None if entry is None else entry.chosen

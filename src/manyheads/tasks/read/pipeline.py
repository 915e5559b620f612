"""Reading printed lines, whole: drawn or photographed lines, a CTC model, character error rate."""

from manyheads.predict.task_pipeline import Pipeline, Section
from manyheads.project.folder import ModelFolder
from manyheads.tasks.read.predictor import Reader
from manyheads.tasks.read.recipe import ReadRecipe


class ReadPipeline(Pipeline[ReadRecipe, Reader]):
    """Lines with their texts in, a reader out."""

    task = "read"
    recipe = ReadRecipe
    home = "manyheads.tasks.read"
    predictor = Reader
    forward = ("images",)
    members = ("config",)

    def card(self, folder: ModelFolder) -> Section:
        """Languages, and the command."""
        return Section(
            "Reads printed lines of text in images: the text that is on them.",
            f"manyheads read --model {folder.name} line.png",
            "Trained on lines drawn by a program and nothing else: expect more mistakes on "
            "photographs, on handwriting nothing at all.",
        )


PIPELINE = ReadPipeline()

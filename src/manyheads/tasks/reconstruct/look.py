"""What looking shows."""

from manyheads.asks.look_request import LookRequest
from manyheads.errors import UsageError
from manyheads.predict.task_pipeline import Explanation
from manyheads.tasks.reconstruct.predictor import Reconstruction


def look(predictor: Reconstruction, request: LookRequest) -> Explanation:
    """Refuse: it gives no answer to explain."""
    raise UsageError(
        f"{predictor.folder.name} produces no class; there are no maps to show: start a "
        "classifier from it with start.model=FOLDER."
    )

"""The most likely next tokens of every beam, recorded at each step of a search."""

from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor

from manyheads.nn.recording.decode_steps import DecodeStep
from manyheads.nn.recording.trace import LayerId, active
from manyheads.nn.shapes import Scores

CANDIDATES = 5  # next tokens of a beam that are recorded
LAYER_ID = LayerId("search", 0, "candidates")


@dataclass(frozen=True, slots=True, eq=False)
class CandidateRecord:
    """The model's most likely next tokens, before the rules of the search."""

    layer_id: LayerId
    tokens: Int[Tensor, "sentence beam candidate"]  # in order of probability
    log_probabilities: Float[Tensor, "sentence beam candidate"]
    decode_step: DecodeStep


def record_candidates(log_probabilities: Scores, step: DecodeStep) -> None:
    """Record the most likely next tokens, if a recorder is open."""
    trace = active()
    if trace is not None:
        best = log_probabilities.topk(min(CANDIDATES, log_probabilities.shape[-1]))
        trace.add(CandidateRecord(LAYER_ID, best.indices, best.values, step))

"""manyheads fill."""

from manyheads.asks.fill_request import FillAnswer, FillRequest
from manyheads.cli.verbs import asks_texts


@asks_texts(FillRequest, does="fill blanks")
def run(answer: FillAnswer) -> None:
    """Fill each <mask> of texts: the most probable tokens, with probabilities."""
    from manyheads.predict.text_reader import one_line

    for number, blank in enumerate(answer.blanks, 1):
        if len(answer.blanks) > 1:
            print(f"blank {number}")
        for proposal in blank:
            print(f"{proposal.probability:6.1%}  {one_line(proposal.text)}", flush=True)

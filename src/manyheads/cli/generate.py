"""manyheads generate."""

from manyheads.asks.generate_request import GenerateAnswer, GenerateRequest
from manyheads.cli.verbs import asks_texts


@asks_texts(GenerateRequest, does="continue texts")
def run(answer: GenerateAnswer) -> None:
    """Continue texts with a language model: greedily, by beam search, or by sampling."""
    from manyheads.predict.text_reader import one_line

    for each in answer.texts:
        print(one_line(each.text), flush=True)

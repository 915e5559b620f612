"""manyheads tag."""

from manyheads.asks.tag_request import TagAnswer, TagRequest
from manyheads.cli.verbs import asks_texts


@asks_texts(TagRequest, does="space texts")
def run(answer: TagAnswer) -> None:
    """Put spaces into Korean texts; spaces that are there are ignored."""
    print(answer.text, flush=True)

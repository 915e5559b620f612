"""manyheads heads."""

from manyheads.asks.heads_request import HeadsRequest
from manyheads.asks.load_options import LoadOptions


def run(model: str, request: HeadsRequest, load: LoadOptions, json: bool = False) -> None:
    """Measure what every attention head is worth, and how many can go at what cost."""
    from manyheads.cli.printed_answers import print_json, print_tables, warn
    from manyheads.cli.progress import ProgressBar
    from manyheads.measure.head_worth import head_worth
    from manyheads.predict.load import load as load_model

    predictor = load_model(model, **dict(load))
    with ProgressBar() as bar:
        found = head_worth(predictor, request, lambda done, all_: bar.progress(done, all_, {}))
    if json:
        print_json(found.to_json())
        return
    print_tables(found.tables)
    warn(f"{found.examples} examples of {found.data}; 95% intervals of the paired bootstrap")

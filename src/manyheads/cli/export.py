"""manyheads export."""

import shlex

from manyheads.asks.export_request import ExportRequest
from manyheads.cli.printed_answers import print_json, print_tables, warn


def run(request: ExportRequest, model: str, json: bool = False) -> None:
    """Export a model to an engine; keep it only if it answers as on torch."""
    from manyheads.engine_export import export_model
    from manyheads.lens.panels import Cell, Table

    made = export_model(model, request, say=warn)
    if json:
        print_json(made.to_json())
    else:
        parity = made.parity
        print(f"{made.path}: {made.target}, {made.quantization}, {made.size / 1e6:,.1f} MB")
        title = f"{parity.inputs:,} inputs of {parity.data}"
        compared = f"largest difference of {parity.compared}, by the largest logit"
        rows: list[list[Cell]] = [
            [compared, f"{parity.difference:.1e}"],
            ["answers that differ", f"{100 * parity.changed:.1f}%"],
        ]
        if parity.metric is not None:
            rows.append([f"{parity.metric} on torch", f"{parity.before:.2f}"])
            rows.append([f"{parity.metric} on {made.target}", f"{parity.after:.2f}"])
        rows += [[f"seconds on {name}", f"{value:.1f}"] for name, value in parity.seconds.items()]
        print_tables([Table(title, ["", ""], rows)])
        if made.model is not None:
            print(f"Load it with: --model {shlex.quote(str(made.model))} --engine {made.target}")
    for remark in made.remarks:
        warn(remark)
    for failure in made.failures:
        warn(f"fails the parity check, and is kept because of `--force`: {failure}.")

"""manyheads export."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from manyheads.cli.options import Remote

if TYPE_CHECKING:
    from manyheads.app.export import Export


def run(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="Shipped model, folder, or hf:USER/MODEL.")
    ],
    to: Annotated[str, typer.Option(help="What to export to: ctranslate2, onnx, openvino, web.")],
    quantization: Annotated[
        str | None,
        typer.Option(
            help="Type of the numbers, float32 by default: bfloat16, int8; of openvino also auto, "
            "which measures."
        ),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(help="Compare on these data instead of the recipe's validation data."),
    ] = None,
    remote: Remote = False,
    text: Annotated[
        list[str] | None,
        typer.Option(help="Compare on this text instead of data. Repeatable."),
    ] = None,
    limit: Annotated[
        int, typer.Option(min=1, help="Number of inputs to compare, from all over the data.")
    ] = 500,
    calibrate: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Of image models in int8: images to calibrate on."),
    ] = None,
    runtime: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Of web: the unpacked npm package onnxruntime-web; otherwise npm gets it.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder to write a copy of the model to, with the engine in it; a file, where the "
            "target is one. By default the model's own folder; of a shipped model runs/MODEL."
        ),
    ] = None,
    force: Annotated[
        bool,
        typer.Option("--force", help="Keep it although it does not answer as torch; it is marked."),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Export a model to an engine; keep it only if it answers as on torch."""
    from manyheads.app.export import export_model
    from manyheads.app.requests import ExportRequest
    from manyheads.cli.show import print_json, warn

    request = ExportRequest(
        to=to,
        quantization=quantization,
        data=data,
        remote=remote,
        texts=tuple(text or ()),
        limit=limit,
        calibrate=calibrate,
        runtime=runtime,
        out=out,
        force=force,
    )
    made = export_model(model, request, say=warn)
    if json:
        print_json(made.to_json())
    else:
        _print(made)
    for remark in made.remarks:
        warn(remark)
    for failure in made.failures:
        warn(f"fails the parity check, and is kept because of `--force`: {failure}.")


def _print(made: "Export") -> None:
    from manyheads.cli.show import print_tables
    from manyheads.lens.panels import Cell, Table

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

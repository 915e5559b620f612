"""manyheads generate."""

from typing import Annotated

import typer

from manyheads.cli.options import Device, Engine, Sample, Seed, Temperature, Threads, TopK, TopP


def run(
    model: Annotated[str, typer.Option(help="Folder of a model trained to generate.")],
    prompts: Annotated[
        list[str] | None,
        typer.Argument(metavar="PROMPT", help="Beginnings; without any, the lines of stdin."),
    ] = None,
    tokens: Annotated[int, typer.Option(min=1, help="Maximum number of new tokens.")] = 64,
    beam: Annotated[
        int | None, typer.Option(min=1, help="Beam size; greedy search by default.")
    ] = None,
    sample: Sample = False,
    temperature: Temperature = None,
    top_k: TopK = None,
    top_p: TopP = None,
    n_best: Annotated[int, typer.Option(min=1, help="Number of continuations per prompt.")] = 1,
    seed: Seed = 1,
    json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    engine: Engine = "torch",
    device: Device = None,
    threads: Threads = None,
) -> None:
    """Continue texts with a language model: greedily, by beam search, or by sampling."""
    from manyheads.app.load import load_for
    from manyheads.app.predictors.stream import stream
    from manyheads.app.predictors.text_predictor import one_line
    from manyheads.app.requests import GenerateRequest
    from manyheads.cli.show import print_json, warn_of
    from manyheads.cli.texts import texts

    request = GenerateRequest(
        texts=(),
        tokens=tokens,
        beams=beam,
        sample=sample,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        n_best=n_best,
        seed=seed,
    )
    generator = load_for(
        GenerateRequest, model, verb="continue texts", engine=engine, device=device, threads=threads
    )
    answers = stream(generator.answer, request, texts(prompts), 1)
    for number, answer in enumerate(answers, 1):
        warn_of(number, answer.notes)
        if json:
            print_json(answer.to_json())
        else:
            for each in answer.texts:
                print(one_line(each.text), flush=True)

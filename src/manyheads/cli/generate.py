"""manyheads generate."""

from typing import Annotated

import typer


def run(
    model: Annotated[str, typer.Option(help="Folder of a model trained to generate.")],
    prompts: Annotated[
        list[str] | None,
        typer.Argument(metavar="PROMPT", help="Beginnings; without any, the lines of stdin."),
    ] = None,
    tokens: Annotated[int, typer.Option(min=1, help="The most tokens that are written.")] = 64,
    beam: Annotated[int, typer.Option(min=1, help="Beams of the search, 1 is greedy.")] = 1,
    sample: Annotated[
        bool, typer.Option("--sample", help="Draw the words by probability.")
    ] = False,
    temperature: Annotated[
        float | None,
        typer.Option(min=0.01, help="Below 1 draws safer words, above 1 bolder."),
    ] = None,
    top_k: Annotated[
        int | None, typer.Option(min=1, help="Draw from so many likeliest tokens.")
    ] = None,
    top_p: Annotated[
        float | None,
        typer.Option(
            min=0.01, max=1, help="Draw from the likeliest with this probability together."
        ),
    ] = None,
    n_best: Annotated[int, typer.Option(min=1, help="Continuations a prompt.")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="Another one draws others.")] = 1,
    json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """Continue texts with a language model: greedily, by beam search, or by drawing."""
    from manyheads.app.language import Generator
    from manyheads.app.predict import load
    from manyheads.app.texts import one_line
    from manyheads.cli.show import other_use, print_json
    from manyheads.cli.texts import texts
    from manyheads.decode.sample import Sampling
    from manyheads.errors import UsageError

    generator = load(model)
    if not isinstance(generator, Generator):
        raise UsageError(f"{model} does not generate text: {other_use(generator)}")
    drawn = sample or any(each is not None for each in (temperature, top_k, top_p))
    sampling = Sampling(temperature or 1.0, top_k, top_p or 1.0) if drawn else None
    for prompt in texts(prompts):
        (found,) = generator.complete(
            [prompt], tokens=tokens, beams=beam, sampling=sampling, n_best=n_best, seed=seed
        )
        if json:
            written = [
                {
                    "text": each.text,
                    "log_probability": each.log_probability,
                    "finished": each.finished,
                }
                for each in found
            ]
            print_json({"prompt": prompt, "texts": written})
        else:
            for each in found:
                print(one_line(each.text), flush=True)

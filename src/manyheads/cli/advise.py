"""manyheads advise."""

import shlex
from dataclasses import asdict
from pathlib import Path

COLOURS = {1: "grey", 3: "colour"}


def run(
    data: str,
    image: str = "image",
    label: str = "label",
    multi_label: bool = False,
    json: bool = False,
) -> None:
    """Recommend a recipe for images or texts on this machine, from what was measured."""
    from manyheads.cli.init import show
    from manyheads.cli.printed_answers import print_json
    from manyheads.fit.recommendation import advise
    from manyheads.own_data.own_data import are_texts

    if are_texts(data):
        from manyheads.own_data.prepared import Options
        from manyheads.own_data.tables import prepare_table

        prepared = prepare_table(Path(data), Path("mine"), Options())
        show(prepared, json=json, command=shlex.join(["manyheads", "init", data]))
        return

    advice = advise(data, image=image, label=label, multi_label=multi_label)
    if json:
        print_json(asdict(advice))
        return
    facts, machine = advice.facts, advice.machine
    print(
        f"{data}: {facts.images:,} images, {facts.classes} classes ({facts.rarest:,} to "
        f"{facts.most:,} images each), {facts.side} pixels, "
        f"{COLOURS.get(facts.channels, f'{facts.channels} channels')}"
        f"{', several labels an image' if facts.multi_label else ''}"
    )
    gpu = f"{machine.gpu} ({machine.gpu_memory:g} GiB)" if machine.gpu else "no GPU"
    print(f"this machine: {machine.cores} cores, {machine.memory:g} GiB, {gpu}")
    if advice.expected:
        low, high = advice.expected
        print(f"advice: {advice.recipe} ({advice.family}); expect {low:.1f} to {high:.1f}% right")
    else:
        first = (
            f"begin with {advice.recipe} ({advice.family})" if advice.recipe else "measure it here"
        )
        print(f"advice: {first}; what to expect on data like these we have not measured")
    for reason in advice.reasons:
        print(f"- {reason}")
    print(advice.command)

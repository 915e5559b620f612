"""manyheads advise."""

from dataclasses import asdict

COLOURS = {1: "grey", 3: "colour"}


def run(
    data: str,
    image: str = "image",
    label: str = "label",
    multi_label: bool = False,
    json: bool = False,
) -> None:
    """Recommend a recipe for images on this machine, from what we measured ourselves."""
    from manyheads.cli.show import print_json
    from manyheads.fit.recommendation import advise

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

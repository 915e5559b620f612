"""manyheads info."""


def run(model: str, json: bool = False) -> None:
    """Describe a model: its parts, its parameters, how it was trained, what was measured."""
    from manyheads.cli.printed_answers import print_json
    from manyheads.project.model_facts import describe

    facts = describe(model)
    if json:
        print_json(facts)
        return
    for name, value in facts.items():
        if isinstance(value, dict):
            print(f"{name}")
            for key, part in value.items():
                print(f"  {key:<18} {part}")
        else:
            print(f"{name:<20} {value:,}" if isinstance(value, int) else f"{name:<20} {value}")

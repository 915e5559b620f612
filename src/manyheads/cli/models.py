"""manyheads models."""


def run(json: bool = False) -> None:
    """List the shipped models, what each is for, and the licences; recipes and presets."""
    from manyheads.cli.printed_answers import print_json
    from manyheads.cli.recipe import about
    from manyheads.data.text.public_corpora import public_sources
    from manyheads.models.presets import PRESETS
    from manyheads.predict.task_pipeline import pipeline_of
    from manyheads.project.base_recipe import read_recipe
    from manyheads.project.folder import ModelFolder
    from manyheads.project.paths import find_recipe, shipped

    models = shipped("pretrained")
    listed = {"models": list(models), "recipes": list(shipped("recipes")), "presets": list(PRESETS)}
    licences = {
        name: {
            each.name: each.licence
            for each in public_sources(read_recipe(path.with_name("recipe.toml")).data.model_dump())
        }
        for name, path in models.items()
    }
    folders = map(ModelFolder, (path.parent for path in models.values()))
    cards = {each.name: pipeline_of(each.recipe).card(each) for each in folders}
    if json:
        uses = {name: {"what": each.what, "use": each.use} for name, each in cards.items()}
        print_json({**listed, "uses": uses, "licences": licences})
        return
    for name, card in cards.items():
        print(f"{name}: {card.what}\n    {about(find_recipe(name))}\n    {card.use}")
    print()
    for kind, names in listed.items():
        print(f"{kind:<8} {', '.join(names)}")
    print("\ntrained on data under these licences:")
    for name, each in licences.items():
        print(f"  {name}: " + "; ".join(f"{data}: {licence}" for data, licence in each.items()))

"""manyheads fetch."""

from pathlib import Path

from manyheads.errors import UsageError


def run(name: str | None = None, folder: Path | None = None, root: str | None = None) -> None:
    """Bring a public corpus that the recipes use, or a model of the Hugging Face hub.

    Corpora come from their home or a folder, with checksums. Models are converted; from then on
    they are used offline, under the same name.
    """
    from manyheads.cli.printed_answers import warn
    from manyheads.data.text.public_corpora import public_corpora
    from manyheads.project.downloads import fetch, find_public
    from manyheads.project.hub_name import HUB, fetched_models
    from manyheads.project.paths import data_root

    if name is not None and name.startswith(HUB):
        if folder is not None or root is not None:
            raise UsageError("A model goes to MANYHEADS_CACHE: leave out `folder` and `root`.")
        _fetch_model(name)
        return
    if name is None:
        for corpus in public_corpora().values():
            here = [(data_root(root) / file.path).exists() for file in corpus.files]
            state = "here" if all(here) else "in part" if any(here) else "not here"
            size = f"{corpus.bytes / 1e6:6.1f} MB  {state}: " if corpus.files else ""
            print(f"{corpus.name:<9} {size}{corpus.title}\n{'':<9} {corpus.home}")
            if corpus.how:
                print(f"{'':<9} {corpus.how}")
        for model in fetched_models():
            print(model)
        return
    corpus = find_public(name)
    print(f"{corpus.title}\nlicence: {corpus.licence}\nhome: {corpus.home}")
    done = fetch(corpus, data_root(root), folder=folder, say=warn)
    print(
        f"{done.folder}: {done.brought} files brought, {done.present} were there; "
        "all checksums are right"
    )


def _fetch_model(name: str) -> None:
    from manyheads.predict.task_pipeline import pipeline_of
    from manyheads.project.folder import ModelFolder
    from manyheads.project.paths import find_model

    folder = ModelFolder(find_model(name))
    licence = folder.recipe.origin.license if folder.recipe.origin else None
    print(f"{folder.path}: licence {licence or 'not stated: ask its makers'}")
    print(f"Use it with: {pipeline_of(folder.recipe).card(folder).use}")

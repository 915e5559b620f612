"""Models of the Hugging Face hub become model folders in the cache, once."""

from pathlib import Path

from manyheads.convert.classifiers import from_images
from manyheads.convert.marian_folder import from_marian
from manyheads.convert.sources import opened
from manyheads.errors import LOG
from manyheads.models.convert import families
from manyheads.project.hub_name import read_hub_name


def fetch_model(name: str) -> Path:
    """Return the folder of hf:USER/MODEL; fetch and convert the model if it is not there.

    What its user should know is logged as a warning.

    Raises:
        UsageError: a model that cannot be converted, or whose makers want to know who uses it.
        NotFoundError: there is no such model or revision.
        MissingExtraError: a package that fetches or reads it is not installed.
        DataError: the hub cannot be reached, or sends something else than it announces.
        FolderError: files are damaged, or do not belong together.
    """
    folder = read_hub_name(name).under()
    if folder.is_dir():
        return folder
    with opened(name) as source:
        if not folder.is_dir():  # another process may have made it meanwhile
            library = families.check(source.about)
            if library == "marian":
                remarks = from_marian(source, folder).remarks
            else:
                remarks = from_images(library, source, folder).remarks
            for remark in remarks:
                LOG.warning("%s: %s", name, remark)
    return folder

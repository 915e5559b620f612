"""Where things are found: data by the path rule, recipes and models by name or by path."""

import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from importlib import import_module
from importlib.resources import files
from pathlib import Path

from manyheads.data.text.formats import is_one_file
from manyheads.data.text.public_corpora import public_corpora
from manyheads.data.text.rows import HUB as HUB_DATA
from manyheads.errors import NotFoundError, UsageError, nearest
from manyheads.files import expand_user, output_errors, reject_address, reject_inputs
from manyheads.project.hub_name import HUB, read_hub_name
from manyheads.project.remote import fetch_remote, is_remote, local_path

_GIVEN: set[str] = set()  # names of data that were given in this process


def allow(*names: object) -> None:
    """Let data be read from elsewhere under these names: a person or a program gave them.

    The recipe in a model folder may come from anybody, so its addresses are not read by themselves.
    What is neither a text nor a tuple of texts is passed over, so that a table's values will do.
    """
    for name in names:
        if isinstance(name, str):
            _GIVEN.add(split_selection(name)[0])
        elif isinstance(name, tuple):
            allow(*name)


def is_hub_data(name: str) -> bool:
    """Tell whether a name is one of data on the hub, such as hub:owner/name.

    Raises:
        UsageError: it is, and only a model's recipe names it.
    """
    if name.startswith(HUB_DATA):
        _refuse_unless_given(name)
    return name.startswith(HUB_DATA)


def _refuse_unless_given(name: str) -> None:
    if name not in _GIVEN:
        raise UsageError(
            f"{name!r:.200} is named by the model's recipe only, and it is elsewhere, so it is not "
            "read. If you trust it, use `remote=True`; or give data of your own."
        )


def data_root(root: str | None) -> Path:
    """Return the folder of data sets: the recipe's data.root, else MANYHEADS_DATA, else data/."""
    return expand_user(local_path(root or os.environ.get("MANYHEADS_DATA") or "data"))


def without_root(name: str, root: str | None) -> str:
    """Shorten the name of a file for a record: where data lie on this machine means nothing later.

    It stays as it is outside of the data root and of the current folder.
    """
    for folder in (data_root(root).absolute(), data_root(root), Path.cwd()):
        name = name.removeprefix(f"{folder}{os.sep}")
    return name


def here(name: str, suffixes: Sequence[str] = ("",)) -> str:
    """Make the name of data that a user gives absolute if it exists in the current folder."""
    allow(name)
    file, rows = split_selection(name)
    path = expand_user(file)
    if not _matches(path, suffixes):
        return name
    return str(path.absolute()) + (f"[{rows[0]}={rows[1]}]" if rows else "")


def split_selection(name: str) -> tuple[str, tuple[str, str] | None]:
    """Split the name of a table into that of its file and the rows selected: (column, value).

    Examples:
        >>> split_selection("noto72.parquet[split=train]")
        ('noto72.parquet', ('split', 'train'))
        >>> split_selection("noto72.parquet")
        ('noto72.parquet', None)
    """
    found = re.fullmatch(r"(.+)\[([^\[\]=]+)=([^\[\]]*)\]", name, re.DOTALL)
    if found is None or _there(expand_user(name)):
        return name, None
    return found[1], (found[2], found[3])


def endings(name: str, source: str | None, target: str | None) -> tuple[str, ...]:
    """Return the suffixes of a corpus's name: none for one file, its languages for two."""
    if is_one_file(name) or source is None or target is None:
        return ("",)
    return (f".{source}", f".{target}")


def find_data(name: str, root: str | None, suffixes: Sequence[str] = ("",)) -> list[Path]:
    """Find a data set's path, all paths of a pattern with *, relative to the data root.

    The path exists if all suffixes, appended, do: (".en", ".de"), compressed or not. With "" among
    them the path itself is enough. Names like s3://bucket/train are copied here (`remote.py`), also
    where the data root is one, if they were given (`allow`).

    Raises:
        NotFoundError: it is not there; the places looked at, and the home of the data.
        UsageError: only a model's recipe names the address.
        ManyheadsError: what `fetch_remote` raises.
    """
    usual = os.environ.get("MANYHEADS_DATA")
    folder, address = root or usual, name
    if folder and is_remote(folder) and not (Path(name).is_absolute() or is_remote(name)):
        address, name = folder, f"{folder.rstrip('/')}/{name}"
    if is_remote(name):
        if address != usual:
            _refuse_unless_given(address)
        return fetch_remote(name, suffixes)
    base = data_root(root)
    path = base / expand_user(name)
    found = _matches(path, suffixes)
    if found:
        return found
    ending = f" with {' and '.join(filter(None, suffixes))}" if any(suffixes) else ""
    missing = [suffix for suffix in suffixes if not _exists(path, suffix)]
    if suffixes[0] and len(missing) < len(suffixes):
        ending += f", and there is no {path.name}{missing[0]}"
    public = public_corpora().get(Path(name.partition("/")[0]).stem)
    local = expand_user(name).absolute()
    also = f"; as a change of a recipe, also for {local}" if local != path.absolute() else ""
    if os.path.isfile(path):  # noqa: PTH113
        also += f". That file exists, but there is no reader for {path.suffix!r}: is it a plugin's?"
    raise NotFoundError(
        f"There is no data {name!r}: looked for {path.absolute()}{ending}{also}. "
        + (
            "The folder is data.root of the recipe, which comes before MANYHEADS_DATA: give the "
            "place where it is now, data.root=FOLDER in training, `data` when a model is measured."
            if root
            else "Name the folder that holds your data sets: MANYHEADS_DATA=FOLDER in the "
            "environment, or data.root=FOLDER in training (for the lab, `root`)."
        )
        + (f" Its home: {public.home}; see `manyheads fetch {public.name}`." if public else "")
    )


def data_files(name: str | None, root: str | None, suffixes: Sequence[str] = ()) -> list[Path]:
    """List where a data set may be, whether it is there or not: what must not be written over."""
    names = [] if name is None else dict.fromkeys((name, split_selection(name)[0]))
    paths = [expand_user(local_path(each)) for each in names]
    bases = [base for path in paths for base in (data_root(root) / path, path)]
    stems = [path for base in bases for path in (base, *_matches(base, ()))]
    return stems + [
        Path(f"{stem}{suffix}{packed}")
        for stem in stems
        for suffix in suffixes
        for packed in ("", ".gz")
    ]


def _matches(path: Path, suffixes: Sequence[str]) -> list[Path]:
    if "*" in path.name:
        # Not as a pattern for glob, which refuses "a**b".
        return sorted(p for p in path.parent.glob("*") if fnmatchcase(p.name, path.name))
    appended = [suffix for suffix in suffixes if suffix]
    whole = "" in suffixes and _there(path)
    return [path] if whole or (appended and all(_exists(path, s) for s in appended)) else []


def _exists(path: Path, suffix: str) -> bool:
    return any(_there(f"{path}{suffix}{packed}") for packed in ("", ".gz"))


def _there(path: str | Path) -> bool:
    return os.path.exists(path)  # noqa: PTH110 - Path raises on a name too long before Python 3.14


def checked_name(path: str | os.PathLike[str], forms: Mapping[str, str]) -> Path:
    """Check that the name of a file to write has one of these endings, described in `forms`."""
    found = Path(path)
    if found.suffix.lower() not in forms and not found.is_dir():  # `make_room` refuses those
        *front, last = [f"{suffix} ({words})" for suffix, words in forms.items()]
        allowed = f"{', '.join(front)} or {last}" if front else last
        raise UsageError(
            f"{str(found)!r} does not say what to write: give a name that ends in {allowed}."
        )
    return found


def make_room(path: Path, *inputs: str | Path | int | None) -> None:
    """Make the folder of a file that is to be written, before the work whose result it takes.

    Raises:
        UsageError: it is an address, a folder, one of the inputs or in one (see
            `files.reject_inputs`), or a module that was imported, such as a plugin.
        OutputError: the folder cannot be made.
    """
    reject_address(path)
    if path.is_dir():
        raise UsageError(f"{path} is a folder: name a file to write.")
    modules = (getattr(module, "__file__", None) for module in tuple(sys.modules.values()))
    reject_inputs(path, (*inputs, *modules))
    with output_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)


def shipped(kind: str) -> dict[str, Path]:
    """List what the package ships: kind is "recipes" or "pretrained"."""
    folder = Path(str(files("manyheads"))) / kind
    entries = folder.glob("*.toml" if kind == "recipes" else "*/manyheads.json")
    return {(e.stem if kind == "recipes" else e.parent.name): e for e in sorted(entries)}


def find_recipe(name: str) -> Path:
    """Find a recipe by the name of a shipped one, or by its path."""
    known = shipped("recipes")
    return _find("recipe", name, known, own=os.path.isfile(name), alike=known)  # noqa: PTH113


def find_model(name: str, *, fetch: bool = True) -> Path:
    """Find a model folder by the name of a shipped one, by its path, or by its name on the hub.

    Args:
        name: on the hub hf:USER/MODEL, or hf:USER/MODEL@REVISION.
        fetch: a model of the hub that is not on this machine; if not, it is refused.

    Raises:
        NotFoundError: there is no such model.
        ManyheadsError: what else keeps a model of the hub from being fetched.
    """
    if name.startswith(HUB):
        folder = read_hub_name(name).under()
        if not folder.is_dir() and not fetch:
            raise NotFoundError(f"{name} is missing. Fetch it first: `manyheads fetch {name}`.")
        if not folder.is_dir():  # imported by its name: converting stands on this module
            import_module("manyheads.convert.hub_models").fetch_model(name)
        return folder
    known = {each: manifest.parent for each, manifest in shipped("pretrained").items()}
    alike, elsewhere = list(known), f", or {HUB}USER/MODEL of the hub"
    if re.fullmatch("[a-z]{2}-[a-z]{2}", name):  # languages: another pair is no answer
        alike, elsewhere = [], f"{elsewhere}, such as {HUB}Helsinki-NLP/opus-mt-{name}"
    own = os.path.isdir(name)  # noqa: PTH112
    return _find("model", name, known, own=own, alike=alike, elsewhere=elsewhere)


def _find(
    what: str,
    name: str,
    known: Mapping[str, Path],
    *,
    own: bool,
    alike: Iterable[str],
    elsewhere: str = "",
) -> Path:
    if name in known or (own and name):  # an empty path is the current folder
        return known.get(name, Path(name))
    raise NotFoundError(
        f"There is no {what} {name!r}{nearest(name, alike)}"
        f"Shipped: {', '.join(known) or 'none'}; or give the path of your own{elsewhere}."
    )

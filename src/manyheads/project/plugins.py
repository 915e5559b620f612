"""Plugins: modules that register presets and tasks when they are imported.

Only what a user asks for is imported: a module named with `--plugin`, or an installed package that
declares the entry-point group `manyheads.plugins`. A recipe or a model folder never imports one.
"""

import sys
from functools import cache
from importlib import import_module, metadata, util
from pathlib import Path

from manyheads.errors import UsageError

GROUP = "manyheads.plugins"
LOADED: dict[str, str] = {}  # of each loaded module its name, or the whole path of its file


def load_plugin(name: str) -> None:
    """Import a plugin by the name of its module, or by the path of its .py file.

    Raises:
        UsageError: there is no such module, or importing it fails.
    """
    try:
        if name.endswith(".py"):
            _load_file(Path(name))
        else:
            import_module(name)
    except Exception as error:  # a plugin may raise anything while it is imported
        raise UsageError(
            f"The plugin {name!r} cannot be imported ({type(error).__name__}: {error}). Give the "
            "name of a module that Python finds (PYTHONPATH), or the path of a .py file."
        ) from error
    module = Path(name).stem if name.endswith(".py") else name
    LOADED[module] = str(Path(name).resolve()) if name.endswith(".py") else name


def loaded_plugins() -> tuple[str, ...]:
    """Return what `load_plugin` takes in another process to load the same plugins, in order."""
    return tuple(LOADED.values())


def _load_file(path: Path) -> None:
    """Import a file under its own name without .py; once, however often it is asked for."""
    name = path.stem
    if (known := sys.modules.get(name)) is not None:
        if Path(getattr(known, "__file__", None) or "").resolve() != path.resolve():
            raise ImportError(f"another module {name!r} is imported: give the file another name")
        return
    spec = util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    sys.modules[name] = module = util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise


@cache
def load_entry_points() -> None:
    """Import the plugins of installed packages, once; called for an unknown name."""
    for entry in metadata.entry_points(group=GROUP):
        load_plugin(entry.value.partition(":")[0])


def home(module: str) -> str | None:
    """Return the plugin to import for something defined in a module; None inside the package."""
    if module == "__main__":  # a program that was started: its file, where it has one
        return Path(getattr(sys.modules[module], "__file__", None) or module).stem
    return None if module.partition(".")[0] == "manyheads" else module

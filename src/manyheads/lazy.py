"""Public names of a package that are imported when they are first used.

So `import manyheads` needs no torch, and importing one model does not import all of them. What is
public, and where, is a table in the package; type checkers and editors read ordinary imports in the
stub beside it (`.pyi`).
"""

from collections.abc import Callable, Mapping
from importlib import import_module


def lazy(
    package: str, homes: Mapping[str, str]
) -> tuple[list[str], Callable[[str], object], Callable[[], list[str]]]:
    """Return `__all__` and the module-level `__getattr__` and `__dir__` of a package (PEP 562).

    `dir()`, and so completion with the Tab key, lists the public names only.

    Args:
        package: `__name__` of the package.
        homes: by module of `manyheads`, the names that it defines, with spaces between them.
    """
    home = {name: module for module, names in homes.items() for name in names.split()}

    def load(name: str) -> object:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"manyheads.{home[name]}"), name)

    # Constants, then classes, then functions.
    names = sorted(home, key=lambda name: (not name.isupper(), not name[0].isupper(), name))
    return names, load, lambda: list(names)

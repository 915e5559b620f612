"""Public names of a package that are imported when they are first used.

So `import manyheads` needs no torch, and importing one model does not import all of them. Type
checkers and readers see ordinary imports: a package writes them below `if TYPE_CHECKING:`, lists
the names in `__all__`, and takes `__getattr__` from here.
"""

import ast
from collections.abc import Callable
from importlib import import_module
from pathlib import Path


def lazy(package: str, file: str) -> Callable[[str], object]:
    """Return the module-level `__getattr__` of a package (PEP 562).

    Args:
        package: `__name__` of the package.
        file: its `__file__`, whose indented `from ... import ...` lines give each name's module.
    """
    homes: dict[str, tuple[str, str]] = {}

    def load(name: str) -> object:
        if not homes and not name.startswith("__"):
            for node in ast.walk(ast.parse(Path(file).read_text(encoding="utf-8"))):
                if isinstance(node, ast.ImportFrom) and node.module and node.col_offset:
                    homes.update((a.asname or a.name, (node.module, a.name)) for a in node.names)
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, original = homes[name]
        return getattr(import_module(module), original)

    return load

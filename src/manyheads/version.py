"""The version of the package, also for parts that the package itself imports."""

import hashlib
from pathlib import Path

__version__ = "0.1.0"


def code_digest() -> str:
    """Return eight hexadecimal digits that change with any module of the package.

    Two installations with the same version and digest run the same code.
    """
    digest, folder = hashlib.sha256(), Path(__file__).parent
    for path in sorted(folder.rglob("*.py")):
        digest.update(f"{path.relative_to(folder).as_posix()}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:8]

"""Build a data set of the recipes from its public sources.

    python -m scripts.data emoji --root data
    python -m scripts.data icons --root data --sources FOLDER

Sources are kept (SOURCES), and used if they are there. What was built is compared with the sha256
that the package has registered; exit code 1 says that something differs.
"""

import argparse
import sys
from importlib import import_module
from pathlib import Path

from manyheads.data.text.public_corpora import public_corpora
from manyheads.files import sha256
from scripts.data.sources import SourceError, Sources

NAMES = ("cifar10", "emoji", "enko", "everyday", "icons", "tatoeba", "words")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.data", description=__doc__)
    parser.add_argument("name", choices=NAMES)
    parser.add_argument("--root", type=Path, default=Path("data"), help="folder of data sets")
    parser.add_argument("--sources", type=Path, default=Path("sources"))
    told = parser.parse_args()
    registered = {each.path: each.sha256 for each in public_corpora()[told.name].files}
    differing = 0
    try:
        build = import_module(f"scripts.data.{told.name}").build
        for path in build(Sources(told.sources), told.root):
            digest = sha256(path)
            same = digest == registered.get(path.relative_to(told.root).as_posix())
            print(f"{path}: sha256 {digest}, " + ("as registered" if same else "NOT as registered"))
            differing += not same
    except SourceError as error:
        print(error, file=sys.stderr)
        return 1
    return bool(differing)


if __name__ == "__main__":
    sys.exit(main())

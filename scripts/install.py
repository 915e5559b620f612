"""Runs pip install, but stops before packages of CUDA: the CPU build of torch needs none.

PyPI's torch for Linux requires CUDA, which is gigabytes. What pip would install is read from its
report of a dry run; if CUDA is in it, pip is asked again with PyTorch's index of CPU builds.

    python scripts/install.py -c constraints.txt -e '.[dev]'
    python scripts/install.py --cuda -c constraints.txt '.[serve]'     # installs it as it is
"""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

CPU_INDEX = "https://download.pytorch.org/whl/cpu"
# Of NVIDIA, what compiles for its GPUs, and a build of torch that names its CUDA (2.13.0+cu130).
CUDA = re.compile(r"(nvidia|cuda|triton|pytorch-triton)[- ].*|torch \S*\+cu\d+")


def cuda_packages(report: Mapping[str, Any]) -> list[str]:
    """Return the packages of CUDA that pip's installation report names."""
    named = (each["metadata"] for each in report["install"])
    texts = [f"{each['name'].replace('_', '-')} {each['version']}" for each in named]
    return list(filter(CUDA.fullmatch, texts))


def dry_run(arguments: Sequence[str]) -> Mapping[str, Any]:
    """Return pip's report on an installation that does not take place.

    Metadata are read without the packages: by fast-deps also where an index does not offer them.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "report.json")
        options = ("-q", "--dry-run", "--use-feature=fast-deps", "--report", str(path))
        _pip(*options, *arguments)
        report: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return report


def _pip(*arguments: str) -> None:
    pip = (sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check")
    if code := subprocess.run([*pip, *arguments], check=False).returncode:
        sys.exit(code)


def main(arguments: Sequence[str]) -> None:
    if "--cuda" in arguments:
        _pip(*(each for each in arguments if each != "--cuda"))
        return
    if found := cuda_packages(dry_run(arguments)):
        print(f"pip would bring {len(found)} packages of CUDA; asking for the CPU build of torch.")
        arguments = ("--extra-index-url", CPU_INDEX, *arguments)
        if found := cuda_packages(dry_run(arguments)):
            sys.exit(
                f"Nothing was installed: pip would bring gigabytes of CUDA ({', '.join(found)}), "
                f"also with the CPU builds of {CPU_INDEX}, which may be out of reach. Let pip find "
                "a CPU build of torch (PIP_EXTRA_INDEX_URL, PIP_FIND_LINKS), or say that you want "
                "CUDA: make CUDA=1 ..."
            )
    _pip(*arguments)


if __name__ == "__main__":
    main(sys.argv[1:])

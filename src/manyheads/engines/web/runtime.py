"""onnxruntime-web: the files of its npm package that a page needs, copied from a folder or npm."""

import hashlib
import shutil
import subprocess
import tarfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from manyheads.errors import NotFoundError
from manyheads.project.cache_folder import cache_folder

PACKAGE, VERSION = "onnxruntime-web", "1.30.0"
# Of this version, the part without WebGPU: sha256 of each file.
FILES: dict[str, str] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
LICENSE = Path(__file__).with_name("onnxruntime_license.txt")
PATIENCE = 300  # seconds


def copy_runtime(out: Path, given: Path | None) -> str:
    """Copy the files of onnxruntime-web into a new folder; return its version.

    Args:
        out: the folder.
        given: the unpacked npm package, or its folder `dist`; None: that of the cache, where npm
            puts it first.

    Raises:
        NotFoundError: a file is missing or another one, or npm cannot get the package.
    """
    folder = package_folder() if given is None else given
    inner = (folder / "package" / "dist", folder / "dist")
    dist = next((each for each in inner if each.is_dir()), folder)
    if given is None and any(_wrong(dist)):
        _download(dist)
    for wrong in _wrong(dist):
        raise NotFoundError(f"{wrong}. {_help()}")
    out.mkdir()
    for name in FILES:
        shutil.copyfile(dist / name, out / name)
    shutil.copyfile(LICENSE, out / "LICENSE.txt")
    return VERSION


def _wrong(dist: Path) -> Iterator[str]:
    for name, expected in FILES.items():
        path = dist / name
        if not path.is_file():
            yield f"{path} is missing"
        elif hashlib.sha256(path.read_bytes()).hexdigest() != expected:
            yield f"{path} is not that of {PACKAGE} {VERSION}"


def package_folder() -> Path:
    """Return the folder in which npm's package is kept."""
    return cache_folder() / f"{PACKAGE}-{VERSION}"


def _download(dist: Path) -> None:
    """Let npm get the package, and keep what is needed of it."""
    npm = shutil.which("npm")
    if npm is None:
        raise NotFoundError(f"{PACKAGE} is not in {dist}, and npm is not installed. {_help()}")
    with TemporaryDirectory() as work:
        try:
            done = subprocess.run(
                [npm, "pack", f"{PACKAGE}@{VERSION}", "--silent"],
                cwd=work,
                capture_output=True,
                encoding="utf-8",
                timeout=PATIENCE,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise NotFoundError(f"npm gave no answer in {PATIENCE} seconds. {_help()}") from None
        packed = [*Path(work).glob("*.tgz")]
        if done.returncode or not packed:
            said = done.stderr.strip().splitlines()[-1:] or ["no file"]
            raise NotFoundError(f"npm cannot get {PACKAGE} {VERSION}: {said[0]}. {_help()}")
        dist.mkdir(parents=True, exist_ok=True)
        with tarfile.open(packed[0]) as package:
            for name in FILES:
                content = package.extractfile(f"package/dist/{name}")
                assert content is not None
                (dist / name).write_bytes(content.read())


def _help() -> str:
    return (
        f"Get it on a machine with npm, `npm pack {PACKAGE}@{VERSION}`, unpack it, and give the "
        "folder as `runtime`."
    )

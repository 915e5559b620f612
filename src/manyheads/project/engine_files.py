"""The files of an engine in a model folder: `engines/<name>`, with engine.json and parity.json."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from manyheads.errors import LOG, FolderError
from manyheads.files import sha256
from manyheads.project.folder import (
    ModelFolder,
    check_hashes,
    read_versioned,
    validated,
    versions,
    write_json,
)

RECORD, REPORT = "engine.json", "parity.json"
ENGINE_FORMAT = 1
BRIEF = ("data", "inputs", "difference", "changed", "metric", "before", "after")


class EngineRecord(BaseModel):
    """What engine.json must have."""

    format_version: int
    engine: str
    quantization: str
    versions: dict[str, str]
    weights: str  # sha256 of the model.safetensors that it was made from
    sha256: dict[str, str]  # of each file
    parity: dict[str, Any]  # the report in brief
    forced: bool = False  # kept by `force`, as it fails the parity check
    failures: list[str] = []  # why it fails


def write_record(
    folder: ModelFolder,
    path: Path,
    engine: str,
    quantization: str,
    libraries: Mapping[str, str],
    report: Mapping[str, Any],
    failures: list[str],
) -> EngineRecord:
    """Write parity.json and engine.json beside the engine's files."""
    write_json(path / REPORT, report)
    files = sorted(each for each in path.rglob("*") if each.is_file())
    record = EngineRecord(
        format_version=ENGINE_FORMAT,
        engine=engine,
        quantization=quantization,
        versions=versions() | dict(libraries),
        weights=folder.weights_hash,
        sha256={each.relative_to(path).as_posix(): sha256(each) for each in files},
        parity={key: report[key] for key in BRIEF if key in report},
        forced=bool(failures),
        failures=failures,
    )
    write_json(path / RECORD, record.model_dump())
    return record


def stored_engines(folder: ModelFolder) -> list[str]:
    """Name the engines that a model was exported to."""
    return sorted(path.parent.name for path in folder.engines.glob(f"*/{RECORD}"))


def read_record(folder: ModelFolder, engine: str) -> EngineRecord:
    """Read engine.json.

    Raises:
        FolderError: it is damaged, or of a later version.
    """
    path = folder.engines / engine / RECORD
    again = _again(folder, engine)
    stored = read_versioned(path, ENGINE_FORMAT, again)
    record = validated(EngineRecord, stored, path, again)
    if record.engine != engine:
        raise FolderError(f"{path} is of the engine {record.engine!r}. {again}")
    return record


def engine_files(folder: ModelFolder, engine: str) -> Path:
    """Find an engine's files, and check that they are whole and made from the folder's weights.

    Warns if the engine was kept by `force`.

    Raises:
        FolderError: there are none, or they are changed, or made from other weights.
    """
    path = folder.engines / engine
    again = _again(folder, engine)
    if not (path / RECORD).is_file():
        raise FolderError(f"{folder.path} has no engine {engine!r}. {again}")
    record = read_record(folder, engine)
    if record.weights != folder.weights_hash:
        raise FolderError(
            f"{path} was made from other weights than those of {folder.path}: the model was "
            f"trained further since. {again}"
        )
    check_hashes(path / RECORD, record.sha256, again)
    there = {each.relative_to(path).as_posix() for each in path.rglob("*") if each.is_file()}
    if unknown := there - record.sha256.keys() - {RECORD}:
        raise FolderError(
            f"{path / RECORD}, sha256: there is no hash of {', '.join(sorted(unknown))}. {again}"
        )
    if record.forced:
        failures = "; ".join(record.failures)
        LOG.warning("%s on %s: %s. It was kept by `force`.", folder.name, engine, failures)
    return path


def _again(folder: ModelFolder, engine: str) -> str:
    copied = (
        f" Of a model that came with the package that makes a copy, runs/{folder.name} if `out` "
        "does not say another: load the copy then."
        if folder.shipped
        else ""
    )
    return f"Run `manyheads export` on the model with `to={engine!r}`.{copied}"

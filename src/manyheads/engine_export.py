"""Export a stored model to an engine, and keep it only if it answers as on torch."""

import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import Any, NamedTuple

from manyheads.asks.export_request import ExportRequest, ParityRequest
from manyheads.asks.load_options import LoadOptions
from manyheads.engines.engine_parity import Parity, ParityError
from manyheads.engines.exporter import Exported, Exporter, ExportOptions, find_exporter
from manyheads.errors import FolderError, UsageError
from manyheads.files import (
    UNFINISHED,
    flush,
    new_folder,
    output_errors,
    reject_address,
    write_atomically,
)
from manyheads.predict.task_pipeline import Say, pipeline_of
from manyheads.project.card import write_card
from manyheads.project.engine_files import RECORD, REPORT, write_record
from manyheads.project.folder import ModelFolder, own_files, read_json, refuse_used, write_json
from manyheads.project.lock import locked, remove_abandoned
from manyheads.project.paths import allow, find_model, make_room

FILE_REPORT = ".parity.json"  # ending of the report beside an export that is one file


class Export(NamedTuple):
    """An export that was kept."""

    path: Path  # of the engine's files, or of the one file
    model: Path | None  # folder to load with this engine; None: nothing here loads it
    target: str
    quantization: str
    size: int  # of the files, in bytes
    parity: Parity
    failures: list[str]  # why it fails the parity check, if kept by `force`
    remarks: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Give it as plain data."""
        return {
            "path": str(self.path),
            "model": None if self.model is None else str(self.model),
            "to": self.target,
            "quantization": self.quantization,
            "bytes": self.size,
            "parity": self.parity.to_json(),
            "forced": bool(self.failures),
            "failures": self.failures,
            "remarks": list(self.remarks),
        }


def export(model: str | Path, *, to: str, **parameters: Any) -> Export:
    """Export a stored model to an engine, and keep it if it answers as on torch.

    Args:
        model: the name of a shipped model, or a model folder.
        to: the target, such as "ctranslate2".
        parameters: the others of `ExportRequest`, such as `quantization="int8"`.

    Raises:
        UsageError: the target has no equivalent of a part of the model; no such target.
        MissingExtraError: the target's package is not installed.
        ParityError: the engine fails the parity check, and `force` is not set.
    """
    return export_model(model, ExportRequest(to=to, **parameters))


def export_model(model: str | Path, request: ExportRequest, say: Say | None = None) -> Export:
    """Do what `export` does, for a validated request; `say` is told what is being done."""
    say = say or (lambda _message: None)
    folder = ModelFolder(find_model(str(model)))
    allow(request.data)
    if request.remote:
        allow(*dict(folder.recipe.data).values())
    exporter = find_exporter(request.to)
    pipeline = pipeline_of(folder.recipe)
    if exporter.engine is not None:
        pipeline.check_compared(folder)
    options = _options(exporter, request)._replace(
        validation_images=partial(pipeline.validation_images, folder.recipe)
    )
    out = _destination(folder, exporter, request)
    # On the disk where the result will lie.
    beside = out / "engines" if (out / "manyheads.json").exists() else out.absolute().parent
    with _staging(beside) as stage:
        path = stage / (exporter.engine or exporter.name)
        path.mkdir()
        say(f"exporting {folder.name} to {exporter.name} in {options.quantization}")
        exported = exporter.export(folder, path, options)
        parity = _compare(folder, exporter, exported, stage, request, options, say)
        failures = list(parity.failures(options.quantization))
        if failures and not request.force:
            raise ParityError(
                f"{folder.name} on {exporter.name}, {options.quantization}, is not what it is on "
                f"torch: {'; '.join(failures)}. Nothing was kept. Take another `quantization`, or "
                "keep it with `force=True`: it is marked then.",
                parity,
            )
        if not exporter.standalone and not options.one_file:
            about = exporter.name, options.quantization, exported.versions
            write_record(folder, path, *about, parity.to_json(), failures)
        size = sum(each.stat().st_size for each in path.rglob("*") if each.is_file())
        report = parity.to_json() | ({"forced": True, "failures": failures} if failures else {})
        kept, loads = _keep(folder, exporter, path, out, report, one_file=options.one_file)
    said = exporter.name, options.quantization, size, parity, failures, exported.remarks
    return Export(kept, loads, *said)


def _options(exporter: Exporter, request: ExportRequest) -> ExportOptions:
    known = exporter.quantizations
    wanted = known[0] if request.quantization is None else request.quantization
    if wanted not in known:
        raise UsageError(f"`quantization` is {wanted!r}; {exporter.name} has {', '.join(known)}.")
    for name in ("calibrate", "runtime"):
        if getattr(request, name) is not None and name not in exporter.takes:
            raise UsageError(f"The target {exporter.name} has no use for `{name}`: leave it out.")
    out, suffix = request.out, exporter.suffix
    one_file = out is not None and suffix is not None and out.suffix.lower() == suffix
    if out is not None and out.is_file() and not one_file:
        raise UsageError(f"`out` is {str(out)!r}, a file: give a folder.")
    return ExportOptions(wanted, request.calibrate, runtime=request.runtime, one_file=one_file)


def _destination(folder: ModelFolder, exporter: Exporter, request: ExportRequest) -> Path:
    """Choose what is written: a model folder, a folder of its own, or a file."""
    out = request.out
    if out is not None and exporter.suffix and out.suffix.lower() == exporter.suffix:
        make_room(out, *own_files(folder.path))
        _refuse_inside_a_model(out)
        _refuse_foreign_files(out)
        return out
    if out is not None:
        reject_address(out)
        _refuse_inside_a_model(out)
    if exporter.standalone:
        out = Path("runs") / f"{folder.path.resolve().name}-{exporter.name}" if out is None else out
        refuse_used(out)
        return out
    if out is None:
        out = Path("runs") / folder.name if folder.shipped else folder.path
    if out.exists() and any(out.iterdir()):
        _refuse_another(folder, out)
    return out


def _refuse_inside_a_model(out: Path) -> None:
    """Refuse a place in a model folder, whose files only its own exports may add to."""
    for parent in out.absolute().parents:
        if (parent / "manyheads.json").exists():
            raise UsageError(
                f"`out` is {str(out)!r}, in the model folder {parent}: choose another."
            )


def _refuse_foreign_files(out: Path) -> None:
    """Refuse to replace a file that no export wrote; its report lies beside one that did."""
    report = out.with_suffix(FILE_REPORT)
    found: Any = None
    with suppress(FolderError):  # not there, or damaged
        found = read_json(report)
    if isinstance(found, dict) and "compared" in found:
        return
    for path in (out, report):
        if path.exists():
            raise UsageError(
                f"{path} exists and was not written by an export: choose another `out`, or move "
                "it away."
            )


def _refuse_another(folder: ModelFolder, out: Path) -> None:
    """Refuse a folder that is used for something else; a copy of the model is welcome."""
    try:
        there = ModelFolder(out)
    except FolderError:
        raise UsageError(
            f"{out} is not empty, and no copy of {folder.name}: choose a new folder as `out`."
        ) from None
    if there.manifest["sha256"] != folder.manifest["sha256"]:
        raise UsageError(
            f"{out} holds another model than {folder.path}: choose a new folder as `out`."
        )
    if there.shipped:
        raise UsageError(
            f"{out} is part of the package, which is not written to: choose a folder as `out`."
        )


@contextmanager
def _staging(parent: Path) -> Iterator[Path]:
    """Give a folder to work in, which goes at the end."""
    stage = parent / UNFINISHED.format(token_hex(8))
    with output_errors(parent):
        remove_abandoned(parent)
        stage.mkdir(parents=True)
    try:
        with locked(stage, "exports"):
            yield stage
    finally:
        shutil.rmtree(stage, ignore_errors=True)
        if parent.name == "engines" and parent.is_dir() and not any(parent.iterdir()):
            parent.rmdir()


def _compare(
    folder: ModelFolder,
    exporter: Exporter,
    exported: Exported,
    stage: Path,
    request: ExportRequest,
    options: ExportOptions,
    say: Say,
) -> Parity:
    """Run both engines on the same inputs."""
    if exporter.engine is None:
        if exported.parity is None:
            raise TypeError(f"{exporter.name} has no engine, and returned no parity")
        return exported.parity
    # As if it were kept, but without a report: it is loaded as it will be.
    path = stage / exporter.engine
    write_record(folder, path, exporter.engine, options.quantization, exported.versions, {}, [])
    say("comparing it with torch")
    pipeline = pipeline_of(folder.recipe)
    reference = pipeline.load(folder, LoadOptions(device="cpu"))
    staged = ModelFolder(folder.path, engines=stage)
    other = pipeline.load(staged, LoadOptions(engine=exporter.engine, device="cpu"))
    fields = {name: getattr(request, name) for name in ("data", "texts", "limit")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # notes on answers
        found = pipeline.parity(reference, other, ParityRequest(**fields, left_out=exported.used))
    for name in (RECORD, REPORT):
        (path / name).unlink()
    return found


def _keep(
    folder: ModelFolder,
    exporter: Exporter,
    path: Path,
    out: Path,
    report: dict[str, Any],
    *,
    one_file: bool,
) -> tuple[Path, Path | None]:
    """Move what was exported to where it belongs; return its path, and the folder to load."""
    if one_file:
        (only,) = path.glob(f"*{exporter.suffix}")
        write_atomically(out, only.read_bytes())
        write_json(out.with_suffix(FILE_REPORT), report)
        return out, None
    if exporter.standalone:
        write_json(path / REPORT, report)
        with new_folder(out) as made:
            shutil.copytree(path, made, dirs_exist_ok=True)
        return out, None
    if not (out / "manyheads.json").exists():
        _copy(folder, out)
    target = out / "engines" / exporter.name
    with output_errors(target):
        target.parent.mkdir(exist_ok=True)
        before = path.parent / "before"
        for each in (*path.rglob("*"), path):
            flush(each)
        if target.exists():
            target.rename(before)
        try:
            path.rename(target)
        except OSError:
            if before.exists():
                before.rename(target)
            raise
        flush(target.parent)
    write_card(ModelFolder(out))
    return target, out


def _copy(folder: ModelFolder, out: Path) -> None:
    """Copy what makes the model: no checkpoints, and no other engines."""
    left_out = {"state", "events", "engines"}
    with new_folder(out) as made, output_errors(out):
        for each in own_files(folder.path):
            if each.is_dir() and each.name not in left_out:
                shutil.copytree(each, made / each.name, copy_function=shutil.copyfile)
            elif each.is_file():
                shutil.copyfile(each, made / each.name)  # content only: it may be read-only

"""What writes a stored model in the format of an engine: one exporter for each target."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol, cast

from manyheads.data.images.image_set import ImageSet
from manyheads.engines.engine_parity import Parity
from manyheads.errors import UsageError
from manyheads.project.folder import ModelFolder
from manyheads.registration import found, register


def no_images() -> ImageSet:
    """Refuse: there are none.

    Raises:
        UsageError: always.
    """
    raise UsageError("The task has no images.")


class ExportOptions(NamedTuple):
    """How to export."""

    quantization: str  # one of the exporter's
    calibration: Path | None = None  # folder of images to calibrate on
    # Reads the images of the recipe's validation data, where no folder is given.
    validation_images: Callable[[], ImageSet] = no_images
    runtime: Path | None = None  # folder of onnxruntime-web's npm package
    one_file: bool = False  # the user wants a file with the exporter's `suffix`, and no folder


class Exported(NamedTuple):
    """What an exporter says about what it wrote."""

    versions: dict[str, str]  # of the libraries that it depends on
    remarks: tuple[str, ...] = ()  # that the user should know
    parity: Parity | None = None  # measured by the exporter itself, if it has no `engine`
    # Numbers of the images of `ExportOptions.validation_images` that it used: the gate measures on
    # the others.
    used: tuple[int, ...] = ()


class Exporter(Protocol):
    """Writes a stored model for one target."""

    @property
    def name(self) -> str:
        """What `to` calls it; the engine folder `engines/<name>` too."""

    @property
    def engine(self) -> str | None:
        """The engine of the same name, which runs what is written and is compared with torch.

        Of a standalone exporter it is any that runs the same files. None: the exporter compares by
        itself, and returns the result.
        """

    @property
    def quantizations(self) -> tuple[str, ...]:
        """Types of numbers that it writes, the usual one first. float32 has a bar of its own."""

    @property
    def suffix(self) -> str | None:
        """Ending of the one file that `out` may name instead of a folder, such as ".onnx"."""

    @property
    def standalone(self) -> bool:
        """Whether it writes a folder of its own (a web page), and nothing into a model folder."""

    @property
    def takes(self) -> tuple[str, ...]:
        """Which of `calibrate` and `runtime` it has a use for; the others are refused."""

    def export(self, folder: ModelFolder, out: Path, options: ExportOptions) -> Exported:
        """Write the engine's files into the empty folder `out`.

        Raises:
            MissingExtraError: a package that it needs is not installed.
            UsageError: the target has no equivalent of a part of the model, which is named.
        """


class Target(NamedTuple):
    """An exporter of the package: the members of `Exporter`."""

    name: str
    engine: str
    quantizations: tuple[str, ...]
    export: Callable[[ModelFolder, Path, ExportOptions], Exported]
    suffix: str | None = None
    standalone: bool = False
    takes: tuple[str, ...] = ()


MEMBERS = ("name", "engine", "quantizations", "suffix", "standalone", "takes", "export")

# An exporter, or the module and the name of one, which is imported when it is first chosen.
EXPORTERS: dict[str, Exporter | str] = {
    "ctranslate2": "manyheads.engines.ctranslate2.exporter:EXPORTER",
    "onnx": "manyheads.engines.onnx.exporter:EXPORTER",
    "openvino": "manyheads.engines.openvino.exporter:EXPORTER",
    "web": "manyheads.engines.web.exporter:EXPORTER",
}


def register_exporter(exporter: Exporter) -> None:
    """Add a target: from then on `manyheads export --to NAME` writes it.

    Raises:
        UsageError: the name exists, or the object is no exporter.
    """
    lacks = ["being an instance"] * isinstance(exporter, type)
    lacks += [member for member in MEMBERS if not hasattr(exporter, member)]
    if not lacks and not (isinstance(exporter.quantizations, tuple) and exporter.quantizations):
        lacks.append("a tuple of names as quantizations")
    wanted = "An exporter is an instance with the members of manyheads.extend.Exporter."
    name = getattr(exporter, "name", "?")
    register(EXPORTERS, "an exporter", name, exporter, wanted, lacks)


def find_exporter(name: str) -> Exporter:
    """Look up the exporter of a target.

    Raises:
        UsageError: no such target.
    """
    none = "There is nothing to export to by the name"
    return cast(Exporter, found(EXPORTERS, name, none, "Targets"))

"""CTranslate2 as the engine of a translator: its own greedy search, beam search and sampling."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch import nn

from manyheads.engines.ctranslate2.exporter import NAME, exportable, positions, token_names
from manyheads.engines.ctranslate2.model import CTranslate2Model
from manyheads.engines.engine import TOO_LARGE
from manyheads.errors import FolderError, UsageError
from manyheads.models.convert.ctranslate2 import library
from manyheads.nn.editing.seam import refuse_engine
from manyheads.project.engine_files import engine_files, read_record
from manyheads.project.folder import ModelFolder
from manyheads.train.device import SMALL, memory_errors


class CTranslate2Engine:
    """CTranslate2 on a CPU, or on a GPU that it can use."""

    name = NAME

    def __init__(self, device: str | None, threads: int | None) -> None:
        self.device, _, index = (device or "cpu").partition(":")
        self.index = int(index) if index.isdigit() else 0
        self.threads = threads
        found = library().get_cuda_device_count()
        known = ["cpu", *(f"cuda:{number}" for number in range(found))]
        if f"{self.device}:{self.index}" not in known and device not in (None, "cpu"):
            raise UsageError(
                f"CTranslate2 has no device {device!r} here. Devices: {', '.join(known)}."
            )

    def load(self, folder: ModelFolder, image_size: tuple[int, int] | None) -> nn.Module:
        """Load the export, after checking that it is whole and made from the folder's weights."""
        path = engine_files(folder, NAME)
        config = exportable(folder)
        compute = read_record(folder, NAME).quantization
        package = library()
        if compute not in package.get_supported_compute_types(self.device):
            compute = "float32"  # of the weights only
        openmp = os.environ.get("OMP_NUM_THREADS", "")
        available = int(openmp) if openmp.isdigit() and int(openmp) else os.cpu_count() or 1
        workers, threads = 1, self.threads or available
        if self.device == "cpu" and folder.weight_count < SMALL:
            workers, threads = threads, 1  # its matrices are too small to be divided

        def make() -> Any:
            before = torch.get_num_threads()
            try:
                return package.Translator(
                    str(path),
                    device=self.device,
                    device_index=self.index,
                    compute_type=compute,
                    inter_threads=workers,
                    intra_threads=threads,
                )
            finally:
                torch.set_num_threads(before)  # it sets OpenMP's number for the whole process

        try:
            most = None if config.positions == "rotary" else positions(folder, config)
            return CTranslate2Model(config, make, token_names(folder), cache(folder.model), most)
        except (RuntimeError, ValueError) as error:
            raise FolderError(
                f"CTranslate2 cannot load {path}: {error}. Export the model again."
            ) from error

    @contextmanager
    def running(self) -> Iterator[None]:
        """Leave the number of threads to CTranslate2."""
        refuse_engine(self.name)
        with memory_errors(TOO_LARGE):
            yield

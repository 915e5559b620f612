"""OpenVINO and NNCF, imported without their telemetry."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from manyheads.engines.packages import need

TELEMETRY = "openvino_telemetry"


def openvino() -> ModuleType:
    """Import OpenVINO.

    Raises:
        MissingExtraError: it is not installed.
    """
    need(["openvino"], extra="openvino")
    with _without_telemetry():
        import openvino as found
    return found


def nncf() -> ModuleType:
    """Import NNCF, which quantizes.

    Raises:
        MissingExtraError: it is not installed.
    """
    need(["openvino", "nncf"], extra="openvino")
    with _without_telemetry():
        import nncf as found
    found.set_log_level(logging.ERROR)
    return found


@contextmanager
def _without_telemetry() -> Iterator[None]:
    """Hide the package by which both report their use to their makers; they work without it."""
    if TELEMETRY in sys.modules:
        yield
        return
    sys.modules[TELEMETRY] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        sys.modules.pop(TELEMETRY, None)

"""OpenVINO and NNCF, imported without their telemetry."""

import sys
from types import ModuleType

from manyheads.engines.engine import need

TELEMETRY = "openvino_telemetry"


def openvino(name: str = "openvino") -> ModuleType:
    """Import OpenVINO, or "nncf", which quantizes.

    Raises:
        MissingExtraError: it is not installed.
    """
    need(["openvino", name], extra="openvino")
    # Both report their use to their makers by this package, and work without it.
    hidden = TELEMETRY not in sys.modules
    if hidden:
        sys.modules[TELEMETRY] = None  # type: ignore[assignment]
    try:
        if name == "nncf":
            import nncf as found
        else:
            import openvino as found
        return found
    finally:
        if hidden:
            sys.modules.pop(TELEMETRY, None)

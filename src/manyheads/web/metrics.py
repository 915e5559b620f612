"""What the server counts, in the format of Prometheus.

Several processes that answer at one port write what they count into a folder, and each tells the
sum of all: a counter keeps what a process had counted that has ended.
"""

import os
import tomllib
from pathlib import Path
from typing import get_type_hints

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # read by prometheus_client when it is imported

TABLES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


class Metrics:
    """The counters of one server; `metrics.toml` describes each."""

    requests: Counter
    seconds: Histogram
    waiting: Gauge
    refused: Counter
    left: Counter
    stopped: Counter
    restarts: Counter
    failed_starts: Counter
    merged: Histogram
    inputs: Counter
    characters: Counter
    busy: Counter
    loaded: Gauge
    processes: Gauge

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        for attribute, kind in get_type_hints(Metrics).items():
            metric = kind(**TABLES[attribute], namespace="manyheads", registry=self.registry)
            setattr(self, attribute, metric)
        self.processes.set(1)

    def render(self) -> bytes:
        """Write all of them, of all processes."""
        return generate_latest(self._of_all())

    def total(self, name: str) -> int:
        """Return a counter without labels, summed over all processes."""
        return int(self._of_all().get_sample_value(f"manyheads_{name}_total") or 0)

    def _of_all(self) -> CollectorRegistry:
        if FOLDER not in os.environ:
            return self.registry
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return registry

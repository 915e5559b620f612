"""What the server counts, in the format of Prometheus.

Several processes that answer at one port write what they count into a folder, and each tells the
sum of all: a counter keeps what a process had counted that has ended.
"""

import os
from collections.abc import Sequence
from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # read by prometheus_client when it is imported

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
TOGETHER = (1, 2, 4, 8, 16, 32, 64, 128)


class Metrics:
    """The counters of one server."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"manyheads_{name}", text, labels, registry=self.registry)

        def gauge(name: str, text: str, mode: Literal["livesum", "livemax"], *labels: str) -> Gauge:
            named = f"manyheads_{name}"
            return Gauge(named, text, labels, registry=self.registry, multiprocess_mode=mode)

        def histogram(name: str, text: str, label: str, buckets: Sequence[float]) -> Histogram:
            named = f"manyheads_{name}"
            return Histogram(named, text, [label], buckets=buckets, registry=self.registry)

        self.requests = counter("requests", "Answered requests.", "path", "status")
        self.seconds = histogram("request_seconds", "Time to answer a request.", "path", SECONDS)
        self.waiting = gauge("waiting_tokens", "Tokens that wait, by estimate.", "livesum", "model")
        self.refused = counter("refused", "Requests answered with 429.", "model")
        self.left = counter("left", "Waiting requests whose clients have left.", "model")
        self.stopped = counter(
            "stopped",
            "Work stopped because all its clients have left or had waited too long.",
            "model",
        )
        self.restarts = counter(
            "worker_restarts", "How often the process that runs the models was started again."
        )
        self.failed_starts = counter(
            "worker_failed_starts",
            "How often the process that runs the models could not be started.",
        )
        self.merged = histogram(
            "merged_requests", "Requests that were answered together.", "model", TOGETHER
        )
        self.inputs = counter("inputs", "Texts and images that were answered.", "model")
        self.busy = counter("busy_seconds", "Time that a model worked.", "model")
        self.loaded = gauge(
            "load_seconds", "Time to load a model; absent until it is loaded.", "livemax", "model"
        )
        self.processes = gauge("processes", "Processes that answer at this port.", "livesum")
        self.processes.set(1)

    def render(self) -> bytes:
        """Write all of them, of all processes."""
        registry = self.registry
        if FOLDER in os.environ:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry)

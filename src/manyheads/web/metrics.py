"""What the server counts, in the format of Prometheus.

Several processes that answer at one port write what they count into a folder, and each tells the
sum of all: a counter keeps what a process had counted that has ended.
"""

import os

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # read by prometheus_client when it is imported

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Metrics:
    """The counters of one server."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        own = self.registry
        self.requests = Counter(
            "manyheads_requests", "Answered requests.", ["path", "status"], registry=own
        )
        self.seconds = Histogram(
            "manyheads_request_seconds",
            "Time to answer a request.",
            ["path"],
            buckets=SECONDS,
            registry=own,
        )
        self.waiting = Gauge(
            "manyheads_waiting_tokens",
            "Tokens that wait, by estimate.",
            ["model"],
            registry=own,
            multiprocess_mode="livesum",
        )
        self.refused = Counter(
            "manyheads_refused", "Requests answered with 429.", ["model"], registry=own
        )
        self.left = Counter(
            "manyheads_left", "Waiting requests whose clients have left.", ["model"], registry=own
        )
        self.stopped = Counter(
            "manyheads_stopped",
            "Work stopped because all its clients have left or had waited too long.",
            ["model"],
            registry=own,
        )
        self.restarts = Counter(
            "manyheads_worker_restarts",
            "How often the process that runs the models was started again.",
            registry=own,
        )
        self.failed_starts = Counter(
            "manyheads_worker_failed_starts",
            "How often the process that runs the models could not be started.",
            registry=own,
        )
        self.merged = Histogram(
            "manyheads_merged_requests",
            "Requests that were answered together.",
            ["model"],
            buckets=(1, 2, 4, 8, 16, 32, 64, 128),
            registry=own,
        )
        self.inputs = Counter(
            "manyheads_inputs", "Texts and images that were answered.", ["model"], registry=own
        )
        self.busy = Counter(
            "manyheads_busy_seconds", "Time that a model worked.", ["model"], registry=own
        )
        self.loaded = Gauge(
            "manyheads_load_seconds",
            "Time to load a model; absent until it is loaded.",
            ["model"],
            registry=own,
            multiprocess_mode="livemax",
        )
        self.processes = Gauge(
            "manyheads_processes",
            "Processes that answer at this port.",
            registry=own,
            multiprocess_mode="livesum",
        )
        self.processes.set(1)

    def render(self) -> bytes:
        """Write all of them, of all processes."""
        registry = self.registry
        if FOLDER in os.environ:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry)

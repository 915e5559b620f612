"""The application as replicas on a Ray cluster, by Ray Serve."""

import logging
import os
import signal
import threading
from dataclasses import replace
from typing import Any

from starlette.types import ASGIApp

from manyheads.predict.task_pipeline import Say
from manyheads.project.ray_cluster import LOCAL, absolute_model, connect, resources
from manyheads.web.app import create_app
from manyheads.web.served import ServedOptions
from manyheads.web.server import STOPPED, address_of, bind
from manyheads.web.settings import Settings
from manyheads.web.worker_process import ProcessWorker

NAME = "manyheads"  # of the application on the cluster
HEALTH = 5.0  # seconds between two checks of a replica, and for its answer
# Requests that a replica is given at a time: it merges them into batches itself, and refuses what
# is too much with 429.
AT_A_TIME = 256
BUSY = 16  # requests of a replica, on average, for which another one is started


def serve_on_ray(
    options: ServedOptions, settings: Settings, replicas: int | None, *, own_worker: bool, say: Say
) -> None:
    """Answer with replicas until SIGINT or SIGTERM; what was accepted is finished.

    Args:
        options: what to serve; folders must be there on every machine of the cluster.
        settings: where and for whom; limits are those of each replica.
        replicas: how many; if None, as many as the load asks for and the cluster has room for.
        own_worker: models are in a process of their own, beside each replica.
        say: tells the user what happens.

    Raises:
        MissingExtraError: Ray is not installed.
        NotFoundError, FolderError, UsageError: what is to be served cannot be; no cluster.
    """
    names = ", ".join(options.make(settings.limits).models)
    ray = connect(os.environ.get("RAY_ADDRESS") or LOCAL, replicas)
    shared = replace(
        options,
        models=tuple(map(absolute_model, options.models)),
        index=None if options.index is None else options.index.absolute(),
    )
    stopped = threading.Event()
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, lambda *_: stopped.set())
    try:
        from ray import serve

        logging.getLogger("ray.serve").setLevel(logging.ERROR)
        with bind(settings) as free:  # or it is refused; 0 becomes a port
            port = free.getsockname()[1]
        serve.start(http_options={"host": settings.host, "port": port})
        bound = _deployment(shared, replace(settings, glossaries=None), replicas, own_worker).bind()
        serve.run(bound, name=NAME, route_prefix="/")
        say(f"serving {names} at {address_of(settings.host, port)} by Ray (Ctrl-C stops)")
        while not stopped.wait(1.0):
            pass
        serve.delete(NAME)  # waits until replicas have finished what they accepted
    finally:
        ray.shutdown()
    say(STOPPED)


def _deployment(
    options: ServedOptions, settings: Settings, replicas: int | None, own_worker: bool
) -> Any:
    from ray import serve

    def build() -> ASGIApp:  # in each replica
        worker = ProcessWorker() if own_worker else None
        return create_app(options.make(settings.limits, worker), settings)

    @serve.ingress(build)
    class Replica:
        app: Any  # what was built: a Guard around the application

        def check_health(self) -> None:
            """Raise where the models cannot be started: Ray then starts another replica."""
            if self.app.app.state.served.status() == "failed":
                raise RuntimeError("the process of the models cannot be started")

    # The cluster has room for fewer than the most.
    load = {"min_replicas": 1, "max_replicas": 1024, "target_ongoing_requests": BUSY}
    count: Any = {"num_replicas": replicas} if replicas else {"autoscaling_config": load}
    return serve.deployment(
        Replica,
        name=NAME,
        max_ongoing_requests=AT_A_TIME,
        health_check_period_s=HEALTH,
        health_check_timeout_s=2 * HEALTH,
        graceful_shutdown_timeout_s=settings.limits.answer,
        ray_actor_options=resources(options.device, options.threads or 1),
        **count,
    )

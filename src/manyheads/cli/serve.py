"""manyheads serve."""

import os
import webbrowser
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from manyheads.asks.load_options import LoadOptions
from manyheads.web.settings import Limits

TOKEN = "MANYHEADS_TOKEN"  # in the environment: what clients must send


def run(
    load: LoadOptions,
    models: list[str] | None = None,
    host: str = "127.0.0.1",
    port: int = 8000,
    index: Path | None = None,
    processes: int = 1,
    ray: bool = False,
    replicas: int | None = None,
    open: bool = False,
    token_file: Path | None = None,
    public: bool = False,
    look_tokens: int = Limits.look,
) -> None:
    """Serve models to programs and people: an HTTP API and a page.

    The page is at the address that is printed; /openapi.json describes the API. Ctrl-C stops after
    what was accepted is answered.
    """
    from manyheads.cli.printed_answers import warn
    from manyheads.errors import MissingExtraError, NotFoundError, UsageError
    from manyheads.memory import without_collection
    from manyheads.project.plugins import LOADED
    from manyheads.web.settings import Settings
    from manyheads.web.worker_process import ProcessWorker

    token = os.environ.get(TOKEN)
    if token_file is not None:
        if not token_file.is_file():
            raise NotFoundError(f"There is no file {token_file}.")
        # What is no UTF-8 becomes no ASCII, which Settings refuses.
        token = token_file.read_text(encoding="utf-8", errors="replace").strip()
    limits = Limits(look=look_tokens)
    settings = Settings(host=host, port=port, token=token, public=public, limits=limits)
    if replicas is not None and not ray:
        raise UsageError("--replicas are those on a Ray cluster: add --ray.")
    if ray and (processes > 1 or open):
        raise UsageError("--ray starts replicas: leave out --processes and --open.")
    # Other engines leave Python's lock while they compute; another process lacks plugins.
    own_worker = load.engine == "torch" and not LOADED
    if LOADED and (ray or processes > 1):
        raise UsageError("--plugin is of this process only: leave out --processes and --ray.")
    with ExitStack() as ending:
        worker = None
        if own_worker and processes == 1 and not ray:
            worker = ProcessWorker()  # begins to import torch while this process does
            ending.callback(worker.kill)
        try:
            with without_collection():
                from manyheads.web.processes import ServerProcesses
                from manyheads.web.served import ServedOptions
                from manyheads.web.server import STOPPED, address_of, bind
                from manyheads.web.server import run as answer
        except ModuleNotFoundError as error:
            package = (error.name or "").partition(".")[0]
            if package not in ("fastapi", "prometheus_client", "starlette", "uvicorn", "h11"):
                raise
            raise MissingExtraError(package=package, extra="serve") from None
        options = ServedOptions(tuple(models or ()), index, load.engine, load.device, load.threads)
        if ray:
            from manyheads.web.ray_replicas import serve_on_ray

            serve_on_ray(options, settings, replicas, own_worker=own_worker, say=warn)
            return
        listening = ending.enter_context(bind(settings))
        served = options.make(limits, worker)
        address = address_of(*listening.getsockname()[:2])
        several = f" by {processes} processes" if processes > 1 else ""
        warn(f"serving {', '.join(served.models)} at {address}{several} (Ctrl-C stops)")
        if processes == 1:
            opens = partial(webbrowser.open, address) if open else None
            answer(served, settings, listening, opens)
        else:
            opened = address if open else None
            ServerProcesses(options, settings, listening, processes, own_worker, opened).run()
        warn(STOPPED)

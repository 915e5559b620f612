"""manyheads serve."""

import os
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from manyheads.asks.load_options import LoadOptions
from manyheads.cli.options import with_requests
from manyheads.web.settings import Limits

TOKEN = "MANYHEADS_TOKEN"  # in the environment: what clients must send

ACCESS, MORE = "Access", "More processes"  # panels of the help


@with_requests
def run(
    load: LoadOptions,
    models: Annotated[
        list[str] | None,
        typer.Argument(metavar="[MODEL]...", help="Models; without any, those shipped."),
    ] = None,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address to listen to; by default this machine.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen to; 0 takes a free one.")
    ] = 8000,
    index: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Index of images to search (`manyheads index`)."),
    ] = None,
    processes: Annotated[
        int,
        typer.Option(
            min=1,
            max=256,
            rich_help_panel=MORE,
            help="Processes that answer at the port, each with its own models.",
        ),
    ] = 1,
    ray: Annotated[
        bool,
        typer.Option(
            "--ray",
            rich_help_panel=MORE,
            help="Answer with replicas on a Ray cluster: that of RAY_ADDRESS, else one that is "
            "started here.",
        ),
    ] = False,
    replicas: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=1024,
            rich_help_panel=MORE,
            help="With --ray: number of replicas; by default as many as the load asks for.",
        ),
    ] = None,
    open: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel=ACCESS,
            help="File with a token that clients must send; or set MANYHEADS_TOKEN.",
        ),
    ] = None,
    public: Annotated[
        bool,
        typer.Option(
            "--public",
            rich_help_panel=ACCESS,
            help="Let everybody ask who can reach ADDRESS: without a token.",
        ),
    ] = False,
    look_tokens: Annotated[
        int,
        typer.Option(
            min=1,
            help="Tokens of the texts of one look: its time grows with their square.",
        ),
    ] = Limits.look,
) -> None:
    """Serve models to programs and people: an HTTP API and a page.

    The page is at the address that is printed; /openapi.json describes the API. Ctrl-C stops after
    what was accepted is answered.
    """
    from manyheads.cli.show import warn
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
                from manyheads.web.processes import serve_in_processes
                from manyheads.web.served import ServedOptions
                from manyheads.web.server import bind, serve
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
        if processes == 1:
            served = options.make(settings.limits, worker)
            serve(served, settings, listening, say=warn, opens=open)
        else:
            serve_in_processes(
                options,
                settings,
                listening,
                processes,
                own_worker=own_worker,
                say=warn,
                opens=open,
            )

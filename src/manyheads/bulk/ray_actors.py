"""Blocks of sentences run by the actors of a Ray cluster, with Ray Data."""

import logging
import os
from dataclasses import replace
from typing import Any

from manyheads.bulk.blocks import BlockRunner, Blocks, BlockTranslator, Outcomes, Setup
from manyheads.errors import WorkerError
from manyheads.memory import keep_freed_memory
from manyheads.project.ray_cluster import absolute_model, connect, first_line, resources


class RayRunner(BlockRunner):
    """Runs blocks in actors, each of which loads the model once.

    Ray starts an actor that died again, and gives it the block that it had.
    """

    def __init__(self, address: str, workers: int | None = None) -> None:
        """Connect to a cluster.

        Args:
            address: "local" starts one on this machine; "auto" or HOST:PORT name one that runs.
            workers: number of actors; one for each processor or GPU of the cluster if None.

        Raises:
            MissingExtraError: Ray is not installed.
            UsageError: there is no cluster at the address.
        """
        self._workers = workers
        self._ray = connect(address, workers)

    def run(self, setup: Setup, blocks: Blocks) -> Outcomes:
        """Yield outcomes as they come."""
        import ray.data
        from ray.exceptions import RayError

        ray.data.DataContext.get_current().enable_progress_bars = False
        logging.getLogger("ray.data").setLevel(logging.ERROR)
        needs = resources(setup.device, setup.threads)
        rows = [{"block": number, "texts": list(texts)} for number, texts in blocks.items()]
        workers = min(self._workers or self._places(needs), len(rows))
        outcomes = ray.data.from_items(rows, override_num_blocks=len(rows)).map(
            _Actor,
            fn_constructor_kwargs={"setup": replace(setup, model=absolute_model(setup.model))},
            compute=ray.data.ActorPoolStrategy(size=workers),
            **needs,
        )
        processes: dict[str, set[int]] = {}
        try:
            for row in outcomes.iter_rows():
                processes.setdefault(row["actor"], set()).add(row["process"])
                self.restarts = sum(len(each) - 1 for each in processes.values())
                yield row["outcome"]
        except RayError as error:
            raise WorkerError(
                f"The Ray cluster ended the work: {first_line(error)}. What was finished is kept."
            ) from error

    def close(self) -> None:
        """Leave the cluster; one that was started here ends."""
        self._ray.shutdown()

    def _places(self, needs: dict[str, int]) -> int:
        has = self._ray.cluster_resources()
        gpus, processors = has.get("GPU", 0), has["CPU"]
        return max(1, int(gpus if "num_gpus" in needs else processors // needs["num_cpus"]))


class _Actor(BlockTranslator):
    """What Ray calls for each block."""

    def __init__(self, setup: Setup) -> None:
        keep_freed_memory()
        super().__init__(setup)

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        import ray

        outcome = self.translate(int(row["block"]), [str(text) for text in row["texts"]])
        actor = ray.get_runtime_context().get_actor_id()
        return {"outcome": outcome, "actor": actor, "process": os.getpid()}

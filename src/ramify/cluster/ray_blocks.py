"""Blocks parsed by Ray Data: every worker is an actor, which loads its model once.

Ray Data hands out the blocks, restarts an actor that died, and gives its block to another one. Only numbers pass
through Ray: workers read their blocks from the file and write their parts themselves, so the file, the model and the
folder of the parts must be on storage that all machines share.
"""

from __future__ import annotations

import logging
import platform
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ramify.cluster.job import ParseJob
from ramify.cluster.parts import Parts
from ramify.corpus.blocks import Block
from ramify.errors import RamifyError
from ramify.version import VERSION

if TYPE_CHECKING:
    from ramify.cluster.block_parser import BlockParser


@dataclass(frozen=True)
class Workers:
    """Number and size of the workers."""

    count: int | None = None
    """None: as many as the cores or GPUs allow"""
    cpus: int = 1
    gpus: float = 0.0
    """May be a fraction, so that several workers share one"""

    def number(self, ray: Any, blocks: int) -> int:
        """The number of workers to start, at most one per block."""
        there = ray.cluster_resources()
        most = there.get("CPU", 0) // self.cpus
        if self.gpus:
            most = min(most, there.get("GPU", 0) // self.gpus)
        if most < 1:  # Ray would wait for a machine with enough of them
            raise RamifyError(
                f"The cluster has no room for a worker with {self.cpus} CPUs and {self.gpus:g} GPUs; lower "
                "--cpus-per-worker or --gpus-per-worker, or add machines."
            )
        return min(self.count or int(most), blocks)


def parse_on_ray(
    ray: Any, job: ParseJob, parts: Parts, blocks: Sequence[Block], workers: Workers, on_done: Callable[[int], None]
) -> None:
    """Parse these blocks; `on_done` is called with the number of rows of each that is finished."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Ray Data reads its own old settings
        _parse_on_ray(ray, job, parts, blocks, workers, on_done)


def _parse_on_ray(
    ray: Any, job: ParseJob, parts: Parts, blocks: Sequence[Block], workers: Workers, on_done: Callable[[int], None]
) -> None:
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    # By default, Ray restarts an actor that died, and hands out its block again.
    numbers = [asdict(block) for block in blocks]
    dataset = ray.data.from_items(numbers, override_num_blocks=len(numbers)).map(
        _RayWorker,
        fn_constructor_args=(VERSION, job.as_json(), str(parts.folder), parts.suffix, parts.count, parts.run),
        compute=ray.data.ActorPoolStrategy(size=workers.number(ray, len(blocks)), max_tasks_in_flight_per_actor=2),
        num_cpus=workers.cpus,
        num_gpus=workers.gpus,
    )
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)  # errors are also raised, and reported below
    try:
        for row in dataset.iter_rows():
            if row["error"]:
                raise RamifyError(row["error"])
            on_done(row["rows"])
    except ray.exceptions.RayError as error:
        raise _of_workers(str(error).strip(), parts.folder) from error


def _of_workers(message: str, folder: Path) -> RamifyError:
    """A user error for an error of Ray, whose message may contain a traceback."""
    first, last = message.partition("\n")[0], message.rpartition("\n")[2].strip()
    if "creation task" in first:  # before a worker has loaded its model
        return RamifyError(
            f"A Ray worker cannot start ({last[:200]}); install ramify and its dependencies, in the same versions, on "
            "all machines of the cluster."
        )
    return RamifyError(
        f"{folder}: the Ray workers died ({first[:200]}); run the same command again to resume, with fewer --workers "
        "or a --max-length if memory ran out."
    )


class _RayWorker:
    """Runs in an actor, and returns user errors as sentences."""

    def __init__(self, version: str, job: str, folder: str, suffix: str, count: int, run: str) -> None:
        if version != VERSION:
            raise RamifyError(f"ramify is version {VERSION} on {platform.node()}, but {version} where the job started")
        self._job, self._parts = ParseJob.from_json(job), Parts(Path(folder), suffix, count, run)
        self._parse: BlockParser | None = None

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        """Parse the block that these numbers describe."""
        from ramify.cluster.block_parser import BlockParser

        block = Block(**row)
        try:
            if self._parse is None:
                self._parse = BlockParser(self._job, self._parts)
            self._parse(block)
        except (RamifyError, OSError) as error:
            return {"rows": 0, "error": str(error)}
        return {"rows": block.rows, "error": ""}

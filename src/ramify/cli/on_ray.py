"""`--engine ray`: its options, and `ramify parse` on the workers of a cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ramify.cli.common import notes
from ramify.errors import RamifyError
from ramify.model_names import split_name

if TYPE_CHECKING:
    from ramify.cluster.job import ParseJob
    from ramify.cluster.parts import Parts
    from ramify.corpus.blocks import Block

Engine = Annotated[
    Literal["local", "ray"],
    typer.Option(help="local: all cores of this machine; ray: the workers of a Ray cluster, or of this machine."),
]
RayAddress = Annotated[
    str | None,
    typer.Option(
        help="With --engine ray: auto for the cluster that this machine belongs to, or its address. \\[default: "
        "$RAY_ADDRESS, or a new Ray on this machine]",
        show_default=False,
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        min=1, help="With --engine ray: number of workers. \\[default: one for each core or share of a GPU]",
        show_default=False,
    ),
]  # fmt: skip
CpusPerWorker = Annotated[int, typer.Option(min=1, help="With --engine ray: cores of one worker.")]
GpusPerWorker = Annotated[
    float, typer.Option(min=0.0, help="With --engine ray: GPUs of one worker; 0.25 lets four workers share one.")
]
BlockSize = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="With --engine ray: rows per block, the unit that a worker parses and repeats after a failure; a multiple "
        "of 1,024, or of 8,192 for Parquet output. \\[default: 8192]",
        show_default=False,
    ),
]  # fmt: skip
AsParts = Annotated[
    bool,
    typer.Option("--parts", help="With --engine ray: leave the parts of all blocks in a folder OUT; do not join them."),
]


def check_local(**given: Any) -> None:
    """Refuse options that need --engine ray."""
    for name, value in given.items():
        if value:
            option = f"--{name.replace('_', '-')}"
            raise RamifyError(f"{option} works only with --engine ray; add --engine ray, or leave out {option}.")


def check_blocks(file: Path, format: str, decoder: str, trees: Any, constraints: str | None, out: Path | None) -> Path:
    """Refuse input and options that blocks do not support; returns the place of the result."""
    from ramify.cluster.job import SUFFIXES

    wrong = None
    if not file.is_file():
        wrong = "standard input and pipes have no blocks; give a file"
    elif format not in SUFFIXES:
        wrong = f"--format {format} is one document; choose one of {', '.join(SUFFIXES)}"
    elif decoder == "sample":
        wrong = "samples depend on earlier sentences; choose another --decoder"
    elif trees:
        wrong = "--trees is read from its beginning; leave it out"
    elif constraints not in (None, "inline", "punctuation"):
        wrong = "a file of constraints is read from its beginning; give them inline"
    elif out is None:
        wrong = "the result is written to a file; give its name with --out"
    elif format == "parquet" and out.suffix == ".gz":
        wrong = "Parquet is compressed already; give a name without .gz"
    if wrong is not None:
        raise RamifyError(f"--engine ray parses the text in blocks: {wrong}, or use --engine local.")
    assert out is not None
    return out


def parse_with_ray(
    job: ParseJob,
    out: Path,
    made_with: Callable[[], dict[str, Any]],
    as_parts: bool,
    overwrite: bool,
    block_size: int | None,
    address: str | None,
    workers: tuple[int | None, int, float],
) -> list[str]:
    """Parse the file of the job; returns lines to report."""
    from ramify.cluster.parse_in_blocks import BLOCK, locked, parse_blocks
    from ramify.cluster.ray_blocks import Workers, parse_on_ray
    from ramify.cluster.ray_session import import_ray, ray_session
    from ramify.corpus.streaming import WINDOW
    from ramify.terminal import reading_progress

    import_ray()  # refused before anything is read
    size = block_size or BLOCK
    step = BLOCK if job.format == "parquet" else WINDOW
    if size % step:
        raise RamifyError(f"--block-size is {size:,}, but must be a multiple of {step:,}; give one, such as {step:,}.")

    def engine(job: ParseJob, parts: Parts, blocks: Sequence[Block], on_done: Callable[[int], None]) -> None:
        with ray_session(address) as ray:
            parse_on_ray(ray, job, parts, blocks, Workers(*workers), on_done)

    # A cluster that cannot be reached is reported before the text is read, which can take minutes.
    named = address or os.environ.get("RAY_ADDRESS")
    with locked(out, as_parts, overwrite) as place, ray_session(address) if named else nullcontext():
        progress = partial(reading_progress, notes, visible=True)
        return parse_blocks(job, place, size, made_with(), engine, progress)


def absolute(member: str) -> str:
    """A model by a name that is valid on all machines of a cluster: NAME=PATH with the absolute path."""
    name, path = split_name(member)
    return f"{name}={path.absolute()}" if name else str(path.absolute())

"""The tables of a grammar, computed in parallel by networks that do not depend on each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain, pairwise

import torch
from torch import Tensor, nn

from ramify.runtime import threads
from ramify.runtime.parallel_autograd import Part, run_parts

MIN_WORK_TO_DIVIDE = 1e9
"""A part with at least this many operations, ten milliseconds on one core, is cut into one piece per core."""


def run_named(named: Mapping[str, Sequence[Part]]) -> dict[str, Tensor]:
    """The results of the parts by name; several parts of a table are joined by rows."""
    found = iter(run_parts(list(chain.from_iterable(named.values()))))
    pieces = {name: [next(found) for _ in parts] for name, parts in named.items()}
    return {name: made[0] if len(made) == 1 else torch.cat(made, -2) for name, made in pieces.items()}


def part(
    function: Callable[[], Tensor],
    rows: int,
    z: Tensor | None,
    embeddings: Sequence[nn.Parameter],
    *networks: nn.Module,
) -> Part:
    """A part computed from embeddings by networks whose matrices are multiplied with this many rows.

    With z (B, latent) of a compound grammar, each sentence has this many rows.
    """
    matrices = [parameter for network in networks for parameter in network.parameters()]
    given, sentences = ([], 1) if z is None else ([z], len(z))
    work = 2 * rows * sentences * sum(matrix.numel() for matrix in matrices)
    return Part(function, [*embeddings, *matrices, *given], work)


def parts_by_rows(
    function: Callable[[slice], Tensor],
    rows: slice,
    z: Tensor | None,
    embeddings: Sequence[nn.Parameter],
    *networks: nn.Module,
) -> list[Part]:
    """The same for a part whose rows do not depend on each other, divided into pieces if that is worth it."""
    count = rows.stop - rows.start
    whole = part(lambda: function(rows), count, z, embeddings, *networks)
    pieces = min(threads.available(), count) if whole.work > MIN_WORK_TO_DIVIDE else 1
    bounds = [rows.start + count * i // pieces for i in range(pieces + 1)]
    return [
        whole._replace(function=partial(function, slice(start, end)), work=whole.work / pieces)
        for start, end in pairwise(bounds)
    ]

"""Uses the fast engines, and log space for sentences whose numbers underflowed.

Scaled numbers vanish if they are about 1e38 times smaller than the largest of their vector. A sentence that loses all
its derivations in this way has log p(w) = -inf; one that loses some has posteriors that do not add up.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ramify.structures.distribution import Marginals, TreeDistribution
from ramify.structures.engines import REFERENCE

TOLERANCE = 1e-4
"""Tolerance for sums of posteriors in sentences of up to 200 words; in longer ones it grows in proportion. Rounding
errors reached 6e-6 on 200 words and 1.3e-5 on 400, with random and trained rules; those of underflow are far larger."""
SAFE_RANGE = 80.0
"""Log-probabilities between -80 and 0 can be scaled to fit into float32 (smallest exp(-87)); products of rules with a
larger range may partly underflow. In random grammars this began at -200."""


def reliable_marginals(distribution: TreeDistribution) -> tuple[Marginals, Tensor]:
    """Marginals from the fast engine, or in log space in float64 if its numbers underflowed completely or partly.

    The mask (B,) says which sentences needed log space. No posterior is above 1; without a tree all are zero.
    """
    found = distribution.marginals()
    suspect = _suspect(found, distribution.lengths.to(found.spans.device)) & distribution.may_have_trees()
    in_log_space = torch.zeros_like(suspect)
    if bool(suspect.any()):
        for b in suspect.nonzero()[:, 0].tolist():  # one by one: log space needs much memory
            again = distribution.sentence(b).to(torch.float64).marginals(REFERENCE)
            in_log_space[b] = bool(again.log_partition[0] > -torch.inf)
            for name, values in again.tensors().items():
                getattr(found, name)[b] = values[0].to(getattr(found, name).dtype)
    for posteriors in (found.spans, found.best_label_posterior, found.best_tag_posterior, found.arcs):
        if posteriors is not None:
            posteriors.clamp_(max=1)
    return found, in_log_space


def reliable_log_partition(distribution: TreeDistribution) -> tuple[Tensor, Tensor]:
    """log Z (B,) in float64, and which sentences needed log space; without an outside pass if that is safe.

    After partial underflow, log Z is finite but too small; only posteriors show it.
    """
    tables = distribution.tensors().values()
    if any(bool(((table < -SAFE_RANGE) & (table > -torch.inf)).any()) for table in tables):
        full, in_log_space = reliable_marginals(distribution)
        return full.log_partition.double(), in_log_space
    found = distribution.log_partition().double()
    lost = (found == -torch.inf) & (distribution.lengths > 1) & distribution.may_have_trees()
    in_log_space = torch.zeros_like(lost)
    for b in lost.nonzero()[:, 0].tolist():
        found[b] = distribution.sentence(b).to(torch.float64).log_partition(REFERENCE)[0]
        in_log_space[b] = bool(found[b] > -torch.inf)
    return found, in_log_space


def _suspect(found: Marginals, lengths: Tensor) -> Tensor:
    """(B,) sentences of N > 1 words without a tree, or with inconsistent posteriors.

    The posteriors of longer spans sum to N - 1, and none is above 1. If words have posteriors, each is 1.
    """
    tolerance = TOLERANCE * (lengths / 200).clamp(min=1)
    errors = [
        found.spans.amax((1, 2)) - 1,
        (found.spans.triu(2).sum((1, 2)) / (lengths - 1).clamp(min=1) - 1).abs(),
    ]
    if found.best_tag is not None:
        words = found.spans.diagonal(1, 1, 2)
        within = torch.arange(words.shape[1], device=words.device) < lengths[:, None]
        errors.append((words - 1).abs().where(within, 0).amax(1))
    right = torch.stack([error <= tolerance for error in errors]).all(0)  # not so for NaN
    return (lengths > 1) & ~(right & (found.log_partition > -torch.inf))

"""Parsing under constraints: trees without forbidden spans, and the probability of such trees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ramify.structures.distribution import Marginals
from ramify.structures.fallback import reliable_log_partition
from ramify.structures.pcfg import PCFG


@dataclass(frozen=True)
class Forbidden:
    """The spans that no tree of a batch of sentences may have."""

    mask: Tensor
    """(B, N+1, N+1)"""
    places: tuple[int, ...]
    """Places of the sentences that have constraints"""

    @classmethod
    def of(cls, tables: Sequence[NDArray[np.bool_] | None], longest: int, device: torch.device) -> Forbidden | None:
        """From one table per sentence, or None for a sentence without constraints; None if no sentence has any."""
        mask = torch.zeros(len(tables), longest + 1, longest + 1, dtype=torch.bool)
        places = []
        for place, table in enumerate(tables):
            if table is not None:
                mask[place, : len(table), : len(table)] = torch.from_numpy(table)
                places.append(place)
        return cls(mask.to(device), tuple(places)) if places else None

    def condition(self, unconstrained: PCFG, found: Marginals) -> dict[int, float]:
        """log p(constraints | w) of each sentence that has constraints and a derivation.

        This is log Z of its trees without forbidden spans, which `found` contains, minus log Z of all its trees, which
        then replaces it in `found`.
        """
        places = list(self.places)
        of_all, _ = reliable_log_partition(unconstrained.select(places))
        # If the constraints hold in all trees, rounding may give them a probability above 1.
        log_p = (found.log_partition[places].double() - of_all).clamp(max=0)
        found.log_partition[places] = of_all.to(found.log_partition.dtype)
        derived = (of_all > -torch.inf).tolist()
        return {place: p for place, p, has_trees in zip(places, log_p.tolist(), derived, strict=True) if has_trees}


def mask_forbidden(forbidden: Forbidden | None, found: Marginals) -> Marginals:
    """Posteriors as scores for the search: minus infinity for forbidden spans, because zero would not exclude them."""
    if forbidden is None:
        return found
    scores = {"spans": found.spans.masked_fill(forbidden.mask, -torch.inf)}
    if found.best_label_posterior is not None:
        scores["best_label_posterior"] = found.best_label_posterior.masked_fill(forbidden.mask, -torch.inf)
    return replace(found, **scores)

"""How undecided a grammar is about a sentence."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from ramify.inference.dispatch import inside
from ramify.inference.rules import Rules


@torch.enable_grad()
def derivation_entropy(rules: Rules, engine: str = "auto") -> Tensor:
    """The entropy in nats of each sentence's posterior over derivations (B,); zero where there is none.

    Of dense rules the derivations are labelled trees; of low-rank rules, labelled trees with a rank component at every
    rule, so it is an upper bound of the entropy of the trees. H = log p(w) - E[log p(derivation, w)], and the
    expectation is the sum over rules of their expected counts, which are gradients, times their log-probabilities.
    """
    result = []
    for b in range(len(rules.lengths)):
        alone = rules.sentence(b)
        named = {name: t.detach().requires_grad_() for name, t in alone.tensors().items() if name != "lengths"}
        renewed = replace(alone, **named)  # type: ignore[arg-type]
        log_z = inside(renewed, engine=engine)
        if log_z == -torch.inf:
            result.append(log_z.new_zeros(()))
            continue
        counts = torch.autograd.grad(log_z.sum(), list(named.values()))
        expected = sum(
            torch.where(number > 0, number * tensor, 0).sum(dtype=torch.float64)
            for number, tensor in zip(counts, named.values(), strict=True)
        )
        result.append((log_z[0] - expected).to(log_z.dtype))
    return torch.stack(result).detach()

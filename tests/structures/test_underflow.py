"""Rules so sharp that float32 underflows nearly everywhere: nothing may become NaN or infinite."""

from __future__ import annotations

import pytest
import torch

from ramify.runtime.threads import torch_on_one_core
from ramify.structures.pcfg import PCFG
from tests.structures.random_rules import inside, marginals, parameters, random_dense_rules, random_rules

SHARPNESS, LENGTHS = 60, [40, 2]
SHAPES = {
    "through symbols": (4, 6, 9),
    "through the rank": (12, 6, 4),
    "without a head": (8, 6, None),
    "dense": (5, 6),
    "dense, per sentence": (5, 6),
}


def sharp(kind: str, seed: int) -> PCFG:
    options = {"seed": seed, "sharpness": SHARPNESS, "dtype": torch.float32}
    if kind.startswith("dense"):
        return random_dense_rules(*SHAPES[kind], LENGTHS, per_sentence="per" in kind, **options)
    return random_rules(*SHAPES[kind], LENGTHS, **options)


@pytest.mark.parametrize("engine", ["compiled", "scaled"])
@pytest.mark.parametrize("kind", SHAPES)
@torch_on_one_core()  # torch's threads would wait for each other at every small step
def test_gradients_and_posteriors_stay_finite(engine: str, kind: str) -> None:
    for seed in range(8):
        rules = sharp(kind, seed)
        scores = torch.zeros(len(LENGTHS), 41, 41, requires_grad=True)
        log_z = inside(rules, scores, engine)
        assert not log_z.isnan().any()
        assert (log_z < torch.inf).all()
        inputs = {**parameters(rules), "span_scores": scores}
        # All sentences together: one without a derivation in float32 must not harm the others.
        gradients = torch.autograd.grad(log_z, list(inputs.values()), torch.ones_like(log_z))
        for name, gradient in zip(inputs, gradients, strict=True):
            assert gradient.isfinite().all(), (seed, name)
        for name, value in marginals(rules, engine=engine).tensors().items():
            assert not value.isnan().any(), (seed, name)
            assert name == "log_partition" or value.isfinite().all(), (seed, name)

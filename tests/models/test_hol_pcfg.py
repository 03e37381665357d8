"""The vectors of hol-pcfg: Fourier coefficients of modulus 1, projected after every step."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from ramify.models import HolPCFG
from ramify.models.hol_pcfg import ProjectedAdam, bind, to_unit_modulus
from tests.structures.random_rules import inside


def coefficients(vectors: Tensor) -> Tensor:
    """Fourier coefficients (..., e) by definition."""
    e = vectors.shape[-1]
    angles = torch.outer(torch.arange(e), torch.arange(e)) * (2 * math.pi / e)
    waves = torch.complex(angles.cos(), -angles.sin()).to(torch.complex128)
    return vectors.to(torch.complex128) @ waves


def vectors_of(grammar: HolPCFG) -> list[torch.nn.Parameter]:
    """All parameters but the temperatures."""
    return [parameter for name, parameter in grammar.named_parameters() if name != "log_temperatures"]


def made(embedding: int = 12) -> HolPCFG:
    torch.manual_seed(3)
    return HolPCFG(4, 5, 20, embedding=embedding)


@pytest.mark.parametrize("size", [1, 2, 7, 12])
def test_a_projection_keeps_the_phases_and_makes_every_modulus_one(size: int) -> None:
    torch.manual_seed(size)
    vectors = torch.randn(6, size, dtype=torch.float64)
    before, after = coefficients(vectors), coefficients(to_unit_modulus(vectors))
    torch.testing.assert_close(after, before / before.abs(), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(to_unit_modulus(to_unit_modulus(vectors)), to_unit_modulus(vectors))


def test_a_coefficient_of_zero_becomes_one() -> None:
    torch.testing.assert_close(
        coefficients(to_unit_modulus(torch.zeros(2, 6))).real, torch.ones(2, 6, dtype=torch.float64)
    )


@pytest.mark.parametrize("size", [7, 12])
def test_all_vectors_begin_with_uniform_phases(size: int) -> None:
    grammar = made(size)
    for vectors in vectors_of(grammar):
        torch.testing.assert_close(
            coefficients(vectors.detach()).abs(), torch.ones_like(vectors).double(), atol=1e-5, rtol=0
        )
    torch.manual_seed(0)
    many = coefficients(HolPCFG(4000, 1, 2, embedding=size).symbols.detach())
    quarters = ((many[:, 1].angle() + math.pi) / (math.pi / 2)).long().clamp(0, 3).bincount(minlength=4)
    assert (quarters - 1000).abs().max() < 150
    signs = (many[:, 0].real > 0).sum()
    assert abs(int(signs) - 2000) < 200


def test_bound_vectors_have_unit_modulus() -> None:
    grammar = made()
    joined = bind(grammar.relations[0].detach(), grammar.symbols.detach())
    torch.testing.assert_close(coefficients(joined).abs(), torch.ones(9, 12, dtype=torch.float64), atol=1e-5, rtol=0)


def test_every_step_ends_with_a_projection() -> None:
    grammar = made()
    learner = grammar.learner(0.05, 3.0)
    assert isinstance(learner, ProjectedAdam)
    before = {name: value.clone() for name, value in grammar.state_dict().items()}
    word_ids, lengths = torch.randint(20, (4, 6)), torch.tensor([6, 6, 3, 2])
    found = []
    for _ in range(20):
        objective = grammar.objective(word_ids, lengths)
        found.append(objective.detach().mean().item())
        learner.update(objective)
        for vectors in vectors_of(grammar):
            modulus = coefficients(vectors.detach()).abs()
            torch.testing.assert_close(modulus, torch.ones_like(modulus), atol=1e-5, rtol=0)
    assert found[-1] > found[0] + 1
    for name, value in grammar.state_dict().items():
        assert (value - before[name]).abs().max() > 1e-3, name


def test_a_step_is_that_of_adam_followed_by_the_projection() -> None:
    ours, plain = made().double(), made().double()
    word_ids, lengths = torch.randint(20, (4, 6)), torch.full((4,), 6)
    learner = ours.learner(0.01, 3.0)
    other = torch.optim.Adam(plain.parameters(), 0.01, ours.betas)
    for _ in range(3):
        learner.update(ours.objective(word_ids, lengths))
        other.zero_grad()
        (-plain.objective(word_ids, lengths).mean()).backward()
        torch.nn.utils.clip_grad_norm_(plain.parameters(), 3.0)
        other.step()
        with torch.no_grad():
            for vectors in vectors_of(plain):
                vectors.copy_(to_unit_modulus(vectors))
    for name, value in plain.state_dict().items():
        torch.testing.assert_close(ours.state_dict()[name], value, msg=name)


def test_gradients_are_those_of_finite_differences() -> None:
    grammar = made(6).double()
    word_ids, lengths = torch.tensor([[1, 5, 2, 2], [7, 3, 0, 0]]), torch.tensor([4, 2])

    def value() -> Tensor:
        return inside(grammar(word_ids, lengths), engine="reference").sum()

    gradients = torch.autograd.grad(value(), list(grammar.parameters()))
    generator = torch.Generator().manual_seed(1)
    for (name, parameter), gradient in zip(grammar.named_parameters(), gradients, strict=True):
        direction = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
        with torch.no_grad():
            parameter += 1e-5 * direction
            above = value()
            parameter -= 2e-5 * direction
            below = value()
            parameter += 1e-5 * direction
        slope = (above - below) / 2e-5
        assert slope.item() == pytest.approx((gradient * direction).sum().item(), rel=1e-5, abs=1e-7), name
        assert gradient.abs().max() > 0, name

"""Parts that run at the same time compared with the same parts in sequence."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from ramify.runtime.parallel_autograd import Part, run_parts


@pytest.fixture
def parts():
    torch.manual_seed(0)
    shared = nn.Parameter(torch.randn(5, 4, dtype=torch.float64))
    first, second = nn.Linear(4, 3, dtype=torch.float64), nn.Linear(4, 2, dtype=torch.float64)
    frozen = nn.Parameter(torch.randn(2, dtype=torch.float64), requires_grad=False)
    return [
        Part(lambda: first(shared).relu(), [shared, *first.parameters()], 1),
        Part(lambda: second(shared[:3]).log_softmax(0) * frozen, [shared, *second.parameters(), frozen], 1),
    ]


def gradients(results, parts) -> list[torch.Tensor]:
    total = sum((result * torch.linspace(-1, 2, result.numel()).view_as(result)).sum() for result in results)
    wanted = list({id(p): p for part in parts for p in part.inputs if p.requires_grad}.values())
    return list(torch.autograd.grad(total, wanted))


def test_gradients_pass_through_computed_inputs(on_cores):
    torch.manual_seed(0)
    source, first, second = (torch.randn(3, 3, dtype=torch.float64, requires_grad=True) for _ in range(3))

    def total(run) -> torch.Tensor:
        given = source.tanh()
        parts = [Part(lambda: given @ first, [given, first], 1e9), Part(lambda: second @ given, [given, second], 1e9)]
        return sum(result.square().sum() for result in run(parts))

    leaves = (source, first, second)
    expected = torch.autograd.grad(total(lambda parts: [part.function() for part in parts]), leaves)
    on_cores(2)
    for found, each in zip(torch.autograd.grad(total(run_parts), leaves), expected, strict=True):
        torch.testing.assert_close(found, each, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("cores", [1, 2, 3])
def test_values_and_gradients_equal_those_of_serial_execution(parts, cores, on_cores):
    expected = [part.function() for part in parts]
    on_cores(cores)
    found = run_parts(parts)
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))
    found_gradients = gradients(found, parts)
    with torch.no_grad():
        assert not run_parts(parts)[0].requires_grad
    for gradient, expected_gradient in zip(found_gradients, gradients(expected, parts), strict=True):
        torch.testing.assert_close(gradient, expected_gradient, rtol=1e-12, atol=1e-12)


def test_a_second_backward_pass_gives_the_same_gradients(parts, on_cores):
    on_cores(2)
    total = sum(result.sum() for result in run_parts(parts))
    wanted = [parameter for parameter in parts[0].inputs if parameter.requires_grad]
    first = torch.autograd.grad(total, wanted, retain_graph=True)
    second = torch.autograd.grad(total, wanted)
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))

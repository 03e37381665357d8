"""Linear layers with compiled loops compared with those of torch: values and every gradient."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from ramify.models import linear as layers
from ramify.models.linear import Linear
from ramify.models.networks import Residual


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-4), (torch.float64, 1e-12)])
@pytest.mark.parametrize(
    "shape", [(8, 16, 1), (9, 32, 5), (60, 16, 70), (100, 256, 20), (2, 9, 16, 7), (3, 16, 4), (9, 5, 3)]
)
@pytest.mark.parametrize("bias", [True, False])
def test_value_and_every_gradient_equal_those_of_torch(shape, bias, dtype, tolerance):
    *leading, inner, size = shape
    torch.manual_seed(0)
    layer = Linear(inner, size, bias=bias).to(dtype)
    x = torch.randn(*leading, inner, dtype=dtype, requires_grad=True)
    upstream = torch.randn(*leading, size, dtype=dtype)
    inputs = (x, *layer.parameters())
    found, expected = layer(x), nn.functional.linear(x, layer.weight, layer.bias)
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)
    gradients = (torch.autograd.grad(y, inputs, upstream) for y in (found, expected))
    for gradient, expected_gradient in zip(*gradients, strict=True):
        torch.testing.assert_close(gradient, expected_gradient, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("rows", [8, 13, 32])
def test_layers_that_change_what_they_are_given_in_place(rows, monkeypatch):
    torch.manual_seed(0)
    network = nn.Sequential(Linear(16, 32), nn.ReLU(inplace=True), Residual(32), Residual(32), Linear(32, 3)).double()
    x = torch.randn(rows, 16, dtype=torch.float64, requires_grad=True)
    inputs = (x, *network.parameters())
    found = torch.autograd.grad(network(x).log_softmax(0)[:, 0].sum(), inputs)
    monkeypatch.setattr(layers, "loops_are_postponed", lambda: True)
    expected = torch.autograd.grad(network(x).log_softmax(0)[:, 0].sum(), inputs)
    for gradient, expected_gradient in zip(found, expected, strict=True):
        torch.testing.assert_close(gradient, expected_gradient, rtol=1e-12, atol=1e-12)


def test_an_embedding_that_is_only_in_part_used():
    torch.manual_seed(0)
    layer, embedding = Linear(16, 4).double(), torch.randn(30, 16, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(layer(embedding[10:20]).sum(), [embedding])
    torch.testing.assert_close(gradient[10:20], layer.weight.sum(0).expand(10, 16))
    assert not gradient[:10].any()
    assert not gradient[20:].any()


def test_a_weight_that_is_a_part_of_a_matrix():
    torch.manual_seed(0)
    whole, x = torch.randn(7, 48, dtype=torch.float64), torch.randn(9, 32, dtype=torch.float64)
    weight = whole[:, :32].requires_grad_()
    found, expected = layers.linear(x, weight), x @ weight.T
    torch.testing.assert_close(found, expected)
    gradients = (torch.autograd.grad(y.square().sum(), [weight])[0] for y in (found, expected))
    torch.testing.assert_close(*gradients)

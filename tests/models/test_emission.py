"""The softmax in blocks compared with the plain one: values and every gradient."""

from __future__ import annotations

import pytest
import torch

from ramify.models import emission
from ramify.models.emission import word_log_probabilities
from ramify.runtime import threads


def random_layer(p: int, e: int, q: int, dtype: torch.dtype, sharpness: float = 1.0) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(p + e + q)
    shapes = ((p, e), (q, e), (q,))
    drawn = (torch.randn(shape, generator=generator, dtype=torch.float64) * sharpness for shape in shapes)
    return tuple(tensor.to(dtype).requires_grad_() for tensor in drawn)


def plain(states: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, word_ids: torch.Tensor) -> torch.Tensor:
    return (states @ weight.T + bias).log_softmax(1).T[word_ids]


@pytest.fixture(params=[1, 2, 3])
def cores(request, on_cores):
    on_cores(request.param)


@pytest.fixture(params=["loops", "loops that keep nothing", "torch"], autouse=True)
def way(request, monkeypatch):
    """Compiled loops with and without kept logits, and the implementation for other devices."""
    if request.param == "torch":
        monkeypatch.setattr(emission, "loops_are_postponed", lambda: True)
    elif request.param != "loops":
        monkeypatch.setattr(emission, "MAX_KEPT", 0)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-11), (torch.float32, 2e-5)])
@pytest.mark.parametrize(("p", "e", "q"), [(3, 4, 10), (1, 1, 1), (5, 2, 37), (2, 7, 64), (21, 18, 40)])
@pytest.mark.parametrize("block", [1, 16, 1000, None])
@pytest.mark.usefixtures("cores")
def test_value_and_every_gradient_equal_the_plain_softmax(dtype, tolerance, p, e, q, block):
    layer = random_layer(p, e, q, dtype)
    exact = tuple(tensor.detach().double().requires_grad_() for tensor in layer)
    word_ids = torch.arange(8).reshape(2, 4) % min(q, 5)  # with repeated words
    upstream = torch.linspace(-1, 2, 8 * p, dtype=torch.float64).reshape(2, 4, p)
    expected = plain(*exact, word_ids)
    found = word_log_probabilities(*layer, word_ids, block)
    torch.testing.assert_close(found.double(), expected, rtol=tolerance, atol=tolerance)
    expected_gradients = torch.autograd.grad(expected, exact, upstream)
    found_gradients = torch.autograd.grad(found, layer, upstream.to(dtype))
    for gradient, expected_gradient in zip(found_gradients, expected_gradients, strict=True):
        torch.testing.assert_close(gradient.double(), expected_gradient, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("block", [3, None])
@pytest.mark.usefixtures("cores")
def test_separate_states_equal_each_sentence_alone(block):
    states, weight, bias = random_layer(4, 3, 17, torch.float64)
    own = torch.stack([states.detach(), -2 * states.detach()]).requires_grad_()
    word_ids = torch.tensor([[3, 3, 0], [16, 5, 3]])
    upstream = torch.linspace(-1, 2, 24, dtype=torch.float64).reshape(2, 3, 4)
    found = word_log_probabilities(own, weight, bias, word_ids, block)
    expected = torch.stack([plain(own[b], weight, bias, word_ids[b]) for b in range(2)])
    torch.testing.assert_close(found, expected, rtol=1e-11, atol=1e-11)
    gradients = (torch.autograd.grad(x, (own, weight, bias), upstream) for x in (found, expected))
    for gradient, expected_gradient in zip(*gradients, strict=True):
        torch.testing.assert_close(gradient, expected_gradient, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("block", [3, None])
@pytest.mark.usefixtures("cores")
def test_more_preterminals_than_a_block_holds(block):
    layer = random_layer(2 * emission.BLOCK_STATES + 5, 2, 7, torch.float64)
    word_ids = torch.tensor([3, 0, 3, 6])
    upstream = torch.linspace(-1, 2, 4 * len(layer[0]), dtype=torch.float64).reshape(4, -1)
    found, expected = word_log_probabilities(*layer, word_ids, block), plain(*layer, word_ids)
    torch.testing.assert_close(found, expected, rtol=1e-11, atol=1e-11)
    gradients = (torch.autograd.grad(x, layer, upstream) for x in (found, expected))
    for gradient, expected_gradient in zip(*gradients, strict=True):
        torch.testing.assert_close(gradient, expected_gradient, rtol=1e-10, atol=1e-10)


def test_gradients_by_finite_differences():
    layer = random_layer(3, 4, 11, torch.float64)
    assert torch.autograd.gradcheck(lambda *x: word_log_probabilities(*x, torch.tensor([3, 0, 3]), 4), layer)


def test_large_logits_do_not_overflow():
    layer = random_layer(4, 5, 30, torch.float32, sharpness=30)
    word_ids = torch.arange(30)
    found = word_log_probabilities(*layer, word_ids, 7)
    states, weight, bias = (tensor.detach().double() for tensor in layer)
    exact = plain(states, weight, bias, word_ids)
    # A log-probability is a difference of logits, so it is as precise as the largest of them; how it is rounded
    # depends on the machine's matrix product.
    precision = torch.finfo(torch.float32).eps * float((states @ weight.T + bias).abs().max())
    torch.testing.assert_close(found.detach().double(), exact, rtol=1e-5, atol=2 * precision)
    found.sum().backward()
    assert all(tensor.grad.isfinite().all() for tensor in layer)


@pytest.mark.usefixtures("cores")
def test_repeated_computations_give_the_same_bits():
    layer = random_layer(6, 8, 501, torch.float32)
    word_ids = torch.randint(501, (4, 9), generator=torch.Generator().manual_seed(0))

    def run() -> list[torch.Tensor]:
        found = word_log_probabilities(*layer, word_ids, 50)
        return [found, *torch.autograd.grad(found.sum(), layer)]

    assert all(torch.equal(a, b) for a, b in zip(run(), run(), strict=True))


def test_a_block_of_no_words_is_refused():
    with pytest.raises(ValueError, match="at least one word"):
        word_log_probabilities(*random_layer(2, 2, 2, torch.float32), torch.tensor([0]), 0)


def test_pieces_come_back_in_order_from_threads_with_torch_on_one_core(on_cores):
    on_cores(2)
    found = threads.in_pieces(lambda i: (i, torch.get_num_threads(), torch.is_grad_enabled()), range(5))
    assert found == [(i, 1, False) for i in range(5)]
    assert torch.get_num_threads() == 2
    with threads.torch_on_one_core():
        assert (torch.get_num_threads(), threads.available()) == (1, 2)
    assert (torch.get_num_threads(), threads.available()) == (2, 2)
    with pytest.raises(ZeroDivisionError):
        threads.in_pieces(lambda i: 1 // i, range(3))


def test_little_work_stays_on_one_core(on_cores, monkeypatch):
    on_cores(2)
    monkeypatch.setattr(threads, "SMALLEST_WORK", 1000)
    assert (threads.worth(999), threads.worth(1001)) == (1, 2)

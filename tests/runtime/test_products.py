"""Matrix products and powers inside compiled loops, against numpy."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ramify.models.adam_loops import sum_of_squares
from ramify.runtime.blocks import load_narrow, power_of_two, store
from ramify.runtime.compilation import compiled
from ramify.runtime.padding import NARROW_BYTES, narrow_rows
from ramify.runtime.products import multiply

SHAPES = [(1, 1, 16), (5, 3, 16), (6, 7, 48), (7, 2, 64), (13, 30, 208), (97, 5, 80), (200, 257, 16), (12, 600, 144)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("add", [False, True])
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-4), (np.float64, 1e-12)])
def test_a_product_is_numpys(shape, transposed, add, dtype, tolerance):
    rows, inner, columns = shape
    rng = np.random.default_rng(sum(shape))
    a, b = rng.normal(size=(rows, inner + 3)).astype(dtype), rng.normal(size=(inner + 1, columns + 16)).astype(dtype)
    c = rng.normal(size=(rows + 2, columns + 32)).astype(dtype)
    expected = c.copy()
    # From the second row and column of a on, the second row of b, into the second row and block of c.
    block = expected[1 : rows + 1, 16 : columns + 16]
    block[:] = (block if add else 0) + a[:, 1 : inner + 1] @ b[1:, :columns]
    laid = np.ascontiguousarray(a.T) if transposed else a
    first, row, step = (rows, 1, rows) if transposed else (1, inner + 3, 1)
    width = columns + 32
    multiply(laid, first, row, step, b, columns + 16, columns + 16, rows, inner, columns, c, width + 16, width, add)
    np.testing.assert_allclose(c, expected, rtol=tolerance, atol=tolerance)


@compiled
def _powers(numbers, powers):
    for k in range(0, numbers.shape[0], NARROW_BYTES // numbers.itemsize):
        store(powers, k, power_of_two(load_narrow(numbers, k)))


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 3e-7), (np.float64, 1e-15)])
def test_powers_of_two(dtype, tolerance):
    numbers = np.linspace(-125.9, 126, 16_000, dtype=dtype)
    powers = np.empty_like(numbers)
    _powers(numbers, powers)
    np.testing.assert_allclose(powers, np.exp2(numbers.astype(np.float64)), rtol=tolerance)


def test_powers_that_vanish_and_what_is_not_a_number():
    numbers = np.zeros(16, np.float32)
    numbers[:4] = -np.inf, -1e30, -127, np.nan
    powers = np.empty_like(numbers)
    _powers(numbers, powers)
    assert powers[:3].tolist() == [0, 0, 0]
    assert np.isnan(powers[3])
    assert powers[4:].tolist() == [1] * 12


@pytest.mark.parametrize("size", [1, 63, 64, 65, 5000, 40_001])
def test_the_squared_norm_of_any_size(size):
    numbers = np.random.default_rng(size).normal(size=size).astype(np.float32)
    assert sum_of_squares(numbers) == pytest.approx(float((numbers.astype(np.float64) ** 2).sum()), rel=1e-6)


@pytest.mark.parametrize("columns", [1, 15, 16, 17])
def test_narrow_rows_end_in_zeros(columns):
    matrix = torch.rand(3, 2, columns)
    found = narrow_rows(matrix)
    assert found.shape[-1] % 16 == 0
    assert found.is_contiguous()
    assert torch.equal(found[..., :columns], matrix)
    assert not found[..., columns:].any()

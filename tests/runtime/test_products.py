"""Matrix products, sums of products and powers in compiled loops compared with numpy; rows bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ramify.models.adam_loops import sum_of_squares
from ramify.runtime.compilation import compiled
from ramify.runtime.padding import NARROW_BYTES, narrow_rows
from ramify.runtime.products import DEPTH, multiply, multiply_rows, pack, sum_of_products
from ramify.runtime.register_blocks import load_narrow, power_of_two, store
from ramify.structures.compiled_sums import exponentials

SHAPES = [(1, 1, 16), (5, 3, 16), (6, 7, 48), (7, 2, 64), (13, 30, 208), (97, 5, 80), (200, 257, 16), (12, 600, 144)]
PACKED_SHAPES = [
    *((rows, 3, 64) for rows in range(1, 26)), (1, 1, 16), (5, 3, 32), (13, 30, 48), (25, 200, 64), (31, 60, 112),
    (7, DEPTH, 16), (14, 2 * DEPTH + 3, 208),
]  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("add", [False, True])
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-4), (np.float64, 1e-12)])
def test_a_product_equals_that_of_numpy(shape, transposed, add, dtype, tolerance):
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


def packed_product(a, b, transposed=False):
    columns = b.shape[1]
    packed = np.full((len(b), -(-columns // 16) * 16), np.nan, b.dtype)
    pack(np.ascontiguousarray(b.T) if transposed else b, transposed, columns, packed)
    result = np.full((len(a), packed.shape[1]), np.nan, a.dtype)
    multiply_rows(a, 0, len(a), packed, result)
    assert not result[:, columns:].any()
    return result[:, :columns]


@pytest.mark.parametrize(("rows", "depth", "columns"), [*PACKED_SHAPES, (3, 4, 1), (8, 5, 39)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_product_with_a_packed_matrix_equals_that_of_numpy(rows, depth, columns, dtype):
    rng = np.random.default_rng(rows)
    # What stands after the depth of a row is padding, and counts for nothing.
    a = rng.standard_normal((rows, depth + 5)).astype(dtype)
    b = rng.standard_normal((depth, columns)).astype(dtype)
    exact = a[:, :depth].astype(np.float64) @ b.astype(np.float64)
    tolerance = 50 * depth * np.finfo(dtype).eps
    np.testing.assert_allclose(packed_product(a, b), exact, atol=tolerance)
    np.testing.assert_allclose(packed_product(a, b, transposed=True), exact, atol=tolerance)


def test_a_row_does_not_depend_on_its_neighbours():
    rng = np.random.default_rng(1)
    a, b = rng.random((29, 531), np.float32), rng.random((531, 112), np.float32)
    together = packed_product(a, b)
    for count in range(1, 29):
        assert np.array_equal(packed_product(a[:count].copy(), b), together[:count])


def test_only_the_given_rows_are_written():
    a, b = np.ones((9, 4), np.float32), np.ones((4, 16), np.float32)
    packed, result = np.empty((4, 16), np.float32), np.zeros((9, 16), np.float32)
    pack(b, False, 16, packed)
    multiply_rows(a, 3, 8, packed, result)
    assert result[:, 0].tolist() == [0, 0, 0, 4, 4, 4, 4, 4, 0]
    assert (result == result[:, :1]).all()


@pytest.mark.parametrize("lines", range(1, 18))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_of_products_of_rows(lines, dtype):
    rng = np.random.default_rng(lines)
    columns = lines * NARROW_BYTES // np.dtype(dtype).itemsize
    a, b, weights = rng.random((6, columns)), rng.random((5, 2 * columns)), rng.random(4)
    a, b = a.astype(dtype), b.astype(dtype)
    a_rows, b_rows = np.array([0, 5, 3, 3]), np.array([4, 0, 2, 1])
    result = np.ones((3, columns), dtype)
    places = a_rows * columns, b_rows * 2 * columns + columns
    sum_of_products(weights, 3, a, places[0], b, places[1], result, columns, columns)
    expected = sum(weights[t] * a[a_rows[t]] * b[b_rows[t], columns:] for t in range(3))
    np.testing.assert_allclose(result[1], expected, rtol=10 * np.finfo(dtype).eps)
    assert (result[[0, 2]] == 1).all()
    sum_of_products(weights, 0, a, places[0], b, places[1], result, columns, columns)
    assert not result[1].any()


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


def test_powers_that_underflow_and_nan():
    numbers = np.zeros(16, np.float32)
    numbers[:4] = -np.inf, -1e30, -127, np.nan
    powers = np.empty_like(numbers)
    _powers(numbers, powers)
    assert powers[:3].tolist() == [0, 0, 0]
    assert np.isnan(powers[3])
    assert powers[4:].tolist() == [1] * 12


def test_exponentials():
    numbers = np.concatenate([np.linspace(-708, 700, 10_001), [0.0]])
    found = numbers.copy()
    exponentials(found, len(found) - 1)
    np.testing.assert_allclose(found[:-1], np.exp(numbers[:-1]), rtol=1e-12)
    assert found[-1] == 0  # beyond the count
    small = np.array([-800.0, -np.inf])
    exponentials(small, 2)
    assert (small < 3e-308).all()


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

"""Products in tiles equal plain ones, for every number of rows that tiles are cut into, and row by row."""

from __future__ import annotations

import numpy as np
import pytest

from ramify.runtime.matrix_tiles import DEPTH, multiply_rows, pack, sum_of_products
from ramify.runtime.padding import NARROW_BYTES

SHAPES = [(1, 1, 16), (5, 3, 32), (13, 30, 48), (25, 200, 64), (31, 60, 112), (7, DEPTH, 16), (14, 2 * DEPTH + 3, 208)]


def product(a, b):
    packed = np.full(b.size, np.nan, b.dtype)
    pack(b, packed)
    result = np.full((len(a), b.shape[1]), np.nan, a.dtype)
    multiply_rows(a, 0, len(a), packed, len(b), result)
    return result


@pytest.mark.parametrize(("rows", "depth", "columns"), SHAPES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_product_equals_that_of_numpy(rows, depth, columns, dtype):
    rng = np.random.default_rng(rows)
    # What stands after the depth of a row is padding, and counts for nothing.
    a = rng.standard_normal((rows, depth + 5)).astype(dtype)
    b = rng.standard_normal((depth, columns)).astype(dtype)
    exact = a[:, :depth].astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(product(a, b), exact, atol=50 * depth * np.finfo(dtype).eps)


def test_a_row_does_not_depend_on_its_neighbours():
    rng = np.random.default_rng(1)
    a, b = rng.random((29, 531), np.float32), rng.random((531, 112), np.float32)
    together = product(a, b)
    for count in (1, 2, 3, 4, 5, 7, 12, 13):
        assert np.array_equal(product(a[:count].copy(), b), together[:count])


def test_only_the_given_rows_are_written():
    a, b = np.ones((9, 4), np.float32), np.ones((4, 16), np.float32)
    packed, result = np.empty(b.size, np.float32), np.zeros((9, 16), np.float32)
    pack(b, packed)
    multiply_rows(a, 3, 8, packed, 4, result)
    assert result[:, 0].tolist() == [0, 0, 0, 4, 4, 4, 4, 4, 0]
    assert (result == result[:, :1]).all()


@pytest.mark.parametrize("lines", [1, 3, 4, 7, 8, 13])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_of_products_of_rows(lines, dtype):
    rng = np.random.default_rng(lines)
    columns = lines * NARROW_BYTES // np.dtype(dtype).itemsize
    a, b, weights = rng.random((6, columns)), rng.random((5, 2 * columns)), rng.random(4).astype(dtype)
    a, b = a.astype(dtype), b.astype(dtype)
    a_rows, b_rows = np.array([0, 5, 3, 3]), np.array([4, 0, 2, 1])
    result = np.zeros((3, columns), dtype)
    places = a_rows * columns, b_rows * 2 * columns + columns
    sum_of_products(weights, 3, a, places[0], b, places[1], result, columns, columns)
    expected = sum(weights[t] * a[a_rows[t]] * b[b_rows[t], columns:] for t in range(3))
    np.testing.assert_allclose(result[1], expected, rtol=10 * np.finfo(dtype).eps)
    assert not result[[0, 2]].any()

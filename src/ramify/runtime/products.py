"""Matrix products inside compiled loops.

A torch call for each small product takes the interpreter's lock and some microseconds, and torch's library takes half
of the registers' width on some processors. Here a tile of the result, six rows by a block of columns, stays in
registers while the products are added to it.
"""

# mypy: disable-error-code=no-untyped-def

from __future__ import annotations

import torch

from ramify.runtime.blocks import added_product, load, load_narrow, store, zeros, zeros_narrow
from ramify.runtime.compilation import compiled
from ramify.runtime.padding import BLOCK_BYTES, NARROW_BYTES

_INNER = 256
"""How many products are added to a tile at once: what they are made from stays in the cache."""
_ROWS = 96
"""Rows of the result that use the same part of b before the next."""
_WIDE = "AVX512" in torch.backends.cpu.get_cpu_capability()
"""Whether the registers hold six rows of a whole block; else tiles are narrow."""


@compiled
def _wide_tile(a, a_first, a_row, a_step, b, b_first, b_row, inner, c, c_first, c_row, add):
    if add:
        s0, s1, s2 = load(c, c_first), load(c, c_first + c_row), load(c, c_first + 2 * c_row)
        s3, s4, s5 = load(c, c_first + 3 * c_row), load(c, c_first + 4 * c_row), load(c, c_first + 5 * c_row)
    else:
        s0, s1, s2, s3, s4, s5 = zeros(c), zeros(c), zeros(c), zeros(c), zeros(c), zeros(c)
    for k in range(inner):
        x, at = load(b, b_first + k * b_row), a_first + k * a_step
        s0, s1 = added_product(s0, a, at, x), added_product(s1, a, at + a_row, x)
        s2, s3 = added_product(s2, a, at + 2 * a_row, x), added_product(s3, a, at + 3 * a_row, x)
        s4, s5 = added_product(s4, a, at + 4 * a_row, x), added_product(s5, a, at + 5 * a_row, x)
    store(c, c_first, s0)
    store(c, c_first + c_row, s1)
    store(c, c_first + 2 * c_row, s2)
    store(c, c_first + 3 * c_row, s3)
    store(c, c_first + 4 * c_row, s4)
    store(c, c_first + 5 * c_row, s5)


@compiled
def _wide_row(a, a_first, a_step, b, b_first, b_row, inner, c, c_first, add):
    total = load(c, c_first) if add else zeros(c)
    for k in range(inner):
        total = added_product(total, a, a_first + k * a_step, load(b, b_first + k * b_row))
    store(c, c_first, total)


@compiled
def _narrow_tile(a, a_first, a_row, a_step, b, b_first, b_row, inner, c, c_first, c_row, add):
    if add:
        s0, s1, s2 = load_narrow(c, c_first), load_narrow(c, c_first + c_row), load_narrow(c, c_first + 2 * c_row)
        s3, s4 = load_narrow(c, c_first + 3 * c_row), load_narrow(c, c_first + 4 * c_row)
        s5 = load_narrow(c, c_first + 5 * c_row)
    else:
        s0, s1, s2 = zeros_narrow(c), zeros_narrow(c), zeros_narrow(c)
        s3, s4, s5 = zeros_narrow(c), zeros_narrow(c), zeros_narrow(c)
    for k in range(inner):
        x, at = load_narrow(b, b_first + k * b_row), a_first + k * a_step
        s0, s1 = added_product(s0, a, at, x), added_product(s1, a, at + a_row, x)
        s2, s3 = added_product(s2, a, at + 2 * a_row, x), added_product(s3, a, at + 3 * a_row, x)
        s4, s5 = added_product(s4, a, at + 4 * a_row, x), added_product(s5, a, at + 5 * a_row, x)
    store(c, c_first, s0)
    store(c, c_first + c_row, s1)
    store(c, c_first + 2 * c_row, s2)
    store(c, c_first + 3 * c_row, s3)
    store(c, c_first + 4 * c_row, s4)
    store(c, c_first + 5 * c_row, s5)


@compiled
def _narrow_row(a, a_first, a_step, b, b_first, b_row, inner, c, c_first, add):
    total = load_narrow(c, c_first) if add else zeros_narrow(c)
    for k in range(inner):
        total = added_product(total, a, a_first + k * a_step, load_narrow(b, b_first + k * b_row))
    store(c, c_first, total)


@compiled
def _panel(wide, a, a_first, a_row, a_step, b, b_first, b_row, rows, inner, c, c_first, c_row, add):
    """One block of columns."""
    sixes = rows - rows % 6
    for i in range(0, sixes, 6):
        at, into = a_first + i * a_row, c_first + i * c_row
        if wide:
            _wide_tile(a, at, a_row, a_step, b, b_first, b_row, inner, c, into, c_row, add)
        else:
            _narrow_tile(a, at, a_row, a_step, b, b_first, b_row, inner, c, into, c_row, add)
    for i in range(sixes, rows):
        at, into = a_first + i * a_row, c_first + i * c_row
        if wide:
            _wide_row(a, at, a_step, b, b_first, b_row, inner, c, into, add)
        else:
            _narrow_row(a, at, a_step, b, b_first, b_row, inner, c, into, add)


@compiled
def multiply(a, a_first, a_row, a_step, b, b_first, b_row, rows, inner, columns, c, c_first, c_row, add):
    """c = a b, or c += a b with `add`, of matrices anywhere in contiguous arrays, for indices through all dimensions.

    a[i, k] stands at `a_first + i * a_row + k * a_step`, so a transposed matrix is a choice of steps. Rows of b and c
    are contiguous and begin `b_row` and `c_row` apart. `columns` is a whole number of narrow blocks; `inner` is not 0.
    """
    block, narrow = BLOCK_BYTES // c.itemsize, NARROW_BYTES // c.itemsize
    for i in range(0, rows, _ROWS):
        count = min(_ROWS, rows - i)
        for k in range(0, inner, _INNER):
            depth, more = min(_INNER, inner - k), add or k > 0
            at, into = a_first + i * a_row + k * a_step, c_first + i * c_row
            below, j = b_first + k * b_row, 0
            if _WIDE:
                while j + block <= columns:
                    _panel(True, a, at, a_row, a_step, b, below + j, b_row, count, depth, c, into + j, c_row, more)
                    j += block
            while j < columns:
                _panel(False, a, at, a_row, a_step, b, below + j, b_row, count, depth, c, into + j, c_row, more)
                j += narrow

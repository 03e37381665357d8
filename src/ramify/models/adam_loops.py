"""The compiled loops of Adam; the numbers of a parameter as vectors."""

# mypy: disable-error-code=no-untyped-def

from __future__ import annotations

import math

import numpy as np

from ramify.runtime.compilation import compiled
from ramify.runtime.padding import BLOCK_BYTES
from ramify.runtime.register_blocks import added, filled, load, multiplied, store

_RUN = 16384
"""Number of squares, some hundreds for each number of a block, that are summed in the parameter's precision; more would
lose digits in float32."""


@compiled
def sum_of_squares(gradient):
    """The squared norm."""
    size, block = gradient.shape[0], BLOCK_BYTES // gradient.itemsize
    whole = size - size % block
    sums, total = np.empty(block, gradient.dtype), 0.0
    for begin in range(0, whole, _RUN):
        run = filled(gradient.dtype.type(0))
        for k in range(begin, min(begin + _RUN, whole), block):
            numbers = load(gradient, k)
            run = added(run, multiplied(numbers, numbers))
        store(sums, 0, run)
        for k in range(block):
            total += sums[k]
    for k in range(whole, size):
        total += gradient[k] * gradient[k]
    return total


@compiled
def update(values, gradient, mean, square, factor, mean_rate, square_rate, step_size, root_scale, epsilon):
    """Kingma and Ba (2015), algorithm 1, with the gradient times `factor`; the bias corrections are arguments."""
    for k in range(values.shape[0]):
        g = gradient[k] * factor
        mean[k] += (g - mean[k]) * mean_rate
        square[k] += (g * g - square[k]) * square_rate
        values[k] -= step_size * mean[k] / (math.sqrt(square[k]) * root_scale + epsilon)

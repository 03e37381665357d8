"""The compiled loops of Adam; the numbers of a parameter as vectors."""

# mypy: disable-error-code=no-untyped-def

from __future__ import annotations

import math

from ramify.runtime.compilation import compiled

_RUN = 4096
"""So many squares are summed in the parameter's own precision; more would lose digits in float32."""


@compiled
def sum_of_squares(gradient):
    """The squared norm."""
    total = 0.0
    for begin in range(0, gradient.shape[0], _RUN):
        run = gradient.dtype.type(0)
        for k in range(begin, min(begin + _RUN, gradient.shape[0])):
            run += gradient[k] * gradient[k]
        total += run
    return total


@compiled
def update(values, gradient, mean, square, factor, mean_rate, square_rate, step_size, root_scale, epsilon):
    """Kingma and Ba (2015), algorithm 1, with the gradient times `factor`; the corrections of bias are given."""
    for k in range(values.shape[0]):
        g = gradient[k] * factor
        mean[k] += (g - mean[k]) * mean_rate
        square[k] += (g * g - square[k]) * square_rate
        values[k] -= step_size * mean[k] / (math.sqrt(square[k]) * root_scale + epsilon)

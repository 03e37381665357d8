"""The compiled loops of a linear layer. Rows of x and y are columns here, (size, R), padded to whole narrow blocks.

The weight may be some columns of a larger matrix.
"""

# mypy: disable-error-code=no-untyped-def

from __future__ import annotations

from ramify.runtime.compilation import compiled
from ramify.runtime.products import multiply


@compiled
def forward(weight, bias, x, y):
    """y (out, R) from x (in, R)."""
    (size, inner), R = weight.shape, x.shape[1]
    for i in range(size):
        y[i] = bias[i]
    multiply(weight, 0, weight.strides[0] // weight.itemsize, 1, x, 0, R, size, inner, R, y, 0, R, True)


@compiled
def backward(weight, rows, gradient, g_weight, g_bias, g_x):
    """The gradients by weight, bias and x (in, R), from that by y (out, R); `rows` (r, in) are the rows of x."""
    (size, inner), R = weight.shape, gradient.shape[1]
    for i in range(size):
        g_bias[i] = gradient[i].sum()
    multiply(gradient, 0, R, 1, rows, 0, inner, size, rows.shape[0], inner, g_weight, 0, inner, False)
    multiply(weight, 0, 1, weight.strides[0] // weight.itemsize, gradient, 0, R, inner, size, R, g_x, 0, R, False)

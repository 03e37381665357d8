"""The compiled loops of the softmax over the vocabulary, in blocks of words and preterminals that stay in the cache.

A row of logits is one word with the states of all preterminals, in units of log 2. For the products with words, states
are transposed, (e, p), and padded to whole narrow blocks of columns (runtime/padding.py).
"""

# mypy: disable-error-code=no-untyped-def

from __future__ import annotations

import numpy as np

from ramify.runtime.compilation import compiled
from ramify.runtime.padding import NARROW_BYTES
from ramify.runtime.products import multiply
from ramify.runtime.register_blocks import added, larger, load_narrow, multiplied, power_of_two, store, subtracted


@compiled
def _logits(begin, count, first, columns, states, weight, bias, logits, row):
    """The logits of `count` words from `begin` on, for `columns` preterminals from `first` on, at `row` of `logits`."""
    (e, p), width = states.shape, logits.shape[1]
    for r in range(count):
        for c in range(columns):
            logits[row + r, c] = bias[begin + r]
    multiply(
        weight, begin * weight.shape[1], weight.shape[1], 1, states, first, p, count, e, columns,
        logits, row * width, width, True,
    )  # fmt: skip


@compiled
def log_sums(begin, end, block, group, states, weight, bias, kept, peaks, totals):
    """`totals` (p,) times two to the power of `peaks` (p,) is the sum over the words from `begin` to `end` of 2^logit.

    `kept` (q, p) receives the logits; if it has no rows, they are not kept. A block has `block` words, and
    preterminals are processed `group` at a time.
    """
    p, narrow = states.shape[1], NARROW_BYTES // states.itemsize
    keeping = kept.shape[0] > 0
    room = kept if keeping else np.empty((block, min(group, p)), states.dtype)
    peaks[:] = -np.inf
    totals[:] = 0
    for word in range(begin, end, block):
        count = min(block, end - word)
        for first in range(0, p, group):
            columns = min(group, p - first)
            row = word if keeping else 0
            _logits(word, count, first, columns, states, weight, bias, room, row)
            width = room.shape[1]
            for c in range(0, columns, narrow):
                before = load_narrow(peaks, first + c)
                peak = before
                for r in range(count):
                    peak = larger(load_narrow(room, (row + r) * width + c), peak)
                total = multiplied(load_narrow(totals, first + c), power_of_two(subtracted(before, peak)))
                for r in range(count):
                    logit = load_narrow(room, (row + r) * width + c)
                    total = added(total, power_of_two(subtracted(logit, peak)))
                store(peaks, first + c, peak)
                store(totals, first + c, total)


@compiled
def gradients(
    begin, end, block, group, states, weight, bias, kept, normaliser, counted, counts, g_weight, g_bias, expected
):
    """The normaliser's gradient: `counts` (p,) of the preterminals times probabilities, for words `begin` to `end`.

    `counted` (p, e) are states times counts. `expected` (p, e) receives the sum of the words' vectors, each times its
    probability. `kept` and `normaliser` (p,) are in units of log 2.
    """
    p, narrow, e = states.shape[1], NARROW_BYTES // states.itemsize, weight.shape[1]
    keeping = kept.shape[0] > 0
    room = np.empty((block, min(group, p)), states.dtype)
    width = room.shape[1]
    expected[:] = 0
    for word in range(begin, end, block):
        count = min(block, end - word)
        for first in range(0, p, group):
            columns = min(group, p - first)
            if not keeping:
                _logits(word, count, first, columns, states, weight, bias, room, 0)
            for r in range(count):
                for c in range(0, columns, narrow):
                    logit = load_narrow(kept, (word + r) * p + c) if keeping else load_narrow(room, r * width + c)
                    probability = power_of_two(subtracted(logit, load_narrow(normaliser, first + c)))
                    store(room, r * width + c, probability)
                total = room.dtype.type(0)
                for c in range(columns):
                    total += room[r, c] * counts[first + c]
                g_bias[word + r] = total if first == 0 else g_bias[word + r] + total
            multiply(room, 0, width, 1, counted, first * e, e, count, columns, e, g_weight, word * e, e, first > 0)
            multiply(room, 0, 1, width, weight, word * e, e, columns, count, e, expected, first * e, e, True)

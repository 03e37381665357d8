"""From arc posteriors to the heads of words.

Arc posteriors are (N+1, N): entry [h, q] is the posterior that word q, counted from 0, has the head h, where 0 is the
root and h > 0 the word h-1. Heads are (N,) in the same numbers, as in CoNLL-U. Each function returns the tree with the
largest sum of posteriors, which has the highest expected number of correct heads.

Ties: posteriors are rounded to multiples of 2^-20 and added as integers, so sums do not depend on the order. Among
equal sums, the tree with the shortest arcs wins, then the one whose root is nearest to the middle of the sentence (the
left one of two). Only the remaining ties depend on the direction: Eisner's algorithm splits a span at the lowest place,
so a word between two equally good heads depends on the right one, and `heads_within` chooses the leftmost dependent.
"""

from __future__ import annotations

from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ramify.runtime.compilation import compiled

HeadDecoder = Literal["projective", "constituents"]
"""The best projective tree, or the best tree that fits the constituents"""

POSTERIOR_STEPS = 1 << 20
"""Number of steps between the posteriors 0 and 1: about the precision of a sum of many numbers in float32"""
_TOLERANCE = 1e-3
_LARGEST = 1 << 62


def decode_heads(
    arc_posteriors: NDArray[np.floating], spans: NDArray[np.int32], decoder: HeadDecoder = "projective"
) -> NDArray[np.int64]:
    """(N,) heads from arc posteriors (N+1, N) by either decoder; the spans (N-1, 2) are those of a binary tree."""
    return heads_within(arc_posteriors, spans) if decoder == "constituents" else projective_heads(arc_posteriors)


def projective_heads(arc_posteriors: NDArray[np.floating]) -> NDArray[np.int64]:
    """(N,) the best projective tree with one root, from arc posteriors (N+1, N), in O(N^3) (Eisner 1996)."""
    weights = _weights(arc_posteriors)
    N = weights.shape[1]
    heads = np.zeros(N, np.int64)
    if N < 2:
        return heads
    scores, splits = np.zeros((4, N, N), np.int64), np.zeros((3, N, N), np.int32)
    _fill.unless_postponed()(weights[1:], scores, splits)
    root = _nearest_middle(weights[0] + scores[0, 0] + scores[1, :, N - 1])
    waiting = [(0, root, 0), (root, N - 1, 1)]
    while waiting:
        s, t, side = waiting.pop()
        if s == t:
            continue
        k = int(splits[side, s, t])
        i, j = (s, k) if side else (k, t)  # the ends of the arc between the head of all and word k
        middle = int(splits[2, i, j])
        heads[k] = (s if side else t) + 1
        waiting += [(k, t, 1) if side else (s, k, 0), (i, middle, 1), (middle + 1, j, 0)]
    return heads


def heads_within(arc_posteriors: NDArray[np.floating], spans: NDArray[np.int32]) -> NDArray[np.int64]:
    """(N,) the best tree in which every constituent has one head word; only this word has dependents or a head outside.

    The constituents are the spans (N-1, 2) of a binary tree in preorder. At each of them the head of one child becomes
    the head of the other child's head and stays the head of the constituent, as in a lexicalised grammar: O(N^2).
    """
    weights = _weights(arc_posteriors)
    N = weights.shape[1]
    heads = np.zeros(N, np.int64)
    if N == 0:
        return heads
    splits = _splits(spans, N)
    arcs = weights[1:]
    best = {(i, i + 1): np.zeros(1, np.int64) for i in range(N)}
    other: dict[tuple[int, int], NDArray[np.int64]] = {}
    for (i, j), k in reversed(splits.items()):  # children before parents
        left, right = best.pop((i, k)), best.pop((k, j))
        under_left, under_right = arcs[i:k, k:j] + right, arcs[k:j, i:k] + left
        best[i, j] = np.concatenate([left + under_left.max(1), right + under_right.max(1)])
        other[i, j] = np.concatenate([k + under_left.argmax(1), i + under_right.argmax(1)])
    waiting = [(0, N, _nearest_middle(weights[0] + best[0, N]))]
    while waiting:
        i, j, head = waiting.pop()
        if j - i == 1:
            continue
        k, dependent = splits[i, j], int(other[i, j][head - i])
        heads[dependent] = head + 1
        waiting += [(i, k, min(head, dependent)), (k, j, max(head, dependent))]
    return heads


def _weights(arc_posteriors: NDArray[np.floating]) -> NDArray[np.int64]:
    """(N+1, N) integers whose sum over the arcs of a tree orders trees by posteriors, then by total length."""
    posteriors = np.asarray(arc_posteriors, np.float64)
    if posteriors.ndim != 2 or posteriors.shape[0] != posteriors.shape[1] + 1:
        raise ValueError(f"arc posteriors are (N+1, N), not {posteriors.shape}")
    if not ((posteriors >= -_TOLERANCE) & (posteriors <= 1 + _TOLERANCE)).all():  # not so for NaN
        raise ValueError("arc posteriors must lie between 0 and 1")
    N = posteriors.shape[1]
    longest = N * N + 1  # more than the arcs of any tree together
    unit = min(POSTERIOR_STEPS, _LARGEST // (max(N, 1) * longest))
    lengths = np.abs(np.arange(-1, N)[:, None] - np.arange(N))
    lengths[0] = 0
    weights: NDArray[np.int64] = np.rint(posteriors * unit).astype(np.int64) * longest - lengths
    return weights


def _nearest_middle(scores: NDArray[np.int64]) -> int:
    """The place of the highest score; among equal scores the nearest to the middle, among two of these the left one."""
    best = np.flatnonzero(scores == scores.max())
    return int(best[np.abs(2 * best - (len(scores) - 1)).argmin()])


def _splits(spans: NDArray[np.int32], N: int) -> dict[tuple[int, int], int]:
    """The place where the second child of each constituent begins, in preorder."""
    pairs = [(int(i), int(j)) for i, j in spans]
    found: dict[tuple[int, int], int] = {}
    upcoming = iter(pairs)
    waiting = [(0, N)]
    while waiting:
        i, j = waiting.pop()
        if j - i == 1:
            continue
        if next(upcoming, None) != (i, j):
            raise ValueError("the spans are not those of a binary tree in preorder")
        following = pairs[len(found) + 1] if len(found) + 1 < len(pairs) else (-1, -1)
        k = following[1] if following[0] == i else i + 1
        if not i < k < j:
            raise ValueError("the spans are not those of a binary tree in preorder")
        found[i, j] = k
        waiting += [(k, j), (i, k)]
    if len(found) != len(pairs):
        raise ValueError("the spans are not those of a binary tree in preorder")
    return found


@partial(compiled, reorder_sums=False)
def _fill(arcs, scores, splits):  # type: ignore[no-untyped-def]
    """Scores (4, N, N) and splits (3, N, N) of all spans s..t, both ends included, from arcs (N, N).

    0: t is the head of all, complete. 1: s is. 2: with the arc from t to s, still open. 3: with the arc from s to t.
    The splits are those of 0, of 1, and of 2 and 3, which share them.
    """
    N = arcs.shape[0]
    for width in range(1, N):
        for s in range(N - width):
            t = s + width
            choice, highest = s, scores[1, s, s] + scores[0, s + 1, t]
            for k in range(s + 1, t):
                score = scores[1, s, k] + scores[0, k + 1, t]
                if score > highest:
                    choice, highest = k, score
            splits[2, s, t] = choice
            scores[2, s, t] = highest + arcs[t, s]
            scores[3, s, t] = highest + arcs[s, t]
            choice, highest = s, scores[0, s, s] + scores[2, s, t]
            for k in range(s + 1, t):
                score = scores[0, s, k] + scores[2, k, t]
                if score > highest:
                    choice, highest = k, score
            splits[0, s, t], scores[0, s, t] = choice, highest
            choice, highest = s + 1, scores[3, s, s + 1] + scores[1, s + 1, t]
            for k in range(s + 2, t + 1):
                score = scores[3, s, k] + scores[1, k, t]
                if score > highest:
                    choice, highest = k, score
            splits[1, s, t], scores[1, s, t] = choice, highest

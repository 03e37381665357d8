from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramify.corpus.brackets import read_brackets
from ramify.corpus.tree import make_parse
from ramify.evaluation.baselines import (
    BASELINES,
    balanced,
    left_branching,
    oracle,
    random_tree,
    right_branching,
)
from ramify.evaluation.spans import count_spans


def test_shapes_of_four_words() -> None:
    assert left_branching(4).tolist() == [[0, 4], [0, 3], [0, 2]]
    assert right_branching(4).tolist() == [[0, 4], [1, 4], [2, 4]]
    assert balanced(4).tolist() == [[0, 4], [0, 2], [2, 4]]
    assert balanced(5).tolist() == [[0, 5], [0, 3], [0, 2], [3, 5]]


@pytest.mark.parametrize("name", BASELINES)
@pytest.mark.parametrize("n", [0, 1, 2, 3, 17, 3000])
def test_every_baseline_is_a_binary_tree_in_preorder(name: str, n: int) -> None:
    parse = make_parse(["w"] * n, ["T"] * n, [(0, n), (0, n - 1), (1, 2)] if n > 2 else [], ["X"] * 3 * (n > 2))
    spans = BASELINES[name](parse, np.random.default_rng(1))
    assert spans.shape == (max(n - 1, 0), 2)
    assert spans.dtype == np.int32
    pairs = [tuple(span) for span in spans.tolist()]
    assert len(set(pairs)) == len(pairs)
    if n > 1:
        assert pairs[0] == (0, n)
    open_ends = [n]
    previous = -1
    for start, end in pairs:
        assert start >= previous
        previous = start
        while open_ends[-1] <= start:
            open_ends.pop()
        assert start + 2 <= end <= open_ends[-1]
        open_ends.append(end)


def test_random_trees_split_uniformly_and_by_seed() -> None:
    rng = np.random.default_rng(0)
    seconds = Counter(tuple(random_tree(4, rng)[1].tolist()) for _ in range(6000))
    # Split after word 1: (1,4) follows; after word 2: (0,2); after word 3: (0,3).
    assert set(seconds) == {(1, 4), (0, 2), (0, 3)}
    assert all(abs(count - 2000) < 200 for count in seconds.values())
    first, second = (random_tree(30, np.random.default_rng(7)) for _ in range(2))
    assert np.array_equal(first, second)
    assert not np.array_equal(first, random_tree(30, np.random.default_rng(8)))


def test_the_oracle_branches_right_inside_flat_constituents() -> None:
    (gold,) = read_brackets(["(S (A a) (NP (NP (B b) (C c) (D d))) (E e) (VP (F f)) (G g))"], "text")
    assert oracle(gold.spans, 7).tolist() == [[0, 7], [1, 7], [1, 4], [2, 4], [4, 7], [5, 7]]


@given(st.integers(2, 25), st.integers(0, 2**32 - 1), st.floats(0, 1))
def test_the_oracle_finds_every_gold_span(n: int, seed: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    tree = random_tree(n, rng)
    assert np.array_equal(oracle(tree, n), tree)
    gold = tree[rng.random(n - 1) < share]
    best = oracle(gold, n)
    assert best.shape == (n - 1, 2)
    counts = count_spans([gold], [best], [n])
    assert counts.hits == counts.gold
    assert np.array_equal(best, oracle(rng.permutation(gold), n))

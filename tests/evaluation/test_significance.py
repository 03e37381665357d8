from itertools import product

import numpy as np
import pytest

from ramify.errors import RamifyError
from ramify.evaluation.significance import compare_f1


def test_the_permutation_test_comes_near_the_exact_one() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.random(9), rng.random(9) + 0.2
    gain = second - first
    exact = np.mean([abs(np.dot(signs, gain)) >= abs(gain.sum()) - 1e-12 for signs in product((1, -1), repeat=9)])
    found = compare_f1(first, second, samples=20_000)
    assert 0.01 < exact < 0.5
    assert found.permutation_p == pytest.approx(exact, abs=0.02)
    assert found.difference == pytest.approx(100 * gain.mean())


@pytest.mark.parametrize("sign", [1, -1])
def test_the_bootstrap_test_is_two_sided_and_comes_near_the_exact_one(sign: int) -> None:
    gain = sign * np.array([0.9, 0.4, -0.5, 0.3, -0.2])
    means = np.array([np.mean(drawn) for drawn in product(gain, repeat=5)])
    exact = 2 * min(np.mean(means <= 0), np.mean(means >= 0))
    found = compare_f1(np.zeros(5), gain, samples=20_000)
    assert 0.1 < exact < 0.9
    assert found.bootstrap_p == pytest.approx(exact, abs=0.02)


def test_the_bootstrap_interval_is_about_two_standard_errors_wide_on_each_side() -> None:
    rng = np.random.default_rng(1)
    first = rng.random(1500)
    second = np.clip(first + rng.normal(0.05, 0.2, 1500), 0, 1)
    found = compare_f1(first, second)
    gain = second - first
    error = 100 * gain.std() / np.sqrt(len(gain))
    assert found.low == pytest.approx(found.difference - 1.96 * error, abs=0.1 * error)
    assert found.high == pytest.approx(found.difference + 1.96 * error, abs=0.1 * error)
    assert found.bootstrap_p < 0.001
    assert (found.better, found.worse) == (int((gain > 0).sum()), int((gain < 0).sum()))


def test_equal_systems_do_not_differ_and_sides_swap() -> None:
    rng = np.random.default_rng(2)
    first, second = rng.random((2, 300))
    same = compare_f1(first, first, samples=100)
    assert (same.difference, same.low, same.high, same.bootstrap_p, same.permutation_p) == (0, 0, 0, 1, 1)
    there, back = compare_f1(first, second), compare_f1(second, first)
    assert there.difference == -back.difference
    assert there.low == pytest.approx(-back.high)
    assert there.permutation_p == back.permutation_p


def test_sentences_on_which_both_are_equal_count_for_neither() -> None:
    found = compare_f1(np.array([0.5, 0.5, 0.5, 0.5]), np.array([0.5, 0.5, 0.7, 0.1]), samples=10)
    assert (found.better, found.worse, found.sentences) == (1, 1, 4)


def test_the_seed_decides_the_samples() -> None:
    first, second = np.random.default_rng(3).random((2, 50))
    assert compare_f1(first, second, 500, seed=4) == compare_f1(first, second, 500, seed=4)
    assert compare_f1(first, second, 500, seed=4).low != compare_f1(first, second, 500, seed=5).low


def test_drawing_in_parts_gives_the_requested_number_of_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = np.random.default_rng(3).random((2, 50))
    monkeypatch.setattr("ramify.evaluation.significance._ROWS_OF_ONE_DRAW", 350)
    found = compare_f1(first, second, 30)
    assert found.permutation_p * 31 == pytest.approx(round(found.permutation_p * 31))


def test_invalid_comparisons_are_refused() -> None:
    with pytest.raises(RamifyError, match="at least 1"):
        compare_f1(np.ones(2), np.ones(2), samples=0)
    with pytest.raises(RamifyError, match="2 scored sentences, the other 3"):
        compare_f1(np.ones(2), np.ones(3))

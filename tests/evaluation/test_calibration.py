import numpy as np
import pytest

from ramify.evaluation.calibration import BINS, Reliability, reliability_counts


def posteriors(n: int, values: dict[tuple[int, int], float]) -> np.ndarray:
    table = np.zeros((n + 1, n + 1), dtype=np.float32)
    table[0, n] = 1
    for (i, j), p in values.items():
        table[i, j] = p
    return table


def test_reliability_computed_by_hand() -> None:
    # Four words: spans (0,2) (1,3) (2,4) (0,3) (1,4) count, the whole sentence and single words do not.
    table = posteriors(4, {(0, 2): 0.75, (2, 4): 0.95, (0, 3): 0.25, (1, 4): 0.05, (1, 2): 0.5})
    gold = np.array([(0, 4), (0, 2), (2, 4), (1, 2)], dtype=np.int32)
    found = Reliability.of(reliability_counts(table, gold))
    counted = {i: (b.spans, b.mean_posterior, b.share_gold) for i, b in enumerate(found.bins) if b.spans}
    assert counted == {
        0: (2, pytest.approx(0.025), 0),
        2: (1, pytest.approx(0.25), 0),
        7: (1, pytest.approx(0.75), 1),
        9: (1, pytest.approx(0.95), 1),
    }
    assert found.expected_calibration_error == pytest.approx((0.05 + 0.25 + 0.25 + 0.05) / 5)
    assert (found.bins[0].low, found.bins[-1].high) == (0, 1)
    assert found.bins[1].share_gold is None


def test_certain_and_right_is_calibrated() -> None:
    table = posteriors(3, {(0, 2): 1})
    counts = reliability_counts(table, np.array([(0, 2)], dtype=np.int32))
    assert counts.shape == (3, BINS)
    assert Reliability.of(counts).expected_calibration_error == 0
    wrong = reliability_counts(table, np.array([(1, 3)], dtype=np.int32))
    assert Reliability.of(counts + wrong).expected_calibration_error == pytest.approx(0.5)


def test_a_sentence_of_two_words_has_no_calibration() -> None:
    assert reliability_counts(posteriors(2, {}), np.zeros((0, 2), dtype=np.int32)).sum() == 0
    assert Reliability.of(np.zeros((3, BINS))).expected_calibration_error == 0

"""The simulated cluster compared with results computed by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.simulate_cluster import Cluster, block_seconds, expected_block, sentence_seconds, simulate

NEVER = math.inf


def test_without_failures_the_time_is_that_of_the_busiest_worker():
    found = simulate(np.array([4.0, 3.0, 2.0, 2.0, 5.0]), Cluster(2, 10.0, NEVER), np.random.default_rng(0))
    # One worker takes the blocks of 4 and 2 seconds, the other those of 3, 2 and 5.
    assert found.elapsed == 10 + 10
    assert found.parsing == 16
    assert found.starting == 20
    assert found.idle == 4
    assert (found.lost, found.waiting, found.failures) == (0, 0, 0)
    assert found.overhead == 24 / 16


def test_one_worker_does_one_block_after_another():
    found = simulate(np.arange(1.0, 11.0), Cluster(1, 7.0, NEVER), np.random.default_rng(0))
    assert found.elapsed == 7 + 55
    assert found.idle == 0


def test_a_slow_driver_sets_the_pace():
    found = simulate(np.full(100, 1.0), Cluster(50, 0.0, NEVER, dispatch=0.5), np.random.default_rng(0))
    assert found.elapsed == pytest.approx(100 * 0.5 + 1)


@pytest.mark.parametrize("seconds", [1.0, 20.0, 100.0])
def test_the_mean_of_blocks_with_failures_is_the_closed_form(seconds):
    cluster = Cluster(1, 5.0, 50.0)
    blocks = 20_000
    found = simulate(np.full(blocks, seconds), cluster, np.random.default_rng(1))
    mean, expected = (found.elapsed - cluster.startup) / blocks, expected_block(seconds, cluster)
    # The time of one block has a standard deviation below its mean plus one failure.
    assert abs(mean - expected) < 5 * (expected + 55) / math.sqrt(blocks)
    assert found.failures / blocks == pytest.approx(math.expm1(seconds / 50), rel=0.1)


@pytest.mark.parametrize("dispatch", [0.0, 3.0])
@pytest.mark.parametrize("workers", [1, 7])
def test_every_second_is_counted_once(workers, dispatch):
    rng = np.random.default_rng(2)
    found = simulate(rng.uniform(0, 30, 500), Cluster(workers, 5.0, 60.0, dispatch), rng)
    total = found.parsing + found.lost + found.starting + found.waiting + found.idle
    assert found.failures
    assert total == pytest.approx(workers * found.elapsed)


def test_times_are_interpolated_from_measurements():
    measured = {10: 1.0, 20: 4.0, 40: 32.0}
    found = sentence_seconds(np.array([10, 20, 40, 5, 80]), measured)
    assert found == pytest.approx([0.001, 0.004, 0.032, 0.00025, 0.256])


def test_blocks_add_up_to_the_corpus():
    rng = np.random.default_rng(3)
    sentence = rng.exponential(0.002, 1000)
    found = block_seconds(sentence, 1_000_001, 1000, rng)
    assert len(found) == 1001
    assert found.sum() == pytest.approx(1_000_001 * sentence.mean(), rel=0.01)
    assert found[:-1].std() == pytest.approx(sentence.std() * math.sqrt(1000), rel=0.1)

"""Simulates the time that many workers take to parse a corpus in blocks if workers sometimes fail, by block size.

    python benchmarks/simulate_cluster.py SENTENCES.txt --workers 1000 --milliseconds 10:0.1,20:0.3,40:1.2

The time of a sentence is interpolated, in logarithms, between measured times of some lengths; lengths are those of the
lines of SENTENCES. A worker fails after an exponentially distributed time, loses its current block, restarts and begins
this block again. One driver hands out the blocks, one after another.
"""

from __future__ import annotations

import argparse
import heapq
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Cluster:
    workers: int
    startup: float
    """Seconds from the start of a worker until its model is loaded"""
    mean_time_between_failures: float
    """Mean time between failures of one worker, in seconds; infinite without failures"""
    dispatch: float = 0.0
    """Seconds that the driver takes to hand out one block"""


@dataclass(frozen=True)
class Outcome:
    """Times of a run in seconds; all but the first are summed over the workers."""

    elapsed: float
    parsing: float
    """Time spent on blocks that were finished"""
    lost: float
    """Time lost with blocks whose worker failed"""
    starting: float
    waiting: float
    """Time spent waiting for the driver"""
    idle: float
    """Idle time at the end, when no block is left"""
    failures: int

    @property
    def overhead(self) -> float:
        """Additional worker time per second of parsing."""
        return (self.lost + self.starting + self.waiting + self.idle) / self.parsing


def simulate(blocks: Floats, cluster: Cluster, rng: np.random.Generator) -> Outcome:
    """Assign blocks, given by their seconds, in order to the worker that is free first."""
    free = [(cluster.startup, worker) for worker in range(cluster.workers)]
    heapq.heapify(free)
    fails_at = [cluster.startup + _lifetime(cluster, rng) for _ in range(cluster.workers)]
    driver_free = lost = waiting = 0.0
    failures = 0
    ends = np.full(cluster.workers, cluster.startup)
    for seconds in blocks.tolist():
        now, worker = heapq.heappop(free)
        begin = max(now, driver_free)
        driver_free = begin + cluster.dispatch
        begin = driver_free
        waiting += begin - now
        while fails_at[worker] < begin + seconds:
            failed = fails_at[worker]
            ready = failed + cluster.startup
            lost += max(failed - begin, 0.0)
            waiting -= min(max(begin - failed, 0.0), cluster.startup)  # a worker that fails while waiting restarts then
            failures += 1
            begin = max(ready, begin)
            fails_at[worker] = ready + _lifetime(cluster, rng)
        ends[worker] = begin + seconds
        heapq.heappush(free, (ends[worker], worker))
    elapsed = float(ends.max())
    starting = cluster.startup * (cluster.workers + failures)
    return Outcome(elapsed, float(blocks.sum()), lost, starting, waiting, float((elapsed - ends).sum()), failures)


def _lifetime(cluster: Cluster, rng: np.random.Generator) -> float:
    mean = cluster.mean_time_between_failures
    return float(rng.exponential(mean)) if np.isfinite(mean) else np.inf


def expected_block(seconds: float, cluster: Cluster) -> float:
    """Expected time until a block is done, with failures and restarts: (1/f + startup) (exp(f seconds) - 1)."""
    rate = 1 / cluster.mean_time_between_failures
    return (1 / rate + cluster.startup) * float(np.expm1(rate * seconds)) if rate else seconds


def sentence_seconds(lengths: NDArray[np.int64], measured: dict[int, float]) -> Floats:
    """Seconds for every length, from measured milliseconds by words: power laws between them, the nearest beyond."""
    known = np.array(sorted(measured), float)
    times = np.log([measured[int(length)] for length in known])
    logs = np.log(np.maximum(lengths, 1))
    slopes = np.diff(times) / np.diff(np.log(known))
    place = np.clip(np.searchsorted(np.log(known), logs) - 1, 0, len(slopes) - 1)
    found: Floats = np.exp(times[place] + slopes[place] * (logs - np.log(known)[place])) / 1000
    return found


def block_seconds(sentence: Floats, sentences: int, size: int, rng: np.random.Generator) -> Floats:
    """Seconds of all blocks: sums of `size` times drawn from those of sentences, by the central limit theorem."""
    sizes = np.full(-(-sentences // size), size, float)
    sizes[-1] = sentences - size * (len(sizes) - 1)
    drawn = sizes * sentence.mean() + np.sqrt(sizes) * sentence.std() * rng.standard_normal(len(sizes))
    return np.maximum(drawn, 0.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="text with a sentence per line")
    parser.add_argument("--milliseconds", required=True, help="measured per sentence, as LENGTH:MS,LENGTH:MS")
    parser.add_argument("--sentences", type=float, default=1e9)
    parser.add_argument("--workers", type=int, default=1000)
    parser.add_argument("--startup", type=float, default=10.0, help="seconds")
    parser.add_argument("--dispatch", type=float, default=0.005, help="seconds of the driver per block")
    parser.add_argument("--hours-between-failures", type=float, nargs="+", default=[float("inf"), 24, 1])
    parser.add_argument("--block-sizes", type=int, nargs="+", default=[1024, 8192, 65536, 524288])
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    measured = {int(a): float(b) for a, b in (pair.split(":") for pair in given.milliseconds.split(","))}
    lengths = np.array([len(line.split()) for line in given.file.read_text(encoding="utf-8").splitlines()])
    sentence = sentence_seconds(lengths, measured)
    ideal = sentence.mean() * given.sentences / 3600
    print(f"{lengths.mean():.1f} words and {1000 * sentence.mean():.3f} ms per sentence; {ideal:,.0f} core hours")
    print("| block | seconds per block | MTBF, h | hours | overhead | lost | starting | waiting | idle | failures |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for hours in given.hours_between_failures:
        for size in given.block_sizes:
            rng = np.random.default_rng(given.seed)
            blocks = block_seconds(sentence, int(given.sentences), size, rng)
            cluster = Cluster(given.workers, given.startup, 3600 * hours, given.dispatch)
            found = simulate(blocks, cluster, rng)
            shares = (found.overhead, *(each / found.parsing for each in (found.lost, found.starting, found.waiting)))
            figures = " | ".join(f"{100 * share:.2f} %" for share in (*shares, found.idle / found.parsing))
            print(
                f"| {size:,} | {size * sentence.mean():.1f} | {hours:g} | {found.elapsed / 3600:.3f} | {figures} | "
                f"{found.failures:,} |"
            )


if __name__ == "__main__":
    main()

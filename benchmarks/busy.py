"""The share of its speed that training keeps while a busy loop runs on each core.

    python benchmarks/busy.py --seconds 10

Measures whole training steps alone, with the loops, and alone again. A fair share of each core is one half, so a
program whose threads never wait for each other keeps 0.5 of the undisturbed rate.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time

from ramify.bench import Case
from ramify.bench.timing import work
from ramify.runtime.memory import keep_freed_memory

LOOP = "while True: pass"


def rate(case: Case, seconds: float) -> float:
    """Sentences/s over whole steps, without the first one, which may compile."""
    step = work(case, case.grammar())
    step()
    started, steps = time.perf_counter(), 0
    while time.perf_counter() - started < seconds:
        step()
        steps += 1
    return steps * case.batch / (time.perf_counter() - started)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--model", default="tn-pcfg")
    options.add_argument("--nonterminals", type=int, default=30)
    options.add_argument("--preterminals", type=int, default=60)
    options.add_argument("--rank", type=int, default=200)
    options.add_argument("--batch", type=int, default=16)
    options.add_argument("--seconds", type=float, default=10.0)
    given = options.parse_args()
    case = Case(given.model, given.nonterminals, given.preterminals, given.rank, given.batch)
    before = rate(case, given.seconds)
    loops = [subprocess.Popen([sys.executable, "-c", LOOP]) for _ in range(os.cpu_count() or 1)]
    try:
        beside = rate(case, given.seconds)
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
    alone = statistics.mean([before, rate(case, given.seconds)])
    print(f"alone {alone:.0f} sentences/s, beside {len(loops)} busy loops {beside:.0f}: {beside / alone:.2f}")


if __name__ == "__main__":
    keep_freed_memory()  # before any threads start
    main()

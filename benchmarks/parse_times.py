"""Processor time of one core for parsing a sentence, by its length, and for start-up; input of `simulate_cluster.py`.

    python benchmarks/parse_times.py MODEL SENTENCES.txt

Reads, parses and writes sentences of SENTENCES of about the same length on one thread, several rounds for each length,
of which the fastest counts. Other programs hardly affect processor time. Start-up is the time of a new process until
its first sentence is parsed, with compiled loops in the cache.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

LENGTHS = (5, 10, 15, 20, 30, 40, 60)
ROUNDS = 3
SENTENCES = 512

# The start of a worker, and its first block.
START = """
import resource, sys, torch
torch.set_num_threads(1)
from ramify.cluster.block_parser import BlockParser
from ramify.parser.ensemble import load_several
parser = load_several([sys.argv[1]], "cpu")
list(parser.analyse_many(["the dog saw a cat"]))
used = resource.getrusage(resource.RUSAGE_SELF)
print(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
"""


def milliseconds(model: str, lines: list[str]) -> dict[int, float]:
    """Seconds per sentence, by the number of words between spaces."""
    import torch

    from ramify.parser import FORMATS, load

    torch.set_num_threads(1)
    parser = load(model, "cpu")
    parser.works_ahead = False
    found = {}
    for length in LENGTHS:
        near = [line for line in lines if abs(len(line.split()) - length) <= length // 20]
        given = (near * (SENTENCES // max(len(near), 1) + 1))[:SENTENCES] if near else []
        if not given:
            continue
        rounds = []
        for _ in range(ROUNDS + 1):  # the first one loads or compiles loops
            begun = time.process_time()
            for analysis in parser.analyse_many(given):
                FORMATS["brackets"](analysis, False)
            rounds.append(time.process_time() - begun)
        found[length] = 1000 * min(rounds[1:]) / len(given)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("file", type=Path)
    given = parser.parse_args()
    lines = given.file.read_text(encoding="utf-8").splitlines()
    found = milliseconds(given.model, lines)
    print(",".join(f"{length}:{each:.3f}" for length, each in found.items()))
    started = [subprocess.check_output([sys.executable, "-c", START, given.model], text=True) for _ in range(ROUNDS)]
    seconds, megabytes = min(tuple(map(float, line.split())) for line in started)
    print(f"start-up {seconds:.1f} s of processor time, {megabytes:.0f} MB")


if __name__ == "__main__":
    main()

"""`python -m tests.mutation`: test the mutants, and print the survivors and a table by group."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import get_args

from tests.mutation.running import Outcome, Result, Runner
from tests.mutation.tables import GROUPS

BAD: tuple[Outcome, ...] = ("survived", "table error")


def main() -> int:
    arguments = _arguments()
    chosen = [
        (group, mutant)
        for group in GROUPS
        for mutant in group.mutants
        if arguments.k.lower() in f"{group.name} {mutant}".lower()
    ]
    if not chosen:
        print(f"No mutant has {arguments.k!r} in its group, symbol or change.")
        return 2
    started = time.monotonic()
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # removes the temporary folder
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        runner = Runner(Path(folder))
        for group in dict.fromkeys(group for group, mutant in chosen if not mutant.equivalent):
            if output := runner.check(group):
                print(f"{output}\nThe tests of {group.name} fail without a mutant; fix them first.")
                return 2
        results = runner.run_all(chosen, arguments.jobs)
    print(_table(results))
    for result in results:
        if result.outcome in BAD:
            print(f"{result.outcome}: {result.group.name}  {result.mutant} {result.note}")
    print(f"{time.monotonic() - started:.0f} seconds")
    return int(any(result.outcome in BAD for result in results))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("-k", default="", metavar="TEXT", help="only mutants with this text in group, symbol or change")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="number of mutants at a time [default: 1]")
    return parser.parse_args()


def _table(results: list[Result]) -> str:
    outcomes = get_args(Outcome)
    counts: dict[str, Counter[str]] = {}
    for result in results:
        for name in (result.group.name, "all"):
            counts.setdefault(name, Counter())[result.outcome] += 1
    counts["all"] = counts.pop("all")
    width = max(map(len, counts))
    rows = [f"{'':{width}}  {'tested':>11}" + "".join(f"  {outcome:>11}" for outcome in outcomes)]
    for name, of_group in counts.items():
        numbers = [of_group.total() - of_group["equivalent"], *(of_group[outcome] for outcome in outcomes)]
        rows.append(f"{name:{width}}" + "".join(f"  {number:>11}" for number in numbers))
    return "\n".join(rows)


if __name__ == "__main__":
    sys.exit(main())

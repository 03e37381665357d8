"""Start-up time of commands: processor seconds, and their ratio to those of `import torch` in the same run.

    python benchmarks/startup.py MODEL [--repeat 5]

Each command runs several times in turn with the others; the shortest time counts, because other programs can only add
to it. Compiled loops should be in numba's cache: the first run of each command, which may compile, is not counted.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

SENTENCE = "the old dog saw a small cat in the garden\n"
MANY = 50


def processor_seconds(arguments: list[str], given: str, measured: bool = True) -> float:
    """Processor seconds of a child process, for any exit code."""
    import resource  # not on Windows

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], input=given, text=True, capture_output=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return spent if measured else float("inf")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    ramify, parse = ["-m", "ramify"], ["-m", "ramify", "parse", "-m", str(options.model)]
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder, "text.txt")
        text.write_text(SENTENCE * MANY, encoding="utf-8")
        train = ["train", str(text), "--overwrite", "--out", str(Path(folder, "run")), "--epochs", "1"]
        sizes = ["--preterminals", "6", "--rank", "8", "--embedding", "16", "--max-length", "20"]
        commands = {
            "import torch": (["-c", "import torch"], ""),
            "--help": ([*ramify, "--help"], ""),
            "a wrong option": ([*parse, "--wrong"], ""),
            "a wrong model folder": ([*ramify, "parse", "-m", str(Path(folder, "nowhere"))], ""),
            "a missing file": ([*parse, str(Path(folder, "nowhere"))], ""),
            "parse of 1 sentence": (parse, SENTENCE),
            f"parse of {MANY} sentences": (parse, SENTENCE * MANY),
            f"train on {MANY} sentences": ([*ramify, *train, *sizes], ""),
        }
        best = dict.fromkeys(commands, float("inf"))
        for turn in range(options.repeat + 1):
            for name, command in commands.items():
                best[name] = min(best[name], processor_seconds(*command, measured=turn > 0))
    for name, seconds in best.items():
        print(f"{name:24} {seconds:6.2f} s  {seconds / best['import torch']:5.2f}")


if __name__ == "__main__":
    main()

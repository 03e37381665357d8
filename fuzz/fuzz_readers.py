"""Fuzzing of every reader with atheris: `pip install atheris`, then `python -m fuzz.fuzz_readers -runs=1000000`.

Inputs are random bytes, pieces of every format in any order, mixed encodings, and occasionally something huge. Options
are those of libFuzzer; a hang of two minutes or a gigabyte of memory is a failure, like any exception.
"""

from __future__ import annotations

import sys
import tempfile
from itertools import cycle, product
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["ramify"]):
    from fuzz.checks import CHECKS
from fuzz.cases import ENCODINGS, HUGE, PIECES

HUGE_EVERY = 2_000
LIMITS = ["-timeout=120", "-rss_limit_mb=1024", "-max_len=128", "-len_control=0", "-print_final_stats=1"]


def small(provider: atheris.FuzzedDataProvider) -> bytes:
    """Random bytes, or pieces of the formats, in one encoding or in several."""
    if provider.ConsumeBool():
        return provider.ConsumeBytes(provider.remaining_bytes())
    mixed, encoding = provider.ConsumeBool(), provider.PickValueInList(ENCODINGS)
    parts = []
    while provider.remaining_bytes():
        if mixed:
            encoding = provider.PickValueInList(ENCODINGS)
        parts.append(provider.PickValueInList(PIECES).encode(encoding, "replace"))
    return b"".join(parts)


class Target:
    """Runs one check per case, and regularly one on a huge input."""

    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch
        self.cases = 0
        self.huge = cycle(product(HUGE.values(), CHECKS.values()))

    def run(self, data: bytes) -> None:
        """One case."""
        self.cases += 1
        if self.cases % HUGE_EVERY == 0:
            make_data, check = next(self.huge)
            check(make_data(), self.scratch)
            return
        provider = atheris.FuzzedDataProvider(data)
        check = CHECKS[provider.PickValueInList(sorted(CHECKS))]
        check(small(provider), self.scratch)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        atheris.Setup([sys.argv[0], *LIMITS, *sys.argv[1:]], Target(Path(scratch)).run)
        atheris.Fuzz()

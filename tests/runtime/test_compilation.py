"""Compiled loops say when they are compiled, and do without a cache where none can be had."""

from __future__ import annotations

import os
import subprocess
import sys

import numba
import numpy as np
import pytest

from ramify.runtime import compilation

SCRIPT = """
import torch
from ramify.runtime.compilation import tell_of_compilation
from ramify.decoding.best_trees import best_trees
tell_of_compilation(print)
best_trees(torch.rand(2, 5, 5), torch.tensor([4, 3]))
best_trees(torch.rand(2, 5, 5, dtype=torch.float64), torch.tensor([4, 3]))
"""


def run(cache) -> str:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-W", "error", "-c", SCRIPT]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


@pytest.mark.slow
def test_a_notice_the_first_time_and_silence_from_the_cache(tmp_path):
    assert run(tmp_path) == compilation.NOTICE + "\n"
    assert run(tmp_path) == ""


def test_without_a_cache_folder_loops_compile_in_memory(monkeypatch):
    real, asked = numba.njit, []

    def without_cache(*function, **options):
        asked.append(options.get("cache", False))
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return real(*function, **options)

    monkeypatch.setattr(numba, "njit", without_cache)
    double = compilation.compiled(lambda x: x * 2)
    monkeypatch.undo()
    assert asked == [True, False]
    assert double(np.float64(3)) == 6

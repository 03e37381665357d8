"""Compilation of loops is announced, and works without a cache."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np

from ramify.runtime import compilation
from ramify.structures.engines import choose_engine, engines_of
from tests.structures.random_rules import random_dense_rules, random_rules

SCRIPT = """
from ramify.runtime.compilation import compiled, on_compilation

@compiled
def double(x):
    return 2 * x

@compiled
def quadruple(x):
    return double(double(x))

on_compilation(print)
assert (quadruple(3), quadruple(0.5)) == (12, 2.0)
"""
"""Two small loops for two types, because compiling those of the package takes long"""


def run(script: Path, cache: Path) -> str:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-W", "error", str(script)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


def test_a_notice_the_first_time_and_silence_from_the_cache(tmp_path):
    script, cache = tmp_path / "script.py", tmp_path / "cache"
    script.write_text(SCRIPT)
    assert run(script, cache) == compilation.NOTICE + "\n"
    assert len([*cache.rglob("*.nbc")]) == 4
    assert run(script, cache) == ""


def test_without_a_cache_folder_loops_compile_in_memory(monkeypatch):
    real, asked = numba.njit, []

    def without_cache(*function, **options):
        asked.append(options.get("cache", False))
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return real(*function, **options)

    monkeypatch.setattr(numba, "njit", without_cache)
    assert compilation.compiled(lambda x: x * 2)(np.float64(3)) == 6
    assert asked[:2] == [True, False]  # numba itself may ask for more


@compilation.compiled
def _next(x):
    return x + 1


@compilation.compiled
def _next_but_one(x):
    return _next(_next(x))


def test_a_loop_may_call_another_that_was_never_called():
    assert _next_but_one(np.float64(3)) == 5
    assert _next(np.float64(3)) == 4


def test_loops_are_postponed_for_few_words_within_their_context():
    double = compilation.compiled(lambda x: x * 2)

    def is_plain() -> bool:
        return double.unless_postponed() is not double

    assert not is_plain()
    with compilation.postpone_loops(10):
        compilation.expect_words(4)
        assert is_plain()
        assert double.unless_postponed()(3) == 6
        compilation.expect_words(5)
        assert is_plain()
        compilation.expect_words(1)
        assert not is_plain()
    with compilation.postpone_loops(10):
        assert is_plain()
    assert not is_plain()


def test_postponed_loops_leave_the_engines_that_have_none():
    low_rank, dense = random_rules(3, 4, 5, [4, 2]), random_dense_rules(3, 4, [4, 2])
    for pcfg in (low_rank, dense):
        with compilation.postpone_loops(10):
            assert choose_engine(pcfg, "auto") is engines_of(type(pcfg))["scaled"]
            assert choose_engine(pcfg, "compiled").has_loops
        assert choose_engine(pcfg, "auto") is engines_of(type(pcfg))["compiled"]

"""Counts and output of `ramify bench`; no test asserts on time."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from ramify.bench import Case, growth, measure, plot, sweep
from ramify.bench.case import flop
from ramify.bench.sweeping import FACTORS
from ramify.errors import RamifyError
from tests.command import ramify

TINY = {"nonterminals": 3, "preterminals": 4, "rank": 5, "batch": 2, "length": 4, "vocabulary": 11, "seconds": 0.0}
OPTIONS = [part for name, value in TINY.items() for part in (f"--{name}", value)]


def test_operations_are_counted_as_the_docs_say():
    n, p, d, B, N, q, e = 250, 500, 500, 16, 20, 10_000, 256
    m = n + p
    case = Case("tn-pcfg", n, p, d, B, N, q, "train")
    spans, splits = 190, 1330
    charts = B * (spans * 6 * n * d + 4 * N * p * d + 2 * d * splits)
    rule_networks = 2 * (n + m + m) * (e * e + e * d)
    start, preterminals = 2 * (5 * e * e + e * n), 2 * p * 5 * e * e
    words = 2 * p * e * q
    grammar = case.grammar()
    assert flop(case, grammar) == 3 * (charts + rule_networks + start + preterminals + words)
    assert flop(Case("tn-pcfg", n, p, d, B, N, q, "inside"), grammar) == 3 * charts
    assert flop(Case("tn-pcfg", n, p, d, B, N, q, "parse"), grammar) == 2 * charts
    few_components = Case("td-pcfg", 40, 60, 10, 1, 20, 100, "train")  # 4 d^2 per span, and no networks
    charts = 190 * 4 * 10 * 10 + 4 * 40 * 10 * 10 + 4 * 20 * 60 * 10 + 2 * 10 * 1330
    assert flop(few_components, few_components.grammar()) == 3 * charts
    one_span = Case("td-pcfg", 40, 60, 10, 1, 2, 100, "train")  # too short for the d x 2d products to be worth it
    assert flop(one_span, one_span.grammar()) == 3 * (6 * 40 * 10 + 4 * 2 * 60 * 10 + 2 * 10)


def test_operations_of_a_simple_pcfg():
    n, p, B, N, q, e = 20, 40, 3, 20, 100, 512
    case = Case("sn-pcfg", n, p, 7, B, N, q, "train")
    charts = B * (190 * 4 * n * n + 4 * N * p * n + 2 * n * 1330)
    children = 2 * (2 * (n + p) * (e * e + n * e) + 2 * n * e * e)
    words = 2 * p * (7 * e * e + e * q)
    assert flop(case, case.grammar()) == 3 * (charts + children + 2 * n * e + words)


@pytest.mark.parametrize("task", ["train", "inside", "parse"])
@pytest.mark.parametrize("model", ["tn-pcfg", "td-pcfg"])
def test_every_task_gives_every_figure(task, model, monkeypatch):
    monkeypatch.setattr("ramify.bench.timing.SQUARES", (8,))
    done = ramify("bench", *OPTIONS, "--task", task, "--model", model, "--json")
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert record["share_of_peak"] == pytest.approx(
        record["gflop"] / record["seconds"] / record["peak_gflop_per_second"]
    )
    assert record["tokens_per_second"] == pytest.approx(4 * record["sentences_per_second"])
    assert record["reference_sentences_per_second"] > 0
    assert record["peak_memory_mb"] > 10
    assert record["task_memory_mb"] >= 0
    assert (record["predicted_memory_mb"] is not None) == (task == "parse")


def test_a_compound_grammar_computes_rules_for_every_sentence():
    sizes = {**TINY, "batch": 3}
    plain, compound = Case(**sizes), Case(**sizes, compound=True)
    assert flop(compound, compound.grammar()) > 2 * flop(plain, plain.grammar())
    assert measure(compound, reference=False, peak=1.0).as_record()["compound"] is True
    assert measure(plain, reference=False, peak=1.0).as_record()["compound"] is False
    done = ramify("bench", *OPTIONS, "--compound", "--model", "td-pcfg")
    assert "td-pcfg has no compound version" in done.stderr


def test_figures_are_printed_with_their_units(monkeypatch):
    monkeypatch.setattr("ramify.bench.timing.SQUARES", (8,))
    done = ramify("bench", *OPTIONS)
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()]
    assert {"sentences/s", "tokens/s", "ms", "GFLOP", "GFLOP/s", "MB", "%"} <= {row[-1] for row in rows if row}
    assert all("_" not in line for line in done.stdout.splitlines())


MEMORY = """
import json, os, sys
from ramify.runtime.memory import keep_freed_memory
keep_freed_memory()
from ramify.bench import Case, measure
import torch

for cores in (1, 2):
    for sizes in json.loads(sys.argv[1]):
        if child := os.fork():
            assert os.waitpid(child, 0)[1] == 0
            continue
        torch.set_num_threads(cores)
        found = measure(Case("tn-pcfg", *sizes, 100, "parse", seconds=0.0), reference=False, peak=1.0)
        print(json.dumps([cores, sizes, found.predicted_memory_mb, found.task_memory_mb]), flush=True)
        os._exit(0)
"""
"""Each case in a separate process that has computed nothing before; torch is imported once for all of them."""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can forget the peak before the task")
def test_parsing_takes_the_memory_that_was_predicted():
    """Memory as counted by the system, which includes charts that were not predicted."""
    cases = [(30, 60, 200, 8, 60), (30, 60, 200, 8, 100), (30, 60, 200, 3, 200), (120, 250, 250, 8, 100)]
    command = [sys.executable, "-c", MEMORY, json.dumps(cases)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == 2 * len(cases)
    for cores, sizes, predicted, measured in found:
        assert 0.7 * predicted - 4 <= measured <= 1.15 * predicted + 8, (cores, sizes)


@pytest.mark.slow
def test_a_sweep_fits_how_time_grows(monkeypatch):
    import ramify.bench.sweeping as room

    def cubic(case, **_):
        found = measure(Case(**TINY), reference=False, peak=1.0)
        seconds = case.length**3 * case.preterminals**2 * case.batch / 1e6
        return type(found)(**{**vars(found), "case": case, "seconds": seconds})

    monkeypatch.setattr(room, "measure", cubic)
    monkeypatch.setattr(room, "sgemm_peak", lambda: 1.0)
    found = sweep(Case(**TINY))
    assert [m.case.length for m in found["length"]] == [4 * f for f in FACTORS]
    assert {axis: growth(axis, each) for axis, each in found.items()} == pytest.approx(
        {"length": 3, "symbols": 2, "batch": 1}
    )
    done = ramify("bench", *OPTIONS, "--sweep")
    assert done.returncode == 0, done.stderr
    assert "time ~ length^3.00" in done.stdout
    assert "memory (MB)" in done.stdout
    assert "predicted (MB)" not in done.stdout
    monkeypatch.undo()
    monkeypatch.setattr("ramify.bench.timing.SQUARES", (8,))
    done = ramify("bench", *OPTIONS, "--sweep", "--task", "parse")
    assert "predicted (MB)" in done.stdout


@pytest.mark.needs("plot")
def test_a_sweep_can_be_drawn(tmp_path):
    found = measure(Case(**TINY), reference=False, peak=1.0)
    larger = measure(Case(**{**TINY, "length": 8}), reference=False, peak=1.0)
    plot({"length": [found, larger]}, tmp_path / "sweep.svg")
    assert "<svg" in (tmp_path / "sweep.svg").read_text()


def test_mistakes_are_one_sentence(monkeypatch, tmp_path):
    assert "--plot needs --sweep" in ramify("bench", "--plot", tmp_path / "x.png").stderr
    assert "length is 1" in ramify("bench", "--length", 1).stderr
    assert "batch is 0" in ramify("bench", "--batch", 0).stderr
    assert "model 'gpt' is unknown" in ramify("bench", "--model", "gpt").stderr
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(RamifyError, match="needs matplotlib"):
        plot({}, tmp_path / "x.png")

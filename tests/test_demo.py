"""The demo."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from ramify import load
from ramify.demo import builtin_corpus, compare, run_demo


@pytest.mark.slow
def test_the_demo_learns_shows_and_leaves_a_model(tmp_path):
    output = io.StringIO()
    console = Console(file=output, width=160)
    run_demo(tmp_path / "demo", 0, console, Console(file=io.StringIO()))
    shown = output.getvalue()
    for name in ("left branching", "right branching", "random trees", "learned grammar", "true grammar"):
        assert name in shown
    assert shown.count("┌") > 10, "no trees were drawn"
    assert "→" in shown
    scores = {r.system: r for r in compare(load(tmp_path / "demo"), builtin_corpus()["test"])}
    learnt, true = scores["learned grammar"], scores["true grammar"]
    best_baseline = max(scores[n].scores.sentence_f1 for n in ("left branching", "right branching", "random trees"))
    assert learnt.scores.sentence_f1 >= best_baseline + 20
    assert learnt.scores.sentence_f1 < true.scores.sentence_f1
    assert true.perplexity < learnt.perplexity < 1.5 * true.perplexity

"""The reports of a training run before its first step, during training, and after its last step."""

from __future__ import annotations

import io
import signal
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from rich.console import Console

import ramify
from ramify.cli.line_output import LineOutput
from ramify.corpus.brackets import write_brackets
from ramify.corpus.builtin import builtin_treebank
from ramify.corpus.vocabulary import UnknownCount
from ramify.errors import RamifyError, Stopped
from ramify.evaluation.baselines import left_branching
from ramify.evaluation.gold import unlabelled_parse
from ramify.terminal.training_display import duration, training_display
from ramify.training.loop import Progress
from ramify.training.summary import Summary, Verdict
from tests.command import ramify as command

SMALL = {"preterminals": 8, "nonterminals": 4, "rank": 8, "embedding": 16, "epochs": 2, "batch_size": 8}
SUMMARY = Summary(
    source="text",
    used=10_000,
    held_out=5,
    dropped={"under 2 words": 3, "over 40 words": 2},
    blank_lines=1,
    dev_source="text",
    dev=5,
    dev_has_trees=False,
    words=60_000,
    vocabulary=1000,
    min_count=1,
    unknown=UnknownCount(60_000, 12),
    dev_unknown=UnknownCount(3000, 20),
    model="tn-pcfg",
    sizes={"nonterminals": 30, "preterminals": 60, "rank": 200},
    parameters=1234,
    has_likelihood=True,
    epochs=3,
    epochs_done=0,
)
VERDICT = Verdict(2, 3, 310.6, 36.1, {"left": 11.8, "right": 34.1})


def write_trees(path: Path, parses) -> Path:
    path.write_text("".join(write_brackets(parse) + "\n" for parse in parses))
    return path


def run(data, out, **given):
    events: dict[str, list] = {"on_start": [], "on_end": []}
    ramify.train(data, out, **{name: seen.append for name, seen in events.items()}, **SMALL, **given)
    (summary,), (verdict,) = events.values()
    return summary, verdict


def test_every_sentence_of_the_text_is_accounted_for(tmp_path):
    lines = ["a b c d"] * 45 + ["word"] * 15 + [" ".join("x" * 41)] * 3 + ["", ". ."]
    # The held-out 20th and 40th have words enough, the 60th has one.
    (tmp_path / "text").write_text("\n".join(lines))
    summary, verdict = run(tmp_path / "text", tmp_path / "run")
    assert (summary.read, summary.used, summary.held_out) == (64, 43, 2)
    assert summary.dropped == {"under 2 words": 15, "over 40 words": 3, "without words": 1}
    assert summary.blank_lines == 1
    assert summary.words == 4 * 43
    assert summary.vocabulary == 7  # a b c d x word <unk>
    assert (verdict.dev_f1, verdict.lost_to) == (None, None)


def test_with_a_dev_set_nothing_is_held_out_and_its_trees_are_only_reported(tmp_path):
    treebank = builtin_treebank(0, train=60, dev=12, test=1)
    data = write_trees(tmp_path / "data", treebank["train"])
    dev = write_trees(tmp_path / "dev", treebank["dev"])
    summary, verdict = run(data, tmp_path / "run", dev=dev)
    assert (summary.read, summary.held_out, summary.dev, summary.dev_has_trees) == (60, 0, 12, True)
    parser = ramify.load(tmp_path / "run")
    assert verdict.dev_f1 == pytest.approx(ramify.evaluate(parser, dev).scores.sentence_f1, abs=0.01)
    assert verdict.dev_perplexity == pytest.approx(ramify.evaluate(parser, dev).perplexity)
    for name in ("left", "right"):
        assert verdict.branching[name] == pytest.approx(ramify.evaluate(name, dev).scores.sentence_f1, abs=0.01)


def test_the_verdict_is_about_the_epoch_that_was_kept(tmp_path, monkeypatch):
    found = iter([(30.0, 50.0), (20.0, 10.0)])

    def evaluated(*_):
        perplexity, f1 = next(found)
        return {"dev_perplexity": perplexity + (0 if perplexity == 30.0 else 20.0), "dev_f1": f1}

    monkeypatch.setattr("ramify.training.run.evaluate_dev", evaluated)
    data = write_trees(tmp_path / "data", builtin_treebank(0, train=40, dev=1, test=1)["train"])
    _, verdict = run(data, tmp_path / "run")
    assert (verdict.best_epoch, verdict.epochs, verdict.dev_perplexity, verdict.dev_f1) == (1, 2, 30.0, 50.0)


def test_a_resumed_run_says_what_was_done_before_and_ends_with_the_same_verdict(tmp_path):
    data = write_trees(tmp_path / "data", builtin_treebank(0, train=40, dev=1, test=1)["train"])
    before, first = run(data, tmp_path / "run")
    after, second = run(data, tmp_path / "run", resume=True)
    assert (before.epochs_done, after.epochs_done) == (0, 2)
    assert first == second
    assert replace(after, epochs_done=0) == before


def test_a_score_below_left_or_right_branching_is_reported():
    assert VERDICT.lost_to is None
    assert replace(VERDICT, dev_f1=34.1).lost_to is None
    lost = replace(VERDICT, dev_f1=20.0)
    assert lost.lost_to == "right"
    assert "score below right branching" in printed(lambda on: on["on_end"](lost))
    shown = printed(lambda on: on["on_end"](VERDICT))
    assert "worse" not in shown
    for part in ("epoch 2 of 3", "310.6", "36.1", "left branching 11.8", "right branching 34.1"):
        assert part in shown


def test_advice_if_there_is_too_little_text_for_the_symbols():
    assert SUMMARY.notes == []
    assert replace(SUMMARY, words=300 * 60).notes == []
    few = replace(SUMMARY, sizes={"nonterminals": 250, "preterminals": 500})
    (advice,) = few.notes
    assert "120 per preterminal" in advice
    assert "--preterminals 200" in advice
    (tiny,) = replace(SUMMARY, words=500).notes
    assert "give more text" in tiny
    assert "--preterminals" not in tiny
    assert advice in printed(lambda on: on["on_start"](few))


def test_what_to_expect_of_little_text():
    (note,) = replace(SUMMARY, used=9_999).notes
    assert "9,999 sentences" in note
    assert "ramify focus" in note
    assert replace(SUMMARY, used=9_999, teachers=("one",)).notes == []


def test_a_note_if_no_word_of_the_training_text_is_unknown():
    (note,) = replace(SUMMARY, unknown=UnknownCount(60_000, 0)).notes
    assert "--min-count 2" in note
    assert "20 of 3,000 words" in printed(lambda on: on["on_start"](SUMMARY))


def test_the_summary_on_the_terminal():
    shown = printed(lambda on: on["on_start"](SUMMARY))
    parts = "10,010 sentences read; 10,000 used; 5 held out; 5 dropped (3 under 2 words, 2 over 40 words); 1 blank line"
    for part in (*parts.split("; "), "60,000", "1,000", "tn-pcfg", "rank 200", "1,234 parameters"):
        assert part in shown


def at(epoch: int, done: int) -> Progress:
    return Progress(epoch, done, 100, 50.0, 321.0)


def printed(work, clock=None, terminal=False) -> str:
    out = io.StringIO()
    console = Console(file=out, width=200, force_terminal=terminal, color_system=None)
    with training_display(console, clock or (lambda: 0.0)) as callbacks:
        work(callbacks)
    return out.getvalue()


def test_without_a_terminal_a_line_comes_after_a_minute_and_a_tenth_of_an_epoch():
    now = 0.0

    def train(callbacks):
        nonlocal now
        callbacks["on_start"](SUMMARY)
        for epoch, seconds in ((1, 1.0), (2, 30.0)):  # a fast epoch, then a slow one
            for done in range(1, 101):
                now += seconds
                callbacks["on_progress"](at(epoch, done))

    shown = printed(train, lambda: now)
    lines = [line for line in shown.splitlines() if line.startswith("epoch ") and "%" in line]
    assert [line.split(":")[0] for line in lines[:2]] == ["epoch 1/3, 61%", "epoch 2/3, 1%"]
    shares = [int(line.split(":")[0].split()[-1].removesuffix("%")) for line in lines[1:]]
    assert len(shares) > 5
    assert all(10 <= later - earlier <= 11 for earlier, later in pairwise(shares))
    assert "50 sentences/s, perplexity 321.0" in lines[0]
    assert "left" in lines[0]


def test_the_expected_time_is_measured_after_the_first_step_which_may_compile():
    times = iter([60.0 + 0.5 * step for step in range(200)])
    now = 0.0

    def train(callbacks):
        nonlocal now
        callbacks["on_start"](SUMMARY)
        for done in range(1, 25):
            now = next(times)
            callbacks["on_progress"](at(1, done))

    shown = printed(train, lambda: now)
    (line,) = (line for line in shown.splitlines() if line.startswith("time"))
    assert "2 min" in line  # 279 of 300 steps are left, half a second each: 140 s
    assert line.count("time") == 1


def test_the_expected_time_does_not_wait_for_slow_steps():
    now = 0.0

    def train(callbacks):
        nonlocal now
        callbacks["on_start"](SUMMARY)
        for done in (1, 2):
            now += 36.0
            callbacks["on_progress"](at(1, done))

    assert "2 h 59 min" in printed(train, lambda: now)  # 298 steps of 36 seconds


def test_progress_shows_no_figure_before_the_first_step():
    shown = printed(lambda on: (on["on_start"](SUMMARY), on["on_progress"](at(1, 1))), terminal=True)
    assert "starting" in shown
    assert "nan" not in shown
    assert "-:--" not in shown
    assert "perplexity 321.0" in shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(4.4, "4 s"), (89.0, "89 s"), (200.0, "3 min"), (3 * 3600 + 60.0, "3 h 1 min"), (86400.0 * 4, "4 days")],
)
def test_durations(seconds, shown):
    assert duration(seconds) == shown


def test_sentences_that_were_held_out_are_not_called_missing(tmp_path):
    (tmp_path / "text").write_text("a b c\n")
    with pytest.raises(RamifyError, match="held out"):
        ramify.train(tmp_path / "text", tmp_path / "run", **SMALL)
    (tmp_path / "text").write_text("one\na b c\n")
    with pytest.raises(RamifyError, match="held out"):
        ramify.train(tmp_path / "text", tmp_path / "run", **SMALL)
    (tmp_path / "text").write_text("a b c\none\n")
    with pytest.raises(RamifyError, match="held out"):
        ramify.train(tmp_path / "text", tmp_path / "run", **SMALL)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("lines", "promised"), [([], False), (["a line"], True)])
def test_a_partial_file_is_mentioned_only_if_it_exists(tmp_path, lines, promised):
    def stopping():
        yield from lines
        raise Stopped(signal.SIGINT)

    output = LineOutput(tmp_path / "out", resume=False, overwrite=False, made_with=dict)
    with pytest.raises(Stopped) as stop, output:
        output.write(stopping())
    assert ("out.partial" in str(stop.value)) == promised == (tmp_path / "out.partial").exists()


def test_the_command_prints_summary_and_verdict_but_no_result(tmp_path):
    treebank = builtin_treebank(0, train=60, dev=12, test=1)
    data, dev = write_trees(tmp_path / "data", treebank["train"]), write_trees(tmp_path / "dev", treebank["dev"])
    options = [part for name, value in SMALL.items() for part in (f"--{name.replace('_', '-')}", value)]
    done = command("train", data, "--dev", dev, "--out", tmp_path / "run", *options)
    assert done.returncode == 0, done.stderr
    assert not done.stdout
    for part in ("60 sentences read", "parameters", "note: ", "right branching", "kept"):
        assert part in done.stderr


@pytest.mark.parametrize(("bonus", "wrong"), [(0.3, "left"), (-0.3, None), (0.0, None)])
def test_trees_that_branch_to_the_wrong_side_are_reported(tmp_path, bonus, wrong):
    parses = builtin_treebank(2, train=60, dev=1, test=1)["train"]
    (tmp_path / "text.txt").write_text("".join(" ".join(parse.words) + "\n" for parse in parses))
    left = (unlabelled_parse(parse.words, left_branching(len(parse))) for parse in parses)
    teacher = write_trees(tmp_path / "left.trees", left)
    text = tmp_path / "text.txt"
    settings = {"teachers": [teacher], "focus": 9.0, "learning_rate": 0.02, "branching": bonus}
    _, verdict = run(text, tmp_path / "run", dev=text, **settings)
    assert verdict.wrong_side == wrong


def test_the_wrong_side_is_printed():
    shown = printed(lambda on: on["on_end"](replace(VERDICT, wrong_side="left")))
    assert "mostly to the left" in shown
    assert "--seed" in shown

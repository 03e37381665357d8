"""What a person sees of an experiment."""

from __future__ import annotations

import io
from typing import Any

import msgspec
import pytest
from rich.console import Console

from ramify.lab.results.schema import Result
from ramify.lab.run.status import Status, experiment_progress, status_table
from tests.lab.made_results import tiny

RECORD = {"epoch": 1, "dev_perplexity": 81.25, "dev_f1": 30.0, "best_epoch": 1, "seconds": 3.0}


def finished(*epochs: dict[str, Any]) -> Result:
    return msgspec.convert(tiny("a", "b", 0, 41.5, epochs=[*epochs]), Result)


def shown(statuses: list[Status], most: int | None = None) -> str:
    console = Console(file=io.StringIO(), width=120)
    console.print(status_table(statuses, most))
    return console.file.getvalue()


def test_a_run_from_its_beginning_to_its_end():
    status = Status("a/b/seed-0", epochs=2)
    status.take({"event": "state", "state": "training"})
    status.take({"event": "progress", "epoch": 1, "epochs": 2, "seconds_left": 3661.2})
    assert all(text in shown([status]) for text in ("training", "1/2", "1:01:01"))
    status.take({"event": "epoch", "record": RECORD})
    assert "81.2" in shown([status])
    assert status.is_running
    status.take({"event": "finished", "result": finished(RECORD)})
    assert not status.is_running
    assert "41.50" in shown([status])
    assert "1:01:01" not in shown([status])
    assert "1 jobs: 1 finished" in shown([status])


def test_a_finished_run_shows_the_figures_of_the_epoch_that_was_kept():
    records = [
        RECORD | {"epoch": epoch, "dev_perplexity": perplexity, "dev_f1": 10.0 * epoch, "best_epoch": min(epoch, 2)}
        for epoch, perplexity in ((1, 30.0), (2, 15.0), (3, 18.0))
    ]
    status = Status("a/b/seed-0", epochs=3)
    status.finish(finished(*records))
    assert (status.epoch, status.dev_perplexity, status.dev_f1, status.f1) == (3, 15.0, 20.0, 41.5)


def test_a_result_that_is_lost_is_no_error():
    status = Status("a/b/seed-0")
    status.finish(None)
    assert (status.state, status.f1) == ("finished", None)


def test_where_there_is_no_room_for_all_the_urgent_ones_are_shown():
    statuses = [Status(f"run-{number}", state="finished") for number in range(20)]
    statuses[7].state, statuses[11].state, statuses[13].state = "training", "failed", "waiting"
    lines = shown(statuses, 3)
    assert [number for number in range(20) if f"run-{number} " in lines] == [7, 11, 13]
    assert "20 jobs: 17 finished, 1 running, 1 failed, 1 waiting" in lines


def test_the_order_of_urgency():
    order = ["training", "failed", "stopped", "waiting", "finished"]
    statuses = [Status(f"run-{state}", state=state) for state in reversed(order)]
    for room in range(1, 5):
        lines = shown(statuses, room)
        assert [state for state in order if f"run-{state} " in lines] == order[:room]


@pytest.mark.parametrize("terminal", [True, False])
def test_lines_are_for_what_is_no_terminal(terminal):
    console = Console(file=io.StringIO(), width=120, height=30, force_terminal=terminal, color_system=None)
    status = Status("a/[b]/seed-0", epochs=2)
    with experiment_progress(console) as (on_begin, on_change):
        on_begin([status])
        for event in (
            {"event": "note", "text": "compiling"},
            {"event": "note", "text": "compiling"},
            {"event": "epoch", "record": RECORD},
            {"event": "failed", "error": "out of [luck]", "final": True},
        ):
            status.take(event)
            on_change(status, event)
    text = console.file.getvalue()
    assert text.count("note: compiling") == 1
    assert "a/[b]/seed-0 failed: out of [luck]" in text
    assert ("epoch 1 of 2, perplexity 81.2 on dev, S-F1 30.0 (3 s)" in text) is not terminal
    assert ("dev perplexity" in text) is terminal


@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize(
    ("vocabularies", "differ"),
    [
        (["en: 10000, None", "en: 10000, None", "fr: 500, 2", ""], False),
        (["en: 10000, None", "en: 10000, 2"], True),
    ],
)
def test_perplexities_of_different_vocabularies_have_a_note(terminal, vocabularies, differ):
    console = Console(file=io.StringIO(), width=150, height=30, force_terminal=terminal, color_system=None)
    statuses = [Status(f"run-{number}", vocabulary=known) for number, known in enumerate(vocabularies)]
    with experiment_progress(console) as (on_begin, _):
        on_begin(statuses)
    assert ("different vocabularies" in console.file.getvalue()) is differ

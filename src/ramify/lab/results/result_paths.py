"""Where the files of an experiment are."""

from __future__ import annotations

from pathlib import Path

PLAN, FAILED = "experiment.json", "failed.json"
RUNS, BASELINES, RESULTS = "runs", "baselines", "results"
CONFIG, METRICS = "config.json", "metrics.jsonl"


def result_file(run: Path, decoder: str) -> Path:
    """Where the scores of a run by one decoder are."""
    return run / RESULTS / f"{decoder}.json"


def baseline_file(out: Path, data: str, name: str) -> Path:
    """Where the scores of a baseline are."""
    return out / BASELINES / data / f"{name}.json"

"""Where one job of an experiment is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from ramify.lab.results.schema import Epoch, Result


@dataclass
class Status:
    """Of a run, or of the baselines of a data set; moved along by the events of its process."""

    name: str
    state: str = "waiting"
    """waiting, starting, training, scoring (and by which decoder), finished, stopped, failed"""
    epoch: int | None = None
    epochs: int | None = None
    dev_perplexity: float | None = None
    dev_f1: float | None = None
    f1: float | None = None
    """Of the set that is scored, by the first decoder"""
    seconds_left: float | None = None
    """Of training"""
    vocabulary: str = ""
    """Its data, and settings that decide which words are known"""
    error: str = ""
    details: str = ""

    @property
    def at_work(self) -> bool:
        """Whether a process is busy with it."""
        return self.state not in ("waiting", "finished", "stopped", "failed")

    def take(self, event: dict[str, Any]) -> None:
        """What an event changes."""
        kind = event["event"]
        if kind == "state":
            self.state, self.seconds_left = event["state"], None
        elif kind == "progress":
            self.epoch, self.epochs, self.seconds_left = event["epoch"], event["epochs"], event["seconds_left"]
        elif kind == "epoch":
            self.resume([msgspec.convert(event["record"], Epoch)])
        elif kind == "failed":
            self.state, self.error, self.seconds_left = "failed", event["error"], None
            self.details = event.get("details", self.details)
        elif kind == "finished":
            self.finish(event["result"])

    def resume(self, epochs: Sequence[Epoch]) -> None:
        """These epochs are done."""
        for last in epochs[-1:]:
            self.epoch, self.dev_perplexity, self.dev_f1 = last.epoch, last.dev_perplexity, last.dev_f1

    def finish(self, result: Result | None) -> None:
        """All is done; its figures are those of the epoch that was kept."""
        self.state, self.seconds_left = "finished", None
        if result is None:
            return
        self.f1 = None if result.evaluation is None else result.f1
        if result.epochs:  # which an average does not have
            last = result.epochs[-1]
            self.resume([epoch for epoch in result.epochs if epoch.epoch == last.best_epoch])
            self.epoch = last.epoch

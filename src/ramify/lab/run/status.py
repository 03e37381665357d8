"""Where one job of an experiment is."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any


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
    test_f1: float | None = None
    """By the first decoder"""
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
            self._take_record(event["record"])
        elif kind == "failed":
            self.state, self.error, self.seconds_left = "failed", event["error"], None
            self.details = event.get("details", self.details)
        elif kind == "finished":
            self.finish(event["result"])

    def _take_record(self, record: dict[str, Any]) -> None:
        self.epoch = _whole(record["epoch"])
        self.dev_perplexity, self.dev_f1 = _number(record["dev_perplexity"]), _number(record.get("dev_f1"))

    def resume(self, records: list[dict[str, Any]]) -> None:
        """It was begun already; these epochs are behind it."""
        with suppress(KeyError, TypeError, IndexError):
            self._take_record(records[-1])

    def finish(self, result: Any) -> None:
        """All is done; its figures are those of the epoch that was kept."""
        self.state, self.seconds_left = "finished", None
        with suppress(KeyError, TypeError, IndexError):  # a file of results may have been changed by hand
            self.test_f1 = _number(result["evaluation"]["scores"]["sentence_f1"])
        with suppress(KeyError, TypeError, IndexError):  # which an average does not have
            self._take_record(result["epochs"][result["epochs"][-1]["best_epoch"] - 1])
            self.epoch = _whole(result["epochs"][-1]["epoch"])


def _whole(value: object) -> int | None:
    return value if type(value) is int else None


def _number(value: object) -> float | None:
    """None for what a file of results that was changed by hand has in the place of a number."""
    try:
        return float(value) if type(value) in (int, float) else None  # type: ignore[arg-type]
    except OverflowError:
        return None

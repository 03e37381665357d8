"""Handling of Ctrl-C and termination while work must not be left unfinished."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from ramify.errors import Stopped

SIGNALS = (signal.SIGINT, signal.SIGTERM)
SAME_REQUEST_SECONDS = 1.0
"""A repeated signal within these seconds is the same request: `timeout` signals a process and its group."""


class StopRequest:
    """Whether a stop was requested, and by which signal."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self._since = 0.0

    def is_repeated(self, number: int) -> bool:
        """Whether a signal repeats the one that requested the stop."""
        return number == self.signal and time.monotonic() - self._since < SAME_REQUEST_SECONDS

    def ask(self, number: int) -> None:
        """Request a stop."""
        self.signal, self._since = number, time.monotonic()

    def obey(self, message: str = "Stopped.") -> None:
        """Raise `Stopped` if a stop was requested."""
        if self.signal is not None:
            raise Stopped(self.signal, message)


@contextmanager
def stop_requests() -> Iterator[StopRequest]:
    """In this context, a signal only records a request; a second one that is not a repetition has its usual effect.

    Only the main thread receives signals, so this has no effect in other threads.
    """
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    previous = {number: signal.getsignal(number) for number in SIGNALS}

    def restore() -> None:
        for number, handler in previous.items():
            signal.signal(number, handler)

    def on_signal(number: int, _: FrameType | None) -> None:
        if request.signal is None:
            request.ask(number)
        elif not request.is_repeated(number):
            restore()
            signal.raise_signal(number)

    for number in SIGNALS:
        signal.signal(number, on_signal)
    try:
        yield request
    finally:
        restore()

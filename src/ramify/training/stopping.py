"""Ctrl-C and termination while something must not be left half-done."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from ramify.errors import Stopped

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopRequest:
    """Whether an end was asked for, and by which signal."""

    def __init__(self) -> None:
        self.signal: int | None = None

    def obey(self, message: str = "Stopped.") -> None:
        """Raise `Stopped` if an end was asked for."""
        if self.signal is not None:
            raise Stopped(self.signal, message)


@contextmanager
def stop_requests() -> Iterator[StopRequest]:
    """Within, a signal only leaves its request; a second one has its usual effect, at once.

    Signals reach the main thread alone, so in any other nothing changes.
    """
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    usual = {number: signal.getsignal(number) for number in SIGNALS}

    def restore() -> None:
        for number, handler in usual.items():
            signal.signal(number, handler)

    def on_signal(number: int, _: FrameType | None) -> None:
        request.signal = number
        restore()

    for number in SIGNALS:
        signal.signal(number, on_signal)
    try:
        yield request
    finally:
        restore()

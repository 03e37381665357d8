"""Errors and warnings for users, and a request to stop."""

import signal


class RamifyError(Exception):
    """What is wrong, where, and what to do about it, in one sentence; the command line prints it as is."""


class RamifyWarning(UserWarning):
    """What may be a mistake, in one sentence; the command continues."""


class Stopped(BaseException):
    """The user or the system requested a stop; all work is saved. Like KeyboardInterrupt, not an `Exception`."""

    def __init__(self, number: int, message: str = "Stopped.") -> None:
        super().__init__(message)
        self.signal = signal.Signals(number)

    @property
    def exit_code(self) -> int:
        """As a shell reports it: 130 after Ctrl-C, 143 after SIGTERM."""
        return 128 + self.signal


def shortened(text: str) -> str:
    """`text` in quotes, cut so that an error stays one readable sentence whatever the file holds."""
    return repr(text if len(text) <= 40 else text[:37] + "...")

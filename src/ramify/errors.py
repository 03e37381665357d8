"""Errors and warnings for users, and a request to stop."""

import signal


class RamifyError(Exception):
    """A user error: one sentence that says what is wrong, where, and what to do. The command line prints it."""


class RamifyWarning(UserWarning):
    """A possible mistake, described in one sentence; the command continues."""


class Stopped(BaseException):
    """The user or the system requested a stop; all work is saved. Like KeyboardInterrupt, not an `Exception`."""

    def __init__(self, number: int, message: str = "Stopped.") -> None:
        super().__init__(message)
        self.signal = signal.Signals(number)

    @property
    def exit_code(self) -> int:
        """The exit code, as in a shell: 130 after Ctrl-C, 143 after SIGTERM."""
        return 128 + self.signal


def shortened(text: str) -> str:
    """`text` in quotes, shortened so that an error stays readable."""
    return repr(text if len(text) <= 40 else text[:37] + "...")

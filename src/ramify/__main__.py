"""`ramify` and `python -m ramify`."""

import atexit
import gc
import signal
import sys
from types import FrameType
from typing import NoReturn

from ramify.errors import Stopped
from ramify.runtime.memory import importing, keep_freed_memory
from ramify.runtime.processes import is_first_failure, launched_rank


def _stop(number: int, _: FrameType | None) -> NoReturn:
    raise Stopped(number)


def main() -> None:
    """Run a command; a requested stop is not a failure and has a separate exit code."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop)
    keep_freed_memory()
    # When it exits, Python searches all objects for garbage; torch alone leaves 166,000 of them.
    atexit.register(gc.freeze)
    try:
        # Inside the try, because this takes seconds in which the user may press Ctrl-C.
        with importing():
            from ramify.cli import run

        run()
    except Stopped as stop:
        is_first_failure()  # other processes of the job then do not report that they lost this one
        if launched_rank() == 0:
            sys.stderr.write(f"{stop}\n")
        sys.exit(stop.exit_code)


if __name__ == "__main__":
    main()

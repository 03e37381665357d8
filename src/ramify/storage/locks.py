"""One writer per folder or file, with a lock that the operating system releases when the process ends.

We do not use the library filelock: it unlocks locks that other processes inherited, falls back to locks that outlive
their process, and has no public way to pass on a lock.
"""

from __future__ import annotations

import errno
import os
import stat
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ramify.errors import RamifyError, RamifyWarning

try:
    import fcntl
except ImportError:  # not POSIX
    fcntl = None  # type: ignore[assignment]

LOCK = ".lock"
"""The lock file in a locked folder"""
_PAUSE = 0.1
_MAX_TRIES = 100
_UNSUPPORTED = frozenset([errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK])


@contextmanager
def locked_folder(folder: Path, patience: float = 0.0) -> Iterator[int]:
    """Create the folder if it is missing and exclude other writers; returns the file descriptor of the lock.

    Processes that inherit the descriptor hold the lock too: as long as one of them lives, no other process writes here.
    A folder that is still empty at the end is removed if this call created it and no process waits for it. `patience`
    is in seconds.
    """
    made: list[Path] = []

    def make() -> None:
        try:
            made.extend(path for path in (folder, *folder.parents) if not path.exists() and path not in made)
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            if isinstance(error, FileExistsError | FileNotFoundError) and not os.path.lexists(error.filename):
                return  # another process removed a folder that it had created; the next attempt begins here again
            raise RamifyError(
                f"{folder}: cannot be created ({error.strerror}); check the path and its permissions."
            ) from error

    try:
        with _locked(folder / LOCK, folder, patience, make) as descriptor:
            yield descriptor
    finally:
        with suppress(OSError):
            for path in made:
                path.rmdir()


def check_unlocked(folder: Path) -> None:
    """Refuse a folder that another process has locked, without changing it."""
    if fcntl is None:
        return
    try:
        with (folder / LOCK).open("rb") as handle:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        raise _in_use(folder) from None
    except OSError:
        pass  # a later write reports the error


def _in_use(out: Path) -> RamifyError:
    return RamifyError(f"{out}: another ramify process is writing to it; wait until it ends, or give another --out.")


@contextmanager
def locked_file(path: Path, out: Path) -> Iterator[int]:
    """Open `path`, the unfinished `out`, and exclude other writers of `out`; returns the file descriptor.

    The file is created if it is missing, and removed at the end if it is empty.
    """
    with _locked(path, out, 0.0, lambda: None) as descriptor:
        yield descriptor


@contextmanager
def _locked(path: Path, out: Path, patience: float, make: Callable[[], None]) -> Iterator[int]:
    descriptor = _acquired(path, out, patience, make)
    try:
        yield descriptor
    finally:
        # Removed while locked: a process that has opened it in the meantime finds another file, and tries again.
        with suppress(OSError):
            if _names(path, descriptor) and not os.fstat(descriptor).st_size:
                path.unlink()
        os.close(descriptor)  # no LOCK_UN, which would also unlock it for processes that inherited it


def _acquired(path: Path, out: Path, patience: float, make: Callable[[], None]) -> int:
    until = time.monotonic() + patience
    for _ in range(_MAX_TRIES + int(patience / _PAUSE)):
        make()
        try:
            descriptor = _opened(path, out)
        except FileNotFoundError:  # another process removed the folder that it had created
            continue
        try:
            free = _take(descriptor, out)
            if free and _names(path, descriptor):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        if not free:
            if time.monotonic() >= until:
                break
            time.sleep(_PAUSE)
    raise _in_use(out)


def _opened(path: Path, out: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        descriptor = os.open(path, flags, 0o666)
    except FileNotFoundError:
        raise
    except OSError as error:
        if path.is_symlink():
            raise RamifyError(f"{path}: this is a link, which is not followed; remove it.") from error
        raise RamifyError(
            f"{out}: cannot be written because {path.name} cannot be opened ({error.strerror}); check its "
            "permissions, or give another --out."
        ) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise RamifyError(f"{path}: this is not a regular file; remove it, or give another --out.")
    return descriptor


def _take(descriptor: int, out: Path) -> bool:
    """Lock the open file; False if another process holds the lock."""
    try:
        if fcntl is None:
            raise OSError(errno.ENOSYS, "this system has no file locks")
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES):
            return False
        if error.errno not in _UNSUPPORTED:
            raise RamifyError(f"{out}: cannot be locked ({error.strerror}); give another --out.") from error
        warnings.warn(
            f"{out}: cannot be locked ({error.strerror}); make sure that no other process writes to it.",
            RamifyWarning,
            stacklevel=2,
        )
    return True


def _names(path: Path, descriptor: int) -> bool:
    """Whether the path still refers to the open file: another process may have removed, replaced or renamed it."""
    try:
        found, held = path.stat(follow_symlinks=False), os.fstat(descriptor)
    except FileNotFoundError:
        return False
    return (found.st_dev, found.st_ino) == (held.st_dev, held.st_ino)

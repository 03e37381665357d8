"""The processes of one training job, as torchrun starts them, and their communication.

Without torchrun, there is one process and no communication. Objects are never pickled: processes exchange tensors and
bytes.
"""

from __future__ import annotations

import atexit
import json
import os
import secrets
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from ramify.errors import RamifyError

if TYPE_CHECKING:
    from torch import Tensor

PATIENCE = timedelta(hours=24)
"""Maximum time to wait for another process: the first one may evaluate, or parse with teachers, for hours. If a process
ends, the others notice it immediately."""
_FAILURES = "ramify/failures"


class LostProcessError(RamifyError):
    """Another process of the job has ended."""


@dataclass(frozen=True)
class World:
    """This process among all processes of the job; all of them must call every method except `share`."""

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    """Number among the processes of this machine"""
    restarts: int = 0
    """Maximum number of restarts by torchrun"""

    @property
    def is_first(self) -> bool:
        """Whether this process prints, and writes files."""
        return self.rank == 0

    def share(self, items: int, rank: int | None = None) -> tuple[int, int]:
        """The range of items of a process (default: this one): the first item, and the first after the last."""
        rank = self.rank if rank is None else rank
        return items * rank // self.size, items * (rank + 1) // self.size

    def bytes_of_first(self, content: bytes) -> bytes:
        """The value of the first process."""
        if self.size == 1:
            return content
        import torch
        from torch import distributed

        with _connected():
            size = torch.tensor([len(content)])
            distributed.broadcast(size, 0)
            if not int(size):
                return b""
            same = torch.frombuffer(bytearray(content), dtype=torch.uint8) if self.is_first else None
            same = torch.empty(int(size), dtype=torch.uint8) if same is None else same
            distributed.broadcast(same, 0)
        return same.numpy().tobytes()

    def found_by_first(self, find: Callable[[], Any]) -> Any:
        """The result of `find`, which only the first process calls, as JSON values."""
        if self.size == 1:
            return find()
        return json.loads(self.bytes_of_first(json.dumps(find()).encode() if self.is_first else b""))

    def gathered(self, tensor: Tensor) -> Tensor:
        """(size, ...) the tensors of all processes, which have the same shape."""
        if self.size == 1:
            return tensor[None]
        from torch import distributed

        result = tensor.new_empty(self.size, *tensor.shape)
        with _connected():
            distributed.all_gather(list(result), tensor.contiguous())
        return result

    def exchanged(self, rows: Tensor) -> Tensor:
        """(size, ...) the rows for this process, where row r of each process is for process r."""
        if self.size == 1:
            return rows
        import torch
        from torch import distributed

        result = torch.empty_like(rows)
        with _connected():
            distributed.all_to_all_single(result, rows)
        return result


ALONE = World()


def is_launched() -> bool:
    """Whether torchrun started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ and "RANK" in os.environ


def launched_rank() -> int:
    """The number of this process among those that torchrun started, before they are connected; else 0."""
    return int(os.environ["RANK"]) if is_launched() else 0


def joined() -> World:
    """The processes that torchrun started, after all of them are connected; one process without torchrun."""
    if not is_launched():
        return ALONE
    import torch
    from torch import distributed

    if not distributed.is_initialized():
        nccl = torch.cuda.is_available() and distributed.is_nccl_available()
        rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        try:
            with _default_signals():
                store = _store_of_job(rank == 0, PATIENCE)
                attempt = agree_on_attempt(store, rank, size)
                distributed.init_process_group(
                    "cpu:gloo,cuda:nccl" if nccl else "gloo",
                    store=distributed.PrefixStore(attempt, store),  # type: ignore[attr-defined]
                    rank=rank,
                    world_size=size,
                    timeout=PATIENCE,
                )
        except (RuntimeError, ValueError) as error:
            raise RamifyError(
                f"The processes of this job cannot reach each other ({_first_line(error)}); check the options of "
                "torchrun and, for several machines, GLOO_SOCKET_IFNAME."
            ) from error
        atexit.register(_leave)
    return World(
        distributed.get_rank(),
        distributed.get_world_size(),
        int(os.environ.get("LOCAL_RANK", "0")),
        int(os.environ.get("TORCHELASTIC_MAX_RESTARTS", "0")),
    )


def _store_of_job(is_first: bool, patience: timedelta) -> Any:
    """The store by which processes exchange names; torchrun or, with some settings, the first process provides it."""
    from torch.distributed import TCPStore  # type: ignore[attr-defined]

    is_host = is_first and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True"
    return TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=is_host, timeout=patience)


def agree_on_attempt(store: Any, rank: int, size: int, pause: float = 0.05) -> str:
    """A name for this attempt of the job that no process of an earlier attempt has used.

    A restarted job uses the store of the previous attempt, which still has the addresses of processes that have ended.
    The number of restarts cannot distinguish attempts, because machines count separately. Therefore each process writes
    a random token, and the first one proposes all tokens that it finds, until every process finds its token among them.
    """
    mine = secrets.token_hex(8)
    store.set(f"ramify/token/{rank}", mine)
    tokens = [f"ramify/token/{each}" for each in range(size)]
    while True:
        if rank == 0 and store.check(tokens):
            store.set("ramify/proposal", " ".join(store.get(token).decode() for token in tokens))
        proposal = store.get("ramify/proposal").decode() if store.check(["ramify/proposal"]) else ""
        if dict(enumerate(proposal.split())).get(rank) == mine:
            name = f"ramify/attempt/{proposal.replace(' ', '-')}"
            store.set(f"{name}/seen/{rank}", "")
            if rank == 0 and store.check([f"{name}/seen/{each}" for each in range(size)]):
                store.set(f"{name}/agreed", "")
            if store.check([f"{name}/agreed"]):
                return name
        time.sleep(pause)


@contextmanager
def _default_signals() -> Iterator[None]:
    """Let signals end the process immediately: Python's handlers do not run while it waits in compiled code."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, signal.SIG_DFL) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _leave() -> None:
    from torch import distributed

    if distributed.is_initialized():
        distributed.destroy_process_group()


def is_first_failure() -> bool:
    """Whether no other process of the job has failed before; only the first one prints its error."""
    if not is_launched():
        return True
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    with suppress(RuntimeError, ValueError, KeyError):
        store = _store_of_job(False, timedelta(seconds=3))
        return bool(store.add(f"{_FAILURES}/{attempt}", 1) == 1)
    return True


@contextmanager
def _connected() -> Iterator[None]:
    """Turn the various errors of backends about a lost process into one sentence."""
    try:
        yield
    except RuntimeError as error:
        raise LostProcessError(
            "Another process of this job has ended or cannot be reached; see its message, if there is one, and "
            "resume the run."
        ) from error


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]

"""A connection to Ray, which is imported here and nowhere else."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ramify.errors import RamifyError

OBJECT_STORE = 200 * 2**20
"""Bytes of shared memory for a Ray started here; only block numbers and events pass through it"""
CONNECT_SECONDS = 20.0
_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",  # no usage statistics are sent
    "RAY_BACKEND_LOG_LEVEL": "fatal",  # otherwise Ray Data's restarts of actors are logged as errors
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # Ray's future default, without a warning
    "RAY_NUM_REDIS_GET_RETRIES": "2",  # if another program uses the port, Ray's 20 attempts take a quarter of an hour
}


def import_ray() -> Any:
    """The library."""
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise RamifyError("--engine ray needs Ray; install it with: pip install 'ramify[ray]'.") from error
    return ray


@contextmanager
def ray_session(address: str | None) -> Iterator[Any]:
    """Ray, connected to the cluster at `address`, or to a new one on this machine with all its cores.

    `RAY_ADDRESS` is used if no address is given. An existing connection is used and stays open.
    """
    ray = import_ray()
    if ray.is_initialized():
        yield ray
        return
    chosen = address or os.environ.get("RAY_ADDRESS") or "local"
    local = {"include_dashboard": False, "object_store_memory": OBJECT_STORE} if chosen == "local" else {}
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        _check_reachable(chosen)
        with _without_stderr():
            ray.init(chosen, log_to_driver=False, logging_level=logging.ERROR, **local)
    except Exception as error:  # Ray also raises plain exceptions, for example if it takes too long to start
        raise _unreachable(chosen, address is None, error) from error
    finally:
        for number, handler in handlers.items():  # Ray replaces them
            signal.signal(number, handler)
    try:
        yield ray
    finally:
        ray.shutdown()


def _unreachable(address: str, from_environment: bool, error: Exception) -> RamifyError:
    """The error with advice; Ray's own advice is about options that `ramify` does not have."""
    reason = str(error).strip().partition("\n")[0].partition(". ")[0]
    if address == "local":
        return RamifyError(f"Ray cannot be started on this machine ({reason}); use --engine local.")
    remove = "unset RAY_ADDRESS" if from_environment else "leave out --ray-address"
    if address == "auto" and isinstance(error, ConnectionError):
        return RamifyError(
            "This machine does not belong to a running Ray cluster; start one with: ray start --head, or "
            f"{remove} to use the cores of this machine."
        )
    return RamifyError(
        f"Ray at {address!r} cannot be reached ({reason}); give auto on a machine of the cluster, or HOST:PORT as "
        f"printed by ray start --head, with Ray's token if it needs one, or {remove} to use the cores of this machine."
    )


def _check_reachable(address: str) -> None:
    """Check that the address answers; Ray would try for many minutes."""
    host, _, port = address.rpartition(":")
    if host and port.isdigit() and "/" not in host:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()


@contextmanager
def _without_stderr() -> Iterator[None]:
    """Hide what Ray's C++ part prints when it starts; errors are raised as exceptions."""
    sys.stderr.flush()
    kept, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(null)

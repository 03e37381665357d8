"""What a server takes at most, and how it refuses more."""

from __future__ import annotations

from dataclasses import dataclass

from ramify.errors import RamifyError


@dataclass(frozen=True)
class Limits:
    """Of one request, and of all that wait."""

    body_bytes: int = 1 << 20
    sentences: int = 256
    """Of one request"""
    words: int = 200
    """Of one sentence: time grows with their cube, memory with their square"""
    waiting_words: int = 50_000
    waiting_requests: int = 1_000
    client_seconds: float = 10.0
    """Within which a client must have sent its request"""
    stop_seconds: int = 30
    """Time for open requests when the server stops"""


class RefusedError(RamifyError):
    """A request that is not served, with its status and, where trying again later may help, when."""

    def __init__(self, status: int, message: str, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status, self.retry_after = status, retry_after

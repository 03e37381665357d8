"""The limits of a server, and the error beyond them."""

from __future__ import annotations

from dataclasses import dataclass

from ramify.errors import RamifyError


@dataclass(frozen=True)
class Limits:
    """Limits for one request, and for all waiting requests."""

    body_bytes: int = 1 << 20
    sentences: int = 256
    """Maximum number of sentences in a request"""
    words: int = 200
    """Maximum number of words in a sentence: time grows with the cube, memory with the square"""
    waiting_words: int = 50_000
    waiting_requests: int = 1_000
    client_seconds: float = 10.0
    """Time in which a client must send its request"""
    stop_seconds: int = 30
    """Time for open requests when the server stops"""


class RefusedError(RamifyError):
    """A refused request, with the HTTP status and, if it may succeed later, the seconds to wait."""

    def __init__(self, status: int, message: str, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status, self.retry_after = status, retry_after

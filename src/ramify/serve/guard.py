"""Checks of every request before it reaches the application, and headers of every response."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from ramify.serve.limits import Limits, RefusedError
from ramify.serve.problems import problem_response

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
OnAnswer = Callable[[str, int, float], None]

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
DRAIN_FACTOR = 8
"""A body of up to this many times the limit is read and discarded, so that the client receives the error"""
HEADERS = {
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"cache-control": b"no-store",
    b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'",
}
"""Headers of every response that does not set them"""


class Guard:
    """Passes on only requests for a trusted host name whose body is complete, small enough and in time.

    A web page of another origin can reach a server on loopback through a host name that resolves to it (DNS
    rebinding); such names are not trusted.
    """

    def __init__(self, app: App, hosts: Collection[str], limits: Limits, on_answer: OnAnswer) -> None:
        self._app, self._limits, self._on_answer = app, limits, on_answer
        self._hosts = frozenset(host.lower() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The interface of an ASGI application."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = time.perf_counter(), 500

        async def send_guarded(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                present = {name.lower() for name, _ in message["headers"]}
                message["headers"] = [
                    *message["headers"],
                    *((name, value) for name, value in HEADERS.items() if name not in present),
                ]
            await send(message)

        try:
            try:
                self._check_host(scope)
                body = await self._body(receive)
            except RefusedError as refusal:
                await problem_response(refusal.status, str(refusal), close=True)(scope, receive, send_guarded)
                return
            await self._app(scope, _replayed(body, receive), send_guarded)
        finally:
            route = getattr(scope.get("route"), "path", "other")
            self._on_answer(route, status, time.perf_counter() - started)

    def _check_host(self, scope: Scope) -> None:
        hosts = [value for name, value in scope["headers"] if name == b"host"]
        if len(hosts) == 1 and without_port(hosts[0].decode("latin-1")).lower() in self._hosts:
            return
        raise RefusedError(400, "The Host header is not a name of this server; start it with --name to add one.")

    async def _body(self, receive: Receive) -> bytes:
        most = self._limits.body_bytes
        parts, size = [], 0
        try:
            async with asyncio.timeout(self._limits.client_seconds):
                while True:
                    message = await receive()
                    if message["type"] != "http.request":
                        raise RefusedError(400, "The request ended before its body did; send it again.")
                    part = message.get("body", b"")
                    size += len(part)
                    if size <= most:
                        parts.append(part)
                    if size > DRAIN_FACTOR * most or not message.get("more_body", False):
                        break
        except TimeoutError:
            seconds = self._limits.client_seconds
            raise RefusedError(408, f"The body did not arrive within {seconds:g} seconds; send it again.") from None
        if size > most:
            raise RefusedError(413, f"The body has more than the {most:,} bytes of one request; send less at a time.")
        return b"".join(parts)


def without_port(host: str) -> str:
    """The name in a Host header; an IPv6 address keeps its brackets."""
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0]


def _replayed(body: bytes, receive: Receive) -> Receive:
    """A `receive` that returns the body that was already read, and then the following messages."""
    sent = False

    async def replay() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


class TimedProtocol(H11Protocol):
    """Closes connections whose headers take too long; uvicorn would keep them open."""

    seconds = Limits.client_seconds
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timer of the first request."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Start the timer of a further request at its first byte."""
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer."""
        self._forget()
        super().connection_lost(exc)

    def _watch(self) -> None:
        if self.conn.their_state is not h11.IDLE:
            self._forget()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(self.seconds, self.transport.close)

    def _forget(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

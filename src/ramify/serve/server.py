"""Starting and stopping a server."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Sequence
from contextlib import closing, suppress

import uvicorn

from ramify.errors import RamifyError, Stopped
from ramify.serve.app import make_app
from ramify.serve.guard import LOOPBACK, Guard, TimedProtocol, without_port
from ramify.serve.limits import Limits
from ramify.serve.served_models import ServedModels

CONNECTIONS = 2_000
"""Maximum number of connections; further ones get 503 immediately"""


def trusted_hosts(host: str, names: Sequence[str]) -> list[str]:
    """Accepted host names: the given names, the address of the server and, on loopback, the names of loopback."""
    for name in names:
        if not name or without_port(name) != name or "*" in name or "/" in name:
            raise RamifyError(f"--name {name}: give a plain name such as parser.example.org, without port or scheme.")
    address = _address(host)
    if address is not None and address.is_unspecified:
        if not names:
            raise RamifyError(
                f"--host {host} listens on every address of this machine; give the host name that clients use, "
                "such as --name parser.example.org."
            )
        return [*LOOPBACK, *names]
    own = f"[{host}]" if address is not None and address.version == 6 else host
    is_loopback = host == "localhost" or (address is not None and address.is_loopback)
    return [*(LOOPBACK if is_loopback else ()), own, *names]


def open_socket(host: str, port: int) -> socket.socket:
    """A socket on this address; a user error if this is not possible."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        found = socket.socket(family, kind, protocol)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
        found.listen(CONNECTIONS)
    except OSError as error:
        raise RamifyError(
            f"The server cannot listen on {host}, port {port} ({error.strerror}); choose another --port."
        ) from error
    return found


def serve(
    served_models: ServedModels,
    host: str,
    port: int,
    names: Sequence[str] = (),
    limits: Limits | None = None,
    on_start: Callable[[str], None] = lambda _: None,
) -> None:
    """Serve until SIGTERM or Ctrl-C; accepted requests are answered first."""
    limits = limits or Limits()
    hosts = trusted_hosts(host, names)
    with closing(open_socket(host, port)) as bound:
        server = make_server(served_models, hosts, limits)
        shown = next(iter(names), host)
        shown = f"[{shown}]" if ":" in shown else shown
        address = f"http://{shown}:{bound.getsockname()[1]}/"
        server.on_start = lambda: on_start(address)
        with suppress(Stopped):  # uvicorn repeats the signal after it has finished its work
            server.run(sockets=[bound])


class Server(uvicorn.Server):
    """Reports when it listens; from then on, a signal stops it in an orderly way."""

    on_start: Callable[[], None] = staticmethod(lambda: None)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to listen."""
        await super().startup(sockets)
        self.on_start()


def make_server(served_models: ServedModels, hosts: Sequence[str], limits: Limits) -> Server:
    """A server that is not yet started."""
    app, service = make_app(served_models, limits)
    config = uvicorn.Config(
        Guard(app, hosts, limits, service.metrics.on_answer),
        http=TimedProtocol,
        ws="none",
        lifespan="on",
        log_level="error",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=CONNECTIONS,
        timeout_graceful_shutdown=limits.stop_seconds,
    )
    return Server(config)


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None

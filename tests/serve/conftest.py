"""A small model, the application within this process, and a separate server."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx2
import pytest
from starlette.testclient import TestClient

import ramify
from ramify.corpus.builtin import builtin_grammar
from ramify.parser import Parser
from ramify.serve.app import Service, make_app
from ramify.serve.guard import LOOPBACK, Guard
from ramify.serve.limits import Limits
from ramify.serve.served_models import ServedModel, ServedModels
from tests.conftest import FIXTURES

SENTENCE = "the old woman watched the dog and the man in the garden"
FIXTURE = FIXTURES / "models" / "tn-pcfg"
MARKUP = '<img src=x onerror="alert(1)">&amp;"<script>alert(2)</script>'


@pytest.fixture(scope="session")
def parser() -> Parser:
    """The grammar of the built-in corpus."""
    return Parser.from_binary_grammar(builtin_grammar())


def started(served_models: ServedModels, limits: Limits | None = None) -> TestClient:
    app, service = make_app(served_models, limits)
    guarded = Guard(app, LOOPBACK, service.limits, service.metrics.on_answer)
    client = TestClient(guarded, base_url="http://localhost", raise_server_exceptions=False)
    client.service = service  # type: ignore[attr-defined]
    return client


def until_ready(client: TestClient | httpx2.Client) -> None:
    for _ in range(1200):
        if client.get("/readyz").status_code == 200:
            return
        time.sleep(0.1)
    raise AssertionError("the server did not become ready within two minutes")


@pytest.fixture(scope="session")
def learnt() -> Parser:
    """A grammar that gives every tree some probability."""
    found = ramify.load(FIXTURE)
    assert isinstance(found, Parser)
    return found


@pytest.fixture(scope="session")
def client(parser: Parser, learnt: Parser) -> Iterator[TestClient]:
    served_models = ServedModels([ServedModel("true", parser), ServedModel(MARKUP, learnt)])
    with started(served_models) as client:
        until_ready(client)
        yield client


@dataclass(frozen=True)
class Running:
    """`ramify serve` in a separate process."""

    address: str
    process: subprocess.Popen[str]
    notes: list[str]
    rest: threading.Thread
    """Reads further notes"""

    @property
    def port(self) -> int:
        return int(urlsplit(self.address).port or 0)

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=60)


Start = Callable[..., Running]


@pytest.fixture(scope="session")
def start_server() -> Iterator[Start]:
    running: list[Running] = []

    def start(*arguments: object) -> Running:
        command = [sys.executable, "-m", "ramify", "serve", "--port", "0", *map(str, arguments)]
        process = subprocess.Popen(
            command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env=os.environ | {"COLUMNS": "500"}
        )
        assert process.stderr is not None
        notes: list[str] = []
        for line in process.stderr:
            notes.append(line)
            if " at http://" in line:
                break
        else:
            raise AssertionError("".join(notes))
        rest = threading.Thread(target=lambda: notes.extend(process.stderr or ()), daemon=True)
        rest.start()  # a full pipe would stop the server
        found = Running(notes[-1].split(" at ")[1].split()[0], process, notes, rest)
        running.append(found)
        with httpx2.Client(base_url=found.address) as client:
            until_ready(client)
        return found

    yield start
    for each in running:
        if each.process.poll() is None:
            each.process.terminate()
            each.process.wait(60)
        each.rest.join(60)
        assert each.process.stderr is not None
        each.process.stderr.close()


def service_of(client: TestClient) -> Service:
    return client.service  # type: ignore[attr-defined,no-any-return]

"""For any request, the server gives the right response and keeps running."""

from __future__ import annotations

import json
import shlex
import signal
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest

from ramify.corpus.builtin import builtin_grammar
from ramify.corpus.rule_files import write_rules
from ramify.parser import Parser
from ramify.serve.guard import HEADERS
from ramify.serve.limits import Limits
from ramify.serve.served_models import ServedModel, ServedModels
from tests.conftest import PROJECT
from tests.serve.conftest import MARKUP, SENTENCE, Running, service_of, started
from tests.serve.test_api import parse, problem

JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "[::2]", "", "*"])
def test_a_foreign_host_is_refused(client, host):
    problem(client.get("/", headers={"Host": host}), 400, "not a name of this server")
    answer = client.post("/v1/parse", json={"sentences": [SENTENCE]}, headers={"Host": host})
    problem(answer, 400, "not a name of this server")


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8000", "127.0.0.1:1", "[::1]", "[::1]:8000"])
def test_names_of_loopback_are_trusted(client, host):
    assert client.get("/livez", headers={"Host": host}).status_code == 200


def test_a_large_body_is_refused(client):
    body = json.dumps({"sentences": ["a " * (1 << 20)]})
    assert len(body) > 2 * 10**6
    problem(client.post("/v1/parse", content=body, headers=JSON), 413, "more than the 1,048,576 bytes")
    assert parse(client, SENTENCE)["results"]


def test_a_long_sentence_is_refused(client):
    answer = client.post("/v1/parse", json={"sentences": ["dog", "word " * 5000]})
    problem(answer, 422, "sentence 2: has 5,000 words, but the server accepts at most 200")


@pytest.mark.parametrize(
    ("body", "status", "text"),
    [
        ("{", 400, "The body is not JSON"),
        ("", 422, "The body must be a JSON object"),
        ("[]", 422, "The body must be a JSON object"),
        ("{}", 422, "wrong at sentences: field required"),
        ('{"sentences": 1}', 422, "wrong at sentences"),
        ('{"sentences": ["a"], "sentence": 1}', 422, "wrong at sentence: extra inputs"),
        ('{"sentences": [{}]}', 422, "sentence 1: give exactly one of text, tokens and gold"),
        ('{"sentences": [{"text": "a", "tokens": ["a"]}]}', 422, "give exactly one of"),
        ('{"sentences": [{"tokens": ["a b"]}]}', 422, "'a b' is not one token"),
        ('{"sentences": [{"gold": "(S (NP a"}]}', 422, "sentence 1"),
        ('{"sentences": [{"gold": "(S a) (S b)"}]}', 422, "gold contains 2 trees"),
        ('{"sentences": ["a\\u0000b"]}', 422, "NUL"),
        ('{"sentences": ["\\ud800"]}', 422, ""),
        ('{"sentences": ["a b"], "branching": NaN}', 422, "wrong at branching"),
        ('{"sentences": ["a b"], "branching": 1e999}', 422, ""),
        ('{"sentences": ["a b"], "seed": -1}', 422, "wrong at seed"),
        ("[" * 100_000, 400, "The body is not JSON"),
        (b"\xff\xfe\x00", 400, "The body is not JSON"),
    ],
)
def test_broken_requests_are_one_sentence(client, body, status, text):
    answer = client.post("/v1/parse", content=body, headers=JSON)
    problem(answer, status, text)


def test_a_form_of_another_site_cannot_post(client):
    body = json.dumps({"sentences": [SENTENCE]})
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        answer = client.post("/v1/parse", content=body, headers={"Content-Type": kind})
        problem(answer, 422, "must be a JSON object sent as application/json")
    answer = client.options("/v1/parse", headers={"Origin": "http://evil.example"})
    assert "access-control-allow-origin" not in answer.headers


def test_unknown_pages_and_methods_are_problems(client):
    problem(client.get(f"/{MARKUP}"), 404, "There is no page")
    problem(client.get("/v1/parse"), 405, "GET is not a method")
    problem(client.get("/../../etc/passwd"), 404, "There is no page")
    for page in ("/docs", "/redoc"):
        problem(client.get(page), 404, "There is no page")


def test_every_answer_has_its_headers(client):
    for answer in (client.get("/"), client.get("/livez"), client.get("/nowhere"), client.get("/v1/models")):
        for name, value in HEADERS.items():
            if name != b"content-security-policy":
                assert answer.headers[name.decode()] == value.decode()
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
    page = client.get("/")
    assert "unsafe" not in page.headers["content-security-policy"]


def test_markup_stays_text_in_answers(client):
    found = parse(client, MARKUP, {"tokens": [MARKUP.replace(" ", "_"), "dog"]}, formats=["svg"], drawing=True)
    for result in found["results"]:
        assert "<img" not in result["formats"]["svg"]
        assert "<script" not in result["formats"]["svg"]


def test_a_full_queue_refuses_and_says_when_to_retry(parser):
    gate = threading.Event()

    class Waiting(Parser):
        def _analyse_window(self, *arguments):
            gate.wait()
            return super()._analyse_window(*arguments)

    slow = Waiting(parser.model, parser.vocabulary, parser.labels, parser.tags)
    limits = Limits(waiting_requests=4)
    with started(ServedModels([ServedModel("slow", slow)]), limits) as client, ThreadPoolExecutor(4) as pool:
        gate.set()
        while not service_of(client).ready:
            time.sleep(0.01)
        gate.clear()
        waiting = [pool.submit(client.post, "/v1/parse", json={"sentences": ["the dog slept"]}) for _ in range(4)]
        while service_of(client).batcher.unfinished < 4:
            time.sleep(0.01)
        answer = client.post("/v1/parse", json={"sentences": ["the dog slept"]})
        problem(answer, 503, "wait already; try again later")
        assert 1 <= int(answer.headers["retry-after"]) <= 60
        assert client.get("/livez").status_code == 200  # connections are not held up
        gate.set()
        assert all(each.result().status_code == 200 for each in waiting)
        assert client.post("/v1/parse", json={"sentences": ["the dog slept"]}).status_code == 200
        assert service_of(client).batcher.waiting_words == 0


def test_an_internal_error_affects_only_its_request(parser):
    class Broken(Parser):
        def _analyse_window(self, window, *arguments):
            if any("zzz" in sentence.text for sentence in window):
                raise ValueError("broken")
            return super()._analyse_window(window, *arguments)

    broken = Broken(parser.model, parser.vocabulary, parser.labels, parser.tags)
    with started(ServedModels([ServedModel("broken", broken)])) as client, ThreadPoolExecutor(8) as pool:
        while not service_of(client).ready:
            time.sleep(0.01)
        texts = ["zzz dog" if place % 4 == 0 else "the dog slept" for place in range(40)]
        found = list(pool.map(lambda text: client.post("/v1/parse", json={"sentences": [text]}), texts))
        assert [each.status_code for each in found] == [500 if "zzz" in text else 200 for text in texts]
        problem(found[0], 500, "made a mistake")
        assert service_of(client).batcher.unfinished == service_of(client).batcher.waiting_words == 0


@pytest.fixture(scope="module")
def rules(tmp_path_factory):
    rules = tmp_path_factory.mktemp("served") / "rules.pcfg"
    write_rules(rules, builtin_grammar())
    return rules


@pytest.fixture(scope="module")
def running(start_server, rules) -> Running:
    return start_server("-m", rules)


def ask(running: Running) -> int:
    answer = httpx2.post(f"{running.address}v1/parse", json={"sentences": ["the dog slept"]}, timeout=60)
    return answer.status_code


def head_for(body: bytes, more: str = "") -> bytes:
    start = "POST /v1/parse HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{start}Content-Length: {len(body)}\r\n{more}\r\n".encode()


@pytest.mark.slow
def test_slow_clients_are_dropped(running):
    body = json.dumps({"sentences": ["the dog slept"]}).encode()
    with running.connect() as headers, running.connect() as content, running.connect() as silent:
        headers.sendall(b"POST /v1/parse HTTP/1.1\r\nHost: local")
        content.sendall(head_for(body) + body[:5])
        assert ask(running) == 200  # the others are served meanwhile
        started_at = time.monotonic()
        assert b" 408 " in content.recv(4096).split(b"\r\n")[0]
        assert headers.recv(4096) == b""
        assert silent.recv(4096) == b""
        assert time.monotonic() - started_at < 60
    assert ask(running) == 200


def test_two_hundred_connections_are_answered(running):
    body = json.dumps({"sentences": ["the dog slept"]}).encode()
    request = head_for(body, "Connection: close\r\n") + body
    connections = [running.connect() for _ in range(200)]
    for each in connections:
        each.sendall(request)
    for each in connections:
        assert each.recv(4096).startswith(b"HTTP/1.1 200 ")
        each.close()


def test_requests_in_the_docs_are_answered(running):
    page = (PROJECT / "docs" / "serve.md").read_text(encoding="utf-8")
    commands = [shlex.split(line) for line in page.splitlines() if line.startswith("curl ")]
    assert len(commands) >= 6
    for command in commands:
        address = command[1].replace("http://127.0.0.1:8000/", running.address)
        if "-d" not in command:
            assert httpx2.get(address).status_code == 200, command
            continue
        body = command[command.index("-d") + 1]
        answer = httpx2.post(address, content=body, headers={"Content-Type": "application/json"})
        assert answer.status_code == 200, (command, answer.text)


def test_invalid_http_is_refused(running):
    for nonsense in (b"\x16\x03\x01\x02\x00\x01\x00", b"GET / HTTP/1.1\r\n\r\n", b"A" * 100_000 + b"\r\n\r\n"):
        with running.connect() as connection:
            connection.sendall(nonsense)
            assert b" 400 " in connection.recv(4096).split(b"\r\n")[0]
    assert ask(running) == 200


def test_a_client_that_disconnects_affects_no_one(running):
    body = json.dumps({"sentences": [SENTENCE] * 100}).encode()
    for cut in (20, len(body)):
        with running.connect() as connection:
            connection.sendall(head_for(body) + body[:cut])
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
    assert ask(running) == 200


@pytest.mark.slow
def test_sigterm_answers_what_was_accepted(start_server, rules):
    server = start_server("-m", rules)
    with ThreadPoolExecutor(8) as pool:
        address = f"{server.address}v1/parse"
        body = {"sentences": [SENTENCE] * 200}
        waiting = [pool.submit(httpx2.post, address, json=body, timeout=60) for _ in range(8)]
        with httpx2.Client(base_url=server.address) as client:
            while "ramify_unfinished_requests 0.0" in client.get("/metrics").text:
                time.sleep(0.005)
        server.process.send_signal(signal.SIGTERM)
        found = [each for each in waiting if each.exception() is None]
        assert found
        assert all(each.result().status_code in (200, 503) for each in found)
        assert any(each.result().status_code == 200 for each in found)
    assert server.process.wait(60) == 0
    time.sleep(0.1)
    assert "every request that was accepted has been answered" in "".join(server.notes)
    assert "Traceback" not in "".join(server.notes)

"""Speed of `ramify serve` on loopback, compared with `ramify parse` on the same model and sentences.

    python benchmarks/serving.py load MODEL SENTENCES [--clients 32] [--each 1] [--requests 3000]
    python benchmarks/serving.py soak MODEL SENTENCES --minutes 60 [--rate 2] --out soak.jsonl

Both start a separate server on a free port of this machine and stop it at the end. `load` prints sentences per second
of both, by wall time and by processor time, latencies and errors. `soak` sends a mixture of parses, constraints,
scores, glossary requests, invalid requests and page loads at a low rate, and records the memory of the server once a
minute.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

import psutil

MAX_CLIENTS, MAX_MINUTES = 256, 24 * 60
FEW = 64


class Connection:
    """A client that keeps its connection: plain HTTP/1.1, because a library would take time from the server."""

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = host, port
        self._reader: asyncio.StreamReader | None = None

    async def ask(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        for attempt in (1, 2):
            try:
                if self._reader is None:
                    self._reader, self._writer = await asyncio.open_connection(self._host, self._port)
                return await self._exchange(method, path, body)
            except (ConnectionError, asyncio.IncompleteReadError):
                self._reader = None  # an idle connection may have been closed; a new one must work
                if attempt == 2:
                    raise
        raise AssertionError

    async def _exchange(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        assert self._reader is not None
        head = f"{method} {path} HTTP/1.1\r\nHost: {self._host}:{self._port}\r\n"
        if body:
            head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        self._writer.write(head.encode() + b"\r\n" + body)
        await self._writer.drain()
        lines = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines[1:] if ": " in line)
        content = await self._reader.readexactly(int(headers.get("content-length", 0)))
        if headers.get("connection") == "close":
            self._reader = None
        return int(lines[0].split()[1]), content


class Server:
    """`ramify serve` as a process."""

    def __init__(self, model: str) -> None:
        command = [sys.executable, "-m", "ramify", "serve", "-m", model, "--port", "0"]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if " at http://" in line:
                address = urlsplit(line.split(" at ")[1].split()[0])
                break
        else:
            raise SystemExit("The server did not start.")
        self.host, self.port = str(address.hostname), int(address.port or 0)
        self.about = psutil.Process(self.process.pid)

    async def until_ready(self) -> None:
        while (await Connection(self.host, self.port).ask("GET", "/readyz"))[0] != 200:
            await asyncio.sleep(0.2)

    def seconds(self) -> float:
        times = self.about.cpu_times()
        return float(times.user + times.system)

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


async def load(server: Server, sentences: list[str], clients: int, each: int, requests: int) -> dict[str, object]:
    """`clients` connections, each with one request at a time, until `requests` are answered."""
    await server.until_ready()
    statuses: Counter[int] = Counter()
    latencies: list[float] = []
    numbers = iter(range(requests))

    async def client() -> None:
        connection = Connection(server.host, server.port)
        for number in numbers:
            start = number * each
            chosen = [sentences[(start + place) % len(sentences)] for place in range(each)]
            body = json.dumps({"sentences": chosen}).encode()
            begun = time.perf_counter()
            status, content = await connection.ask("POST", "/v1/parse", body)
            latencies.append(time.perf_counter() - begun)
            statuses[status] += 1
            assert status != 200 or len(json.loads(content)["results"]) == each

    # Everything is compiled and loaded, but the first requests of every length fill caches.
    warm = Connection(server.host, server.port)
    await warm.ask("POST", "/v1/parse", json.dumps({"sentences": sentences[:64]}).encode())
    used, begun = server.seconds(), time.perf_counter()
    await asyncio.gather(*(client() for _ in range(clients)))
    seconds, busy = time.perf_counter() - begun, server.seconds() - used
    latencies.sort()
    return {
        "clients": clients,
        "sentences per request": each,
        "sentences/s": round(each * requests / seconds, 1),
        "sentences/s of processor time": round(each * requests / busy, 1),
        "median ms": round(1000 * latencies[len(latencies) // 2], 1),
        "99th percentile ms": round(1000 * latencies[int(0.99 * len(latencies))], 1),
        "answers": dict(statuses),
        "errors": sum(count for status, count in statuses.items() if status != 200),
    }


def parse(model: str, sentences: list[str], count: int) -> dict[str, float]:
    """`ramify parse` of this many sentences; the time of a few sentences, including start-up, is subtracted."""
    import resource  # not on Windows

    taken: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        for given in (FEW, FEW, FEW + count):  # the first run fills the cache of the file system
            text, out = Path(folder, "text.txt"), Path(folder, "trees")
            text.write_text("".join(sentences[i % len(sentences)] + "\n" for i in range(given)), encoding="utf-8")
            before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
            command = ["parse", "-m", model, str(text), "--out", str(out), "--overwrite"]
            subprocess.run([sys.executable, "-m", "ramify", *command], capture_output=True, check=True)
            wall, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
            taken.append((wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime))
    (_, (few_wall, few_busy), (wall, busy)) = taken
    return {
        "sentences/s": round(count / (wall - few_wall), 1),
        "sentences/s of processor time": round(count / (busy - few_busy), 1),
    }


def soak_request(chance: random.Random, sentences: list[str], symbols: list[str]) -> tuple[str, str, bytes, set[int]]:
    """A random request: method, path, body, and the expected statuses."""
    text = chance.choice(sentences)
    kind = chance.random()
    if kind < 0.45:
        body: dict[str, object] = {
            "sentences": [text],
            "drawing": True,
            "posteriors": True,
            "formats": ["svg", "forest"],
        }
        return "POST", "/v1/parse", json.dumps(body).encode(), {200}
    if kind < 0.6:
        body = {"sentences": [chance.choice(sentences) for _ in range(chance.randint(2, 60))]}
        return "POST", "/v1/parse", json.dumps(body).encode(), {200}
    if kind < 0.7:
        given = {"text": text, "constraints": {"must": [[0, 2]]}}
        return "POST", "/v1/parse", json.dumps({"sentences": [given]}).encode(), {200, 422}
    if kind < 0.8:
        return "POST", "/v1/score", json.dumps({"sentences": [text]}).encode(), {200}
    if kind < 0.87:
        return "GET", f"/v1/grammar?symbol={chance.choice(symbols)}", b"", {200}
    if kind < 0.93:
        return "GET", "/", b"", {200}
    long = " ".join(chance.choice(sentences) for _ in range(15))
    wrong: list[tuple[bytes, set[int]]] = [
        (b"{", {400}),
        (b'{"sentences": 1}', {422}),
        (b'"' + b"x" * (1 << 20) + b'"', {413}),
        (json.dumps({"sentences": [" ".join(["word"] * 5000)]}).encode(), {422}),
        (json.dumps({"sentences": [" ".join(long.split()[:150])]}).encode(), {200}),
    ]
    body_, right = chance.choice(wrong)
    return "POST", "/v1/parse", body_, right


async def soak(server: Server, sentences: list[str], minutes: float, rate: float, out: Path) -> None:
    """Requests at random times, and a line with the memory once a minute."""
    await server.until_ready()
    chance = random.Random(0)
    overview = json.loads((await Connection(server.host, server.port).ask("GET", "/v1/grammar"))[1])
    symbols = [symbol["name"] for symbol in overview["nonterminals"]]
    connections = [Connection(server.host, server.port) for _ in range(4)]
    begun, next_line = time.monotonic(), 0.0
    answers: Counter[int] = Counter()
    wrong = 0
    with out.open("w", encoding="utf-8") as lines:
        while (now := time.monotonic() - begun) < 60 * minutes:
            if now >= next_line:
                record = {"minute": round(now / 60, 1), "rss_mb": round(server.about.memory_info().rss / 2**20, 1)}
                record |= {"threads": server.about.num_threads(), "answers": sum(answers.values()), "wrong": wrong}
                lines.write(json.dumps(record) + "\n")
                lines.flush()
                next_line += 60
            method, path, body, right = soak_request(chance, sentences, symbols)
            status, _ = await chance.choice(connections).ask(method, path, body)
            answers[status] += 1
            wrong += status not in right
            await asyncio.sleep(chance.expovariate(rate))
    print(json.dumps({"answers": dict(answers), "wrong": wrong}))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = options.add_subparsers(dest="command", required=True)
    for name in ("load", "soak"):
        command = commands.add_parser(name)
        command.add_argument("model")
        command.add_argument("sentences", type=Path)
    loading, soaking = commands.choices["load"], commands.choices["soak"]
    loading.add_argument("--clients", type=int, default=32)
    loading.add_argument("--each", type=int, default=1)
    loading.add_argument("--requests", type=int, default=3000)
    soaking.add_argument("--minutes", type=float, required=True)
    soaking.add_argument("--rate", type=float, default=2.0)
    soaking.add_argument("--out", type=Path, required=True)
    given = options.parse_args()
    sentences = [line for line in given.sentences.read_text(encoding="utf-8").splitlines() if line.strip()]
    server = Server(given.model)
    try:
        if given.command == "soak":
            asyncio.run(soak(server, sentences, min(given.minutes, MAX_MINUTES), given.rate, given.out))
        else:
            clients = min(given.clients, MAX_CLIENTS)
            found = asyncio.run(load(server, sentences, clients, given.each, given.requests))
            print("serve:", json.dumps(found))
    finally:
        print("exit code of the server:", server.stop())
    if given.command == "load":
        print("parse:", json.dumps(parse(given.model, sentences, given.each * given.requests)))


if __name__ == "__main__":
    main()

"""Parsing of blocks in this process, and a small Ray shared by all tests that need one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from ramify.cluster.block_parser import BlockParser
from ramify.cluster.job import ParseJob
from ramify.cluster.ray_session import OBJECT_STORE, import_ray
from tests.conftest import PROJECT

MODEL = PROJECT / "tests" / "fixtures" / "models" / "n-pcfg"
WORDS = "the a dog cat saw it . old , man walks in park quickly".split()


def sentence(number: int) -> str:
    """A different sentence of 0 to 5 words for each number."""
    return " ".join(WORDS[(number * 7 + place * place * (number % 5 + 1)) % len(WORDS)] for place in range(number % 6))


@pytest.fixture
def text(tmp_path: Path) -> Path:
    """Three blocks of 1,024 lines, the last one shorter; most lines are empty, which saves time."""
    file = tmp_path / "in.txt"
    file.write_text("".join(f"{'' if number % 8 else sentence(number // 8)}\n" for number in range(2500)))
    return file


class InProcess:
    """Replaces the workers of Ray; after `stop_after` blocks it raises an error."""

    def __init__(self) -> None:
        self.parsed: list[int] = []
        self.stop_after, self.error = -1, BaseException()

    def __call__(self, _, job, parts, blocks, _workers, on_done) -> None:
        parser = BlockParser(ParseJob.from_json(job.as_json()), parts)
        for block in blocks:
            if len(self.parsed) == self.stop_after:
                raise self.error
            parser(block)
            self.parsed.append(block.number)
            on_done(block.rows)


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[InProcess]:
    """`--engine ray` without Ray."""

    @contextmanager
    def session(_: object) -> Iterator[None]:
        yield None

    engine, before = InProcess(), torch.get_num_threads()
    monkeypatch.setattr("ramify.cluster.ray_session.import_ray", lambda: None)
    monkeypatch.setattr("ramify.cluster.ray_session.ray_session", session)
    monkeypatch.setattr("ramify.cluster.ray_blocks.parse_on_ray", engine)
    yield engine
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def ray() -> Iterator[object]:
    """Two cores, no dashboard."""
    # By default, workers get only a small share of a busy machine.
    os.environ.setdefault("RAY_worker_niceness", "0")
    ray = import_ray()
    ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=OBJECT_STORE)
    yield ray
    ray.shutdown()

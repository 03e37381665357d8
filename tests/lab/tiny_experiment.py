"""A treebank and an experiment that take seconds."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from unittest import mock

import torch

from ramify.corpus.brackets import write_brackets
from ramify.corpus.builtin import builtin_treebank
from ramify.corpus.conllu import write_conllu
from ramify.corpus.sentence import Sentence
from ramify.corpus.tree import Parse
from ramify.lab.run.jobs import ENDED, Events, Job
from ramify.lab.run.worker import work
from ramify.runtime import compilation

TINY = """\
title = "Tiny"
seeds = [0, 1]
baselines = ["left", "random"]

[data]
small = "treebank"

[settings]
epochs = 2
embedding = 8
nonterminals = 4
preterminals = 8
batch_size = 8
checkpoint_minutes = 0

[models.low-rank]
rank = 8
decoders = ["mbr", "viterbi"]

[models.dense]
model = "n-pcfg"
"""


def write_treebank(folder: Path, train: int = 120, dev: int = 10, test: int = 12) -> Path:
    folder.mkdir(parents=True)
    for name, parses in builtin_treebank(3, train=train, dev=dev, test=test).items():
        (folder / f"{name}.trees").write_text("".join(write_brackets(parse) + "\n" for parse in parses))
    return folder


def write_experiment(folder: Path, text: str = TINY, name: str = "tiny") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "treebank").exists():
        write_treebank(folder / "treebank")
    path = folder / f"{name}.toml"
    path.write_text(text)
    return path


def conllu_of(parses: Sequence[Parse]) -> str:
    """The words and tags of trees, without heads."""
    blocks = [write_conllu(Sentence.from_tokens(parse.words), parse.tags, parse, None) for parse in parses]
    return "\n".join(blocks) + "\n"


class WorkerHere:
    """Does a job in this process, with the interface of `Worker`: starting a process takes longer than a tiny job."""

    def __init__(self, job: Job, _: int | None, events: Events) -> None:
        def report(event: str, **facts: object) -> None:
            events.put((job.name, {"event": event, **facts}))

        threads = torch.get_num_threads()
        with warnings.catch_warnings(), mock.patch.object(compilation, "_callbacks", []):
            try:
                code = work(Job.from_json(job.as_json()), report)
            finally:
                torch.set_num_threads(threads)
        report(ENDED, code=code)

    def stop(self) -> None:
        pass

    kill = stop

    def close(self) -> str:
        return ""

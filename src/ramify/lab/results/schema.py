"""The files in the folder of an experiment: one schema, by which they are written and read.

`experiment.json` is a `PlanRecord`, `runs/DATA/MODEL/seed-N/results/DECODER.json` and `baselines/DATA/NAME.json` are
`Result`s, and a line of `metrics.jsonl` is an `Epoch`. What a later version adds has a default, so that earlier files
still load.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from statistics import fmean, pstdev
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

from ramify.errors import RamifyError, shortened
from ramify.evaluation.evaluation import Evaluation
from ramify.evaluation.subtypes import Subtype
from ramify.printing import printable


@dataclass(frozen=True)
class Spread:
    """Mean, biased standard deviation (divided by the number of runs) and maximum."""

    mean: float
    std: float | None
    """None of a single run"""
    best: float


def spread(values: Iterable[float | None]) -> Spread | None:
    """Of the values that are known; None if none is."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    return Spread(fmean(known), pstdev(known) if len(known) > 1 else None, max(known))


Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


def grouped(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    """The values of each key, all in the order of the pairs."""
    found: dict[Key, list[Value]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


PLAN, FAILED = "experiment.json", "failed.json"
RUNS, BASELINES, RESULTS = "runs", "baselines", "results"
CONFIG, METRICS = "config.json", "metrics.jsonl"
FORMAT = 1
LARGEST_FILE = 64 << 20
LONGEST_TEXT = 300

Counts = dict[str, Annotated[int, Meta(gt=0)]]
MAX_BITS = 64
Record = TypeVar("Record", bound=Struct)


class RecordError(RamifyError):
    """A file cannot be used; `why` completes a sentence that begins with its name."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"{path}: {why}.")
        self.why = why


class Run(Struct, frozen=True, omit_defaults=True):
    """One model, trained on one data set from one seed; or the average of such models, which needs no training."""

    data: str
    model: str
    seed: int | None
    """None for an average"""
    decoders: tuple[str, ...]
    path: str
    """Its folder, below that of the experiment"""
    teachers: tuple[str, ...] = ()
    """The names of the runs on which training is focused"""
    members: tuple[str, ...] = ()
    """The names of the runs that are averaged"""
    leave_out_collapsed: bool = False
    """Of an average: whether members that collapsed do not count"""
    settings: dict[str, Any] | None = None
    """All settings of its training, by name; None for an average"""

    def __post_init__(self) -> None:
        if Path(self.path).is_absolute() or ".." in Path(self.path).parts or "\0" in self.path:
            raise ValueError(f"the run {shortened(self.path)} lies outside of the experiment's folder")

    @property
    def needs(self) -> tuple[str, ...]:
        """The runs that must be finished before this one begins."""
        return self.teachers + self.members

    @property
    def name(self) -> str:
        """Its name for users."""
        return run_name(self.data, self.model, self.seed)


def run_name(data: str, model: str, seed: int | None) -> str:
    """The name of a run, and its place below the folder of all runs."""
    return f"{data}/{model}/{'average' if seed is None else f'seed-{seed}'}"


class Group(Struct, frozen=True):
    """What one table shows: every model on every data set from every seed."""

    name: str
    title: str
    data: tuple[str, ...]
    models: tuple[str, ...]
    seeds: tuple[int, ...]
    runs: tuple[Run, ...]


class DataRecord(Struct, frozen=True):
    """The data of an experiment; only the name of the folder, because its path is private."""

    source: str
    sha256: dict[str, str]
    """Of the files of the splits"""
    words: str = "auto"
    split: str = "test"
    """The one that is scored"""


class PlanRecord(Struct, frozen=True, omit_defaults=True):
    """What an experiment will do, written before its first run begins."""

    format: int
    name: str
    title: str
    version: str
    threads: int
    baselines: tuple[str, ...]
    data: dict[str, DataRecord]
    groups: tuple[Group, ...]
    runs: tuple[Run, ...]
    """Those of all groups, each once, with their settings"""
    earlier_data: dict[str, DataRecord] = {}
    """Data sets of earlier plans in this folder that this plan lacks"""

    @property
    def known_data(self) -> dict[str, DataRecord]:
        """All data sets that this plan or one before it had."""
        return self.earlier_data | self.data


class Failure(Struct, frozen=True):
    """Why a run failed."""

    format: int
    error: str
    details: str = ""


class Machine(Struct, frozen=True):
    """On what a result was computed."""

    processor: str
    cores: int | None = None


class Epoch(Struct, frozen=True):
    """One line of a run's metrics."""

    epoch: int
    dev_perplexity: float | None = None
    dev_f1: float | None = None
    dev_loss: float | None = None
    dev_agreement: float | None = None
    train_perplexity: float | None = None
    best_epoch: int | None = None
    seconds: float = 0.0
    sentences_per_second: float | None = None


class Induced(Struct, frozen=True):
    """Induced nonterminals and gold labels, counted over correctly predicted constituents."""

    usage: Counts
    """How often each nonterminal is predicted"""
    alignment: dict[str, Annotated[Counts, Meta(min_length=1)]]
    """gold label: nonterminal: constituents"""
    subtypes: dict[str, tuple[Subtype, ...]] = {}
    purity: float | None = None
    entropy: float | None = None


class Agreement(Struct, frozen=True):
    """S-F1 between the trees of the members of an average, the average itself, and left and right branching."""

    columns: tuple[str, ...]
    sentence_f1: dict[str, tuple[float, ...]]

    def __post_init__(self) -> None:
        if any(len(row) != len(self.columns) for row in self.sentence_f1.values()):
            raise ValueError("a row of the agreement is not as long as its columns")


class Result(Struct, kw_only=True, omit_defaults=True):
    """One system with one decoder on one data set: how it was trained, and how it scores."""

    format: int
    version: str
    kind: Literal["model", "baseline"]
    data: str
    model: str
    """Of a baseline its name"""
    split: str
    machine: Machine
    seed: int | None = None
    decoder: str = ""
    settings: dict[str, Any] | None = None
    evaluation: Evaluation | None = None
    """None without gold trees"""
    agreement: dict[str, Any] | None = None
    """Of an average without gold trees: how far its members agree on the dev set"""
    induced: Induced | None = None
    sentence_f1: list[float] = []
    """Of every scored sentence, in percent; of several draws their mean"""
    parameters: int | None = None
    threads: int | None = None
    peak_memory_mb: float | None = None
    epochs: tuple[Epoch, ...] = ()
    seconds_per_epoch: float | None = None
    members: tuple[str, ...] = ()
    """Of an average, the names of the runs"""
    path: str = ""
    """Where it was read from, below the folder of the experiment; not written"""

    def __post_init__(self) -> None:
        _ = self.member_agreement  # of which any JSON may be in the file

    @property
    def member_agreement(self) -> Agreement | None:
        """Of an average, with gold trees or without."""
        found = self.agreement if self.evaluation is None else self.evaluation.agreement
        return None if found is None else msgspec.convert(found, Agreement)

    @property
    def is_baseline(self) -> bool:
        """Whether it needed no model."""
        return self.kind == "baseline"

    @property
    def system(self) -> str:
        """Its name in tables and figures."""
        return f"{self.model} (baseline)" if self.is_baseline else self.model

    @property
    def scores(self) -> Evaluation:
        """Its evaluation; only for results that have one."""
        assert self.evaluation is not None
        return self.evaluation

    @property
    def f1(self) -> float:
        """S-F1 in percent."""
        return self.scores.scores.sentence_f1

    @property
    def perplexity(self) -> float | None:
        """None where there is none, or an infinite one."""
        return self.scores.perplexity or None

    @property
    def perplexity_with_spelling(self) -> float | None:
        """The same with the spelling of unknown words."""
        coverage = self.scores.coverage
        return None if coverage is None else coverage.perplexity_with_spelling or None

    @property
    def source(self) -> str:
        """Where a run came from: its seed, or that it is an average."""
        return f"average of {len(self.members)}" if self.members else str(self.seed)

    @property
    def is_compound(self) -> bool:
        """Whether it is of a compound grammar, whose perplexity is an upper bound."""
        return self.setting("compound") is True or self.setting("model") in ("c-pcfg", "sc-pcfg")

    @property
    def vocabulary(self) -> str:
        """Perplexities can be compared where this is the same."""
        if self.scores.coverage is not None and self.scores.coverage.unknown == 0:
            return "no unknown words"
        return self.perplexity_signature or f"vocabulary of at most {self.setting('vocabulary', '?')} words"

    @property
    def perplexity_signature(self) -> str:
        """Which words are known, and the rate of those that are not; empty in results of earlier versions."""
        return (self.scores.coverage and self.scores.coverage.perplexity_signature) or ""

    @property
    def dev_perplexity(self) -> float | None:
        """Of the best epoch, by which a run is chosen without looking at trees."""
        best = self.epochs[-1].best_epoch if self.epochs else None
        chosen = [e for e in self.epochs if best in (None, e.epoch)]
        return min((e.dev_perplexity for e in chosen if e.dev_perplexity), default=None)

    @property
    def hardware(self) -> str:
        """The machine in words."""
        cores = "" if self.machine.cores is None else f", cores {self.machine.cores}"
        threads = "" if self.threads is None else f", {self.threads} thread{'s' * (self.threads != 1)}"
        return self.machine.processor + cores + threads

    def setting(self, name: str, default: object = None) -> Any:
        """A setting of its training; the default where that is not known."""
        return (self.settings or {}).get(name, default)


def f1_of(results: Sequence[Result]) -> Spread | None:
    """S-F1 over several runs or, of random trees, over their draws; None without results."""
    if len(results) != 1:
        return spread(r.f1 for r in results)
    return Spread(results[0].f1, results[0].scores.f1_std, results[0].scores.f1_max or results[0].f1)


def read_record(path: Path, kind: type[Record]) -> Record:
    """The record in a file, checked; `RecordError` says why it cannot be used."""
    try:
        if not path.is_file():
            raise RecordError(path, "is not a plain file")
        if path.stat().st_size > LARGEST_FILE:
            raise RecordError(path, f"is larger than {LARGEST_FILE >> 20} MB")
        content = _cleaned(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise RecordError(path, f"cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise RecordError(path, f"is not valid JSON ({shortened(str(error))})") from error
    found = content.get("format", FORMAT) if isinstance(content, dict) else FORMAT
    if found != FORMAT:
        raise RecordError(path, f"has format {shortened(str(found))}, but this version reads format {FORMAT}")
    if kind is Result and isinstance(content, dict):
        content = _with_scores_or_none(content)
    try:
        return msgspec.convert(content, kind)
    except msgspec.ValidationError as error:
        raise RecordError(path, f"is not a {kind.__name__} of this version: {error}") from error


def read_result(path: Path, below: Path) -> Result:
    """A result with scores, and with its path below the folder of the experiment."""
    result = read_record(path, Result)
    if result.evaluation is None:
        raise RecordError(path, "has no scores: there were no gold trees")
    if not 0 <= result.f1 <= 100 + 1e-6:  # sums of shares may exceed 100 by their last digit
        raise RecordError(path, f"has an S-F1 of {result.f1}, not between 0 and 100")
    result.path = one_line(path.relative_to(below).as_posix())
    return result


def as_record(record: Struct) -> dict[str, Any]:
    """As JSON values."""
    content: dict[str, Any] = msgspec.to_builtins(record)
    if isinstance(record, Result) and record.evaluation is not None:
        content["evaluation"] = record.evaluation.as_record()  # with figures that follow from others
    return content


def _with_scores_or_none(content: dict[str, Any]) -> dict[str, Any]:
    """An evaluation without scores holds, in files of earlier versions, at most the agreement of members."""
    evaluation = content.get("evaluation")
    if isinstance(evaluation, dict) and "scores" not in evaluation:
        return content | {"evaluation": None, "agreement": evaluation.get("agreement")}
    return content


def _cleaned(value: Any) -> Any:
    """The content with all texts as short, printable lines, because the file may come from someone else."""
    if isinstance(value, str):
        return one_line(value)
    if isinstance(value, dict):
        return {one_line(key): _cleaned(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_cleaned(each) for each in value]
    if (isinstance(value, float) and not isfinite(value)) or (isinstance(value, int) and value.bit_length() > MAX_BITS):
        raise ValueError("it has NaN, or a number too large")
    return value


def one_line(value: str) -> str:
    """A text without line breaks, and without characters that a terminal or a page would interpret."""
    line = printable(" ".join(value.encode("utf-8", "replace").decode("utf-8").split()), instead="")
    return line if len(line) <= LONGEST_TEXT else line[: LONGEST_TEXT - 1] + "…"

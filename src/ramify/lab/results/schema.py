"""One results file, checked: what is not of the expected kind is left out, and without a score nothing is left."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ramify.lab.results.collection import Epoch, Induced, LabelScore, LengthScore, Result, Setting, Subtype
from ramify.printing import printable

FORMAT = 1
LARGEST = 1e15
LARGEST_FILE = 64 * 2**20
LONGEST_NAME, LONGEST_PATH = 100, 1000


class BadRecordError(Exception):
    """Why a file cannot be used, to be read behind its name."""


def load(path: Path) -> Any:
    """The JSON of a file, of any kind."""
    try:
        if not path.is_file():
            raise BadRecordError("is no plain file")
        if path.stat().st_size > LARGEST_FILE:
            raise BadRecordError(f"is larger than {LARGEST_FILE >> 20} MB")
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadRecordError(f"cannot be read ({error.strerror})") from error
    except RecursionError as error:
        raise BadRecordError("is nested too deeply") from error
    except ValueError as error:
        raise BadRecordError(f"is no JSON ({text(error)})") from error


def result_of(record: Any, place: Path) -> Result:
    """The result in a file; names that it does not tell are those of its folders."""
    if not isinstance(record, dict) or not isinstance(record.get("evaluation"), dict):
        raise BadRecordError("has no evaluation in it")
    if record.get("format", FORMAT) != FORMAT:
        raise BadRecordError(f"has the format {text(record['format'])}, where {FORMAT} is known")
    evaluation = record["evaluation"]
    scores, coverage = _dict(evaluation.get("scores")), _dict(evaluation.get("coverage"))
    f1 = percentage(scores.get("sentence_f1"))
    if f1 is None:
        raise BadRecordError("has no S-F1 between 0 and 100")
    is_baseline = record.get("kind") == "baseline" or (record.get("kind") is None and "baselines" in place.parts)
    data, model, seed = _names(record, place, is_baseline)
    f1_runs = [f for f in map(percentage, _list(evaluation.get("run_f1"))) if f is not None]
    return Result(
        data=data,
        model=model,
        seed=seed,
        decoder="" if is_baseline else named(record.get("decoder")) or named(place.stem),
        is_baseline=is_baseline,
        f1=f1,
        corpus_f1=percentage(scores.get("corpus_f1")),
        f1_by_convention=dict(_conventions(evaluation.get("by_convention"))),
        draws=max(1, len(f1_runs)),
        f1_std=percentage(evaluation.get("f1_std")),
        f1_max=percentage(evaluation.get("f1_max")),
        sentences=whole(scores.get("sentences")),
        not_derived=whole(evaluation.get("not_derived")),
        perplexity=number(evaluation.get("perplexity")) or None,
        perplexity_with_spelling=number(coverage.get("perplexity_with_spelling")) or None,
        perplexity_signature=text(coverage.get("perplexity_signature"), 120),
        unknown=whole(coverage.get("unknown")),
        by_length=dict(_by_length(evaluation.get("by_length"))),
        by_label=dict(_by_label(evaluation.get("recall_by_label"))),
        signature=text(evaluation.get("signature"), 300),
        induced=_induced(record.get("induced")),
        settings={text(key): _setting(value) for key, value in _dict(record.get("settings")).items()},
        epochs=tuple(_epochs(record.get("epochs"))),
        seconds_per_epoch=number(record.get("seconds_per_epoch")),
        parameters=whole(record.get("parameters")),
        memory_mb=number(record.get("peak_memory_mb")),
        machine=_machine(record),
        path=path_name(place),
        members=len(_list(record.get("members"))),
        agreement=_agreement(evaluation.get("agreement")),
    )


def text(value: Any, longest: int = 60) -> str:
    """As one short line without signs that no page can show; '' for None."""
    if value is None:
        return ""
    line = printable(" ".join(str(value).encode("utf-8", "replace").decode("utf-8").split()), instead="")
    return line if len(line) <= longest else line[: longest - 1] + "…"


def named(value: Any) -> str:
    """Of data, a model or a group: as long as an experiment allows, so that no two become alike."""
    return text(value, LONGEST_NAME)


def path_name(place: Path) -> str:
    """Of a file or folder below that of the experiment."""
    return text(place.as_posix(), LONGEST_PATH)


def seed_of(value: Any) -> int | None:
    """As an experiment may have it; too large for a float to tell it from the next one."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63 else None


def number(value: Any) -> float | None:
    """A number as it may stand in a result, not negative and not beyond all measure, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= LARGEST else None


def percentage(value: Any) -> float | None:
    """A number from 0 to 100, or None; sums of shares may exceed 100 by their last digit."""
    found = number(value)
    return min(found, 100.0) if found is not None and found <= 100 + 1e-6 else None


def whole(value: Any) -> int | None:
    """A number of things, or None."""
    found = number(value)
    return None if found is None else int(found)


def _names(record: dict[str, Any], place: Path, is_baseline: bool) -> tuple[str, str, int | None]:
    """Data, model and seed: runs/DATA/MODEL/seed-N/results/DECODER.json, baselines/DATA/NAME.json."""
    parents = [part.name for part in place.parents if part.name]
    above = [*parents, "", "", "", ""]
    data, model = (above[0], place.stem) if is_baseline else (above[3], above[2])
    seed = seed_of(record.get("seed"))
    if seed is None and not is_baseline and above[1].startswith("seed-") and above[1][5:].isdecimal():
        seed = int(above[1][5:24])
    names = named(record.get("data")) or named(data), named(record.get("model")) or named(model)
    if not all(names):
        raise BadRecordError("does not say which data and model it is of")
    return *names, seed


def _conventions(value: Any) -> Iterator[tuple[str, float]]:
    for name, scores in _dict(value).items():
        f1 = percentage(_dict(scores).get("sentence_f1"))
        if f1 is not None:
            yield text(name), f1


def _by_length(value: Any) -> Iterator[tuple[str, LengthScore]]:
    for name, scores in _dict(value).items():
        f1, sentences = percentage(_dict(scores).get("sentence_f1")), whole(_dict(scores).get("sentences"))
        if f1 is not None and sentences is not None:
            yield text(name), LengthScore(f1, sentences)


def _by_label(value: Any) -> Iterator[tuple[str, LabelScore]]:
    for label, about in _dict(value).items():
        about = _dict(about)
        recall, share = percentage(about.get("recall")), percentage(about.get("share"))
        length, constituents = number(about.get("mean_length")), whole(about.get("constituents"))
        if recall is not None and share is not None and length is not None and constituents is not None:
            yield text(label), LabelScore(recall, constituents, share, length)


def _induced(value: Any) -> Induced | None:
    alignment = {
        text(label): counts for label, of in _dict(_dict(value).get("alignment")).items() if (counts := _counts(of))
    }
    if not alignment:
        return None
    subtypes = {
        text(label): tuple(found)
        for label, entries in _dict(value.get("subtypes")).items()
        if (found := [*_subtypes(entries)])
    }
    usage = _counts(value.get("usage")) or _totals(alignment)
    return Induced(usage, alignment, subtypes)


def _subtypes(value: Any) -> Iterator[Subtype]:
    for entry in _list(value):
        count = whole(_dict(entry).get("count"))
        if count is not None and entry.get("nonterminal") is not None:
            pairs = [pair for pair in _list(entry.get("first_words")) if isinstance(pair, list) and len(pair) == 2]
            words = tuple((text(word, 30), of) for word, times in pairs if (of := whole(times)) is not None)
            yield Subtype(text(entry["nonterminal"]), count, words)


def _totals(alignment: dict[str, dict[str, int]]) -> dict[str, int]:
    totals: dict[str, int] = {}
    for counts in alignment.values():
        for symbol, count in counts.items():
            totals[symbol] = totals.get(symbol, 0) + count
    return totals


def _counts(value: Any) -> dict[str, int]:
    found = ((text(name), whole(count)) for name, count in _dict(value).items())
    return {name: count for name, count in found if count}


def _epochs(value: Any) -> Iterator[Epoch]:
    for entry in _list(value):
        epoch = whole(_dict(entry).get("epoch"))
        if epoch is not None:
            yield Epoch(epoch, number(entry.get("dev_perplexity")) or None, percentage(entry.get("dev_f1")))


def _agreement(value: Any) -> dict[str, dict[str, float]] | None:
    columns = [text(name) for name in _list(_dict(value).get("columns"))]
    rows = {text(name): _list(row) for name, row in _dict(_dict(value).get("sentence_f1")).items()}
    found = {
        name: {column: f1 for column, each in zip(columns, row, strict=False) if (f1 := percentage(each)) is not None}
        for name, row in rows.items()
    }
    return found or None


def _machine(record: dict[str, Any]) -> str:
    given, threads = record.get("machine"), whole(record.get("threads"))
    if isinstance(given, dict):
        given = ", ".join(
            f"{value}" if key in ("cpu", "processor") else f"{key} {value}" for key, value in given.items()
        )
    parts = [text(given, 120), "" if threads is None else f"{threads} thread{'s' * (threads != 1)}"]
    return ", ".join(part for part in parts if part)


def _setting(value: Any) -> Setting:
    return value if value is None or isinstance(value, bool) or number(value) is not None else text(value)


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []

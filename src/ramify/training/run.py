"""A training run from data to model folder."""

from __future__ import annotations

import json
import math
import shlex
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import torch

from ramify.corpus.cleaning import ALL_WORDS
from ramify.corpus.reading import Corpus
from ramify.errors import RamifyError, RamifyWarning
from ramify.evaluation.scores import perplexity
from ramify.files import contents, remove_unfinished, write_atomically, write_json
from ramify.grammars import FAMILIES, Grammar
from ramify.locks import check_unlocked, locked_folder
from ramify.naming import CONFIG
from ramify.parser.batches import check_fits, check_tables_fit
from ramify.parser.decoding import log_probabilities
from ramify.parser.evaluate import evaluate
from ramify.parser.folder import (
    FILES,
    FORMAT,
    LEARNT_FROM_TEXT,
    METRICS,
    SPELLING,
    SPLITTER,
    VOCABULARY,
    WEIGHTS,
    WORDS_CHECKSUM,
    load,
    part,
    read_config,
)  # fmt: skip
from ramify.parser.parser import Parser
from ramify.parser.tensors import chosen_device, save_tensors
from ramify.training.card import write_card
from ramify.training.checkpoint import Position, load_checkpoint, save_checkpoint
from ramify.training.data import Data, prepare
from ramify.training.loop import Progress, optimizer_for, train_epoch
from ramify.training.settings import Settings, load_settings
from ramify.training.stopping import StopRequest, stop_requests
from ramify.training.summary import Summary, Verdict, judge_run, summarise
from ramify.version import VERSION

MOST_PARAMETERS = 2**31


class Callbacks(NamedTuple):
    """What is called as a run goes on."""

    on_start: Callable[[Summary], None] = lambda _: None
    on_progress: Callable[[Progress], None] = lambda _: None
    on_epoch: Callable[[dict[str, Any]], None] = lambda _: None
    on_end: Callable[[Verdict], None] = lambda _: None


def train(
    data: str | Path | Corpus,
    out: str | Path,
    *,
    dev: str | Path | Corpus | None = None,
    config: str | Path | None = None,
    preset: str | None = None,
    resume: bool = False,
    overwrite: bool = False,
    on_start: Callable[[Summary], None] = lambda _: None,
    on_progress: Callable[[Progress], None] = lambda _: None,
    on_epoch: Callable[[dict[str, Any]], None] = lambda _: None,
    on_end: Callable[[Verdict], None] = lambda _: None,
    **given: Any,
) -> Parser:
    """Learn a grammar from `data` and leave it in the folder `out`; gives back the parser of the best epoch.

    `given` are fields of `Settings`; `preset` names those of a published model, and `ramify train --help` all presets.
    Gold trees, where the data has them, are stripped to their words; F1 on a dev set with trees is recorded but never
    used to choose the model. With `resume` a run that was stopped goes on with its own settings, bit for bit as if it
    had not been. Ctrl-C and SIGTERM raise `Stopped` once the run is saved.

    `on_start` is called once before the first step, `on_progress` after every step, `on_epoch` after every epoch with
    its line of `metrics.jsonl`, and `on_end` once after the last epoch.
    """
    out = Path(out)
    check_folder(out, resume, overwrite)
    with locked_folder(out):
        callbacks = Callbacks(on_start, on_progress, on_epoch, on_end)
        return _train(data, out, dev, config, preset, resume, overwrite, callbacks, given)


def _train(
    data: str | Path | Corpus,
    out: Path,
    dev: str | Path | Corpus | None,
    config: str | Path | None,
    preset: str | None,
    resume: bool,
    overwrite: bool,
    callbacks: Callbacks,
    given: dict[str, Any],
) -> Parser:
    earlier = _settings_to_resume(out, resume, overwrite)  # once more, now that nobody else can change it
    settings = load_settings(config, given, earlier, preset)
    device = chosen_device(settings.device)
    prepared = prepare(data, dev, settings)
    arguments = settings.grammar_arguments(len(prepared.vocabulary))
    check_size(settings.model, arguments)
    description = {
        "format": FORMAT,
        "version": VERSION,
        "model": settings.model,
        "grammar": arguments,
        "settings": asdict(settings),
        "threads": torch.get_num_threads(),
        **prepared.describe(),
    }
    if earlier is not None:
        check_same(out, read_config(out), description)
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(settings.seed)
        grammar = FAMILIES[settings.model](**arguments).to(device)
    for corpus, which in ((prepared.train, "training"), (prepared.dev, "dev")):
        check_fits(grammar, max(map(len, corpus.parses)), f"{corpus.source}, {which} set")
    if earlier is None:
        remove_earlier_run(out)  # not before everything else that can be refused
    remove_unfinished(out, FILES)
    write_json(out / CONFIG, description)
    prepared.vocabulary.save(out / VOCABULARY)
    prepared.spelling.save(out / SPELLING)
    if prepared.text_rules.splitter is not None:
        write_json(out / SPLITTER, prepared.text_rules.splitter.as_record())
        part(out, SPLITTER)  # refused now if it is too large to be loaded after the training
    shown = "DATA" if isinstance(data, Corpus) else shlex.quote(str(data))
    with_dev = "" if dev is None else f" --dev {'DEV' if isinstance(dev, Corpus) else shlex.quote(str(dev))}"
    to_resume = f"To go on: ramify train {shown}{with_dev} --out {shlex.quote(str(out))} --resume"
    with stop_requests() as request:
        stop = _Stop(request, to_resume)
        records = _fit(grammar, prepared, settings, out, callbacks, stop)
    callbacks.on_end(judge_run(prepared, records))
    del grammar  # the memory is wanted for the tables of the one that is loaded
    return load(out, str(device))


class _Stop:
    """Asks, between two steps, whether to go on."""

    def __init__(self, request: StopRequest, to_resume: str) -> None:
        self._request, self._to_resume = request, to_resume

    @property
    def requested(self) -> bool:
        return self._request.signal is not None

    def obey(self) -> None:
        self._request.obey(f"Stopped; the run is saved. {self._to_resume}")


def check_folder(out: Path, resume: bool, overwrite: bool) -> Settings | None:
    """The settings of the run to resume, if any; refuses a folder with anything else in it, or in use."""
    check_unlocked(out)
    return _settings_to_resume(out, resume, overwrite)


def _settings_to_resume(out: Path, resume: bool, overwrite: bool) -> Settings | None:
    if resume and overwrite:
        raise RamifyError("A run is either resumed or overwritten; give one of --resume and --overwrite.")
    if out.exists() and not out.is_dir():
        raise RamifyError(f"{out}: is a file; give the name of a folder.")
    inside = contents(out, FILES)
    if not inside:
        return None
    if CONFIG not in inside or not _holds_run(out):
        raise RamifyError(f"{out}: is not empty and holds no ramify run; give another folder.")
    if resume:
        config = read_config(out)
        settings = config.get("settings")
        if not isinstance(settings, dict):
            raise RamifyError(f"{out / CONFIG}: does not tell the settings of the run; begin another one.")
        if config["words"] == LEARNT_FROM_TEXT:
            settings = {"min_count": 1, **settings}  # what it was before it was a setting
        return load_settings(None, settings)
    if not overwrite:
        raise RamifyError(
            f"{out}: is not empty; give another folder, --resume to go on with the run in it, or --overwrite to "
            "replace it."
        )
    return None


def _holds_run(out: Path) -> bool:
    """Whether the config is one of ours, of whatever version: other tools have files of the same names."""
    try:
        config = json.loads((out / CONFIG).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(config, dict) and isinstance(config.get("format"), int) and "grammar" in config


def check_same(out: Path, before: dict[str, Any], now: dict[str, Any]) -> None:
    """Refuse to go on with other data; say so where the result may differ in its last bits."""
    for name in ("train", "dev"):
        data = before.get("data")
        then = data.get(name) if isinstance(data, dict) else None
        if then != now["data"][name]:
            known = then if isinstance(then, dict) else {}
            raise RamifyError(
                f"{out}: was trained on another {name} set ({known.get('source')}, {known.get('sentences')} sentences, "
                f"checksum {str(known.get('sha256'))[:8]}); give the same one, or another --out."
            )
    if any(before.get(name) != now[name] for name in ("grammar", "words", "text")):
        raise RamifyError(f"{out}: was begun by a version that reads this data otherwise; resume with that one.")
    if before.get("threads") != now["threads"]:
        warnings.warn(
            f"the run began with {before.get('threads')} threads and goes on with {now['threads']}: the result may "
            "differ in its last bits.",
            RamifyWarning,
            stacklevel=3,
        )


def remove_earlier_run(out: Path) -> None:
    """Remove the files of an earlier run, and no others."""
    try:
        for name in FILES:
            (out / name).unlink(missing_ok=True)
    except OSError as error:
        raise RamifyError(f"{out}: cannot be changed ({error.strerror}); check its permissions.") from error


def check_size(model: str, arguments: dict[str, Any]) -> None:
    """Refuse a grammar whose parameters or tables alone are more than can be held, before any is allocated."""
    with torch.device("meta"):
        grammar = FAMILIES[model](**arguments)
    size = sum(parameter.numel() for parameter in grammar.parameters())
    if size > MOST_PARAMETERS:
        raise RamifyError(f"This grammar would have {size:,} parameters; take fewer symbols or a smaller embedding.")
    check_tables_fit(grammar)


def _fit(
    grammar: Grammar,
    data: Data,
    settings: Settings,
    out: Path,
    callbacks: Callbacks,
    stop: _Stop,
) -> list[dict[str, Any]]:
    """Train to the end; gives the records of all epochs."""
    optimizer = optimizer_for(grammar, settings)
    position = load_checkpoint(out, grammar, optimizer)
    callbacks.on_start(summarise(data, settings, grammar, len(position.records)))
    sentences = [data.vocabulary.encode(parse.words) for parse in data.train.parses]
    saved = time.monotonic()

    def on_step(now: Progress) -> None:
        nonlocal saved
        callbacks.on_progress(now)
        if stop.requested or time.monotonic() - saved >= 60 * settings.checkpoint_minutes:
            save_checkpoint(out, grammar, optimizer, position)
            saved = time.monotonic()
        stop.obey()

    while not is_finished(position.records, settings):
        train_epoch(grammar, optimizer, sentences, settings, position, on_step)
        save_checkpoint(out, grammar, optimizer, position)  # before the dev set, which may take long
        record = _finish_epoch(grammar, data, position, out, stop)
        position = position.next_epoch()
        save_checkpoint(out, grammar, optimizer, position)
        callbacks.on_epoch(record)
        stop.obey()
    return position.records


def _finish_epoch(grammar: Grammar, data: Data, position: Position, out: Path, stop: _Stop) -> dict[str, Any]:
    """Judge the grammar, keep it if it is the best so far, and tell. Done again, it leaves the same files."""
    started = time.perf_counter()
    progress = Progress.at(position, len(data.train))
    record = {
        "epoch": position.epoch,
        "train_perplexity": progress.perplexity if math.isfinite(progress.perplexity) else None,
        "sentences_per_second": round(progress.sentences_per_second, 2),
        **judge(grammar, data, stop.obey),
        "seconds": round(position.seconds + time.perf_counter() - started, 2),
    }
    if not math.isfinite(record["dev_perplexity"]):
        raise RamifyError(
            f"Training broke down in epoch {position.epoch} (the dev set has probability zero); "
            "lower the learning rate or the gain."
        )
    before = position.records[-1] if position.records else None
    best = min((earlier["dev_perplexity"] for earlier in position.records), default=math.inf)
    if before is None or record["dev_perplexity"] < best:
        record["best_epoch"] = position.epoch
        save_tensors(out / WEIGHTS, grammar.state_dict(), {WORDS_CHECKSUM: data.vocabulary.checksum})
    else:
        record["best_epoch"] = before["best_epoch"]
    position.records.append(record)
    lines = "".join(json.dumps(each) + "\n" for each in position.records)
    write_atomically(out / METRICS, lines.encode())
    write_card(out, record)
    return record


def is_finished(records: list[dict[str, Any]], settings: Settings) -> bool:
    """Whether all epochs are done, or too many went by without a better one."""
    if not records:
        return False
    last = records[-1]
    return bool(last["epoch"] >= settings.epochs or last["epoch"] - last["best_epoch"] >= settings.patience)


def judge(grammar: Grammar, data: Data, on_sentence: Callable[[], None] = lambda: None) -> dict[str, Any]:
    """Perplexity of the dev set, by which the model is chosen, and F1 where there are trees, which is only told."""
    if data.dev.has_trees:
        parser = Parser(grammar, data.vocabulary)
        result = evaluate(parser, data.dev, word_rule=ALL_WORDS, on_sentence=on_sentence, with_coverage=False)
        return {"dev_perplexity": result.perplexity, "dev_f1": round(result.scores.sentence_f1, 2)}
    encoded = [data.vocabulary.encode(parse.words) for parse in data.dev.parses]
    lengths = [len(words) for words in encoded]
    return {"dev_perplexity": perplexity(log_probabilities(grammar, encoded)[0], lengths)}

"""A training run from data to model folder."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ramify.corpus.cleaning import ALL_WORDS, WordRule, normalise
from ramify.corpus.prepare.manifest import word_rule_for
from ramify.corpus.reading import Corpus, Kind, read_sentences, split_paths
from ramify.corpus.vocabulary import Vocabulary
from ramify.errors import RamifyError
from ramify.evaluation.scores import perplexity
from ramify.grammars import FAMILIES, LowRankGrammar
from ramify.parser.evaluate import evaluate
from ramify.parser.folder import (
    CONFIG,
    FILES,
    FORMAT,
    METRICS,
    VOCABULARY,
    chosen_device,
    load,
    save_weights,
    write_json,
)  # fmt: skip
from ramify.parser.parser import Parser, log_probabilities
from ramify.training.card import write_card
from ramify.training.loop import Progress, optimizer_for, train_epoch
from ramify.training.settings import Settings, load_settings
from ramify.version import VERSION

HELD_OUT_EVERY = 20
"""Without a dev set every so many-th sentence is held out to choose the model by."""


MOST_PARAMETERS = 2**31


@dataclass(frozen=True)
class Data:
    """Sentences to learn from and to choose the model by, both as words alone."""

    train: Corpus
    dev: Corpus
    word_rule: WordRule
    vocabulary: Vocabulary


def prepare(
    data: str | Path | Corpus, dev: str | Path | Corpus | None, kind: Kind, rule: str, settings: Settings
) -> Data:
    """Read, clean and split; the vocabulary is counted before any sentence is dropped for its length."""
    if not isinstance(data, Corpus):
        folder = split_paths(data) if Path(data).is_dir() else {}
        if dev is None and "dev" in folder:
            dev = folder["dev"]
        data = read_sentences(data, kind, split="train" if "train" in folder else None)
    word_rule = ALL_WORDS
    if rule != "auto" and not data.has_trees:
        raise RamifyError(f"{data.source}: is text, so no tags tell which tokens are words; leave out --words.")
    if data.has_trees:
        word_rule = word_rule_for(data) if rule == "auto" else WordRule.from_name(rule)
    train = data.words_only(word_rule)
    if dev is None:
        every = min(HELD_OUT_EVERY, len(train))  # of fewer sentences the last
        kept = [parse for i, parse in enumerate(train.parses, start=1) if i % every]
        dev_set, train = replace(train, parses=train.parses[every - 1 :: every]), replace(train, parses=kept)
    else:
        dev = dev if isinstance(dev, Corpus) else read_sentences(dev, kind)
        dev_set = dev.words_only(word_rule)
    vocabulary = Vocabulary.build(
        ([normalise(word) for word in parse.words] for parse in train.parses), settings.vocabulary
    )
    train, dev_set = train.of_lengths(2, settings.max_length), dev_set.of_lengths(2)
    if not train.parses:
        raise RamifyError(
            f"{train.source}: no training sentence has 2 to {settings.max_length} words; "
            "give more sentences, or another --max-length."
        )
    if not dev_set.parses:
        raise RamifyError(f"{dev_set.source}: no dev sentence has 2 words or more; give more or longer ones.")
    return Data(train, dev_set, word_rule, vocabulary)


def check_folder(out: Path, overwrite: bool) -> None:
    """Refuse a folder with something in it, unless it is a run that may be replaced."""
    if out.exists() and not out.is_dir():
        raise RamifyError(f"{out}: is a file; give the name of a folder.")
    if out.is_dir() and any(out.iterdir()):
        if not overwrite:
            raise RamifyError(f"{out}: is not empty; give another folder, or --overwrite to replace the run in it.")
        if not (out / CONFIG).is_file():
            raise RamifyError(f"{out}: holds no ramify run, so it is not overwritten; give another folder.")


def make_folder(out: Path) -> None:
    """The run folder without the files of an earlier run; other files are left alone."""
    try:
        for name in FILES:
            (out / name).unlink(missing_ok=True)
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RamifyError(f"{out}: cannot be made ({error.strerror}); check the path and its permissions.") from error


def train(
    data: str | Path | Corpus,
    out: str | Path,
    *,
    dev: str | Path | Corpus | None = None,
    kind: Kind = "auto",
    words: str = "auto",
    config: str | Path | None = None,
    overwrite: bool = False,
    on_progress: Callable[[Progress], None] = lambda _: None,
    on_epoch: Callable[[dict[str, Any]], None] = lambda _: None,
    **given: Any,
) -> Parser:
    """Learn a grammar from `data` and leave it in the folder `out`; gives back the parser of the best epoch.

    `given` are fields of `Settings`. Gold trees, where the data has them, are stripped to their words; F1 on a
    dev set with trees is recorded but never used to choose the model.
    """
    settings = load_settings(config, given)
    device, out = chosen_device(settings.device), Path(out)
    check_folder(out, overwrite)
    prepared = prepare(data, dev, kind, words, settings)
    arguments = settings.grammar_arguments(len(prepared.vocabulary))
    check_size(settings.model, arguments)
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(settings.seed)
        grammar = FAMILIES[settings.model](**arguments).to(device)
    make_folder(out)  # not before everything else that can be refused
    write_json(out / CONFIG, _describe(settings, arguments, prepared))
    prepared.vocabulary.save(out / VOCABULARY)
    write_card(out, {})
    _fit(grammar, prepared, settings, out, on_progress, on_epoch)
    return load(out, str(device))


def check_size(model: str, arguments: dict[str, Any]) -> None:
    """Refuse a grammar whose parameters alone are more than any laptop holds, before any is allocated."""
    with torch.device("meta"):
        size = sum(parameter.numel() for parameter in FAMILIES[model](**arguments).parameters())
    if size > MOST_PARAMETERS:
        raise RamifyError(f"This grammar would have {size:,} parameters; take fewer symbols or a smaller embedding.")


def _describe(settings: Settings, arguments: dict[str, Any], data: Data) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "version": VERSION,
        "model": settings.model,
        "grammar": arguments,
        "words": str(data.word_rule),
        "settings": asdict(settings),
        "data": {
            name: {
                "source": Path(corpus.source).name,
                "sha256": corpus.checksum,
                "sentences": len(corpus),
                "dropped": dict(corpus.dropped),
            }
            for name, corpus in (("train", data.train), ("dev", data.dev))
        },
    }


def _fit(
    grammar: LowRankGrammar,
    data: Data,
    settings: Settings,
    out: Path,
    on_progress: Callable[[Progress], None],
    on_epoch: Callable[[dict[str, Any]], None],
) -> None:
    optimizer = optimizer_for(grammar, settings)
    sentences = [data.vocabulary.encode(parse.words) for parse in data.train.parses]
    best, best_epoch = np.inf, 0
    for epoch in range(1, settings.epochs + 1):
        started = time.perf_counter()
        progress = train_epoch(grammar, optimizer, sentences, settings, epoch, on_progress)
        record = {
            "epoch": epoch,
            "train_perplexity": progress.perplexity if np.isfinite(progress.perplexity) else None,
            "sentences_per_second": round(progress.sentences_per_second, 2),
            **judge(grammar, data),
            "seconds": round(time.perf_counter() - started, 2),
        }
        if not np.isfinite(record["dev_perplexity"]):
            raise RamifyError(
                f"Training broke down in epoch {epoch} (the dev set has probability zero); "
                "lower the learning rate or the gain."
            )
        if record["dev_perplexity"] < best:
            best, best_epoch = record["dev_perplexity"], epoch
            save_weights(out, grammar)
        record["best_epoch"] = best_epoch
        with (out / METRICS).open("a", encoding="utf-8") as metrics:
            metrics.write(json.dumps(record) + "\n")
        write_card(out, record)
        on_epoch(record)
        if epoch - best_epoch >= settings.patience:
            break


def judge(grammar: LowRankGrammar, data: Data) -> dict[str, Any]:
    """Perplexity of the dev set, by which the model is chosen, and F1 where there are trees, which is only told."""
    if data.dev.has_trees:
        parser = Parser(grammar, data.vocabulary, word_rule=data.word_rule)
        result = evaluate(parser, data.dev)
        return {"dev_perplexity": result.perplexity, "dev_f1": round(result.scores.sentence_f1, 2)}
    encoded = [data.vocabulary.encode(parse.words) for parse in data.dev.parses]
    lengths = [len(words) for words in encoded]
    return {"dev_perplexity": perplexity(log_probabilities(grammar, encoded), lengths)}

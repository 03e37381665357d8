"""A folder as an experiment leaves it, with results that no model made: random trees, scored by the real functions.

    python -m tests.lab.made_results FOLDER

writes a large one to look at.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import replace as replace_run

from ramify.corpus.builtin import builtin_treebank
from ramify.corpus.reading import Corpus
from ramify.corpus.tree import Parse
from ramify.evaluation.baselines import baseline_predictions, oracle, random_tree
from ramify.evaluation.evaluation import Evaluation, mean_of_runs, score
from ramify.evaluation.gold import Gold, Prediction, load_gold, unlabelled_parse
from ramify.evaluation.labels import category
from ramify.evaluation.scores import Scores
from ramify.evaluation.spans import CONVENTIONS
from ramify.lab.results.schema import DataRecord, Group, PlanRecord, Run, as_record, run_name

MACHINE = {"processor": "Imagined CPU @ 2.00GHz", "cores": 2}

Model = tuple[str, int, dict[str, Any], tuple[str, ...], float]
"""Name, preterminals, other settings, decoders, and how often a constituent is that of the oracle"""

FAMILIES: list[Model] = [
    ("n-pcfg", 60, {"model": "n-pcfg"}, ("mbr", "viterbi"), 0.35),
    ("c-pcfg", 60, {"model": "c-pcfg"}, ("mbr", "viterbi"), 0.5),
    ("tn-pcfg-60", 60, {"model": "tn-pcfg"}, ("mbr",), 0.45),
    ("tn-pcfg-500", 500, {"model": "tn-pcfg"}, ("mbr", "viterbi-rank"), 0.7),
]


@cache
def gold(sentences: int = 60) -> Gold:
    return load_gold(
        Corpus(builtin_treebank(0, train=1, dev=1, test=sentences)["test"], "brackets", "test", "ab12cd34ef")
    )


def result(data: str, model: Model, seed: int, decoder: str, sentences: int = 60) -> dict[str, Any]:
    """The record of one run by one decoder."""
    name, preterminals, settings, _, quality = model
    rng = np.random.default_rng([seed, preterminals, *map(ord, name + decoder)])
    trees = gold(sentences)
    quality = min(1.0, max(0.0, quality + 0.05 * rng.standard_normal()))
    parses = [_parse(parse, quality, preterminals, rng) for parse in trees.parses]
    log_p = [-(3.5 - quality) * (len(parse) + 1) for parse in parses]
    return {
        "format": 1,
        "version": "0.1.0",
        "kind": "model",
        "data": data,
        "model": name,
        "split": "test",
        "machine": MACHINE,
        "seed": seed,
        "decoder": decoder,
        "settings": {"preterminals": preterminals, "activation": "relu", "compound": False, "seed": seed, **settings},
        "evaluation": score(trees, Prediction(name, parses, log_p)).as_record(),
        "induced": _induced(trees.parses, parses),
        "parameters": 1_000_000 + 5000 * preterminals,
        "threads": 1,
        "peak_memory_mb": 600.0 + preterminals,
        "epochs": [
            {
                "epoch": epoch,
                "train_perplexity": 60.0 / epoch,
                "dev_perplexity": 20 + (50 - 20 * quality) / epoch + float(rng.random()),
                "dev_f1": round(30 + 40 * quality * (1 - 1 / epoch) + float(rng.random()), 2),
                "seconds": 12.5,
            }
            for epoch in range(1, 6)
        ],
        "seconds_per_epoch": 12.5 + seed,
    }


def baseline(data: str, name: str, sentences: int = 60) -> dict[str, Any]:
    trees = gold(sentences)
    each = baseline_predictions(name, trees)
    evaluation = mean_of_runs([score(trees, prediction) for prediction in each], each[0].system)
    about = {"format": 1, "version": "0.1.0", "kind": "baseline", "data": data, "model": name, "split": "test"}
    return {**about, "machine": MACHINE, "evaluation": evaluation.as_record()}


def _parse(parse: Parse, quality: float, preterminals: int, rng: np.random.Generator) -> Parse:
    """The oracle's tree or a random one; nonterminals lean towards the gold labels."""
    best = rng.random() < quality
    spans = oracle(parse.spans, len(parse)) if best else random_tree(len(parse), rng)
    labels = dict(zip(map(tuple, parse.spans.tolist()), parse.labels, strict=True))
    symbols = max(4, preterminals // 2)
    names = []
    for span in map(tuple, spans.tolist()):
        home = sum(map(ord, labels.get(span, "?"))) * 7 % symbols
        names.append(f"NT-{(home + int(rng.geometric(0.4)) - 1) % symbols}")
    return replace(unlabelled_parse(parse.words, spans), labels=tuple(names))


def _induced(truth: Sequence[Parse], predicted: Sequence[Parse]) -> dict[str, Any]:
    usage = Counter(label for parse in predicted for label in parse.labels)
    first: dict[str, dict[str, Counter[str]]] = {}
    for ours, theirs in zip(truth, predicted, strict=True):
        names = dict(zip(map(tuple, theirs.spans.tolist()), theirs.labels, strict=True))
        for (start, end), label in zip(map(tuple, ours.spans.tolist()), ours.labels, strict=True):
            if 1 < end - start < len(ours) and (start, end) in names:
                words = first.setdefault(category(label), {}).setdefault(names[start, end], Counter())
                words[ours.words[start]] += 1
    alignment = {label: {symbol: words.total() for symbol, words in of.items()} for label, of in first.items()}
    subtypes = {
        label: [
            {
                "nonterminal": symbol,
                "count": words.total(),
                "share": words.total() / sum(alignment[label].values()),
                "first_words": [list(pair) for pair in words.most_common(5)],
            }
            for symbol, words in sorted(of.items(), key=lambda item: -item[1].total())
        ]
        for label, of in first.items()
    }
    return {"usage": dict(usage), "alignment": alignment, "subtypes": subtypes, "purity": 0.5, "entropy": 1.0}


def scores(f1: float, sentences: int = 350) -> dict[str, Any]:
    """The scores of some sentences, of which only S-F1 matters."""
    return asdict(Scores(f1, f1, f1, f1, 0.0, sentences))


def tiny(data: str, model: str, seed: int, f1: float, decoder: str = "mbr", **more: Any) -> dict[str, Any]:
    """The least that is a result, and what else is wanted in it; `evaluation` adds to the evaluation."""
    evaluation = Evaluation(
        system=model,
        scores=Scores(f1, f1, f1, f1, 0.0, 350),
        by_convention={name: Scores(f1, f1, f1, f1, 0.0, 350) for name in CONVENTIONS},
        by_length={},
        recall_by_label={},
        labels=None,
        recall_homogeneity=None,
        tags=None,
        nonterminals_used=None,
        preterminals_used=None,
        calibration=None,
        perplexity=None,
        evalb=None,
        evalb_signature=None,
        signature="signed",
    ).as_record() | more.pop("evaluation", {})
    return {
        "format": 1,
        "version": "0.1.0",
        "kind": "model",
        "data": data,
        "model": model,
        "split": "test",
        "machine": MACHINE,
        "seed": seed,
        "decoder": decoder,
        "evaluation": evaluation,
        **more,
    }


def put(folder: Path, record: dict[str, Any]) -> Path:
    """A record where an experiment would write it."""
    place = f"runs/{record['data']}/{record['model']}/seed-{record['seed']}/results/{record['decoder']}.json"
    if record.get("kind") == "baseline":
        place = f"baselines/{record['data']}/{record['model']}.json"
    write(folder / place, record)
    return folder / place


def write(path: Path, record: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record), encoding="utf-8")


def planned(data: str, model: str, *seeds: int | None, decoders: Sequence[str] = ("mbr",)) -> list[Run]:
    """The runs of one model."""
    return [Run(data, model, seed, tuple(decoders), f"runs/{run_name(data, model, seed)}") for seed in seeds]


def write_plan(folder: Path, groups: dict[str, Sequence[Run]], baselines: Sequence[str] = ()) -> None:
    """The plan of an experiment with these groups of runs."""
    runs: dict[str, Run] = {}
    for run in (run for of in groups.values() for run in of):
        decoders = (*runs[run.path].decoders, *run.decoders) if run.path in runs else run.decoders
        runs[run.path] = replace_run(run, decoders=tuple(dict.fromkeys(decoders)))
    record = PlanRecord(
        format=1,
        name="made-up",
        title="A made-up experiment",
        version="0.1.0",
        threads=1,
        baselines=tuple(baselines),
        data={run.data: DataRecord(run.data, {}) for run in runs.values()},
        groups=tuple(Group(name, name.title(), (), (), (), tuple(of)) for name, of in groups.items()),
        runs=tuple(runs.values()),
    )
    write(folder / "experiment.json", as_record(record))


def make_folder(
    folder: Path,
    groups: dict[str, tuple[Sequence[str], Sequence[Model]]],
    seeds: Sequence[int] = (0, 1),
    baselines: Sequence[str] = ("left", "right", "random", "oracle"),
    sentences: int = 60,
) -> Path:
    """Everything an experiment leaves but the models themselves; a group is its treebanks and its models."""
    plan = {
        group: [run for data in of for name, _, _, d, _ in models for run in planned(data, name, *seeds, decoders=d)]
        for group, (of, models) in groups.items()
    }
    write_plan(folder, plan, baselines)
    for of, models in groups.values():
        for data in of:
            for name in baselines:
                write(folder / "baselines" / data / f"{name}.json", baseline(data, name, sentences))
            for model in models:
                for seed in seeds:
                    for decoder in model[3]:
                        place = folder / "runs" / data / model[0] / f"seed-{seed}" / "results" / f"{decoder}.json"
                        write(place, result(data, model, seed, decoder, sentences))
    return folder


def make_large_folder(folder: Path) -> None:
    ablations: list[Model] = [
        ("tn-pcfg-60", 60, {"model": "tn-pcfg"}, ("mbr",), 0.45),
        ("direct", 60, {"model": "td-pcfg"}, ("mbr",), 0.2),
        ("tanh", 60, {"model": "tn-pcfg", "activation": "tanh"}, ("mbr",), 0.4),
        ("sigmoid", 60, {"model": "tn-pcfg", "activation": "sigmoid"}, ("mbr",), 0.3),
        ("compound", 60, {"model": "tn-pcfg", "compound": True}, ("mbr",), 0.5),
    ]
    sweep: list[Model] = [
        (f"tn-pcfg-{p}", p, {"model": "tn-pcfg"}, ("mbr",), q)
        for p, q in ((30, 0.4), (60, 0.45), (120, 0.55), (250, 0.65), (500, 0.7))
    ]
    languages = ["wsj", "en-wsj-sample", "en-craft", "is-greynir", "fr-sequoia", "ja-keyaki", "osx-helipad"]
    groups = {
        "main table": (["wsj"], FAMILIES),
        "ablations": (["wsj"], ablations),
        "number of symbols": (["wsj"], sweep),
        "languages": (languages, FAMILIES[2:]),
    }
    make_folder(folder, groups, baselines=("left", "right", "balanced", "random", "oracle"), sentences=300)


if __name__ == "__main__":
    make_large_folder(Path(sys.argv[1]))

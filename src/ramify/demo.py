"""The demo on the built-in corpus: learn, compare scores with baselines and the true grammar, show trees and rules."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from ramify.corpus.brackets import write_brackets
from ramify.corpus.builtin import builtin_grammar, builtin_treebank
from ramify.corpus.cleaning import ALL_WORDS
from ramify.corpus.reading import Corpus
from ramify.corpus.tree import Parse
from ramify.errors import RamifyError, Stopped
from ramify.model_names import CONFIG
from ramify.parser import FORMATS, Evaluation, Parser, evaluate
from ramify.storage.files import folder_contents
from ramify.storage.model_files import FILES
from ramify.terminal import evaluation_table, rules_table, training_display, tree_format
from ramify.training import train

SETTINGS: dict[str, Any] = {
    "nonterminals": 60,
    "preterminals": 120,
    "rank": 120,
    "embedding": 128,
    "batch_size": 4,
    "learning_rate": 0.003,
    "epochs": 2,
    "decay": 0.25,
    "gain": 4.0,
    "punctuation_penalty": 0.0,
}
"""Small enough for two minutes on two cores. With fewer steps, or with only a few symbols more than the 17 + 19 of the
true grammar, rounding errors decide how much is learnt; with these settings, the worst runs are nearly as good as the
best."""

SOURCE = "built-in {}"
TREES, RULES = 3, 12
TREE_WORDS = range(7, 10)
"""Trees of this many words are informative and still fit a terminal."""


def builtin_corpus(seed: int = 0) -> dict[str, Corpus]:
    """The built-in treebank's splits as if read from files."""
    return {name: _as_corpus(name, parses) for name, parses in builtin_treebank(seed).items()}


def _as_corpus(name: str, parses: list[Parse]) -> Corpus:
    text = "".join(write_brackets(parse) + "\n" for parse in parses)
    return Corpus(parses, "brackets", SOURCE.format(name), hashlib.sha256(text.encode()).hexdigest())


def _is_demo(folder: Path) -> bool:
    """Whether the demo wrote this folder, so that it may replace it."""
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        return bool(config["data"]["train"]["source"] == SOURCE.format("train"))
    except (OSError, ValueError, KeyError, TypeError):
        return False


def learn(out: Path, seed: int, corpus: dict[str, Corpus], notes: Console) -> Parser:
    """Train with the demo's settings."""
    overwrite = _is_demo(out)
    if folder_contents(out, FILES) and not overwrite:
        raise RamifyError(f"{out}: this folder is not empty and is not from the demo; give another one.")
    notes.print("Training a grammar on the sentences of the built-in corpus, without their trees.")
    try:
        with training_display(notes) as callbacks:
            return train(
                corpus["train"], out, dev=corpus["dev"], overwrite=overwrite, seed=seed, **callbacks, **SETTINGS
            )
    except Stopped as stop:
        raise Stopped(stop.signal, "Stopped; the same command starts the demo again.") from None


def compare(parser: Parser, test: Corpus) -> list[Evaluation]:
    """The scores of the learnt grammar, of the baselines and of the true grammar."""
    systems: dict[str, Parser | str] = {
        "left branching": "left",
        "right branching": "right",
        "random trees": "random",
        "learned grammar": parser,
        "true grammar": Parser.from_binary_grammar(builtin_grammar()),
    }
    return [replace(evaluate(system, test, word_rule=ALL_WORDS), system=name) for name, system in systems.items()]


def used_rules(parser: Parser, parses: Sequence[Parse]) -> list[tuple[str, str, str, float]]:
    """The strongest rule of each nonterminal, beginning with those that the parses of these sentences use most."""
    analyses = parser.analyse_many(parse.words for parse in parses)
    usage = Counter(label for analysis in analyses for label in analysis.parse.labels)
    return [parser.strongest_rules(label, 1)[0] for label, _ in usage.most_common(RULES)]


def run_demo(out: Path, seed: int, console: Console, notes: Console) -> None:
    """Train on the built-in corpus, print scores, trees and rules, and save the model in `out`."""
    corpus = builtin_corpus()
    parser = learn(out, seed, corpus, notes)
    test = corpus["test"]
    results = compare(parser, test)
    console.print(evaluation_table(results))
    console.print(results[0].signature, highlight=False, soft_wrap=True)
    drawn = [parse for parse in test.parses if len(parse) in TREE_WORDS][:TREES]
    for parse in drawn:
        console.print("\n" + FORMATS[tree_format()](parser.analyse(parse.words)), highlight=False, markup=False)
    title = "The most probable rules of the most frequent symbols"
    console.print(rules_table(used_rules(parser, test.parses), parser, title))
    console.print(f"The model is in {out}. To parse with it: ramify parse -m {out} FILE", highlight=False, markup=False)

"""N-PCFG, C-PCFG and TN-PCFG with the same settings, decoded by MBR and by Viterbi: one table.

    python benchmarks/families.py RUNS --data en-wsj-sample --epochs 4
    python benchmarks/families.py RUNS

Without --data it is the built-in corpus. Every run is an ordinary model folder in RUNS; one that is there is not
trained again, and one that was stopped goes on. `--only` trains one model, so that several can be trained at a time.
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path

from ramify.corpus.cleaning import ALL_WORDS
from ramify.corpus.reading import Corpus
from ramify.demo import builtin_corpus
from ramify.parser import evaluate
from ramify.training import train

MODELS = ("n-pcfg", "c-pcfg", "tn-pcfg")
DECODERS = ("mbr", "viterbi")
SEEDS = (0, 1, 2)
SIZES = {"nonterminals": 30, "preterminals": 60, "batch_size": 8, "learning_rate": 0.002}


def rows(arguments: argparse.Namespace, model: str) -> list[list[float]]:
    """For each seed S-F1 by each decoder, and perplexity."""
    found = []
    data: dict[str, Corpus | Path]
    if arguments.data is None:
        data, rule = dict(builtin_corpus()), ALL_WORDS
    else:
        data, rule = {name: arguments.data / f"{name}.trees" for name in ("train", "dev", "test")}, None
    for seed in SEEDS:
        out = arguments.runs / f"{arguments.data.name if arguments.data else 'built-in'}-{model}-{seed}"
        parser = train(
            data["train"], out, dev=data["dev"], resume=out.exists(), model=model, seed=seed, epochs=arguments.epochs,
            **SIZES,
        )  # fmt: skip
        scores = [evaluate(parser, data["test"], decoder=decoder, word_rule=rule) for decoder in DECODERS]
        assert scores[0].perplexity is not None
        found.append([*(score.scores.sentence_f1 for score in scores), scores[0].perplexity])
        print(f"{out}: S-F1 {found[-1][0]:.1f} by MBR, {found[-1][1]:.1f} by Viterbi, perplexity {found[-1][2]:.1f}")
    return found


def main() -> None:
    """Train what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path)
    parser.add_argument("--data", type=Path, help="a folder with train.trees, dev.trees and test.trees")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--only", choices=MODELS)
    arguments = parser.parse_args()
    lines = ["| model | S-F1, MBR | S-F1, Viterbi | perplexity |", "|---|---|---|---|"]
    for model in [arguments.only] if arguments.only else MODELS:
        columns = zip(*rows(arguments, model), strict=True)
        cells = (f"{statistics.mean(c):.1f} ± {statistics.pstdev(c):.1f}" for c in columns)
        lines.append(f"| {model} | {' | '.join(cells)} |")
    print("\n".join(lines))


if __name__ == "__main__":
    main()

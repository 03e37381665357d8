"""Add a trained model to the package, with its scores and its card.

    python -m tools.bundle_model en FOLDER DATA

FOLDER is the trained model, DATA contains the treebanks. The model is compressed and scored; its card is
`models/en/card.md` with these scores filled in. The package changes only if all of this succeeds.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import ramify
from ramify.corpus.cleaning import guess_word_rule
from ramify.corpus.reading import SPLITS, Corpus, read_sentences
from ramify.model_names import BUNDLED
from ramify.parser import Parser
from ramify.parser.compression import compress, save_compressed
from ramify.storage.files import write_atomically, write_json
from ramify.storage.model_files import CARD, checksum, read_config

MODELS = Path(__file__).resolve().parent.parent / "models"
SCORES = "scores.json"
TREEBANK = "en-wsj-sample"
LARGEST = 6_000_000
MAX_LOSS = 0.1
"""Maximum loss of S-F1 by compression, in points"""


def whole_treebank(folder: Path) -> Corpus:
    """The whole treebank: train, dev and test together."""
    corpora = [read_sentences(folder, split=split) for split in SPLITS]
    parses = [parse for corpus in corpora for parse in corpus.parses]
    digest = hashlib.sha256("".join(corpus.checksum for corpus in corpora).encode()).hexdigest()
    return Corpus(parses, corpora[0].kind, folder.name, digest)


def f1_of(system: Parser | str, gold: Corpus) -> dict[str, Any]:
    """S-F1, C-F1 and, for a model, the unknown words in percent."""
    found = ramify.evaluate(system, gold, word_rule=guess_word_rule(gold.parses))
    unknown = {} if found.coverage is None else {"unknown_percent": round(found.coverage.unknown_rate, 2)}
    scores = found.scores
    return {"sentence_f1": scores.sentence_f1, "corpus_f1": scores.corpus_f1, "signature": found.signature, **unknown}


def scores_of(folder: Path, gold: Corpus) -> dict[str, Any]:
    """Facts for the card of a model: its scores and those of right branching on sentences that it has not seen."""
    return {
        "treebank": gold.source,
        "sentences": len(gold),
        "model": f1_of(ramify.load(folder), gold),
        "right": f1_of("right", gold),
        "sha256": checksum(folder),
    }


def card(name: str, folder: Path, scores: dict[str, Any]) -> str:
    """The template with the facts of the model and its scores."""
    config = read_config(folder)
    grammar, model, right = config["grammar"], scores["model"], scores["right"]
    files = (file for file in folder.iterdir() if file.name not in (CARD, SCORES))
    return (MODELS / name / "card.md").read_text(encoding="utf-8").format(
        kind=config["settings"]["model"],
        nonterminals=grammar["nonterminals"],
        preterminals=grammar["preterminals"],
        rank=grammar["rank"],
        words=f"{grammar['words']:,}",
        sentences=f"{config['data']['train']['sentences']:,}",
        size=f"{sum(file.stat().st_size for file in files) / 1e6:.1f}",
        gold=f"{scores['sentences']:,}",
        f1=f"{model['sentence_f1']:.1f}",
        corpus_f1=f"{model['corpus_f1']:.1f}",
        right_f1=f"{right['sentence_f1']:.1f}",
        right_corpus_f1=f"{right['corpus_f1']:.1f}",
        unknown=f"{model['unknown_percent']:.1f} %",
        signature=model["signature"],
    )  # fmt: skip


def main(name: str, source: Path, data: Path) -> None:
    """Compress and score, and only then replace the model in the package."""
    gold = whole_treebank(data / TREEBANK)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / name
        first = ramify.load(source)
        if not isinstance(first, Parser):
            sys.exit(f"{source}: is an ensemble; give one of its members.")
        save_compressed(source, compress(first), folder)
        scores = scores_of(folder, gold)
        lost = f1_of(first, gold)["sentence_f1"] - scores["model"]["sentence_f1"]
        size = sum(file.stat().st_size for file in folder.iterdir())
        if lost > MAX_LOSS or size > LARGEST:
            sys.exit(f"{source}: loses {lost:.2f} points and takes {size:,} bytes; at most {MAX_LOSS} and {LARGEST:,}.")
        scores["lost_by_compressing"] = lost
        write_json(folder / SCORES, scores)
        write_atomically(folder / CARD, card(name, folder, scores).encode())
        shutil.rmtree(BUNDLED / name, ignore_errors=True)
        shutil.copytree(folder, BUNDLED / name)
    print(json.dumps(scores, indent=2))
    print(f"{BUNDLED / name}: {size:,} bytes; compressing cost {lost:.3f} points of S-F1.")


if __name__ == "__main__":
    main(sys.argv[1], *map(Path, sys.argv[2:4]))

"""The model card, README.md of a model folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ramify.corpus.vocabulary import UnknownCount
from ramify.model_names import CONFIG
from ramify.storage.files import write_atomically
from ramify.storage.model_files import CARD, COMPRESSED, branching_in


def write_card(folder: Path, record: dict[str, Any]) -> None:
    """README.md of a model folder, from its config and the latest line of its metrics."""
    config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    grammar, data, settings, text = (config[part] for part in ("grammar", "data", "settings", "text"))
    sizes = {
        name: grammar[name] for name in ("nonterminals", "preterminals", "rank", "width", "layers") if name in grammar
    }
    facts = {
        "Family": config["model"] + _compressed(config.get(COMPRESSED)),
        **({", ".join(sizes).capitalize(): ", ".join(str(size) for size in sizes.values())} if sizes else {}),
        "Vocabulary": f"{grammar['words']:,} words, including `<unk>`",
        "Unknown words in training, on dev": ", ".join(
            str(UnknownCount(**config["unknown_words"][name])) for name in ("train", "dev")
        ),
        "Trained on": _data(data["train"]),
        "Epoch chosen by": _data(data["dev"]),
        "Leaves of trees that are words": f"`{config['words']}`",
        "Tokeniser, normal form, punctuation of text": ", ".join(
            f"`{value}`" for value in (text["tokenise"], text["normal_form"], text["punctuation"]["rule"])
        ),
        **_branching(branching_in(config)),
        "Seed, batch, learning rate": f"{settings['seed']}, {settings['batch_size']}, {settings['learning_rate']}",
        "Written by": f"ramify {config['version']}",
    }
    if record:
        facts["Epochs"] = f"{record['epoch']}, of which epoch {record['best_epoch']} is kept"
        if record["dev_perplexity"] is not None:
            facts["Dev perplexity of the last epoch"] = f"{record['dev_perplexity']:.1f}"
    if "dev_f1" in record:
        facts["Dev S-F1 of the last epoch (not used in training)"] = f"{record['dev_f1']:.1f}"
    rows = "\n".join(f"| {name} | {value} |" for name, value in facts.items())
    text = (
        f"# A model trained with ramify\n\nIt was trained without trees.\n\n| | |\n|---|---|\n{rows}\n\n"
        "To parse with it:\n\n```\necho 'the words of a sentence' | ramify parse -m FOLDER\n```\n\n"
        f"`config.json` contains all settings{', `metrics.jsonl` one line per epoch' if record else ''}.\n"
    )
    write_atomically(folder / CARD, text.encode())


def _branching(bonus: float) -> dict[str, str]:
    return {"Trees favour": f"{'right' if bonus > 0 else 'left'} branching, bonus {abs(bonus):g}"} if bonus else {}


def _compressed(source: Any) -> str:
    return f", compressed from {source['model']}" if isinstance(source, dict) else ""


def _data(corpus: dict[str, Any]) -> str:
    return f"{corpus['sentences']:,} sentences of `{corpus['source']}` (sha256 {corpus['sha256'][:8]})"

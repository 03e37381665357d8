"""`manifest.json`: how a folder of trees was made, and which leaves are words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ramify.corpus.cleaning import WordRule, guess_word_rule
from ramify.corpus.reading import Corpus
from ramify.errors import RamifyError

MANIFEST = "manifest.json"
MADE_BY = "ramify prepare"


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """The manifest that `ramify prepare` wrote into `folder`; None if there is none."""
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
    except (OSError, ValueError, RecursionError):
        return None  # a manifest of another program
    if not isinstance(manifest, dict) or manifest.get("made_by") != MADE_BY:
        return None
    return manifest


def manifest_word_rule(path: str | Path) -> WordRule | None:
    """The rule for words of a prepared folder, or of a file in it; None for other folders and files."""
    path = Path(path)
    folder = path if path.is_dir() else path.parent
    manifest = read_manifest(folder) if path.exists() else None
    if manifest is None:
        return None
    outputs = manifest.get("outputs")
    if not path.is_dir() and not (isinstance(outputs, dict) and path.name in outputs):
        return None
    words = manifest.get("words")
    if not isinstance(words, str):
        raise RamifyError(f"{folder / MANIFEST}: the rule for words is missing or invalid; prepare the folder again.")
    return WordRule.from_name(words)


def word_rule_for(corpus: Corpus) -> WordRule:
    """The rule with which the treebank was prepared, or a guess from its tags."""
    return manifest_word_rule(corpus.source) or guess_word_rule(corpus.parses)

"""Small treebanks, and the folders prepared from them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ramify.corpus.cleaning import ALL_WORDS, WordRule
from ramify.corpus.reading import read_sentences


def tree(word: str) -> str:
    return f"(TOP (S (NP (NN {word})) (VP (VBZ barks)) (. .)))"


def write(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def twenty(path: Path) -> Path:
    return write(path, "".join(tree(f"w{i}") + "\n" for i in range(20)))


def manifest_of(out: Path) -> dict[str, Any]:
    return json.loads((out / "manifest.json").read_text(encoding="utf-8"))


def trees_of(out: Path, split: str) -> list[str]:
    return (out / f"{split}.trees").read_text(encoding="utf-8").splitlines()


def sentences_of(out: Path, split: str, rule: WordRule = ALL_WORDS) -> list[tuple[str, ...]]:
    return [parse.words for parse in read_sentences(out, split=split).words_only(rule).parses]


def words_of(out: Path, split: str) -> list[str]:
    """The first word of each sentence."""
    return [words[0] for words in sentences_of(out, split)]

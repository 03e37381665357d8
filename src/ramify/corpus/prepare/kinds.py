"""The kinds of treebanks, by name."""

from __future__ import annotations

from pathlib import Path

from ramify.corpus.prepare.bracket_files import find_brackets, find_nltk
from ramify.corpus.prepare.ctb import find_ctb
from ramify.corpus.prepare.source import Source
from ramify.corpus.prepare.spmrl import find_spmrl
from ramify.corpus.prepare.wsj import find_wsj
from ramify.errors import RamifyError

KINDS = ("wsj", "ctb", "spmrl", "brackets")
NLTK = "nltk:"


def find_treebank(
    kind: str, path: Path | None, out: Path, language: str | None, split: str | None, punctuation_tags: str | None
) -> Source:
    """The files of a treebank; options that do not suit its kind are refused."""
    from_nltk = kind.startswith(NLTK)
    if kind not in KINDS and not from_nltk:
        raise RamifyError(f"The kind of treebank {kind!r} is unknown; choose one of {', '.join(KINDS)}, nltk:NAME.")
    if language is not None and kind != "spmrl":
        raise RamifyError(f"A {kind} treebank has only one language; leave out --language.")
    if kind in ("wsj", "ctb", "spmrl") and (split is not None or punctuation_tags is not None):
        raise RamifyError(
            f"A {kind} treebank has a fixed split and fixed punctuation tags; leave out --split and "
            "--punctuation-tags, or prepare its files as brackets."
        )
    if from_nltk:
        if path is not None:
            raise RamifyError(f"{path}: NLTK finds its corpora itself; leave out the path, or set NLTK_DATA.")
        return find_nltk(kind.removeprefix(NLTK), split, punctuation_tags)
    if path is None:
        raise RamifyError(f"The path of the {kind} treebank is missing; give its folder after the kind.")
    if kind == "wsj":
        return find_wsj(path, out)
    if kind == "ctb":
        return find_ctb(path, out)
    if kind == "spmrl":
        return find_spmrl(path, out, language)
    return find_brackets(path, out, split, punctuation_tags)

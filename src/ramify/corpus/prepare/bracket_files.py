"""Any files of bracketed trees, and the treebanks that NLTK reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ramify.corpus.cleaning import WordRule
from ramify.corpus.prepare.data_splits import DEFAULT_SPLIT, read_shares, split_files
from ramify.corpus.prepare.source import Source, SourceFile, file_on_disk, visible_files
from ramify.corpus.reading import SPLITS, split_paths
from ramify.errors import RamifyError


def find_brackets(path: Path, out: Path, split: str | None, punctuation_tags: str | None) -> Source:
    """One file or all files of a folder; existing train, dev and test files of a folder remain these splits."""
    if not path.exists():
        raise RamifyError(f"{path}: does not exist; check the name.")
    if not path.is_dir():
        return _with_split([file_on_disk(path, path.name)], split, punctuation_tags)
    files = [file_on_disk(file, str(file.relative_to(path))) for file in visible_files(path, without=out)]
    if not files:
        raise RamifyError(f"{path}: this folder is empty; give one with bracketed trees.")
    own = {file.name: name for name, file in split_paths(path).items()}
    if split is None and set(own.values()) == set(SPLITS):
        return _source(files, own, "the folder's own files", punctuation_tags)
    return _with_split(files, split, punctuation_tags)


def find_nltk(name: str, split: str | None, punctuation_tags: str | None) -> Source:
    """The treebank that NLTK calls `name`, from NLTK's data folder."""
    import nltk

    reader: Any = getattr(nltk.corpus, name, None)
    try:
        if not hasattr(reader, "parsed_sents"):
            raise RamifyError(f"nltk:{name}: NLTK has no treebank of this name; give one such as nltk:treebank.")
        files = [_nltk_file(reader, *place) for place in reader.abspaths(None, True, True)]
    except LookupError as error:
        raise RamifyError(
            f"nltk:{name}: this corpus is not installed; get it with python -m nltk.downloader {name}, "
            "or set NLTK_DATA to the folder that contains it."
        ) from error
    comment = getattr(reader, "_comment_char", None)
    line_filter = (lambda line: "" if line.startswith(comment) else line) if comment else None
    return replace(_with_split(files, split, punctuation_tags), line_filter=line_filter)


def _nltk_file(reader: Any, pointer: Any, encoding: str | None, name: str) -> SourceFile:
    import nltk

    # NLTK's reader repairs corrupt trees silently, so files of brackets are read here instead.
    if getattr(type(reader), "_normalize", None) is nltk.corpus.reader.BracketParseCorpusReader._normalize:
        return SourceFile(name, lambda: _opened_and_read(pointer), encoding=lambda _: encoding or "utf-8")
    return SourceFile(name, lambda: _trees_as_text(reader, name))


def _opened_and_read(pointer: Any) -> bytes:
    with pointer.open() as stream:
        return bytes(stream.read())


def _trees_as_text(reader: Any, name: str) -> bytes:
    try:
        return "\n".join(" ".join(str(tree).split()) for tree in reader.parsed_sents(name)).encode()
    except ValueError as error:
        raise RamifyError(f"{name}: NLTK cannot read the trees of this file ({error}); correct it.") from error


def _with_split(files: list[SourceFile], split: str | None, punctuation_tags: str | None) -> Source:
    split = split or DEFAULT_SPLIT
    shares = read_shares(split)
    if shares is None:
        return _source(files, split_files([file.name for file in files], split), split, punctuation_tags)
    return replace(_source(files, {}, split, punctuation_tags), files=files, shares=shares, unused=[])


def _source(files: list[SourceFile], splits: Mapping[str, str], how: str, punctuation_tags: str | None) -> Source:
    return Source(
        [replace(file, split=splits[file.name]) for file in files if file.name in splits],
        word_rule=None if punctuation_tags is None else WordRule.from_name(punctuation_tags),
        margin_is_a_guess=True,
        facts={"split": how},
        unused=[file.name for file in files if file.name not in splits],
    )

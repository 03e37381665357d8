"""Preparing a treebank: find its files, read them, remove traces, write the splits and a record of the conversion."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ramify.corpus.brackets import write_brackets
from ramify.corpus.cleaning import WordRule, guess_word_rule, warn_about_absent_tags
from ramify.corpus.prepare.data_splits import block_splits
from ramify.corpus.prepare.kinds import find_treebank
from ramify.corpus.prepare.manifest import MADE_BY, MANIFEST
from ramify.corpus.prepare.passages import Corrupt, read_passages, whole_file
from ramify.corpus.prepare.prepared_folder import check_out, write_folder
from ramify.corpus.prepare.source import Source, SourceFile
from ramify.corpus.prepare.split_counts import SplitCounts, count_splits
from ramify.corpus.reading import SPLITS
from ramify.corpus.tree import Parse
from ramify.errors import RamifyError
from ramify.version import VERSION


@dataclass(frozen=True)
class Prepared:
    """The result of a preparation."""

    splits: dict[str, SplitCounts]
    word_rule: WordRule
    source: Source


def prepare_treebank(
    kind: str,
    path: str | Path | None,
    out: str | Path,
    *,
    language: str | None = None,
    split: str | None = None,
    punctuation_tags: str | None = None,
    strict: bool = False,
    overwrite: bool = False,
    confirm: Callable[[WordRule, list[Parse]], bool] = lambda _rule, _parses: True,
    on_file: Callable[[int, int], None] = lambda _done, _files: None,
    on_corrupt: Callable[[str], None] = lambda _message: None,
) -> Prepared:
    """Write `train.trees`, `dev.trees`, `test.trees` and `manifest.json` to the folder `out`.

    `kind` is wsj, ctb, spmrl, brackets, or `nltk:` and the name of a corpus, which needs no `path`. Traces are
    removed, with the constituents that contain nothing else. Punctuation stays, and the manifest names the rule that
    distinguishes words. If that rule is a guess, `confirm` may refuse it. A corrupt tree is reported to `on_corrupt`
    and left out; if `strict` it is an error, and so is an incomplete treebank.
    """
    path, out = None if path is None else Path(path), Path(out)
    check_out(out, path, overwrite)
    source = find_treebank(kind, path, out, language, split, punctuation_tags)
    if strict and source.warnings:
        raise RamifyError(f"{path}: {source.warnings[0]}; complete the treebank, or leave out --strict.")

    items: list[tuple[SourceFile, Parse | Corrupt]] = []
    corrupt: list[str] = []
    checksums: dict[str, str] = {}
    for number, file in enumerate(source.files, start=1):
        data = file.read()
        checksums[file.name] = hashlib.sha256(data).hexdigest()
        for item in _read(data, file, source):
            items.append((file, item))
            if isinstance(item, Corrupt):
                if strict:
                    raise item.error
                corrupt.append(str(item.error))
                on_corrupt(str(item.error))
        on_file(number, len(source.files))

    splits = count_splits(SPLITS, _assign_splits(items, source))
    for name in SPLITS:
        if not splits[name].kept:
            raise RamifyError(f"{path or kind}: {name}.trees would have no trees; check that the files for it exist.")
    kept = [parse for name in SPLITS for parse in splits[name].kept]
    rule = source.word_rule or guess_word_rule(kept)
    if source.word_rule is None and not confirm(rule, kept):
        raise RamifyError("Nothing was written; give the tags of leaves that are not words with --punctuation-tags.")
    if punctuation_tags is not None:
        warn_about_absent_tags(rule, kept, str(path or kind))

    outputs = {f"{name}.trees": _as_text(splits[name].kept) for name in SPLITS}
    manifest = {
        "made_by": MADE_BY,
        "version": VERSION,
        "kind": kind,
        "source": None if path is None else str(path),
        "options": {"language": language, "split": split, "punctuation_tags": punctuation_tags, "strict": strict},
        **source.facts,
        "words": str(rule),
        "words_guessed": source.word_rule is None,
        "splits": {name: splits[name].account() for name in SPLITS},
        "corrupt": corrupt,
        "warnings": list(source.warnings),
        "files_of_no_split": list(source.unused),
        "inputs": checksums,
        "outputs": {name: hashlib.sha256(content).hexdigest() for name, content in outputs.items()},
    }
    # A file name need not be UTF-8; JSON can escape other bytes.
    text = json.dumps(manifest, ensure_ascii=False, indent=1).encode("utf-8", "backslashreplace")
    write_folder(out, {**outputs, MANIFEST: text + b"\n"})
    return Prepared(splits, rule, source)


def _read(data: bytes, file: SourceFile, source: Source) -> Iterator[Parse | Corrupt]:
    encoding = file.encoding(data)
    items: list[Parse | Corrupt] = []
    if source.margin_is_a_guess:
        items = list(read_passages(data, file.name, whole_file, encoding, source.line_filter))
    if not source.margin_is_a_guess or any(isinstance(item, Corrupt) for item in items):
        items = list(read_passages(data, file.name, source.cut, encoding, source.line_filter))
    for item in items:
        yield source.tidy(item) if source.tidy and isinstance(item, Parse) else item


def _assign_splits(
    items: list[tuple[SourceFile, Parse | Corrupt]], source: Source
) -> Iterator[tuple[str, Parse | Corrupt]]:
    """Every tree with its split: that of its file, or by its number, where corrupt trees are counted too."""
    if source.shares is None:
        for file, item in items:
            assert file.split is not None, file.name
            yield file.split, item
        return
    sizes = [item.trees if isinstance(item, Corrupt) else 1 for _, item in items]
    of_trees = block_splits(sum(sizes), source.shares)
    first = 0
    for (_, item), size in zip(items, sizes, strict=True):
        yield of_trees[first], item
        first += size


def _as_text(parses: list[Parse]) -> bytes:
    return "".join(write_brackets(parse) + "\n" for parse in parses).encode()

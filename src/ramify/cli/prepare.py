"""`ramify prepare`: converts a treebank from its distributed form to a folder for training."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from ramify.cli.common import app, notes

if TYPE_CHECKING:
    from ramify.corpus.cleaning import WordRule
    from ramify.corpus.prepare import Prepared
    from ramify.corpus.tree import Parse

MAX_REPORTED = 20
"""Corrupt trees that are reported one by one; the manifest lists all of them."""


@app.command(epilog="Example: ramify prepare wsj treebank_3 --out data/wsj")
def prepare(
    kind: Annotated[str, typer.Argument(help="wsj, ctb, spmrl, brackets, or nltk:NAME for an NLTK corpus.")],
    out: Annotated[Path, typer.Option(help="Folder for the trees.")],
    path: Annotated[Path | None, typer.Argument(help="Folder or file of the treebank; leave out for nltk.")] = None,
    language: Annotated[
        str | None,
        typer.Option(help="spmrl: the language, if the folder contains several."),
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(
            help="brackets, nltk: percentages such as 80/10/10, or 'train=a.mrg,b*.mrg dev=c.mrg test=d.mrg'; "
            "by default existing train, dev and test files, otherwise 80/10/10."
        ),
    ] = None,
    punctuation_tags: Annotated[
        str | None,
        typer.Option(help="brackets, nltk: tags of leaves that are not words, ptb, or none; detected by default."),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at the first corrupt tree.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what ramify prepare wrote to OUT.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Accept the detected punctuation tags without asking.")] = False,
) -> None:
    """Convert a treebank to train.trees, dev.trees, test.trees and manifest.json, a record of the conversion."""
    from ramify.corpus.prepare import prepare_treebank

    columns = (TextColumn("files"), BarColumn(bar_width=24), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=notes, transient=True, disable=not notes.is_terminal) as bar:
        task = bar.add_task("", total=None)
        corrupt: list[str] = []

        def report(message: str) -> None:
            corrupt.append(message)
            if len(corrupt) <= MAX_REPORTED:
                _note(f"skipped: {message}")

        def confirm(rule: WordRule, parses: Sequence[Parse]) -> bool:
            bar.stop()
            _note(_describe_guess(rule, parses))
            return yes or not sys.stdin.isatty() or typer.confirm("Is that right?", err=True)

        prepared = prepare_treebank(
            kind,
            path,
            out,
            language=language,
            split=split,
            punctuation_tags=punctuation_tags,
            strict=strict,
            overwrite=overwrite,
            confirm=confirm,
            on_file=lambda done, files: bar.update(task, completed=done, total=files),
            on_corrupt=report,
        )
    if len(corrupt) > MAX_REPORTED:
        _note(f"... and {len(corrupt) - MAX_REPORTED} more; manifest.json lists all of them.")
    _summarise(prepared, out)


def _note(text: str) -> None:
    notes.print(text, highlight=False, markup=False, soft_wrap=True)


def _describe_guess(rule: WordRule, parses: Sequence[Parse]) -> str:
    if rule.ptb:
        return "The tags are those of the Penn Treebank: leaves with one of its 36 word tags are words (ptb)."
    if not rule.removed:
        return "No tag looks like punctuation: every leaf is a word."
    leaves = Counter(leaf for parse in parses for leaf in zip(parse.tags, parse.words, strict=True))
    examples: dict[str, list[str]] = {}
    for (tag, word), _ in leaves.most_common():
        if tag in rule.removed and len(examples.setdefault(tag, [])) < 6:
            examples[tag].append(word)
    shown = "; ".join(f"{tag} ({' '.join(words)})" for tag, words in sorted(examples.items()))
    return f"These tags look like punctuation, so their leaves will not count as words: {shown}"


def _summarise(prepared: Prepared, out: Path) -> None:
    for warning in prepared.source.warnings:
        _note(f"note: {warning}.")
    if prepared.source.unused:
        _note(f"note: {len(prepared.source.unused)} files are not part of any split and were not read.")
    table = Table("", "trees in", "out", "dropped", "traces removed")
    for column in table.columns[1:]:
        column.justify = "right"
    for name, split in prepared.splits.items():
        dropped = ", ".join(f"{count} {reason}" for reason, count in split.dropped.items()) or "0"
        table.add_row(name, str(split.trees_in), str(len(split.kept)), dropped, str(split.removed["traces"]))
    notes.print(table)
    _note(f"Rule for words: {prepared.word_rule}. To train: ramify train {out} --out FOLDER")

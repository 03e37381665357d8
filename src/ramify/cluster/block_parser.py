"""The work of one worker: its model is loaded once, then block after block is parsed and written."""

from __future__ import annotations

import io
import time
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import torch

from ramify.cluster.job import ParseJob
from ramify.cluster.parts import Parts
from ramify.corpus.blocks import Block, BlockReader
from ramify.corpus.constraint_reading import InlineRules, constrain_by_punctuation
from ramify.corpus.sentence import Sentence
from ramify.corpus.text import TextRules
from ramify.errors import RamifyError, RamifyWarning
from ramify.parser import BEST_FORMATS, FORMATS, best_many
from ramify.parser.ensemble import load_several
from ramify.storage.gzip_output import GzipGroups, encoded_line
from ramify.terminal.tally import ParseTally

MAX_TRIES = 4
"""Number of workers that one block may kill: a block that needs too much memory would kill all of them"""
MAX_NOTES = 5
"""Maximum number of warnings kept per block"""


class BlockParser:
    """Parses blocks of the file of a job, and writes a part for each."""

    def __init__(self, job: ParseJob, parts: Parts) -> None:
        torch.set_num_threads(job.threads)
        self._job, self._parts = job, parts
        self._parser = load_several(job.models, job.device)
        self._rules = text_rules(job, self._parser.text_rules)

    def __call__(self, block: Block) -> dict[str, Any]:
        """Write the part of a block unless it exists; returns its record."""
        begun = time.perf_counter()
        done = self._parts.record(block.number)
        if done is not None:
            return done
        tries = self._parts.count_try(block.number)
        if tries >= MAX_TRIES:
            raise RamifyError(
                f"{self._job.file}, rows {block.first_row:,} to {block.first_row + block.rows - 1:,}: {tries} workers "
                "died while parsing these rows; if memory ran out, give fewer --workers or a --max-length."
            )
        bad_rows: list[dict[str, Any]] = []

        def on_bad_row(row: int, error: RamifyError) -> None:
            if self._job.strict:
                raise error
            bad_rows.append({"row": row, "error": str(error)})

        tally = ParseTally(self._job.strict, self._parser)
        reader = block_reader(self._job, self._rules, on_bad_row)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", RamifyWarning)
            data = self._parsed(reader.read(block), tally, block)
        tally.rows = reader.rows
        notes = dict.fromkeys(str(each.message) for each in caught if issubclass(each.category, RamifyWarning))
        facts = {
            "sentences": tally.parses.sentences,
            "seconds": round(time.perf_counter() - begun, 3),
            "bad_rows": bad_rows,
            "notes": list(notes)[:MAX_NOTES],
            "tally": tally.as_record(),
        }
        return self._parts.write(block.number, data, facts)

    def _parsed(self, sentences: Iterator[Sentence], tally: ParseTally, block: Block) -> bytes:
        job, out = self._job, io.BytesIO()
        if job.constraints == "punctuation":
            sentences = map(constrain_by_punctuation, sentences)
        if job.best is not None:
            ranked = best_many(self._parser, sentences, job.best, job.max_length, job.decoder)
            self._write_lines(out, map(BEST_FORMATS[job.format], tally.parses.watch(ranked)))
            return out.getvalue()
        found = self._parser.analyse_many(sentences, job.decoder, 0, job.max_length, job.branching, job.heads)
        analyses = tally.watch(found)
        if job.format == "parquet":
            from ramify.integrations.parquet_output import GivenColumns, write_parquet

            given = None if job.given_columns is None else GivenColumns.from_bytes(job.given_columns)
            write_parquet(out, analyses, job.metadata, block.sentences_before + 1, given)
        else:
            self._write_lines(out, (FORMATS[job.format](analysis, job.posteriors) for analysis in analyses))
        return out.getvalue()

    def _write_lines(self, out: io.BytesIO, lines: Iterable[str]) -> None:
        sink = GzipGroups(out) if self._job.compressed else out
        for line in lines:
            sink.write(encoded_line(line))
        sink.flush()


def text_rules(job: ParseJob, rules: TextRules) -> TextRules:
    """The text rules of the job, given those of its model."""
    if job.tokenise is not None:
        rules = rules.with_tokeniser(job.tokenise)
    return InlineRules.of(rules) if job.constraints == "inline" else rules


def block_reader(job: ParseJob, rules: TextRules, on_bad_row: Any) -> BlockReader:
    """Reads the file of the job."""
    return BlockReader(Path(job.file), job.input, job.kind, rules, job.split_sentences, job.columns, on_bad_row)

"""Blocks, parts and workers; the simulated cluster is not part of the package."""

from tests.mutation.mutants import Group, Mutant

GROUPS = (
    Group(
        "cluster, blocks",
        ("corpus/test_blocks.py",),
        (
            Mutant("_cut_lines", "counted >= size", "counted > size"),
            Mutant("_cut_lines", "(not in_paragraphs or _is_blank(line))", "True"),
            Mutant("_cut_lines", "not (skips_blank and _is_blank(line))", "1"),
            Mutant("_cut_lines", "block.first_row + rows", "block.first_row + counted"),
            Mutant("_cut_lines", "block.sentences_before + counted", "block.sentences_before + rows"),
            Mutant("_cut_lines", "if counted or not block.number:", "if counted:"),
            Mutant("blocks:_is_blank", "not line.strip() or not (line.isascii() or", "not (line.isascii() or"),
            Mutant("blocks:_is_blank", ' or not (line.isascii() or line.decode(errors="replace").strip())', ""),
            Mutant("_cut_rows", "max(total, 1)", "total"),
            Mutant(
                "CutFile.checksum", "block.sha256 for block in self.blocks", "block.sha256 for block in self.blocks[:1]"
            ),
            Mutant("BlockReader._lines", "hashlib.sha256(data).hexdigest() != block.sha256", "False"),
            Mutant("BlockReader._tolerant", "first_row + half", "first_row"),
            Mutant(
                "BlockReader._tolerant", "            self.rows = before\n            if half", "            if half"
            ),
            Mutant("BlockReader._tolerant", "before.add_all(self.rows)", "pass"),
            Mutant("BlockReader._json_cells", "is_first=False", "is_first=True"),
            Mutant("BlockReader._without_text", "replace(cell, content=None)", "cell"),
            Mutant("BlockReader._readable", 'yield "\\n"', "pass"),
            Mutant("_with_valid_constraints", "forbidden_spans(sentence)", "pass"),
            Mutant("blocks:check_columns", "if isinstance(record, dict):", "if True:"),
            Mutant("_row_groups", "number + count < wanted.start", "number + count <= wanted.start"),
            Mutant("_row_groups", "number + 1 < wanted.stop", "True"),
            Mutant("_row_groups", "before += count", "pass"),
            Mutant("parquet_cells", "if number in wanted:", "if True:"),
            Mutant(
                "parquet_cells",
                "if number >= wanted.stop - 1:",
                "if False:",
                equivalent="only rows that are not needed would be read",
            ),
            Mutant("read_text_lines", " or first_line > 1", ""),
            Mutant("TextRules._texts", "first_line - 1 + number", "number"),
        ),
    ),
    Group(
        "cluster, parts",
        ("cluster/test_parts.py",),
        (
            Mutant("Parts.record", ' and found.get("run") == self.run', ""),
            Mutant("Parts.checked", 'hashlib.sha256(data).hexdigest() != record["sha256"]', "False"),
            Mutant("Parts.checked", "self._record_file(number).unlink(missing_ok=True)", "pass"),
            Mutant("Parts.begin", "if inside and MANIFEST not in inside:", "if False:"),
            Mutant("Parts.begin", "check_made_with(then", "str(then"),
            Mutant("Parts.begin", "tries.unlink(missing_ok=True)", "pass"),
            Mutant("Parts.count_try", "before + 1", "before"),
            Mutant("Parts.write_bad_rows", " or path.exists()", ""),
            Mutant("Parts.remove", "self.remove_unfinished()", "pass"),
            Mutant("Parts.complete", '"complete": True', '"complete": False'),
            Mutant("Parts.of_run", "[count, made_with]", "[count]"),
            Mutant("BlockParser.__call__", "if done is not None:", "if False:"),
            Mutant("BlockParser.__call__", "if tries >= MAX_TRIES:", "if False:"),
            Mutant("BlockParser.__call__", "tally.rows = reader.rows", "pass"),
            Mutant("BlockParser._parsed", "block.sentences_before + 1", "1"),
            Mutant("parse_blocks", '"input-file": found.checksum', '"input-file": ""'),
            Mutant("parse_blocks", '"block-size": size, ', ""),
            Mutant("cluster.parse_in_blocks:locked", "if not (folder / MANIFEST).exists():", "if False:"),
            Mutant(
                "cluster.parse_in_blocks:_completed", "given.numbered and splits_prose and place.is_folder", "False"
            ),
            Mutant("cluster.parse_in_blocks:_completed", 'if job.kind == "jsonl" else job', "if False else job"),
            Mutant("cluster.parse_in_blocks:_report", 'notes = notes or record["notes"]', 'notes += record["notes"]'),
            Mutant("join_parquet", "number += len(rows)", "pass"),
            Mutant(
                "join_parquet",
                "rows.cast(schema)",
                "rows",
                equivalent="only names of list items differ, and the tested pyarrow writes those of the schema",
            ),
            Mutant("Tally.add", 'self.words += UnknownCount(record["words"], record["unknown"])', "pass"),
            Mutant("RowCount.add_all", "self.empty += other.empty", "pass"),
        ),
    ),
    Group(
        "cluster, Ray",
        ("lab/run/test_ray_jobs.py", "cluster/test_ray.py"),
        (
            Mutant("RayWorker.take", "if self._ended:", "if False:"),
            Mutant("ray_jobs:_work", "worker.stop()", "pass"),
            Mutant("Workers.number", "if most < 1:", "if False:"),
        ),
        slow=True,
    ),
)

"""Terminal output: progress, tables, trees."""

from ramify.terminal.characters import tree_format
from ramify.terminal.progress import progress_counter, reading_progress
from ramify.terminal.tables import (
    agreement_table,
    bench_table,
    collapse_lines,
    comparison_lines,
    coverage_lines,
    detail_tables,
    evalb_table,
    evaluation_table,
    failure_lines,
    head_table,
    heads_by_length,
    results_console,
    rules_table,
    run_lines,
    sweep_table,
)
from ramify.terminal.training_display import training_display

__all__ = [
    "agreement_table",
    "bench_table",
    "collapse_lines",
    "comparison_lines",
    "coverage_lines",
    "detail_tables",
    "evalb_table",
    "evaluation_table",
    "failure_lines",
    "head_table",
    "heads_by_length",
    "progress_counter",
    "reading_progress",
    "results_console",
    "rules_table",
    "run_lines",
    "sweep_table",
    "training_display",
    "tree_format",
]

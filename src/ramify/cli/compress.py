"""`ramify compress`: a trained grammar as a small model folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ramify.cli.common import Device, Input, Model, app, notes
from ramify.runtime.memory import importing

MIN_F1 = 99.9
MAX_LOSS = 0.1
"""Points of S-F1"""


@app.command(epilog="Example: ramify compress -m runs/mine --out runs/small test.trees")
def compress(
    model: Model,
    out: Annotated[Path, typer.Option(help="Folder for the compressed model.")],
    file: Annotated[
        Path | None,
        typer.Argument(help="Sentences or trees to compare both models on \\[default: drawn from the grammar]."),
    ] = None,
    input: Input = "auto",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the model in OUT.")] = False,
    device: Device = "auto",
) -> None:
    """Store a low-rank grammar as tables of float16 numbers, without the networks that computed them.

    The result is a model like any other. The command prints how much its trees differ from those of the original and,
    if FILE contains trees, the S-F1 of both models.
    """
    with importing():
        from ramify.corpus.streaming import Pause, SentenceStream
        from ramify.parser import evaluate
        from ramify.parser.compression import compare_parsers, compress, sample_sentences, save_compressed
        from ramify.parser.loading import load_single

    parser = load_single(model, device)
    sentences, has_trees = [], False
    if file is not None:
        stream = SentenceStream(file, input, parser.text_rules, parser.word_rule)
        sentences = [each for each in stream if not isinstance(each, Pause)]
        has_trees = stream.kind == "brackets"
    save_compressed(model, compress(parser), out, overwrite)
    small = load_single(out, device)
    found = compare_parsers(parser, small, sentences or sample_sentences(parser))
    before, after = (sum(path.stat().st_size for path in _files(folder)) for folder in (model, out))
    lines = [
        f"{out} has {after / 1e6:.1f} MB; {model} has {before / 1e6:.1f} MB.",
        f"Of {found.sentences:,} sentences {found.same_trees:,} have the same tree (S-F1 {found.f1:.2f} between them); "
        f"log p differs by at most {found.log_probability:.4f} nats per word.",
    ]
    lost = 0.0
    if has_trees and file is not None:
        f1 = [evaluate(each, file, with_coverage=False).scores.sentence_f1 for each in (parser, small)]
        lost = f1[0] - f1[1]
        lines.append(f"S-F1 on {file} is {f1[1]:.2f}, compared with {f1[0]:.2f} for the original model.")
    if lost > MAX_LOSS or (not has_trees and found.f1 < MIN_F1):
        lines.append("Compression changed the trees too much; use the original model.")
    for line in lines:
        notes.print(line, highlight=False, markup=False, soft_wrap=True)


def _files(folder: Path) -> list[Path]:
    """The files that a shared model needs."""
    from ramify.storage.model_files import CHECKPOINT, FILES, FOCUS

    return [folder / name for name in FILES if name not in (CHECKPOINT, FOCUS) and (folder / name).is_file()]

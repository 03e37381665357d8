"""`ramify models`: the models that come with the package."""

from __future__ import annotations

from typing import Annotated

import typer

from ramify.cli.common import app, notes
from ramify.cli.line_output import print_lines
from ramify.errors import RamifyError


@app.command(epilog="Example: ramify models en")
def models(
    name: Annotated[str | None, typer.Argument(help="Print the card of this model.")] = None,
) -> None:
    """List the bundled models, which `-m` accepts by name, or print the card of one."""
    from ramify import model_names
    from ramify.storage.model_files import CARD, FILES, read_config

    known = model_names.bundled_models()
    if name is not None:
        if name not in known:
            listed = ", ".join(known) or "none"
            raise RamifyError(f"{name}: no bundled model has this name; choose one of {listed}.")
        print_lines((model_names.BUNDLED / name / CARD).read_text(encoding="utf-8").splitlines())
        return
    if not known:
        notes.print("This installation has no bundled models.")
    for each in known:
        folder = model_names.BUNDLED / each
        title = (folder / CARD).read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")
        size = sum(path.stat().st_size for file in FILES if (path := folder / file).is_file())
        words = read_config(folder)["grammar"]["words"]
        print_lines([f"{each}: {title} ({words:,} words, {size / 1e6:.1f} MB)"])

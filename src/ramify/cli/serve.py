"""`ramify serve`: models over HTTP, and a web page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text as Line

from ramify.cli.common import Device, app, existing_models, notes
from ramify.errors import RamifyError
from ramify.runtime.memory import importing

INSTALL_HINT = (
    "ramify serve needs FastAPI, uvicorn and prometheus-client; install them with: pip install 'ramify[serve]'"
)
_LIMITS = "Limits"


@app.command(
    epilog="Example: ramify serve -m runs/mine --port 8000. Two models side by side: ramify serve -m small=runs/small "
    "-m large=runs/large."
)
def serve(
    model: Annotated[
        list[str],
        typer.Option(
            "-m",
            "--model",
            help="Model folder, or NAME=FOLDER; several are shown side by side.",
            callback=existing_models,
            show_default=False,
        ),
    ],
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 chooses a free one.")] = 8000,
    host: Annotated[
        str, typer.Option(help="Address to listen on; by default only programs on this machine can connect.")
    ] = "127.0.0.1",
    name: Annotated[
        list[str] | None,
        typer.Option(help="Host name of the server; needed with --host 0.0.0.0; can be repeated."),
    ] = None,
    text: Annotated[
        Path | None,
        typer.Option(
            help="Text or trees from which typical phrases and shares of symbols are taken; parsed at the start.",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    max_words: Annotated[int, typer.Option(min=2, help="Words per sentence.", rich_help_panel=_LIMITS)] = 200,
    max_sentences: Annotated[int, typer.Option(min=1, help="Sentences per request.", rich_help_panel=_LIMITS)] = 256,
    max_waiting: Annotated[
        int, typer.Option(min=1, help="Words in the queue; further requests are refused.", rich_help_panel=_LIMITS)
    ] = 50_000,
    device: Device = "auto",
) -> None:
    """Parse over HTTP, and explore models on a web page.

    The page shows trees and span posteriors, the meaning of each symbol, and how the parse changes if spans are
    required or forbidden. /openapi.json describes the API. Ctrl-C stops the server.
    """
    try:
        with importing():
            from ramify.parser import Parser
            from ramify.serve.glossary import parsed_text
            from ramify.serve.limits import Limits
            from ramify.serve.served_models import load_served_models
            from ramify.serve.server import serve as run
            from ramify.serve.server import trusted_hosts
    except ModuleNotFoundError as error:
        if error.name in ("fastapi", "uvicorn", "prometheus_client", "h11", "pydantic", "starlette"):
            raise RamifyError(INSTALL_HINT) from error
        raise

    limits = Limits(words=max_words, sentences=max_sentences, waiting_words=max_waiting)
    trusted_hosts(host, name or ())  # refused before models are loaded
    served_models = load_served_models(model, device)
    if text is not None:
        for served in served_models:
            if isinstance(served.parser, Parser):
                served.text = parsed_text(served.parser, text)

    def on_start(address: str) -> None:
        names = ", ".join(served_models.models)
        notes.print(Line(f"Serving {names} at {address} (Ctrl-C stops it)"), soft_wrap=True)

    run(served_models, host, port, name or (), limits, on_start)
    notes.print("Stopped; every request that was accepted has been answered.")

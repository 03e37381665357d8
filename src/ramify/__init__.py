"""Learn phrase-structure grammars with many symbols from raw text, and parse with them."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ramify.errors import RamifyError, RamifyWarning, Stopped
from ramify.version import VERSION as __version__  # noqa: N811

if TYPE_CHECKING:
    from ramify.parser import Analysis, Evaluation, Parser, evaluate, load
    from ramify.training import Settings, train

__all__ = [
    "Analysis",
    "Evaluation",
    "Parser",
    "RamifyError",
    "RamifyWarning",
    "Settings",
    "Stopped",
    "__version__",
    "evaluate",
    "load",
    "train",
]

_HOMES = {
    **dict.fromkeys(("Analysis", "Evaluation", "Parser", "evaluate", "load"), "ramify.parser"),
    **dict.fromkeys(("Settings", "train"), "ramify.training"),
}


def __getattr__(name: str) -> Any:
    # Late, so that those who only read treebanks, or ask for help, do not wait for torch.
    if name not in _HOMES:
        raise AttributeError(f"module 'ramify' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)

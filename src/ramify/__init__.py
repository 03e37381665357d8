"""Learn phrase-structure grammars with many symbols from raw text, and parse with them."""

from typing import TYPE_CHECKING

from ramify.errors import RamifyError, RamifyWarning, Stopped
from ramify.runtime.lazy import attributes_from
from ramify.version import VERSION as __version__  # noqa: N811

if TYPE_CHECKING:
    from ramify.corpus.constraints import Constraints
    from ramify.models import Model, register
    from ramify.parser import Analysis, Ensemble, Evaluation, Parser, evaluate, load
    from ramify.training import Settings, fit, train

__all__ = [
    "Analysis",
    "Constraints",
    "Ensemble",
    "Evaluation",
    "Model",
    "Parser",
    "RamifyError",
    "RamifyWarning",
    "Settings",
    "Stopped",
    "__version__",
    "evaluate",
    "fit",
    "load",
    "register",
    "train",
]


def __dir__() -> list[str]:
    return __all__


__getattr__ = attributes_from(
    __name__,
    dict.fromkeys(("Analysis", "Ensemble", "Evaluation", "Parser", "evaluate", "load"), "ramify.parser")
    | {"Constraints": "ramify.corpus.constraints"}
    | dict.fromkeys(("Model", "register"), "ramify.models")
    | dict.fromkeys(("Settings", "fit", "train"), "ramify.training"),
)

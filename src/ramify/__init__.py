"""Learn phrase-structure grammars with many symbols from raw text, and parse with them."""

from ramify.errors import RamifyError
from ramify.parser import Analysis, Evaluation, Parser, evaluate, load
from ramify.training import Settings, train
from ramify.version import VERSION

__version__ = VERSION

__all__ = [
    "Analysis",
    "Evaluation",
    "Parser",
    "RamifyError",
    "Settings",
    "__version__",
    "evaluate",
    "load",
    "train",
]

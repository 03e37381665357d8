"""Learning a grammar: settings, loop, run."""

from typing import TYPE_CHECKING

from ramify.runtime.lazy import attributes_from

if TYPE_CHECKING:
    from ramify.training.run import fit, train
    from ramify.training.settings import Settings

__all__ = ["Settings", "fit", "train"]

__getattr__ = attributes_from(
    __name__, {"Settings": "ramify.training.settings"} | dict.fromkeys(("fit", "train"), "ramify.training.run")
)

"""Learning a grammar: settings, loop, run."""

from ramify.training.run import train
from ramify.training.settings import Settings

__all__ = ["Settings", "train"]

"""A trained model as a person uses it: load, parse, score."""

from ramify.evaluation.report import Evaluation
from ramify.parser.analysis import FORMATS, Analysis
from ramify.parser.best import BEST_FORMATS, best_many
from ramify.parser.ensemble import Ensemble
from ramify.parser.evaluate import evaluate
from ramify.parser.loading import load
from ramify.parser.parser import Parser
from ramify.parser.pictures import DOCUMENTS

__all__ = [
    "BEST_FORMATS",
    "DOCUMENTS",
    "FORMATS",
    "Analysis",
    "Ensemble",
    "Evaluation",
    "Parser",
    "best_many",
    "evaluate",
    "load",
]

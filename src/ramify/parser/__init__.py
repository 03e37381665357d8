"""A trained model as users see it: load, parse, score."""

from ramify.evaluation.evaluation import Evaluation
from ramify.parser.analysis import FORMATS, Analysis
from ramify.parser.ensemble import Ensemble
from ramify.parser.k_best import BEST_FORMATS, best_many
from ramify.parser.loading import load
from ramify.parser.parser import Parser
from ramify.parser.pictures import DOCUMENTS
from ramify.parser.predictions import evaluate

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

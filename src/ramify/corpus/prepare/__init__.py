"""Converts a treebank from its distributed form to `train.trees`, `dev.trees`, `test.trees` and a manifest."""

from ramify.corpus.prepare.preparation import Prepared, prepare_treebank

__all__ = ["Prepared", "prepare_treebank"]

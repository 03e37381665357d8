"""From a treebank as it is distributed to `train.trees`, `dev.trees`, `test.trees` and a manifest. No torch here."""

from ramify.corpus.prepare.preparation import Prepared, prepare_treebank

__all__ = ["Prepared", "prepare_treebank"]

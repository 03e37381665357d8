"""The mutants, one file for each room of the package, or for several small ones."""

from tests.mutation.mutants import Group
from tests.mutation.tables import (
    applications,
    corpus,
    dependencies,
    evaluation,
    grammars,
    inference,
    lexicalised,
    parser,
    training,
)

GROUPS: tuple[Group, ...] = (
    *corpus.GROUPS,
    *dependencies.GROUPS,
    *evaluation.GROUPS,
    *grammars.GROUPS,
    *inference.GROUPS,
    *lexicalised.GROUPS,
    *parser.GROUPS,
    *training.GROUPS,
    *applications.GROUPS,
)

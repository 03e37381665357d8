"""The mutants, one file for each package or for several small ones."""

from tests.mutation.mutants import Group
from tests.mutation.tables import (
    applications,
    bracketings,
    cluster,
    corpus,
    dependencies,
    evaluation,
    grammars,
    inference,
    integrations,
    lexicalised,
    parser,
    readers,
    structformer,
    training,
)

GROUPS: tuple[Group, ...] = (
    *bracketings.GROUPS,
    *cluster.GROUPS,
    *corpus.GROUPS,
    *dependencies.GROUPS,
    *evaluation.GROUPS,
    *grammars.GROUPS,
    *inference.GROUPS,
    *integrations.GROUPS,
    *lexicalised.GROUPS,
    *parser.GROUPS,
    *readers.GROUPS,
    *structformer.GROUPS,
    *training.GROUPS,
    *applications.GROUPS,
)

"""From the content of a request to sentences that can be parsed, within the limits."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ramify.corpus.brackets import read_brackets
from ramify.corpus.cleaning import WordRule, guess_word_rule, keep_leaves
from ramify.corpus.constraints import Constraints, forbidden_spans
from ramify.corpus.reading import Corpus
from ramify.corpus.sentence import Sentence
from ramify.corpus.tree import Parse
from ramify.errors import RamifyError
from ramify.evaluation.gold import Gold
from ramify.parser.tree_parser import TreeParser
from ramify.serve.limits import Limits
from ramify.serve.schemas import GivenSentence


@dataclass(frozen=True)
class Read:
    """The sentences of a request, with gold trees if they were given."""

    sentences: list[Sentence]
    gold: Gold | None = None
    """All gold trees of two words or more, without punctuation"""


def read_request(parser: TreeParser, inputs: Sequence[str | GivenSentence], limits: Limits) -> Read:
    """Read the sentences like the model's text; refuse those beyond the limits, and contradictory constraints."""
    if len(inputs) > limits.sentences:
        raise RamifyError(
            f"{len(inputs):,} sentences are more than the {limits.sentences:,} of one request; send them in several."
        )
    items = [GivenSentence(text=each) if isinstance(each, str) else each for each in inputs]
    places = [f"sentence {number}" for number in range(1, len(items) + 1)]
    trees = [_tree(item, where) for item, where in zip(items, places, strict=True)]
    gold_parses = [tree for tree in trees if tree is not None]
    rule = parser.word_rule or guess_word_rule(gold_parses)
    sentences = []
    for item, tree, where in zip(items, trees, places, strict=True):
        sentence = _sentence(parser, item, tree, rule, where)
        words = sum(sentence.is_word)
        if words > limits.words:
            raise RamifyError(
                f"{where}: has {words:,} words, but the server accepts at most {limits.words:,}; split it."
            )
        if item.constraints is not None:
            found = Constraints.of(item.constraints.model_dump(), where)
            sentence = replace(sentence, constraints=found)
            forbidden_spans(sentence)  # refuses constraints that no tree meets
        sentences.append(sentence)
    return Read(sentences, _gold(sentences, gold_parses, rule))


def _tree(item: GivenSentence, where: str) -> Parse | None:
    if sum(each is not None for each in (item.text, item.tokens, item.gold)) != 1:
        raise RamifyError(f"{where}: give exactly one of text, tokens and gold.")
    if item.gold is None:
        return None
    trees = list(read_brackets(item.gold.splitlines(), where))
    if len(trees) != 1:
        raise RamifyError(f"{where}: gold contains {len(trees):,} trees; give one for each sentence.")
    return trees[0]


def _sentence(parser: TreeParser, item: GivenSentence, tree: Parse | None, rule: WordRule, where: str) -> Sentence:
    if tree is not None:
        return replace(Sentence.from_tokens(tree.words, rule.word_mask(tree.tags), where), tree=tree)
    if item.tokens is not None:
        for token in item.tokens:
            if len(token.split()) != 1:
                raise RamifyError(f"{where}: {token[:40]!r} is not one token; give tokens without white space.")
        return parser.text_rules.sentence_of(item.tokens, where)
    return parser.text_rules.sentence(item.text or "", where)


def _gold(sentences: Sequence[Sentence], parses: list[Parse], rule: WordRule) -> Gold | None:
    """The trees as a treebank, which has the rule for words, the lengths and the checksum of a signature."""
    text = "\n".join(" ".join(parse.words) for parse in parses)
    checksum = hashlib.sha256(text.encode()).hexdigest()
    cleaned = {
        place: keep_leaves(sentence.tree, sentence.is_word)
        for place, sentence in enumerate(sentences)
        if sentence.tree is not None and sum(sentence.is_word) > 1
    }
    if not cleaned:
        return None
    return Gold(Corpus(parses, "brackets", "request", checksum), rule, [*cleaned.values()], [*cleaned])

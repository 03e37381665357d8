"""Sentences are drawn from a grammar in proportion to their probabilities."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pytest
import torch

from ramify.corpus.vocabulary import Vocabulary
from ramify.errors import RamifyError
from ramify.models import CPCFG, NPCFG, TDPCFG, Grammar, TableGrammar
from ramify.models.generation import Sampler
from ramify.parser import Parser
from ramify.structures.low_rank import LowRankRules
from tests.structures.random_rules import inside

WORDS = ["<unk>", "a", "b"]


def small(family: type[Grammar], **more: int) -> Grammar:
    torch.manual_seed(0)
    return family(nonterminals=2, preterminals=2, words=len(WORDS), **more)


@pytest.mark.parametrize("family", [TDPCFG, NPCFG])
def test_short_sentences_come_as_often_as_they_are_probable(family):
    """Pearson's chi-square over all sentences of two and three words, at a level of one in a thousand."""
    grammar = small(family, rank=3) if family is TDPCFG else small(family, gain=3)
    probability = {}
    for length in (2, 3):
        sentences = list(product(range(len(WORDS)), repeat=length))
        found = inside(grammar(torch.tensor(sentences), torch.full((len(sentences),), length)))
        probability |= dict(zip(sentences, found.exp().tolist(), strict=True))
    sampler, draws = Sampler(grammar, np.random.default_rng(0)), 5000
    seen: Counter[tuple[int, ...]] = Counter()
    while seen.total() < draws:
        if (drawn := sampler.draw(3)) is not None:
            seen[tuple(drawn.word_ids.tolist())] += 1
    total = sum(probability.values())
    expected = {sentence: draws * p / total for sentence, p in probability.items()}
    assert min(expected.values()) > 5
    chi_square = sum((seen[sentence] - mean) ** 2 / mean for sentence, mean in expected.items())
    freedom = len(expected) - 1
    assert chi_square < freedom * (1 - 2 / (9 * freedom) + 3.09 * (2 / (9 * freedom)) ** 0.5) ** 3


@pytest.mark.parametrize("family", [TDPCFG, NPCFG, CPCFG])
def test_what_is_generated_is_a_tree_of_the_grammar(family):
    grammar = small(family, rank=3) if family is TDPCFG else small(family, embedding=8)
    parser = Parser(grammar, Vocabulary(WORDS))
    parses = list(parser.generate(20, seed=1, max_length=6))
    assert len(parses) == 20
    for parse in parses:
        assert 2 <= len(parse) <= 6
        assert len(parse.labels) == len(parse) - 1
        assert parse.to_nltk().leaves() == list(parse.words)
        assert set(parse.words) <= set(WORDS)
        assert set(parse.labels) <= {"NT-0", "NT-1"}
        assert parse.spans.tolist() == sorted(parse.spans.tolist(), key=lambda s: (s[0], -s[1]))
    assert list(parser.generate(20, seed=1, max_length=6)) == parses
    assert list(parser.generate(20, seed=2, max_length=6)) != parses


def test_a_simple_grammar_draws_the_children_of_each_nonterminal_by_its_own_component():
    """NT-0 -> NT-1 T-0 and NT-1 -> T-1 T-0, T-0 -> a and T-1 -> b: there is one sentence, `b a a`."""
    children = torch.zeros(2, 4, 2)  # left and right, child, parent
    children[0, 1, 0] = children[1, 2, 0] = children[0, 3, 1] = children[1, 2, 1] = 1
    shared = LowRankRules(torch.tensor([1.0, 0.0]).log(), None, children[0].log(), children[1].log())
    grammar = TableGrammar(shared, torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]).log())
    drawn = Sampler(grammar, np.random.default_rng(0)).draw(5)
    assert (drawn.word_ids.tolist(), drawn.tags.tolist()) == ([2, 1, 1], [1, 0, 0])
    assert (drawn.spans.tolist(), drawn.labels.tolist()) == ([[0, 3], [0, 2]], [0, 1])


def test_grammars_that_cannot_be_sampled_are_refused(monkeypatch):
    parser = Parser(small(NPCFG), Vocabulary(WORDS))
    with pytest.raises(RamifyError, match="max_length is 1"):
        next(parser.generate(1, max_length=1))
    monkeypatch.setattr("ramify.parser.parser.MAX_TRIES", 0)
    with pytest.raises(RamifyError, match="raise max_length"):
        next(parser.generate(1))

"""The log-space reference compared with enumeration of all trees."""

from __future__ import annotations

import math

import nltk
import pytest
import torch

from ramify.corpus.pcfg import BinaryGrammar
from ramify.parser import Parser
from ramify.structures.low_rank import LowRankPCFG
from tests.structures.brute_force import derivations, tree_weights
from tests.structures.random_rules import inside, marginals, random_rules, random_scores


@pytest.mark.parametrize(("n", "p", "d"), [(3, 4, 5), (1, 1, 1), (5, 2, 3), (2, 3, 9), (4, 3, None)])
@pytest.mark.parametrize("scored", [False, True])
def test_every_sentence_of_a_ragged_batch_equals_enumeration(n, p, d, scored):
    rules = random_rules(n, p, d, lengths=[8, 1, 2, 3, 4, 5, 6, 7])
    scores = random_scores(rules).detach() if scored else torch.zeros(8, 9, 9, dtype=torch.float64)
    log_z = inside(rules, scores, "reference")
    found = marginals(rules, scores, "reference")
    for b, length in enumerate(rules.lengths.tolist()):
        weights = tree_weights(rules, b, scores)
        if length == 1:
            assert log_z[b] == -torch.inf
            assert not found.spans[b].any()
            continue
        total = torch.stack(list(weights.values())).sum()
        torch.testing.assert_close(log_z[b], total.log())
        expected = torch.zeros_like(scores[b])
        for spans, weight in weights.items():
            for i, j in spans:
                expected[i, j] += (weight / total).detach()
        torch.testing.assert_close(found.spans[b], expected)


@pytest.mark.parametrize("rank", [4, None])
def test_labels_and_tags_equal_enumeration_of_all_derivations(rank):
    rules = random_rules(2, 3, rank, lengths=[4, 3, 2])
    found = marginals(rules, engine="reference")
    for b, length in enumerate(rules.lengths.tolist()):
        labels: dict[tuple[int, int, int], float] = {}
        tags: dict[tuple[int, int], float] = {}
        total = 0.0
        for derivation in derivations(rules, b):
            total += derivation.probability
            for (i, j), label in derivation.labels.items():
                labels[i, j, label] = labels.get((i, j, label), 0) + derivation.probability
            for i, tag in enumerate(derivation.tags):
                tags[i, tag] = tags.get((i, tag), 0) + derivation.probability
        assert found.log_partition[b].item() == pytest.approx(math.log(total))
        for i in range(length):
            for j in range(i + 2, length + 1):
                best = max(range(2), key=lambda a, i=i, j=j: labels[i, j, a])
                assert found.best_label[b, i, j] == best
                assert found.best_label_posterior[b, i, j].item() == pytest.approx(labels[i, j, best] / total)
            best = max(range(3), key=lambda t, i=i: tags[i, t])
            assert found.best_tag[b, i] == best
            assert found.best_tag_posterior[b, i].item() == pytest.approx(tags[i, best] / total)


@pytest.mark.parametrize("length", range(2, 12))
def test_with_all_weights_one_the_trees_are_counted(length):
    zeros = torch.zeros(1, dtype=torch.float64)
    rules = LowRankPCFG(
        zeros, zeros[:, None], zeros.expand(2)[:, None], zeros.expand(2)[:, None],
        torch.zeros(1, length, 1, dtype=torch.float64), torch.tensor([length]),
    )  # fmt: skip
    catalan = math.comb(2 * (length - 1), length - 1) // length
    for engine in ("reference", "scaled", "compiled"):
        assert inside(rules, engine=engine).exp().item() == pytest.approx(catalan)


GRAMMAR = nltk.PCFG.fromstring(
    """
    S -> NP VP [0.9] | S CONJ S [0.0] | VP NP [0.1]
    NP -> DT NN [0.5] | NP PP [0.2] | 'dogs' [0.2] | 'cats' [0.1]
    VP -> V NP [0.6] | VP PP [0.3] | 'bark' [0.1]
    PP -> P NP [1.0]
    DT -> 'the' [0.7] | 'a' [0.3]
    NN -> 'dog' [0.5] | 'cat' [0.3] | 'park' [0.2]
    V -> 'saw' [0.8] | 'bark' [0.2]
    P -> 'in' [0.6] | 'with' [0.4]
    CONJ -> 'and' [1.0]
""".replace(" | S CONJ S [0.0]", "")
)


@pytest.mark.parametrize(
    "sentence",
    [
        "the dog saw a cat in the park with cats",
        "dogs bark",
        "dogs saw cats with a dog in a park",
        "a cat bark cats in the dog with dogs",
    ],
)
def test_an_nltk_grammar_gives_the_probability_of_nltk(sentence):
    words = sentence.split()
    nltk_probability = sum(tree.prob() for tree in nltk.InsideChartParser(GRAMMAR).parse(words))
    assert nltk_probability > 0
    parser = Parser.from_binary_grammar(BinaryGrammar.from_nltk(GRAMMAR))
    assert parser.grammar.rank == len(BinaryGrammar.from_nltk(GRAMMAR).binary)
    assert math.exp(next(parser.log_probabilities([words]))) == pytest.approx(nltk_probability, rel=1e-12)

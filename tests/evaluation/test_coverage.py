"""Unknown words: the likelihood of text with words outside the vocabulary, compared with brute force."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch

from ramify.corpus.spelling import Spelling
from ramify.corpus.vocabulary import UnknownCount, Vocabulary
from ramify.decoding.decoders import log_probabilities
from ramify.evaluation.coverage import Coverage, Likelihood, are_comparable
from ramify.evaluation.scores import perplexity
from ramify.models import FAMILIES, Grammar
from ramify.models.batches import pad
from ramify.parser.parser import Parser
from tests.structures.random_rules import inside

WORDS = ("<unk>", "the", "dog", "barks")


def grammar_of(family: str, words: int = len(WORDS)) -> Grammar:
    torch.manual_seed(3)
    sizes = {"nonterminals": 3, "preterminals": 4, "words": words}
    return FAMILIES[family](**sizes, **({} if family in ("n-pcfg", "c-pcfg", "em-pcfg", "sn-pcfg") else {"rank": 5}))


@pytest.mark.parametrize("family", ["tn-pcfg", "n-pcfg", "sn-pcfg"])
@pytest.mark.parametrize("sentence", [[0, 1], [2, 0, 3, 0], [0, 0, 0], [1, 2, 3]])
def test_an_open_place_sums_over_all_words(family: str, sentence: list[int]) -> None:
    grammar = grammar_of(family)
    choices = [range(len(WORDS)) if word == 0 else [word] for word in sentence]
    fillings = [np.array(filling) for filling in product(*choices)]
    expected = np.logaddexp.reduce(log_probabilities(grammar, fillings)[0])
    # In a batch with a longer sentence, so there is padding, which also has the number of the unknown word.
    found, _ = log_probabilities(grammar, [np.array(sentence), np.array([1, 0, 2, 3, 3, 1])], unknown_open=True)
    assert found[0] == pytest.approx(expected, abs=1e-5)


def test_open_places_do_not_change_z_of_a_compound_grammar() -> None:
    grammar = grammar_of("c-pcfg")
    sentence = np.array([1, 0, 3])
    with torch.no_grad():
        word_ids, lengths = pad([sentence], torch.device("cpu"))
        z, cost = grammar.encoder(word_ids, lengths, None)
        filled = [np.array([1, word, 3]) for word in range(len(WORDS))]
        of_each = [float(inside(grammar.distribution_at(z, *pad([words], torch.device("cpu"))))) for words in filled]
    [found], _ = log_probabilities(grammar, [sentence], unknown_open=True)
    assert found == pytest.approx(np.logaddexp.reduce(of_each) - float(cost), abs=1e-5)


@pytest.fixture(scope="module")
def parser() -> Parser:
    return Parser(grammar_of("tn-pcfg"), Vocabulary(WORDS), spelling=Spelling.learnt_from(["the", "dog", "barks"]))


def test_likelihoods_of_sentences(parser: Parser) -> None:
    sentences = ["the Dog barks".split(), "The cat barks".split(), "cats Bark".split(), ["dog"]]
    found = [scored.likelihood for scored in parser.score_many(sentences)]
    assert [each.count for each in found] == [
        UnknownCount(3, 0), UnknownCount(3, 1), UnknownCount(2, 2), UnknownCount(1, 0)
    ]  # fmt: skip
    assert [each.log_probability for each in found] == list(parser.log_probabilities(sentences))
    assert found[0].known_log_probability == found[0].log_probability
    assert found[1].known_log_probability > found[1].log_probability
    assert found[0].spelling_log_probability == 0
    spelling = parser.spelling
    assert spelling is not None
    assert found[2].spelling_log_probability == pytest.approx(
        spelling.log_probability("cats") + spelling.log_probability("bark")
    )


def test_the_three_perplexities(parser: Parser) -> None:
    sentences = ["the dog barks".split(), "The cat barks".split(), "cats Bark".split()]
    each = [scored.likelihood for scored in parser.score_many(sentences)]
    total = sum(each, Likelihood())
    log_p = [one.log_probability for one in each]
    assert total.perplexity == pytest.approx(perplexity(log_p, [3, 3, 2]))
    spelt = sum(parser.spelling.log_probability(word) for word in ("cat", "cats", "bark"))
    assert total.perplexity_with_spelling == pytest.approx(math.exp(-(sum(log_p) + spelt) / (8 + 3)))
    known = sum(one.known_log_probability for one in each)
    assert total.perplexity_of_known_words == pytest.approx(math.exp(-known / (5 + 3)))


def test_without_a_spelling_model_there_is_no_perplexity_with_spelling(parser: Parser) -> None:
    bare = Parser(parser.grammar, parser.vocabulary)
    total = sum((scored.likelihood for scored in bare.score_many([["a", "dog"]])), Likelihood())
    assert total.perplexity_with_spelling is None
    assert Coverage.of(total, bare.vocabulary).perplexity_with_spelling is None


def test_the_event_does_not_depend_on_the_vocabulary() -> None:
    """A known word, and <unk> with its spelling: if both have the same probability, so has the sentence."""
    spelling = Spelling.learnt_from(["dog"])
    likelihoods = []
    for unknown in (0, 1):
        spelt = unknown * spelling.log_probability("dog")
        likelihoods.append(Likelihood(1, UnknownCount(2, unknown), -20.0 - spelt, -5.0, spelt))
    first, second = (each.perplexity_with_spelling for each in likelihoods)
    assert first == pytest.approx(second)
    assert likelihoods[0].perplexity > likelihoods[1].perplexity


def test_the_signature_has_size_rate_and_words() -> None:
    likelihood = Likelihood(2, UnknownCount(200, 25), -100.0, -80.0, -30.0)
    found = Coverage.of(likelihood, Vocabulary(WORDS))
    assert (found.vocabulary, found.words, found.unknown, found.unknown_rate) == (4, 200, 25, 12.5)
    assert "vocabulary 4 " in found.perplexity_signature
    assert "unknown 12.50 %" in found.perplexity_signature
    reordered = Coverage.of(likelihood, Vocabulary(("<unk>", "dog", "the", "barks")))
    other = Coverage.of(likelihood, Vocabulary(("<unk>", "dog", "the", "bark")))
    assert are_comparable([found, reordered])
    assert not are_comparable([found, other])
    assert not are_comparable([found, None])
    everything_known = [replace(each, unknown=0) for each in (found, other)]
    assert are_comparable(everything_known)
    assert not are_comparable([*everything_known, found])

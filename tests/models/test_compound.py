"""Compound grammars, low-rank and dense: separate rules for every sentence."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from ramify.models import CPCFG, FAMILIES, NPCFG, TNPCFG, Grammar
from ramify.models.compound import SentenceEncoder
from ramify.models.networks import SymbolLayer, SymbolNetwork
from ramify.structures.dense import DensePCFG
from ramify.structures.low_rank import LowRankPCFG
from tests.structures.random_rules import inside, marginals

WORD_IDS = torch.arange(12).reshape(2, 6)
LENGTHS = torch.tensor([6, 4])


def compound(family: str) -> Grammar:
    torch.manual_seed(0)
    sizes = {"nonterminals": 3, "preterminals": 4, "words": 20, "embedding": 8}
    if family == "tn-pcfg":
        return TNPCFG(**sizes, rank=5, latent=6)
    return FAMILIES[family](**sizes, latent=6)


families = pytest.mark.parametrize("family", ["tn-pcfg", "c-pcfg", "sc-pcfg"])


def test_the_divergence_is_the_one_torch_knows():
    torch.manual_seed(0)
    encoder = SentenceEncoder(20, 6, size=8)
    states, _ = encoder.states(encoder.embedding(WORD_IDS))
    mean, log_variance = encoder.parameters_of_z(states.amax(1)).chunk(2, -1)
    found_mean, divergence = encoder(WORD_IDS, torch.tensor([6, 6]), None)
    torch.testing.assert_close(found_mean, mean)
    q = torch.distributions.Normal(mean, (0.5 * log_variance).exp())
    expected = torch.distributions.kl_divergence(q, torch.distributions.Normal(0.0, 1.0)).sum(-1)
    torch.testing.assert_close(divergence, expected)
    draws = torch.stack([encoder(WORD_IDS, LENGTHS * 0 + 6, torch.Generator().manual_seed(i))[0] for i in range(2000)])
    torch.testing.assert_close(draws.mean(0), mean, rtol=0, atol=0.1)
    torch.testing.assert_close(draws.std(0), q.stddev, rtol=0.1, atol=0)


@pytest.mark.parametrize("cores", [1, 2])
def test_the_two_directions_have_the_gradients_of_torchs_bidirectional_lstm(cores, on_cores):
    torch.manual_seed(0)
    encoder, lengths = SentenceEncoder(20, 6, size=8).double(), torch.tensor([6, 6])
    states, _ = encoder.states(encoder.embedding(WORD_IDS))
    expected = encoder.parameters_of_z(states.amax(1))[:, :6]
    factors = torch.linspace(-1, 2, expected.numel(), dtype=torch.float64).view_as(expected)
    parameters = list(encoder.parameters())
    expected_gradients = torch.autograd.grad((expected * factors).sum(), parameters)
    on_cores(cores)
    found, _ = encoder(WORD_IDS, lengths, None)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    gradients = torch.autograd.grad((found * factors).sum(), parameters)
    torch.testing.assert_close(gradients, expected_gradients, rtol=1e-10, atol=1e-12)


@families
def test_gradients_are_the_same_on_two_cores(family, on_cores):
    grammar = compound(family)

    def gradients() -> list[torch.Tensor | None]:
        distribution, cost = grammar.with_cost(WORD_IDS, torch.tensor([6, 6]), torch.Generator().manual_seed(0))
        grammar.zero_grad()
        (inside(distribution) - cost).sum().backward()
        return [parameter.grad for parameter in grammar.parameters()]

    expected = gradients()
    on_cores(2)
    torch.testing.assert_close(gradients(), expected)


def test_z_is_appended_to_each_symbol():
    torch.manual_seed(0)
    layers = [SymbolLayer(6, 2, 5), torch.nn.ReLU(), torch.nn.Linear(5, 3)]
    symbols, z = torch.randn(4, 6), torch.randn(2, 2)
    joined = torch.stack([torch.cat([symbols, each.expand(4, 2)], -1) for each in z])
    x = layers[2](torch.nn.functional.linear(joined, layers[0].weight, layers[0].bias).relu())
    torch.testing.assert_close(SymbolNetwork(*layers)(symbols, z), x)


@families
def test_padding_does_not_matter(family):
    grammar = compound(family)
    other = WORD_IDS.clone()
    other[1, 4:] = 0
    for given, expected in zip(grammar.with_cost(other, LENGTHS), grammar.with_cost(WORD_IDS, LENGTHS), strict=True):
        if isinstance(given, torch.Tensor):
            torch.testing.assert_close(given, expected)
        else:
            torch.testing.assert_close(inside(given), inside(expected))


@families
def test_every_sentence_has_its_own_rules_and_they_sum_to_one(family):
    rules = compound(family)(WORD_IDS, LENGTHS)
    assert rules.per_sentence
    torch.testing.assert_close(rules.root.exp().sum(-1), torch.ones(2))
    if isinstance(rules, LowRankPCFG):
        head = torch.eye(3)[None] if rules.head is None else rules.head.exp()
        tensor = torch.einsum("zal,zbl,zcl->zabc", head.expand(2, -1, -1), rules.left.exp(), rules.right.exp())
    else:
        tensor = rules.binary.exp()
    torch.testing.assert_close(tensor.sum((2, 3)), torch.ones(2, 3))
    assert not torch.allclose(tensor[0], tensor[1])
    written_out = DensePCFG(rules.root, tensor.log(), rules.words, rules.lengths)
    scores = torch.randn(2, 7, 7)
    torch.testing.assert_close(inside(rules, scores), inside(written_out, scores))
    expected = marginals(written_out, scores)
    for name, value in marginals(rules, scores).tensors().items():
        torch.testing.assert_close(value, getattr(expected, name))


@families
def test_a_batch_equals_its_sentences_one_by_one(family):
    grammar = compound(family)
    rules, cost = grammar.with_cost(WORD_IDS, LENGTHS)
    together = inside(rules) - cost
    for b, length in enumerate(LENGTHS.tolist()):
        alone, cost = grammar.with_cost(WORD_IDS[b : b + 1, :length], LENGTHS[b : b + 1])
        torch.testing.assert_close(inside(alone) - cost, together[b : b + 1])


@families
def test_a_sample_is_the_same_for_the_same_noise(family):
    grammar = compound(family)
    first, second, third = (
        grammar.with_cost(WORD_IDS, LENGTHS, torch.Generator().manual_seed(seed))[0].words for seed in (1, 1, 2)
    )
    assert torch.equal(first, second)
    assert not torch.equal(first, third)


@families
def test_the_tables_are_the_rules_at_the_mean_of_the_prior(family):
    grammar = compound(family)
    z = torch.zeros(2, 6)
    expected = replace(
        grammar(WORD_IDS, LENGTHS), **grammar.rules(z).rule_tables(), words=grammar.emission(WORD_IDS, z)
    )
    torch.testing.assert_close(inside(grammar.tabulated()(WORD_IDS, LENGTHS)), inside(expected))


def test_an_n_pcfg_with_a_latent_vector_is_a_c_pcfg():
    torch.manual_seed(0)
    expected = CPCFG(3, 4, 20, 8).state_dict()
    torch.manual_seed(0)
    found = NPCFG(3, 4, 20, 8, latent=64).state_dict()
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], value) for name, value in expected.items())

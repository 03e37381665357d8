"""The most probable rules and words, compared with the whole tables."""

from __future__ import annotations

import nltk
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ramify.corpus.pcfg import BinaryGrammar
from ramify.models import (
    CPCFG,
    EMPCFG,
    NPCFG,
    SCPCFG,
    SNPCFG,
    TDPCFG,
    TNPCFG,
    Grammar,
    HolPCFG,
    TableGrammar,
)
from ramify.models import rule_lookup as lookup_module
from ramify.models.rule_lookup import RuleLookup, strongest_words
from ramify.parser import Parser
from ramify.structures.dense import DenseRules
from ramify.structures.low_rank import LowRankRules

SIZES = {"nonterminals": 4, "preterminals": 6, "words": 30}
FAMILIES = {
    "tn-pcfg": lambda: TNPCFG(rank=5, embedding=8, gain=4.0, **SIZES),
    "td-pcfg": lambda: TDPCFG(rank=5, **SIZES),
    "sn-pcfg": lambda: SNPCFG(embedding=8, gain=4.0, **SIZES),
    "sc-pcfg": lambda: SCPCFG(embedding=8, gain=4.0, latent=3, **SIZES),
    "hol-pcfg": lambda: HolPCFG(embedding=8, **SIZES),
    "n-pcfg": lambda: NPCFG(embedding=8, gain=4.0, **SIZES),
    "c-pcfg": lambda: CPCFG(embedding=8, gain=4.0, latent=3, **SIZES),
    "em-pcfg": lambda: EMPCFG(**SIZES),
}


@pytest.fixture(params=FAMILIES)
def grammar(request: pytest.FixtureRequest) -> Grammar:
    torch.manual_seed(1)
    return FAMILIES[request.param]()


def tensor_of(grammar: Grammar) -> torch.Tensor:
    """(n, m, m) the probabilities of all rules, from the whole table."""
    shared = grammar.tabulated().rules()
    if isinstance(shared, DenseRules):
        return shared.binary.exp()
    head = torch.eye(grammar.nonterminals) if shared.head is None else shared.head.exp()
    return torch.einsum("al,bl,cl->abc", head, shared.left.exp(), shared.right.exp())


def test_strongest_rules_of_every_family(grammar):
    tensor, lookup = tensor_of(grammar), RuleLookup(grammar)
    for parent, matrix in enumerate(tensor):
        for count in (1, 7, 1000):
            found = lookup.strongest(parent, count, block=3)
            expected = matrix.flatten().sort(descending=True).values[:count]
            torch.testing.assert_close(torch.tensor([rule.probability for rule in found]), expected)
            assert all(float(matrix[r.left, r.right]) == pytest.approx(r.probability, rel=1e-4) for r in found)


def test_the_cosine_of_rules_is_that_of_the_whole_tensor(grammar):
    rows = tensor_of(grammar).flatten(1).double()
    pairs = [
        float(rows[a] @ rows[b] / (rows[a].norm() * rows[b].norm()))
        for a in range(grammar.nonterminals)
        for b in range(a)
    ]
    assert min(pairs) > 0
    assert RuleLookup(grammar).cosine() == pytest.approx(sum(pairs) / len(pairs), rel=1e-5)


@pytest.mark.parametrize("block", [1, 2, 5, 100])
def test_the_cosine_of_rules_does_not_depend_on_the_block(block):
    torch.manual_seed(2)
    shared = TDPCFG(rank=5, **SIZES).double().rules()
    assert shared.rule_cosine(block) == pytest.approx(super(LowRankRules, shared).rule_cosine(), rel=1e-12)
    simple = SNPCFG(embedding=8, **SIZES).double().rules()
    assert simple.rule_cosine(block) == pytest.approx(super(LowRankRules, simple).rule_cosine(), rel=1e-12)


def test_equal_rules_and_disjoint_rules():
    def cosine(binary: list[tuple[int, int, int, float]], nonterminals: int) -> float | None:
        words = [(0, 0, 1.0)]
        return RuleLookup(
            TableGrammar.from_binary_rules({0: 1.0}, binary, words, nonterminals=nonterminals, preterminals=1, words=1)
        ).cosine()

    assert cosine([(0, 2, 2, 1.0), (1, 2, 2, 1.0)], 2) == pytest.approx(1)
    assert cosine([(0, 2, 2, 1.0), (1, 2, 0, 1.0)], 2) == pytest.approx(0)
    assert cosine([(0, 2, 2, 0.5), (0, 2, 0, 0.5), (1, 2, 0, 1.0)], 2) == pytest.approx(0.5**0.5)
    assert cosine([(0, 2, 2, 0.5), (0, 2, 0, 0.5)], 2) is None  # the other nonterminal has no rules
    assert cosine([(0, 1, 1, 1.0)], 1) is None
    binary = torch.full((3, 4, 4), -torch.inf)
    binary[0, 3, 3] = binary[2, 3, 3] = 0.0
    assert DenseRules(torch.zeros(3), binary).rule_cosine() == pytest.approx(1)  # of the two that have rules


def test_a_grammar_of_too_many_components_is_not_compared(monkeypatch):
    monkeypatch.setattr(lookup_module, "MAX_COMPARED", 4)
    assert RuleLookup(TDPCFG(rank=5, **SIZES)).cosine() is None
    assert RuleLookup(TDPCFG(rank=4, **SIZES)).cosine() is not None


def test_weights_of_children(grammar):
    weights = torch.rand(10)
    weights[:4] = 0  # no nonterminals
    matrix = tensor_of(grammar)[2] * weights[:, None] * weights
    found = RuleLookup(grammar).strongest(2, 50, weights, block=2)
    assert len(found) == 36
    torch.testing.assert_close(
        torch.tensor([rule.probability for rule in found]), matrix.flatten().sort(descending=True).values[:36]
    )


@settings(max_examples=40)
@given(
    n=st.integers(1, 30), p=st.integers(1, 30), d=st.integers(1, 9), spread=st.floats(0, 20), seed=st.integers(0, 10**6)
)
def test_rules_that_are_skipped_are_not_stronger(n, p, d, spread, seed):
    """Flat rules need more comparisons, sharp ones fewer."""
    torch.manual_seed(seed)
    grammar = TDPCFG(n, p, d, 3)
    with torch.no_grad():
        for parameter in grammar.parameters():
            parameter *= spread
    matrix = tensor_of(grammar)[0]
    found = RuleLookup(grammar).strongest(0, 5, block=4)
    expected = matrix.flatten().sort(descending=True).values[:5]
    torch.testing.assert_close(torch.tensor([rule.probability for rule in found]), expected[expected > 0])


def test_words_of_every_family(grammar, monkeypatch):
    table = grammar.tabulated().emission_table.exp()
    for block in (2**26, 1):  # all words together, and three at a time
        monkeypatch.setattr(lookup_module, "BLOCK_NUMBERS", block)
        found = strongest_words(grammar, 3)
        assert len(found) == 6
        for tag, pairs in enumerate(found):
            torch.testing.assert_close(
                torch.tensor([p for _, p in pairs]), table[:, tag].sort(descending=True).values[:3]
            )
            assert all(float(table[word, tag]) == pytest.approx(p, rel=1e-4) for word, p in pairs)
    assert [len(pairs) for pairs in strongest_words(grammar, 99)] == [30] * 6


def parser_of(rules: str) -> Parser:
    return Parser.from_binary_grammar(BinaryGrammar.from_nltk(nltk.PCFG.fromstring(rules)))


def test_a_grammar_from_rules_has_only_these_rules():
    parser = parser_of("S -> A B [0.25] | B B [0.75]\nA -> 'a' [1.0]\nB -> 'b' [1.0]")
    assert parser.strongest_rules("S", 10) == [("S", "B", "B", 0.75), ("S", "A", "B", 0.25)]


def test_expected_uses_computed_by_hand():
    # Each S becomes 0.8 others on average: 1 / (1 - 0.8) = 5 of them, and one word more.
    uses = parser_of("S -> S S [0.4] | A B [0.6]\nA -> 'a' [1.0]\nB -> 'b' [1.0]").rules.expected_uses()
    assert uses is not None
    assert uses.nonterminals.tolist() == pytest.approx([5])
    assert uses.preterminals.tolist() == pytest.approx([3, 3])


@pytest.mark.parametrize("share", [0.499999, 0.5, 0.6])  # the first has 500,000 words, or is infinite after rounding
def test_infinite_derivations_have_no_expected_uses(share):
    rules = f"S -> S S [{share}] | A B [{1 - share}]\nA -> 'a' [1.0]\nB -> 'b' [1.0]"
    assert parser_of(rules).rules.expected_uses() is None


def test_rounding_does_not_make_derivations_end():
    rules = "S -> S S [0.5] | A A [0.5]\nX -> A S [1.0]\nA -> 'a' [1.0]"
    assert parser_of(rules).rules.expected_uses() is None
    assert parser_of("S -> S A [1.0]\nA -> 'a' [1.0]").rules.expected_uses() is None  # no rounding: singular
    flat = TDPCFG(50, 50, 5, 3)  # as many of either kind, all alike: each nonterminal has one more
    with torch.no_grad():
        for parameter in flat.parameters():
            parameter.zero_()
    assert RuleLookup(flat).expected_uses() is None


def test_rarely_reached_symbols_must_have_finite_derivations():
    rules = "S -> A A [0.999999999999] | X A [0.000000000001]\nX -> X X [0.9] | A A [0.1]\nA -> 'a' [1.0]"
    assert parser_of(rules).rules.expected_uses() is None


def test_unreachable_symbols_do_not_count():
    # X has infinite derivations, but no sentence contains it.
    rules = "S -> A B [1.0]\nX -> X X [0.9] | A B [0.1]\nA -> 'a' [1.0]\nB -> 'b' [1.0]"
    uses = parser_of(rules).rules.expected_uses()
    assert uses is not None
    assert str(uses.nonterminals.tolist()) == "[1.0, 0.0]"  # not -0.0


def test_expected_uses_are_the_sum_over_ever_deeper_derivations():
    torch.manual_seed(2)
    grammar = TDPCFG(rank=5, **SIZES).double()
    with torch.no_grad():
        grammar.left[:4] -= 2  # more words, so that derivations end soon enough
    tensor, tables = tensor_of(grammar), grammar.tabulated()
    children = tensor.sum(1) + tensor.sum(2)
    layer = total = torch.cat([tables.root.exp(), torch.zeros(6, dtype=torch.float64)])
    for _ in range(2000):
        layer = layer[:4] @ children
        total = total + layer
    written_out = TableGrammar(DenseRules(tables.root, tensor.log()), tables.emission_table)
    for given_as in (grammar, written_out):
        found = RuleLookup(given_as).expected_uses()
        assert found is not None
        torch.testing.assert_close(torch.cat(found), total)
        assert float(found.preterminals.sum()) == pytest.approx(float(found.nonterminals.sum()) + 1)

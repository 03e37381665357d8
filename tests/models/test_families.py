from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ramify.models import CPCFG, FAMILIES, NPCFG, SNPCFG, TDPCFG, TNPCFG, Grammar, TableGrammar
from ramify.models.rule_lookup import RuleLookup
from ramify.models.td_pcfg import normalise_logits
from ramify.structures.dense import DensePCFG
from ramify.structures.low_rank import LowRankRules
from ramify.structures.pcfg import PCFG
from tests.models.normalisation import normalisation_error
from tests.structures.random_rules import inside, marginals

COMPOUND = ("c-pcfg", "sc-pcfg")
GRAMMARS = [name for name, family in FAMILIES.items() if issubclass(family, Grammar)]
sizes = st.integers(1, 7)


def small(family: str, **more: int) -> Grammar:
    arguments = {"nonterminals": 4, "preterminals": 6, "words": 30, **more}
    if family in ("tn-pcfg", "td-pcfg"):
        arguments["rank"] = 5
    return FAMILIES[family](**arguments)


def dense(shared: LowRankRules) -> torch.Tensor:
    if shared.head is None:
        return torch.einsum("ba,ca->abc", shared.left.exp(), shared.right.exp())
    return torch.einsum("al,bl,cl->abc", shared.head.exp(), shared.left.exp(), shared.right.exp())


@given(n=sizes, p=sizes, d=sizes, sharpness=st.floats(0, 30), seed=st.integers(0, 10**6))
def test_theorem_1_the_rule_tensor_is_normalised_whatever_the_logits(n, p, d, sharpness, seed):
    generator = torch.Generator().manual_seed(seed)
    shapes = ((n,), (n, d), (n + p, d), (n + p, d))
    logits = [torch.randn(shape, generator=generator, dtype=torch.float64) * sharpness for shape in shapes]
    tensor = dense(normalise_logits(*logits))
    assert (tensor >= 0).all()
    assert (tensor <= 1 + 1e-12).all()
    torch.testing.assert_close(tensor.sum((1, 2)), torch.ones(n, dtype=torch.float64))


@pytest.mark.parametrize("family", GRAMMARS)
def test_every_family_sums_to_one(family):
    torch.manual_seed(0)
    grammar = small(family)
    assert max(normalisation_error(grammar).values()) < 1e-5


def test_a_grammar_that_does_not_sum_to_one_is_noticed():
    torch.manual_seed(0)
    tables = TDPCFG(3, 4, 5, 20).tabulated()
    tables.left[0, 0] += 0.5
    error = normalisation_error(tables)
    assert error.pop("left (V)") > 0.01
    assert max(error.values()) < 1e-5


def test_a_component_that_no_nonterminal_uses_need_not_sum_to_one():
    torch.manual_seed(0)
    shared = TDPCFG(3, 4, 5, 20).tabulated().rules()
    head = torch.where(torch.arange(5) == 2, -torch.inf, shared.head)
    left = shared.left + (torch.arange(5) == 2)
    emission = torch.full((20, 4), 1 / 20).log()
    error = normalisation_error(TableGrammar(LowRankRules(shared.root, head, left, shared.right), emission))
    assert error["left (V)"] < 1e-5
    assert error["head (U)"] > 0.01
    error = normalisation_error(TableGrammar(LowRankRules(shared.root, shared.head, left, shared.right), emission))
    assert error["left (V)"] > 0.5


@pytest.mark.parametrize(("p", "millions"), [(60, 3.6), (500, 4.2)])
def test_tn_pcfg_has_as_many_parameters_as_in_the_paper(p, millions):
    with torch.device("meta"):
        grammar = TNPCFG(p // 2, p, p if p > 200 else 200, 10_002)
    assert round(sum(x.numel() for x in grammar.parameters()) / 1e6, 1) == millions


@pytest.mark.parametrize(("family", "millions"), [(NPCFG, 5.34), (CPCFG, 15.35)])
def test_dense_families_have_as_many_parameters_as_in_the_paper(family, millions):
    """Yang et al. (2021) give 5.3 and 15.4 million; 15.347 is the sum of the layers they name."""
    with torch.device("meta"):
        grammar = family(30, 60, 10_002)
    assert round(sum(x.numel() for x in grammar.parameters()) / 1e6, 2) == millions


@pytest.mark.parametrize("family", ["n-pcfg", "c-pcfg", "sn-pcfg", "sc-pcfg"])
def test_every_matrix_of_the_dense_and_simple_families_is_xavier_uniform_initially(family):
    torch.manual_seed(0)
    for name, parameter in small(family).named_parameters():
        if parameter.dim() == 2:
            bound = (6 / sum(parameter.shape)) ** 0.5
            assert parameter.abs().max() <= bound, name
            assert parameter.std().item() == pytest.approx(bound / 3**0.5, rel=0.1), name


@pytest.mark.parametrize("family", [name for name in GRAMMARS if name not in COMPOUND])
def test_the_tables_are_the_same_grammar(family):
    torch.manual_seed(1)
    grammar = small(family)
    word_ids = torch.randint(30, (3, 6))
    lengths = torch.tensor([6, 4, 2])
    tables = grammar.tabulated()
    assert tables.tabulated() is tables
    torch.testing.assert_close(inside(tables(word_ids, lengths)), inside(grammar(word_ids, lengths)).detach())


@pytest.mark.parametrize("family", GRAMMARS)
def test_every_parameter_learns(family):
    torch.manual_seed(2)
    grammar = small(family)
    rules, cost = grammar.with_cost(torch.arange(12).reshape(2, 6), torch.tensor([6, 6]), torch.Generator())
    (inside(rules) - cost).sum().backward()
    for name, parameter in grammar.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().max() > 0, name


@pytest.mark.parametrize("activation", ["relu", "tanh", "sigmoid", "gelu"])
def test_activations_make_different_grammars(activation):
    def head(name: str) -> torch.Tensor:
        torch.manual_seed(3)
        return TNPCFG(4, 6, 5, 30, embedding=16, activation=name).rules().head

    assert torch.equal(head(activation), head(activation))
    assert activation == "relu" or not torch.equal(head(activation), head("relu"))


def test_unknown_activations_and_empty_sizes_are_refused():
    with pytest.raises(ValueError, match="activation 'swish' is not one of"):
        TNPCFG(4, 6, 5, 30, activation="swish")
    with pytest.raises(ValueError, match="at least one of its rank"):
        TDPCFG(4, 6, 0, 30)


def test_a_simple_pcfg_is_the_dense_grammar_of_its_product_rules():
    """In log p(w), every parameter's gradient, and posteriors, at several lengths."""
    torch.manual_seed(4)
    grammar = SNPCFG(5, 7, 30, embedding=16, gain=3).double()
    word_ids, lengths = torch.randint(30, (4, 9)), torch.tensor([9, 2, 6, 1])
    rules = grammar(word_ids, lengths)
    full = DensePCFG(rules.root, dense(grammar.rules()).log(), rules.words, lengths)

    def with_gradients(of: PCFG, engine: str) -> tuple[torch.Tensor, ...]:
        log_z = inside(of, engine=engine)
        return log_z, *torch.autograd.grad(log_z[:3].sum(), list(grammar.parameters()), retain_graph=True)

    expected = with_gradients(full, "reference")
    for engine in ("compiled", "scaled", "reference"):
        for ours, theirs in zip(with_gradients(rules, engine), expected, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-11)
        found, exact = marginals(rules, engine=engine), marginals(full, engine="reference")
        for name, value in exact.tensors().items():
            torch.testing.assert_close(getattr(found, name), value, rtol=1e-9, atol=1e-11, msg=name)


def test_shared_projection_and_tied_embeddings_leave_fewer_parameters():
    def shapes(**options: bool) -> dict[str, tuple[int, ...]]:
        with torch.device("meta"):
            made = TNPCFG(4, 6, 5, 30, embedding=8, **options)
        return {name: tuple(parameter.shape) for name, parameter in made.named_parameters()}

    own, shared, tied = shapes(), shapes(shared_projection=True), shapes(tied_embeddings=True)
    to_rank = {f"{network}.2.{part}" for network in ("head", "left", "right") for part in ("weight", "bias")}
    assert own.keys() - shared.keys() == to_rank
    assert shared.keys() - own.keys() == {"projection.weight"}
    assert shared["projection.weight"] == (5, 8)
    assert own.keys() - tied.keys() == {"preterminal_embedding"}


@pytest.mark.parametrize("initialisation", ["own", "xavier-normal"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"shared_projection": True},
        {"tied_embeddings": True},
        {"pre_norm": True},
        {"unit_rows": True},
        {"pre_norm": True, "unit_rows": True, "shared_projection": True, "tied_embeddings": True},
    ],
)
def test_the_options_of_tn_pcfg_make_grammars_that_learn(options, initialisation):
    torch.manual_seed(5)
    grammar = TNPCFG(4, 6, 5, 30, embedding=16, initialisation=initialisation, **options)
    assert max(normalisation_error(grammar).values()) < 1e-5
    inside(grammar(torch.arange(12).reshape(2, 6), torch.tensor([6, 6]))).sum().backward()
    for name, parameter in grammar.named_parameters():
        assert parameter.grad.abs().max() > 0, name


def test_xavier_normal_draws_every_matrix():
    torch.manual_seed(6)
    grammar = TNPCFG(90, 110, 150, 300, embedding=60, initialisation="xavier-normal", shared_projection=True)
    for name, parameter in grammar.named_parameters():
        if parameter.dim() == 2 and len(parameter) > 1:
            assert parameter.std().item() == pytest.approx((2 / sum(parameter.shape)) ** 0.5, rel=0.05), name
    with pytest.raises(ValueError, match="initialisation 'zeros' is not one of"):
        TNPCFG(4, 6, 5, 30, initialisation="zeros")


@settings(max_examples=25)
@given(n=sizes, p=sizes, d=sizes, count=st.integers(1, 200), block=st.integers(1, 20), seed=st.integers(0, 10**6))
def test_strongest_rules_are_those_of_the_whole_tensor(n, p, d, count, block, seed):
    torch.manual_seed(seed)
    grammar = TDPCFG(n, p, d, 3).double()
    parent = seed % n
    found = RuleLookup(grammar).strongest(parent, count, block=block)
    matrix = dense(grammar.tabulated().rules())[parent]
    expected = matrix.flatten().sort(descending=True).values[:count]
    torch.testing.assert_close(torch.tensor([r.probability for r in found], dtype=torch.float64), expected)
    for rule in found:
        assert rule.parent == parent
        assert matrix[rule.left, rule.right].item() == pytest.approx(rule.probability)


def test_rules_in_chomsky_normal_form_are_kept_exactly():
    binary = [(0, 1, 2, 0.25), (0, 2, 2, 0.75), (1, 2, 3, 1.0)]
    tables = TableGrammar.from_binary_rules(
        {0: 1.0}, binary, [(0, 1, 1.0), (1, 0, 0.5), (1, 1, 0.5)], nonterminals=2, preterminals=2, words=2
    )
    expected = torch.zeros(2, 4, 4, dtype=torch.float64)
    for parent, left, right, probability in binary:
        expected[parent, left, right] = probability
    assert torch.equal(dense(tables.rules()), expected)
    assert max(normalisation_error(tables).values()) < 1e-12


@pytest.mark.parametrize("count", [1, 7, 10_000])
def test_strongest_rules_of_a_dense_grammar(count):
    torch.manual_seed(0)
    matrix = small("n-pcfg").rules().binary[2].exp().detach()
    torch.manual_seed(0)
    found = RuleLookup(small("n-pcfg")).strongest(2, count)
    torch.testing.assert_close(
        torch.tensor([rule.probability for rule in found]), matrix.flatten().sort(descending=True).values[:count]
    )
    assert all(matrix[rule.left, rule.right].item() == pytest.approx(rule.probability) for rule in found)

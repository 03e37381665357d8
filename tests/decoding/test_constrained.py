"""Constrained parsing compared with the enumeration of all trees, for every decoder and every kind of grammar."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import fields, replace

import numpy as np
import pytest
import torch

from ramify.corpus.constraints import Constraints, forbidden_spans
from ramify.corpus.pcfg import BinaryGrammar
from ramify.corpus.sentence import Sentence
from ramify.decoding.best_trees import mbr, mbr_labelled
from ramify.decoding.constrained import Forbidden, mask_forbidden
from ramify.decoding.decoders import DECODERS, Decoded, decode
from ramify.decoding.heads import decode_heads
from ramify.models import FAMILIES, Grammar, Model
from ramify.parser import Parser
from ramify.structures.distribution import Marginals
from tests.structures.brute_force import derivations, tree_weights

CPU = torch.device("cpu")
LENGTHS = [6, 4, 2, 5, 1, 6]
CONSTRAINTS = [
    {"must": [[1, 4]], "must_not": [[2, 4]]},
    {"must_not": [[0, 2], [1, 4]]},
    {"must": [[0, 2]]},
    None,
    {"must": [[0, 1]]},
    {"must": [[0, 2], [3, 6]]},
]


def grammar_of(family: str) -> Grammar:
    torch.manual_seed(3)
    sizes = {"nonterminals": 3, "preterminals": 4, "words": 9, "embedding": 8, "gain": 6.0, "rank": 4}
    known = FAMILIES[family].option_names()
    options = {name: value for name, value in sizes.items() if name in known or name == "words"}
    return FAMILIES[family](**options).eval().for_parsing()


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    word_ids = torch.randint(9, (len(LENGTHS), max(LENGTHS)), generator=torch.Generator().manual_seed(1))
    return word_ids, torch.tensor(LENGTHS)


def tables(given=CONSTRAINTS) -> list[np.ndarray | None]:
    sentences = [Sentence.from_tokens(list("abcdef")[:length]) for length in LENGTHS]
    return [
        None if each is None else forbidden_spans(replace(sentence, constraints=Constraints.of(each)))
        for sentence, each in zip(sentences, given, strict=True)
    ]


def decoded(grammar: Model, decoder: str = "mbr", given=CONSTRAINTS, prior: float = 0.0) -> list[Decoded]:
    seeds = [(0, place) for place in range(len(LENGTHS))]
    forbidden = None if given is None else Forbidden.of(tables(given), max(LENGTHS), CPU)
    return decode(grammar, *batch(), decoder, seeds, prior, forbidden)


@torch.no_grad()
def weights_of(grammar: Grammar) -> list[dict[frozenset[tuple[int, int]], float]]:
    pcfg = grammar.with_cost(*batch())[0].to(torch.float64)
    return [
        {spans: float(weight) for spans, weight in tree_weights(pcfg, b, pcfg.scores()).items()}
        for b in range(len(pcfg))
    ]


def allowed(weights, table):
    return {spans: w for spans, w in weights.items() if table is None or not any(table[i, j] for i, j in spans)}


def family_decoders() -> list[tuple[str, str]]:
    return [
        (family, decoder)
        for family in ("n-pcfg", "tn-pcfg", "sn-pcfg", "c-pcfg")
        for decoder in DECODERS
        if decoder != "viterbi-rank" or family in ("tn-pcfg", "sn-pcfg")
    ]


@pytest.mark.parametrize("family", ["n-pcfg", "tn-pcfg", "sn-pcfg", "c-pcfg", "sc-pcfg"])
def test_posteriors_and_the_probability_of_constraints_are_those_of_all_trees(family):
    grammar = grammar_of(family)
    found, plain = decoded(grammar), decoded(grammar, given=None)
    for b, (weights, table) in enumerate(zip(weights_of(grammar), tables(), strict=True)):
        N, kept = LENGTHS[b], allowed(weights, table)
        if N == 1:
            assert found[b].constraint_log_probability is None
            continue
        total = sum(kept.values())
        expected = np.zeros((N + 1, N + 1))
        for spans, weight in kept.items():
            for i, j in spans:
                expected[i, j] += weight / total
        np.testing.assert_allclose(found[b].posteriors, expected, rtol=2e-4, atol=1e-6)
        assert found[b].log_probability == pytest.approx(plain[b].log_probability, rel=1e-6)
        if table is None:
            assert found[b].constraint_log_probability is None
        else:
            share = total / sum(weights.values())
            assert math.exp(found[b].constraint_log_probability) == pytest.approx(share, rel=1e-4)
    assert found[2].constraint_log_probability == pytest.approx(0, abs=1e-5)
    assert found[0].constraint_log_probability < -0.1


@pytest.mark.parametrize("family", ["n-pcfg", "tn-pcfg"])
def test_labels_and_tags_are_those_given_the_constraints(family):
    torch.manual_seed(1)
    sizes = {"nonterminals": 2, "preterminals": 2, "words": 9, "embedding": 8, "gain": 6.0}
    grammar = FAMILIES[family](**sizes | ({"rank": 3} if family == "tn-pcfg" else {})).eval().for_parsing()
    found = {decoder: decoded(grammar, decoder)[1] for decoder in ("mbr", "mbr-labelled", "viterbi")}
    pcfg, table, N = grammar.with_cost(*batch())[0].to(torch.float64), tables()[1], LENGTHS[1]
    kept = [d for d in derivations(pcfg, 1) if not any(table[i, j] for i, j in d.labels)]
    total = sum(each.probability for each in kept)
    labels, tags = np.zeros((N + 1, N + 1, 2)), np.zeros((N, 2))
    for each in kept:
        for (i, j), label in each.labels.items():
            labels[i, j, label] += each.probability / total
        tags[np.arange(N), list(each.tags)] += each.probability / total
    for parse in found.values():
        i, j = parse.spans.T
        np.testing.assert_allclose(parse.label_posteriors, labels[i, j, parse.labels], rtol=1e-3)
        np.testing.assert_allclose(parse.tag_posteriors, tags[np.arange(N), parse.tags], rtol=1e-3)
    best = max(kept, key=lambda each: each.probability)
    viterbi = found["viterbi"]
    assert dict(zip(map(tuple, viterbi.spans.tolist()), viterbi.labels.tolist(), strict=True)) == best.labels
    assert tuple(viterbi.tags) == best.tags


@pytest.mark.parametrize(("family", "decoder"), family_decoders())
def test_every_decoder_meets_the_constraints(family, decoder):
    grammar = grammar_of(family)
    for parse, table, given, length in zip(decoded(grammar, decoder), tables(), CONSTRAINTS, LENGTHS, strict=True):
        spans = set(map(tuple, parse.spans.tolist()))
        assert len(spans) == length - 1
        if given is not None:
            assert not any(table[i, j] for i, j in spans)
            assert {(i, j) for i, j in given.get("must", []) if j - i > 1} <= spans
            assert not spans & set(map(tuple, given.get("must_not", [])))


@pytest.mark.parametrize(("family", "decoder"), family_decoders())
def test_constraints_change_nothing_for_other_sentences_of_the_batch(family, decoder):
    grammar = grammar_of(family)
    with_others, alone = decoded(grammar, decoder)[3], decoded(grammar, decoder, given=None)[3]
    for each in fields(Decoded):
        np.testing.assert_array_equal(getattr(with_others, each.name), getattr(alone, each.name))


def test_mbr_is_the_best_tree_that_meets_the_constraints():
    for family in ("n-pcfg", "tn-pcfg"):
        grammar = grammar_of(family)
        for prior in (0.0, 0.7, -0.7):
            for b, (parse, weights) in enumerate(zip(decoded(grammar, prior=prior), weights_of(grammar), strict=True)):
                N = LENGTHS[b]

                def value(spans, posteriors=parse.posteriors, N=N, prior=prior) -> float:
                    wide = [(i, j) for i, j in spans if j - i > 1]
                    at_end = [j == N if prior > 0 else i == 0 for i, j in wide]
                    return sum(float(posteriors[i, j]) for i, j in wide) + abs(prior) * sum(at_end)

                kept = allowed(weights, tables()[b])
                assert value(map(tuple, parse.spans.tolist())) == pytest.approx(max(map(value, kept), default=0))


def test_samples_follow_the_constrained_posterior():
    grammar, table, draws = grammar_of("tn-pcfg"), tables()[0], 300
    word_ids, lengths = (each[:1].repeat_interleave(draws, 0) for each in batch())
    seeds = [(1, place) for place in range(draws)]
    parses = decode(grammar, word_ids, lengths, "sample", seeds, 0.0, Forbidden.of([table] * draws, 6, CPU))
    drawn = Counter(frozenset(map(tuple, parse.spans.tolist())) for parse in parses)
    kept = allowed(weights_of(grammar)[0], table)
    total = sum(kept.values())
    expected = {frozenset(s for s in spans if s[1] - s[0] > 1): w / total for spans, w in kept.items()}
    assert drawn.keys() <= expected.keys()
    distance = sum(abs(drawn[spans] / draws - p) for spans, p in expected.items()) / 2
    assert distance < 0.1


def test_spans_of_posterior_zero_are_kept_out_too():
    """With equal scores, the tree that is split in the middle would win."""
    zeros, lengths = torch.zeros(1, 5, 5), torch.tensor([4])
    found = Marginals(torch.zeros(1), zeros, zeros.long(), zeros.clone())
    table = np.zeros((5, 5), np.bool_)
    table[0, 2] = True
    forbidden = Forbidden.of([table], 4, CPU)
    for decoder in (mbr, mbr_labelled):
        assert [0, 2] in decoder(mask_forbidden(None, found), lengths)[0].tolist()
        assert [0, 2] not in decoder(mask_forbidden(forbidden, found), lengths)[0].tolist()
    assert torch.equal(found.spans, zeros)


def test_constraints_without_any_tree_of_the_grammar_have_probability_zero():
    rules = [("S", "N", "V", 0.5), ("S", "N", "S", 0.5)]
    words = [("N", "dog", 0.5), ("N", "cat", 0.5), ("V", "saw", 1.0)]
    parser = Parser.from_binary_grammar(BinaryGrammar({"S": 1.0}, rules, words))
    sentences = [parser._sentence("dog cat saw")] * 3
    given = [None, Constraints([(0, 2)]), Constraints([(1, 3)])]
    found = list(parser.analyse_many(replace(s, constraints=c) for s, c in zip(sentences, given, strict=True)))
    assert [each.failure for each in found] == [None, "constraints", None]
    assert [each.constraint_probability for each in found] == [None, 0.0, 1.0]
    assert len({each.log_probability for each in found}) == 1
    assert not len(found[1].parse.spans)
    assert found[1].parse.tags == ("N", "N", "V")
    [underivable] = parser.analyse_many([replace(parser._sentence("saw dog cat"), constraints=Constraints([(0, 2)]))])
    assert underivable.failure == "no derivation"
    assert underivable.constraint_probability is None
    assert underivable.log_probability == -math.inf


def test_constraints_that_are_hardly_possible_are_computed_in_log_space():
    """Each left branch costs 1e-25, so left-branching trees underflow in float32."""
    rare = 1e-25
    rules = [("S", "N", "N", 0.5), ("S", "N", "S", 0.5 - rare), ("S", "S", "N", rare)]
    parser = Parser.from_binary_grammar(BinaryGrammar({"S": 1.0}, rules, [("N", "a", 1.0)]))
    found = parser.analyse("a a a a a", constraints={"must": [[0, 4], [0, 3], [0, 2]]})
    assert found.constraint_log_probability == pytest.approx(3 * math.log(rare / 0.5), rel=1e-5)
    assert found.parse.spans.tolist() == [[0, 5], [0, 4], [0, 3], [0, 2]]
    assert found.failure is None


class Fixed(Model):
    """A model that is not a grammar: it prefers left branching."""

    def __init__(self, words: int) -> None:
        super().__init__()
        self.words = words
        self.weight = torch.nn.Parameter(torch.zeros(1))

    def objective(self, word_ids, lengths, noise=None, dropout=0.0, span_scores=None):  # noqa: ARG002
        return self.weight.expand(len(lengths))

    def marginals(self, word_ids, lengths):
        B, N = word_ids.shape
        spans = torch.zeros(B, N + 1, N + 1)
        spans[:, 0, 1:] = 1
        return Marginals(torch.zeros(len(lengths)), spans)


def test_a_model_that_is_not_a_grammar_avoids_forbidden_spans():
    found, plain = (decoded(Fixed(9), given=given) for given in (CONSTRAINTS, None))
    for b, table in enumerate(tables()):
        np.testing.assert_array_equal(found[b].posteriors, plain[b].posteriors)
        assert found[b].constraint_log_probability is None
        if table is not None:
            assert not any(table[i, j] for i, j in found[b].spans)
    assert found[3].spans.tolist() == plain[3].spans.tolist() == [[0, 5], [0, 4], [0, 3], [0, 2]]


@pytest.mark.parametrize("family", ["tn-pcfg", "n-pcfg"])
@pytest.mark.parametrize("how", ["projective", "constituents"])
def test_heads_come_from_the_arc_posteriors_given_the_constraints(monkeypatch, family, how):
    """With an arc between two words as probable as the span from one to the other."""
    grammar, (word_ids, lengths) = grammar_of(family), batch()

    def arcs_of(spans: torch.Tensor) -> torch.Tensor:
        N = spans.shape[-1] - 1
        arcs = torch.zeros(len(spans), N + 1, N)
        for h in range(1, N + 1):
            for q in (q for q in range(N) if q != h - 1):
                arcs[:, h, q] = spans[:, min(h - 1, q), max(h - 1, q) + 1]
        return arcs

    kind = type(grammar.with_cost(word_ids, lengths)[0])
    without_arcs = kind.marginals

    def marginals(self, engine="auto"):
        found = without_arcs(self, engine)
        return replace(found, arcs=arcs_of(found.spans))

    monkeypatch.setattr(kind, "marginals", marginals)
    seeds = [(0, place) for place in range(len(lengths))]
    forbidden = Forbidden.of(tables(), max(LENGTHS), CPU)
    of_all = decode(grammar, word_ids, lengths, "mbr", seeds, heads=how)
    found = decode(grammar, word_ids, lengths, "mbr", seeds, forbidden=forbidden, heads=how)
    for decoded in found:
        arcs = arcs_of(torch.from_numpy(decoded.posteriors)[None])[0].numpy()
        assert decoded.heads.tolist() == decode_heads(arcs, decoded.spans, how).tolist()
    different = [a.heads.tolist() != b.heads.tolist() for a, b in zip(of_all, found, strict=True)]
    assert any(different)
    assert not different[CONSTRAINTS.index(None)]

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramify.corpus.brackets import read_brackets
from ramify.corpus.reading import Corpus
from ramify.evaluation.evaluation import score
from ramify.evaluation.gold import Prediction, load_gold
from ramify.evaluation.usage import usage


def test_counted_by_hand():
    found = usage("aaaaaaaab" + "c")
    assert (found.items, found.used, found.carrying) == (10, 3, 2)
    assert found.entropy == pytest.approx(0.8 * math.log2(1 / 0.8) + 0.2 * math.log2(10))
    assert usage([]) is None


@pytest.mark.parametrize("count", [1, 2, 10, 30, 1000])
def test_evenly_used_symbols_all_count(count):
    found = usage(str(i) for i in range(count) for _ in range(3))
    assert 2**found.entropy == pytest.approx(count)
    assert found.carrying == math.ceil(0.9 * count - 1e-9)


@given(st.lists(st.integers(0, 5), min_size=1))
def test_the_number_of_symbols_is_minimal(symbols):
    found = usage(map(str, symbols))
    counts = sorted((symbols.count(symbol) for symbol in set(symbols)), reverse=True)
    assert 10 * sum(counts[: found.carrying]) >= 9 * len(symbols)
    assert 10 * sum(counts[: found.carrying - 1]) < 9 * len(symbols)
    assert 0 <= found.entropy <= math.log2(found.used) + 1e-12


def test_an_evaluation_reports_the_use_of_symbols():
    gold = load_gold(
        Corpus(list(read_brackets(["(S (NP (D the) (N dog)) (V barks))"], "gold")), "brackets", "gold", "00")
    )
    parses = list(read_brackets(["(NT-1 (NT-2 (T-1 the) (T-2 dog)) (NT-9 (T-2 barks)))"], "ours"))
    found = score(gold, Prediction("ours", parses))
    assert (found.nonterminals_used.items, found.nonterminals_used.used) == (2, 2)  # one word is not a constituent
    assert (found.preterminals_used.items, found.preterminals_used.used) == (3, 2)
    bare = score(gold, Prediction("bare", list(read_brackets(["( (_ the) ( (_ dog) (_ barks)))"], "bare"))))
    assert bare.nonterminals_used is None
    assert bare.preterminals_used is None

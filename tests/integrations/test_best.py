"""The k best trees, with probabilities compared with the enumeration of all trees."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from ramify.corpus.constraints import Constraints
from ramify.corpus.sentence import Sentence
from ramify.errors import RamifyError
from ramify.parser import Ensemble, best_many, load
from tests.command import ramify
from tests.conftest import FIXTURES
from tests.decoding.test_decoders import parser_of
from tests.integrations.test_tables import MODEL

WORDS = "the dog saw a".split()
EVERYTHING = 5000
"""More trees than a sentence of three words has"""


@pytest.mark.parametrize("family", ["n-pcfg", "tn-pcfg", "c-pcfg"])
def test_probabilities_of_all_trees_sum_to_one_and_to_the_posteriors(family):
    parser = parser_of(family)
    words = WORDS[:3]
    (best,) = best_many(parser, [words], EVERYTHING)
    assert len(best.trees) == 2 * 4**2 * 5**3
    p = [tree.probability for tree in best.trees]
    assert p == sorted(p, reverse=True)
    assert math.isclose(math.fsum(p), 1.0, abs_tol=1e-5)
    posteriors = np.zeros((4, 4))
    for tree in best.trees:
        for i, j in tree.parse.spans:
            posteriors[i, j] += tree.probability
    found = parser.posteriors(words)
    for i, j in ((0, 3), (0, 2), (1, 3)):
        assert math.isclose(posteriors[i, j], found[i, j], abs_tol=1e-4)
    if family != "c-pcfg":  # whose log p(w) is a lower bound
        for tree in best.trees[:5]:
            assert math.isclose(tree.log_probability - best.log_probability, math.log(tree.probability), abs_tol=1e-4)


def test_the_first_is_viterbis_and_log_p_is_that_of_the_sentence():
    parser = parser_of("n-pcfg")
    sentences = ["the dog saw a cat in the park".split(), "the dog barked".split()]
    for words, best in zip(sentences, best_many(parser, sentences, 3), strict=True):
        analysis = parser.analyse(words, "viterbi")
        assert best.trees[0].parse == analysis.parse
        assert len(best.trees) == 3
        assert math.isclose(best.log_probability, analysis.log_probability, abs_tol=1e-4)
        for (tree, log_p), ranked in zip(parser.best_parses(words, 3), best.trees, strict=True):
            assert ranked.parse.to_nltk() == tree
            assert ranked.log_probability == log_p


def test_under_constraints_probabilities_are_given_them():
    parser = parser_of("n-pcfg")
    sentence = Sentence.from_tokens(WORDS[:3])
    constrained = Sentence(sentence.text, sentence.offsets, sentence.is_word, constraints=Constraints(((0, 2),)))
    (best,) = best_many(parser, [constrained], EVERYTHING)
    assert len(best.trees) == 4**2 * 5**3
    assert math.isclose(math.fsum(tree.probability for tree in best.trees), 1.0, abs_tol=1e-5)
    assert all([0, 2] in tree.parse.spans.tolist() for tree in best.trees)
    assert math.isclose(best.log_probability, parser.analyse(WORDS[:3]).log_probability, abs_tol=1e-4)


def test_sentences_without_a_parse_have_a_flat_tree_of_probability_zero():
    parser = parser_of("n-pcfg")
    blank, single, long = best_many(parser, [[], ["dog"], WORDS], 2, max_length=3)
    assert (blank.failure, single.failure, long.failure) == (None, None, "too long")
    for best in (blank, single, long):
        ((tree),) = best.trees
        assert (tree.probability, tree.log_probability, len(tree.parse.labels)) == (0.0, -math.inf, 0)


def test_the_k_best_trees_have_heads():
    parser = load(FIXTURES / "models" / "nl-pcfg")
    (best,) = best_many(parser, [["the", "dog", ",", "it", "saw"]], 3)
    for tree in best.trees:
        assert sorted(tree.heads).count(0) == 1
        assert len(tree.heads) == 5


def test_models_without_best_trees_are_refused():
    parser = parser_of("n-pcfg")
    with pytest.raises(RamifyError, match="an average does not have"):
        next(best_many(Ensemble([parser, parser]), [WORDS], 2))
    with pytest.raises(RamifyError, match="does not find"):
        next(best_many(parser, [WORDS], 2, decoder="sample"))
    with pytest.raises(RamifyError, match="at least 1"):
        next(best_many(parser, [WORDS], 0))
    with pytest.raises(RamifyError, match="latent variable"):
        next(best_many(load(FIXTURES / "models" / "nbl-pcfg"), [WORDS], 2))


def test_the_command_in_every_format(tmp_path):
    given = "the dog saw a cat .\n\ncat\n"
    (tmp_path / "in.txt").write_text(given)
    command = ("parse", "-m", MODEL, tmp_path / "in.txt", "--best", 2)
    printed = ramify(*command).stdout.splitlines()
    assert [line.count("\t") for line in printed] == [2, 2, 0, 0, 2, 0]  # a blank line after the trees of each sentence
    lines = [line.split("\t") for line in printed[:2]]
    assert float(lines[0][0]) > float(lines[1][0]) > 0
    assert lines[0][2].startswith("(TOP (")
    spans = ramify(*command, "--format", "spans").stdout.splitlines()[0].split("\t")
    assert spans[:2] == lines[0][:2]
    assert spans[2].startswith("0-5:NT-")
    pretty = ramify(*command, "--format", "pretty").stdout
    assert pretty.count("p(tree | sentence) = ") == 3
    records = [json.loads(line) for line in ramify(*command, "--format", "json").stdout.splitlines()]
    assert [len(record["best"]) for record in records] == [2, 1, 1]
    assert records[0]["best"][0]["probability"] == pytest.approx(float(lines[0][0]), abs=1e-6)
    assert records[0]["tokens"][-1] == "."
    assert records[0]["best"][0]["tags"][-1] == "PUNCT"
    for options, said in (
        (("--format", "svg"), "--best works only with the formats"),
        (("--posteriors",), "probabilities of whole trees"),
        (("--decoder", "sample"), "does not find"),
    ):
        refused = ramify(*command, *options)
        assert refused.returncode == 2
        assert said in refused.stderr
    resumed = ramify(*command, "--out", tmp_path / "out.txt", "--resume")
    assert "can be resumed; choose another --format" in resumed.stderr

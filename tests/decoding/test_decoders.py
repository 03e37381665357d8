"""Decoders by name, compared with NLTK's parsers."""

from __future__ import annotations

import math

import nltk
import numpy as np
import pytest
import torch

import ramify
from ramify.corpus.pcfg import BinaryGrammar
from ramify.corpus.streaming import Pause
from ramify.corpus.vocabulary import Vocabulary
from ramify.decoding.decoders import DECODERS
from ramify.errors import RamifyError
from ramify.models import CPCFG, NPCFG, TNPCFG
from ramify.models.distances import BIASED
from ramify.parser import Parser
from tests.structures.test_reference import GRAMMAR

WORDS = ["<unk>", *"the a dog cat saw barked in park N".split()]
SENTENCES = ["the dog saw a cat in the park".split(), ["dog"], [], "the dog barked".split()]


def parser_of(family: str) -> Parser:
    torch.manual_seed(0)
    vocabulary = Vocabulary(WORDS)
    sizes = {"nonterminals": 4, "preterminals": 5, "words": len(WORDS), "embedding": 16, "gain": 4.0}
    if family == "tn-pcfg":
        return Parser(TNPCFG(rank=6, **sizes), vocabulary)
    return Parser((NPCFG if family == "n-pcfg" else CPCFG)(**sizes), vocabulary)


def choices() -> list[tuple[str, str]]:
    return [
        (family, decoder)
        for family in ("tn-pcfg", "n-pcfg", "c-pcfg")
        for decoder in DECODERS
        if (decoder != "viterbi-rank" or family == "tn-pcfg") and decoder != BIASED
    ]


@pytest.mark.parametrize(("family", "decoder"), choices())
def test_every_decoder_gives_trees_of_the_words(family, decoder):
    parser = parser_of(family)
    for words, analysis in zip(SENTENCES, parser.analyse_many(SENTENCES, decoder), strict=True):
        assert list(analysis.parse.words) == words
        assert len(analysis.parse.labels) == len(analysis.label_posteriors) == max(len(words) - 1, 0)
        assert len(analysis.parse.tags) == len(analysis.tag_posteriors) == len(words)
        for (i, j), posterior in zip(analysis.parse.spans, analysis.label_posteriors, strict=True):
            assert 0 < posterior <= analysis.posteriors[i, j] + 1e-5


def test_no_parse_is_better_than_viterbis_and_none_has_more_expected_brackets_than_mbrs():
    parser = parser_of("n-pcfg")
    words = SENTENCES[0]
    (best, log_probability), *others = parser.best_parses(words, 8)
    assert parser.analyse(words, "viterbi").parse.to_nltk() == best
    assert all(other <= log_probability for _, other in others)
    expected = {}
    for decoder in ("mbr", "viterbi", "sample"):
        analysis = parser.analyse(words, decoder)
        i, j = analysis.parse.spans.T
        expected[decoder] = analysis.posteriors[i, j].sum()
    assert expected["mbr"] >= max(expected.values()) - 1e-6


def test_label_posteriors_are_the_same_however_they_are_found(monkeypatch):
    parser = parser_of("tn-pcfg")
    for decoder in ("viterbi-rank", "sample"):
        expected = parser.analyse(SENTENCES[0], decoder)
        with monkeypatch.context() as patch:
            patch.setattr("ramify.structures.low_rank.distribution.MOST_RULES", 1)
            found = parser.analyse(SENTENCES[0], decoder)
        assert found.parse == expected.parse
        np.testing.assert_allclose(found.label_posteriors, expected.label_posteriors, rtol=1e-4)
        np.testing.assert_allclose(found.tag_posteriors, expected.tag_posteriors, rtol=1e-4)


def test_samples_depend_on_the_seed_and_not_on_the_batches():
    parser = parser_of("n-pcfg")
    sentences = [SENTENCES[0]] * 20
    first, again, other = (list(parser.parse_many(sentences, "sample", seed)) for seed in (1, 1, 2))
    assert first == again != other
    assert len({str(tree) for tree in first}) > 5
    mixed = [words for sentence in sentences for words in (sentence, SENTENCES[3])]
    assert next(parser.parse_many(mixed, "sample", 1)) == first[0]


def test_samples_do_not_depend_on_how_many_sentences_are_read_at_a_time():
    parser = parser_of("n-pcfg")
    sentences = [SENTENCES[0]] * 12
    expected = list(parser.parse_many(sentences, "sample", 1))
    in_parts = [*sentences[:4], Pause(), *sentences[4:9], Pause(), *sentences[9:]]
    assert list(parser.parse_many(in_parts, "sample", 1)) == expected


def test_unavailable_decoders_are_refused(monkeypatch):
    with pytest.raises(RamifyError, match="works only for low-rank grammars; use viterbi"):
        parser_of("n-pcfg").analyse(SENTENCES[0], "viterbi-rank")
    monkeypatch.setattr("ramify.decoding.decoders.MOST_RULES", 10)
    with pytest.raises(RamifyError, match="use the decoder mbr, or viterbi-rank"):
        parser_of("tn-pcfg").analyse(SENTENCES[0], "viterbi")
    parser_of("n-pcfg").analyse(SENTENCES[0], "viterbi")
    with pytest.raises(RamifyError, match="seed is -1"):
        parser_of("n-pcfg").analyse(SENTENCES[0], "sample", -1)


def test_entropy_is_zero_for_one_parse_and_grows_with_doubt():
    parser = Parser.from_binary_grammar(BinaryGrammar.from_nltk(GRAMMAR))
    assert parser.entropy("dogs bark") == pytest.approx(0, abs=1e-9)
    assert parser.entropy("dogs saw cats in the park") > 0.1
    assert parser_of("n-pcfg").entropy(SENTENCES[0]) > 1
    assert parser_of("n-pcfg").entropy(["dog"]) == 0


@pytest.mark.parametrize("decoder", ["viterbi", "viterbi-rank"])
@pytest.mark.parametrize(
    "sentence",
    ["the dog saw a cat in the park with cats", "dogs bark", "dogs saw cats with a dog in a park"],
)
def test_nltk_finds_the_same_best_parse(sentence, decoder):
    words = sentence.split()
    [nltk_best] = nltk.ViterbiParser(GRAMMAR).parse(words)
    parser = Parser.from_binary_grammar(BinaryGrammar.from_nltk(GRAMMAR))
    best, log_probability = parser.best_parses(words, 1)[0]
    assert math.exp(log_probability) == pytest.approx(nltk_best.prob())
    assert parser.analyse(words, decoder).parse.to_nltk() == best
    [best] = best
    for position in best.treepositions():
        if isinstance(best[position], nltk.Tree):
            assert best[position].label().removesuffix("_word") == nltk_best[position].label()


def test_nltk_finds_the_same_k_best():
    words = "the dog saw a cat in the park with cats".split()
    expected = sorted((tree.prob() for tree in nltk.InsideChartParser(GRAMMAR).parse(words)), reverse=True)
    found = Parser.from_binary_grammar(BinaryGrammar.from_nltk(GRAMMAR)).best_parses(words, 100)
    assert [math.exp(log_probability) for _, log_probability in found] == pytest.approx(expected)


def test_evaluation_names_the_decoder(tmp_path):
    (tmp_path / "gold").write_text("(S (NP (D the) (N dog)) (VP (V saw) (NP (D a) (N cat))))\n")
    for decoder in ("viterbi", "sample"):
        found = ramify.evaluate(parser_of("n-pcfg"), tmp_path / "gold", decoder=decoder)
        assert found.system == f"model ({decoder})"

from __future__ import annotations

import itertools
import json
import math
from functools import partial

import nltk
import numpy as np
import pytest
import torch

import ramify
from ramify.corpus.brackets import read_brackets, write_brackets
from ramify.corpus.builtin import builtin_grammar, builtin_treebank
from ramify.corpus.reading import Corpus
from ramify.corpus.sentence import Sentence
from ramify.corpus.streaming import Pause
from ramify.corpus.text import TextRules
from ramify.corpus.tree import parse_of_words
from ramify.corpus.vocabulary import Vocabulary
from ramify.errors import RamifyError, RamifyWarning
from ramify.evaluation.baselines import right_branching
from ramify.evaluation.gold import unlabelled_parse
from ramify.models import TDPCFG, TNPCFG, TableGrammar
from ramify.models import batches as batching
from ramify.parser import FORMATS, Analysis, Parser
from ramify.structures.dense import DenseRules
from ramify.structures.low_rank import LowRankRules
from tests.structures.random_rules import marginals, random_dense_rules, random_rules

WORDS = ["<unk>", *"the a dog cat saw barked in park N".split()]


@pytest.fixture(scope="module")
def parser() -> Parser:
    torch.manual_seed(0)
    return Parser(TNPCFG(5, 6, 7, len(WORDS), embedding=16), Vocabulary(WORDS))


SENTENCES = [
    "the dog saw a cat in the park".split(),
    ["dog"],
    [],
    "Never SEEN words 1,000.5 THE".split(),
    "the dog barked".split(),
]


def test_a_tree_has_the_sentences_own_words(parser):
    for words in SENTENCES[:2] + SENTENCES[3:]:
        tree = parser.parse(words)
        assert isinstance(tree, nltk.Tree)
        assert tree.leaves() == words


def test_labels_are_named_for_their_numbers(parser):
    analysis = parser.analyse(SENTENCES[0])
    assert all(label.startswith("NT-") and int(label[3:]) < 5 for label in analysis.parse.labels)
    assert all(tag.startswith("T-") and int(tag[2:]) < 6 for tag in analysis.parse.tags)
    assert len(analysis.parse.labels) == 7


def test_sentences_before_a_pause_are_parsed_before_more_are_read(parser):
    read = []

    def stream():
        for words in SENTENCES[:2]:
            read.append(words)
            yield words
        yield Pause()
        read.append("more")
        yield SENTENCES[4]

    analyses = parser.analyse_many(stream())
    assert [next(analyses).parse.words for _ in range(2)] == [tuple(words) for words in SENTENCES[:2]]
    assert read == SENTENCES[:2]
    assert [analysis.parse.words for analysis in analyses] == [tuple(SENTENCES[4])]


def test_the_charts_of_a_batch_fit_into_memory_together(parser, monkeypatch):
    one = batching.chart_bytes(parser.grammar, 10)
    monkeypatch.setattr(batching, "CHART_BYTES", 3.5 * one)
    assert list(map(len, batching.memory_batches(parser.grammar, [10] * 8))) == [3, 3, 2]
    [*batches] = batching.memory_batches(parser.grammar, [10, 2, 30, 3, 9, 10])
    assert batches[-1] == [2]  # too large together with any other, so it is alone
    assert sorted(place for batch in batches for place in batch) == list(range(6))


def test_the_strongest_rules_of_all_nonterminals_come_best_first(parser):
    found = [probability for *_, probability in parser.strongest_rules(count=4)]
    assert len(found) == 4 * 5
    assert found == sorted(found, reverse=True)
    of_each = dict.fromkeys(parser.labels, 0)
    for parent, *_ in parser.strongest_rules(count=4):
        of_each[parent] += 1
    assert set(of_each.values()) == {4}


def test_a_string_is_split_at_spaces(parser):
    assert parser.parse("the dog barked") == parser.parse(["the", "dog", "barked"])


def test_many_at_once_equal_one_by_one_in_order(parser):
    together = list(parser.analyse_many(SENTENCES))
    for words, analysis in zip(SENTENCES, together, strict=True):
        alone = parser.analyse(words)
        assert analysis.parse == alone.parse
        assert list(analysis.parse.words) == words
        np.testing.assert_allclose(analysis.posteriors, alone.posteriors, rtol=1e-4, atol=1e-6)


def test_the_order_survives_windows_and_batches(parser, monkeypatch):
    monkeypatch.setattr("ramify.parser.tree_parser.WINDOW", 3)
    monkeypatch.setattr(batching, "CHART_BYTES", 1)
    found = [analysis.parse.words for analysis in parser.analyse_many(SENTENCES)]
    assert found == [tuple(words) for words in SENTENCES]


def test_a_table_of_words_too_large_to_keep_changes_nothing(parser, monkeypatch):
    monkeypatch.setattr("ramify.models.grammar.LARGEST_TABLE", 0)
    torch.manual_seed(0)
    without = Parser(TNPCFG(5, 6, 7, len(WORDS), embedding=16), parser.vocabulary)
    assert isinstance(without.grammar, TNPCFG)
    for found, expected in zip(*(p.analyse_many(SENTENCES) for p in (without, parser)), strict=True):
        assert found.parse == expected.parse
        np.testing.assert_allclose(found.posteriors, expected.posteriors, atol=1e-5)
    scores = (list(p.log_probabilities(SENTENCES)) for p in (without, parser))
    np.testing.assert_allclose(*scores, rtol=1e-5)


def test_an_endless_stream_is_parsed_as_it_comes(parser):
    endless = itertools.repeat(["the", "dog", "barked"])
    assert len(list(itertools.islice(parser.parse_many(endless), 5))) == 5


def test_posteriors_are_an_array_over_fence_posts(parser):
    posteriors = parser.posteriors(SENTENCES[0])
    assert posteriors.shape == (9, 9)
    assert np.triu(posteriors, 2).sum() == pytest.approx(7, rel=1e-4)
    assert posteriors[0, 8] == pytest.approx(1, rel=1e-4)


def test_a_single_word_has_a_tag_and_no_probability(parser):
    analysis = parser.analyse(["dog"])
    assert analysis.log_probability == -math.inf
    assert analysis.parse.spans.shape == (0, 2)
    tag = max(parser.tags, key=lambda tag: dict(parser.strongest_words(tag, len(WORDS)))["dog"])
    assert analysis.parse.tags == (tag,)


def test_scores_are_those_of_the_analysis(parser):
    scores = list(parser.log_probabilities(SENTENCES))
    analyses = [analysis.log_probability for analysis in parser.analyse_many(SENTENCES)]
    assert scores == pytest.approx(analyses, rel=1e-5)
    assert [math.isinf(score) for score in scores] == [False, True, True, False, False]


def test_unknown_words_are_all_treated_alike(parser):
    first, second = parser.log_probabilities([["the", "aardvark"], ["the", "zyzzyva"]])
    assert first == second


def test_underflowing_sentences_are_recomputed_in_log_space():
    """A word with a probability far below the range of float32 does not make the sentence impossible."""
    torch.manual_seed(0)
    grammar = TDPCFG(2, 2, 3, 4)
    with torch.no_grad():
        # Preterminal 1 alone has the word; it may stand nowhere but at a probability of exp(-150).
        grammar.word_logits[3] = torch.tensor([-1e4, 5.0])
        grammar.left[-1] -= 150
        grammar.right[-1] -= 150
    parser = Parser(grammar, Vocabulary(["<unk>", "a", "b", "c"]))
    analysis = parser.analyse(["a", "c", "b"])
    assert -400 < analysis.log_probability < -100
    assert np.triu(analysis.posteriors, 2).sum() == pytest.approx(2, rel=1e-4)
    assert next(parser.log_probabilities([["a", "c", "b"]])) == pytest.approx(analysis.log_probability, rel=1e-5)
    assert analysis.in_log_space
    assert [scored.in_log_space for scored in parser.score_many([["a", "c", "b"], ["a", "b"]])] == [True, False]


@pytest.mark.parametrize("rank", [7, None])
@pytest.mark.parametrize("sharpness", [60, 100, 300])
def test_partly_underflowing_sentences_are_recomputed_in_log_space(rank, sharpness):
    """The fast engine's posteriors reach 1e11 here, and its log p(w) is off by 100 nats or minus infinity."""
    rules = random_dense_rules if rank is None else partial(random_rules, d=rank)
    rules = rules(n=5, p=6, lengths=[10] * 50, sharpness=sharpness, dtype=torch.float32)
    shared = (
        DenseRules(rules.root, rules.binary)
        if rank is None
        else LowRankRules(rules.root, rules.head, rules.left, rules.right)
    )
    with torch.no_grad():
        truth = marginals(rules.to(torch.float64), engine="reference")
    # Every word of every sentence is another word of the vocabulary.
    grammar = TableGrammar(shared, rules.words.flatten(0, 1))
    parser = Parser(grammar, Vocabulary(["<unk>", *("a" * i for i in range(1, 500))]))
    sentences = [parser.vocabulary.words[at : at + 10] for at in range(0, 500, 10)]
    analyses, scored = list(parser.analyse_many(sentences)), list(parser.score_many(sentences))
    assert any(analysis.in_log_space for analysis in analyses)
    assert [each.in_log_space for each in scored] == [analysis.in_log_space for analysis in analyses]
    expected = pytest.approx(truth.log_partition.tolist(), rel=1e-5)
    assert [analysis.log_probability for analysis in analyses] == expected
    assert [each.log_probability for each in scored] == expected
    for analysis, posteriors in zip(analyses, truth.spans, strict=True):
        np.testing.assert_allclose(analysis.posteriors, posteriors, atol=1e-3)
    for decoder in ("mbr", "viterbi", "viterbi-rank", "sample")[: 4 if rank else 2]:
        for analysis in parser.analyse_many(sentences[:5], decoder):
            found = (analysis.posteriors, analysis.label_posteriors, analysis.tag_posteriors)
            assert max(float(each.max()) for each in found) <= 1


def test_rounding_is_not_mistaken_for_underflow(parser):
    """Posteriors are at most 1, although float32 rounding gives slightly more."""
    words = np.random.default_rng(0).choice(WORDS[1:], 200).tolist()
    for analysis in parser.analyse_many([words, words[:50]]):
        assert not analysis.in_log_space
        assert analysis.posteriors.max() == 1
        assert analysis.tag_posteriors.max() <= 1


def without_punctuation(parser: Parser) -> Parser:
    return Parser(parser.grammar, parser.vocabulary, parser.labels, parser.tags, text_rules=TextRules())


def test_a_sentence_the_grammar_cannot_derive_gets_a_flat_tree_and_says_so():
    parser = without_punctuation(Parser.from_binary_grammar(builtin_grammar()))
    tag = max(parser.tags, key=lambda tag: dict(parser.strongest_words(tag, len(parser.vocabulary))).get("of", 0))
    for decoder in ("mbr", "viterbi", "sample"):
        analysis = parser.analyse("of , of of of".split(), decoder)
        assert (analysis.failure, analysis.log_probability) == ("no derivation", -math.inf)
        assert analysis.parse.spans.shape == (0, 2)
        assert analysis.parse.tags == (tag, "PUNCT", tag, tag, tag)
        assert not analysis.posteriors.any()
        assert analysis.tag_posteriors.tolist() == [0, 1, 0, 0, 0]
    record = json.loads(FORMATS["json"](analysis, True))
    assert (record["failure"], record["constituents"], record["log_probability"]) == ("no derivation", [], None)
    assert FORMATS["brackets"](analysis) == f"(TOP ({tag} of) (PUNCT ,) ({tag} of) ({tag} of) ({tag} of))"
    assert [child.label() for child in parser.parse("of of".split())] == [tag, tag]
    scored, *others = parser.score_many(["of of", "the box needed his men", "of", ""])
    assert scored.failure == "no derivation"
    assert [other.failure for other in others] == [None] * 3


def test_a_sentence_that_is_derived_or_needs_no_derivation_has_no_failure(parser):
    assert {analysis.failure for analysis in parser.analyse_many(SENTENCES)} == {None}
    assert json.loads(FORMATS["json"](parser.analyse(SENTENCES[0])))["failure"] is None


def test_a_sentence_beyond_the_limit_is_flat_and_the_others_are_parsed(parser):
    analyses = list(parser.analyse_many(SENTENCES, max_length=3))
    assert [analysis.failure for analysis in analyses] == ["too long", None, None, "too long", None]
    assert analyses[0].parse == parse_of_words(SENTENCES[0])
    assert not analyses[0].posteriors.any()
    assert analyses[4].parse == parser.analyse(SENTENCES[4]).parse
    assert [scored.failure for scored in parser.score_many(SENTENCES, max_length=3)] == [a.failure for a in analyses]
    assert [len(tree.leaves()) for tree in parser.parse_many(SENTENCES, max_length=3)] == [8, 1, 0, 5, 3]
    with pytest.raises(RamifyError, match="max_length is 0"):
        next(parser.analyse_many(SENTENCES, max_length=0))


def test_one_sentence_that_does_not_fit_leaves_the_others_of_its_window_alone(parser, monkeypatch):
    monkeypatch.setattr(batching, "CHART_BYTES", 0)
    free = batching.chart_bytes(parser.grammar, 7)
    monkeypatch.setattr("psutil.virtual_memory", lambda: type("", (), {"available": free}))
    analyses = list(parser.analyse_many(SENTENCES))
    assert [analysis.failure for analysis in analyses] == ["too long", None, None, None, None]
    assert next(parser.log_probabilities(SENTENCES)) == -math.inf
    with pytest.raises(RamifyError, match=r"a sentence of 8 words needs about .* GB of memory"):
        parser.best_parses(SENTENCES[0])


@pytest.mark.slow
def test_a_huge_sentence_takes_no_memory_for_posteriors(parser):
    """They would be half a terabyte."""
    words = 250_000
    analysis = parser.analyse(["dog"] * words)
    assert analysis.failure == "too long"
    assert analysis.posteriors.shape == (words + 1, words + 1)
    assert json.loads(FORMATS["json"](analysis, True))["posteriors"]["spans"] == []


def test_a_sentence_that_takes_minutes_is_announced(parser, monkeypatch):
    slow = parser.grammar.expected_seconds(8)
    monkeypatch.setattr(batching, "SLOW_SECONDS", slow * 0.99)
    given = Sentence.from_tokens(SENTENCES[0], where="here, line 7")
    for work in (parser.analyse_many, parser.log_probabilities):
        with pytest.warns(RamifyWarning, match="here, line 7: a sentence of 8 words") as warned:
            list(work([SENTENCES[4], given]))
        assert len(warned) == 1


def test_the_root_is_the_same_with_and_without_punctuation(parser):
    parser = without_punctuation(parser)
    for sentence in ("the dog barked", "the dog barked .", "dog", "."):
        tree = parser.parse(sentence)
        assert tree.label() == "TOP"
        assert " ".join(str(tree).split()) == FORMATS["brackets"](parser.analyse(sentence))


def test_best_parses_keep_punctuation(parser):
    parser = without_punctuation(parser)
    (best, log_probability), *_ = parser.best_parses("the dog , barked .")
    assert best.leaves() == ["the", "dog", ",", "barked", "."]
    assert best == parser.analyse("the dog , barked .", "viterbi").parse.to_nltk()
    assert log_probability == parser.best_parses("the dog barked")[0][1]


def test_the_vocabulary_must_be_the_grammars_own(parser):
    with pytest.raises(RamifyError, match="use those of one model"):
        Parser(parser.grammar, Vocabulary(["<unk>", "a"]))


def test_unknown_decoders_and_symbols_are_refused(parser):
    with pytest.raises(RamifyError, match="decoder 'best' is unknown"):
        parser.analyse(["a", "b"], "best")
    with pytest.raises(RamifyError, match="not a nonterminal"):
        parser.strongest_rules("NT-99")
    with pytest.raises(RamifyError, match="not a preterminal"):
        parser.strongest_words("T-99")


def test_formats(parser):
    analysis = parser.analyse(SENTENCES[0])
    line = FORMATS["brackets"](analysis)
    assert next(read_brackets([line], "line")) == analysis.parse
    record = json.loads(FORMATS["json"](analysis, True))
    assert record["tokens"] == SENTENCES[0]
    assert len(record["constituents"]) == len(record["posteriors"]["constituents"]) == 7
    spans = FORMATS["spans"](analysis).split()
    assert spans[0] == f"0-8:{analysis.parse.labels[0]}"
    assert len(spans) == 7
    assert "park" in FORMATS["pretty"](analysis).splitlines()[-1]
    assert ":0." in FORMATS["brackets"](analysis, True)
    assert json.loads(FORMATS["json"](parser.analyse(["dog"])))["log_probability"] is None


@pytest.mark.parametrize("format", FORMATS)
def test_every_format_has_output_for_one_word_and_a_blank_line_for_none(parser, format):
    assert "dog" in FORMATS[format](parser.analyse(["dog"])) or format == "spans"
    assert format == "json" or FORMATS[format](parser.analyse([])) == ""


def as_corpus(parses) -> Corpus:
    return Corpus(parses, "brackets", "built-in", "0" * 64)


def test_the_true_grammar_is_a_ceiling_between_75_and_95():
    for seed in (0, 1, 2):
        test = as_corpus(builtin_treebank(seed, train=1)["test"])
        result = ramify.evaluate(Parser.from_binary_grammar(builtin_grammar()), test)
        assert 75 <= result.scores.sentence_f1 <= 95
        assert result.not_derived == 0
        assert ramify.evaluate("right", test).scores.sentence_f1 >= 30


def test_evaluation_says_how_it_was_counted(parser):
    gold = as_corpus(list(read_brackets(["(S (NP (DT the) (NN dog)) (VP (VBD saw) (NP (PRP it))) (. .))"], "x")))
    result = ramify.evaluate("right", gold)
    assert (result.scores.sentence_f1, result.scores.sentences) == (100 * 2 / 3, 1) or result.scores.sentence_f1 > 0
    for part in ("ramify", "tn", "words", "sha256:00000000"):
        assert part in result.signature
    assert result.perplexity is None
    modelled = ramify.evaluate(parser, gold, convention="kim")
    assert "kim" in modelled.signature
    assert modelled.perplexity > 1


def test_an_evaluation_of_text_without_trees_is_refused(tmp_path):
    path = tmp_path / "text"
    path.write_text("the dog barked\n")
    with pytest.raises(RamifyError, match="no trees to score against"):
        ramify.evaluate("left", path)
    path.write_text(write_brackets(next(read_brackets(["(S (NP (NN dog)))"], "x"))) + "\n")
    with pytest.raises(RamifyError, match="no sentence has"):
        ramify.evaluate("left", Corpus(list(read_brackets(["(S (NN dog))"], "x")), "brackets", "one word", "0"))
    with pytest.raises(RamifyError, match="baseline 'up' is unknown"):
        ramify.evaluate("up", path)


def test_a_tree_too_deep_to_be_drawn_is_printed_in_brackets():
    words = ("a",) * 1500
    parse = unlabelled_parse(words, right_branching(len(words)))
    nothing = np.zeros(0, np.float32)
    analysis = Analysis(Sentence.from_tokens(words, where="here, line 1"), parse, 0.0, nothing, nothing, nothing)
    with pytest.warns(RamifyWarning, match="here, line 1: a tree over 1,500 words is too deep"):
        drawn = FORMATS["pretty"](analysis)
    assert drawn.strip() == FORMATS["brackets"](analysis)
    assert FORMATS["brackets"](analysis).count("(") == 1 + 1499 + 1500

"""Grammars out to NLTK and rule files, and back."""

from __future__ import annotations

import math

import nltk
import pytest
import torch

import ramify
from ramify.corpus.pcfg import BinaryGrammar
from ramify.corpus.rule_files import read_rules, to_nltk, write_rules
from ramify.corpus.vocabulary import Vocabulary
from ramify.errors import RamifyError
from ramify.grammars import CPCFG, NPCFG, TNPCFG
from ramify.grammars.inspect import normalisation_error
from ramify.parser import Parser
from ramify.parser.export import export
from tests.command import ramify as command

WORDS = ["<unk>", "the", "dog", "saw", "it's", 'a"b']
SENTENCES = ["the dog saw the dog".split(), "dog saw the never seen dog".split(), ["it's", 'a"b']]


def parser_of(family: str) -> Parser:
    torch.manual_seed(0)
    sizes = {"nonterminals": 2, "preterminals": 3, "words": len(WORDS), "embedding": 8, "gain": 4.0}
    grammar = {"tn-pcfg": lambda: TNPCFG(rank=4, **sizes), "n-pcfg": lambda: NPCFG(**sizes)}
    return Parser(grammar.get(family, lambda: CPCFG(**sizes))(), Vocabulary(WORDS))


@pytest.mark.parametrize("family", ["tn-pcfg", "n-pcfg"])
@pytest.mark.parametrize("sentence", ["the dog saw the dog", "dog saw the", "saw dog saw dog"])
def test_nltks_parsers_agree_on_an_exported_grammar(family, sentence):
    """The same best parse and its probability, the same sum over all parses."""
    parser, words = parser_of(family), sentence.split()
    exported = to_nltk(export(parser).grammar)
    [best] = nltk.ViterbiParser(exported).parse(words)
    [(tree, log_probability)] = parser.best_parses(words, 1)
    assert best.label() == "TOP"
    assert nltk.Tree.convert(best[0]) == tree
    assert math.log(best.prob()) == pytest.approx(log_probability, rel=1e-5)


@pytest.mark.parametrize("family", ["tn-pcfg", "n-pcfg"])
def test_nltks_chart_parser_finds_as_much_probability_in_all_parses(family):
    parser, words = parser_of(family), ["the", "dog", "saw"]
    every = list(nltk.InsideChartParser(to_nltk(export(parser).grammar)).parse(words))
    expected = next(parser.log_probabilities([words]))
    assert math.log(sum(tree.prob() for tree in every)) == pytest.approx(expected, rel=1e-5)
    best, log_probability = parser.best_parses(words, 1)[0]
    assert nltk.Tree.convert(every[0][0]) == best
    assert math.log(every[0].prob()) == pytest.approx(log_probability, rel=1e-5)


@pytest.mark.parametrize("family", ["tn-pcfg", "n-pcfg", "c-pcfg"])
def test_a_rule_file_is_the_same_grammar_again(family, tmp_path):
    parser = parser_of(family)
    grammar, left_out = export(parser)
    assert max(left_out.values()) == pytest.approx(0, abs=1e-12)
    write_rules(tmp_path / "rules", grammar)
    again = ramify.load(tmp_path / "rules")
    assert max(normalisation_error(again.grammar).values()) < 1e-5
    found = list(again.log_probabilities(SENTENCES))
    tables = Parser(parser.tables, parser.vocabulary)
    assert found == pytest.approx(list(tables.log_probabilities(SENTENCES)), rel=1e-5)
    assert again.parse(SENTENCES[0]) == tables.parse(SENTENCES[0])
    assert len(list(again.generate(3))) == 3


def test_a_threshold_leaves_rules_out_and_says_how_much():
    parser = parser_of("n-pcfg")
    grammar, left_out = export(parser, 0.05)
    for name in parser.labels:
        lost = sum(p for *_, p in parser.strongest_rules(name, 1000) if p < 0.05)
        assert left_out[name] == pytest.approx(lost, abs=1e-5)
    assert min(p for *_, p in grammar.binary) >= 0.05
    assert max(export(parser, 0.999).left_out.values()) < 1
    with pytest.raises(RamifyError, match="threshold is"):
        export(parser, 1.5)


def test_a_rule_with_exactly_the_threshold_is_kept():
    rules = "S -> A A [0.5] | A B [0.25] | B A [0.25]\nA -> 'a' [0.5] | 'b' [0.5]\nB -> 'b' [1.0]"
    parser = Parser.from_binary_grammar(BinaryGrammar.from_nltk(nltk.PCFG.fromstring(rules)))
    assert len(export(parser, 0.25).grammar.binary) == 3
    kept = export(parser, 0.5)
    assert len(kept.grammar.binary) == 1
    assert len(kept.grammar.lexical) == 3
    assert kept.left_out == pytest.approx({"S": 0.5, "A": 0.0, "B": 0.0})


def test_start_rules_in_nltks_notation():
    grammar = BinaryGrammar.from_nltk(
        nltk.PCFG.fromstring("TOP -> A [0.25] | B [0.75]\nA -> T T [1.0]\nB -> T A [1.0]\nT -> 'w' [1.0]")
    )
    assert grammar.start == {"A": 0.25, "B": 0.75}
    assert BinaryGrammar.from_nltk(to_nltk(grammar)) == grammar
    single = BinaryGrammar.from_nltk(nltk.PCFG.fromstring("S -> T S [0.5] | T T [0.5]\nT -> 'w' [1.0]"))
    assert BinaryGrammar.from_nltk(to_nltk(single)) == single


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is no grammar in NLTK's notation"),
        ("S -> A B", "is no grammar in NLTK's notation"),
        ("S -> A B [0.5]", "is no grammar in NLTK's notation"),
        ("S -> [1.0]", "not in Chomsky normal form"),
        ("S -> A [0.5] | S S [0.5]\nA -> A A [0.5] | 'w' [0.5]", "has other uses"),
        ("S -> A B [1.0]", "uses 'A', which has no rule"),
        ("S -> A [1.0]\nA -> 'w' [1.0]", "no rule leads to two words"),
    ],
)
def test_files_that_are_no_grammar_are_refused(tmp_path, content, message):
    (tmp_path / "rules").write_text(content)
    with pytest.raises(RamifyError, match=message) as error:
        read_rules(tmp_path / "rules")
    assert str(tmp_path) in str(error.value)


def test_what_nltks_notation_cannot_hold_is_refused(tmp_path):
    grammar = BinaryGrammar({"S": 1.0}, (("S", "T", "T", 1.0),), (("T", "'\"", 1.0),))
    with pytest.raises(RamifyError, match="quotes of both kinds"):
        write_rules(tmp_path / "rules", grammar)
    grammar = BinaryGrammar({"S!": 1.0}, (("S!", "T", "T", 1.0),), (("T", "w", 1.0),))
    with pytest.raises(RamifyError, match="'S!' cannot be written"):
        write_rules(tmp_path / "rules", grammar)


def test_the_command_and_its_file_in_other_commands(tmp_path):
    write_rules(tmp_path / "first", export(parser_of("n-pcfg")).grammar)
    out = tmp_path / "second"
    result = command("export", "-m", tmp_path / "first", "--out", out, "--threshold", "0.01")
    assert result.returncode == 0, result.stderr
    assert "left out is" in result.stderr
    assert command("export", "-m", tmp_path / "first", "--out", out).returncode == 2
    parsed = command("parse", "-m", out, "--decoder", "viterbi", given="the dog saw the dog\n")
    assert parsed.stdout.startswith("(TOP (NT-"), parsed.stderr
    (tmp_path / "gold").write_text("(S (NP (D the) (N dog)) (VP (V saw) (NP (D the) (N dog))))\n")
    assert command("evaluate", "-m", out, tmp_path / "gold").returncode == 0

"""Export of grammars to NLTK and to rule files, and reading them back."""

from __future__ import annotations

import math

import nltk
import numpy as np
import pytest
import torch

import ramify
from ramify.corpus.cleaning import WordRule
from ramify.corpus.pcfg import BinaryGrammar
from ramify.corpus.punctuation import Punctuation
from ramify.corpus.rule_files import read_rules, to_nltk, write_rules
from ramify.corpus.text import TextRules
from ramify.corpus.vocabulary import Vocabulary
from ramify.errors import RamifyError
from ramify.models import CPCFG, NPCFG, TNPCFG
from ramify.parser import Parser
from ramify.parser.export import export, text_record
from ramify.parser.systems import System
from tests.command import ramify as command
from tests.models.normalisation import normalisation_error

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
    exported = to_nltk(export(parser, 1).grammar)
    [best] = nltk.ViterbiParser(exported).parse(words)
    [(tree, log_probability)] = parser.best_parses(words, 1)
    assert nltk.Tree.convert(best) == tree
    assert math.log(best.prob()) == pytest.approx(log_probability, rel=1e-5)


@pytest.mark.parametrize("family", ["tn-pcfg", "n-pcfg"])
def test_the_chart_parser_of_nltk_finds_the_same_total_probability(family):
    parser, words = parser_of(family), ["the", "dog", "saw"]
    every = list(nltk.InsideChartParser(to_nltk(export(parser, 1).grammar)).parse(words))
    expected = next(parser.log_probabilities([words]))
    assert math.log(sum(tree.prob() for tree in every)) == pytest.approx(expected, rel=1e-5)
    best, log_probability = parser.best_parses(words, 1)[0]
    assert nltk.Tree.convert(every[0]) == best
    assert math.log(every[0].prob()) == pytest.approx(log_probability, rel=1e-5)


@pytest.mark.parametrize("family", ["tn-pcfg", "n-pcfg", "c-pcfg"])
def test_a_rule_file_is_the_same_grammar_again(family, tmp_path):
    parser = parser_of(family)
    grammar, left_out = export(parser, 1)
    assert max(left_out.values()) == pytest.approx(0, abs=1e-12)
    write_rules(tmp_path / "rules", grammar)
    again = ramify.load(tmp_path / "rules")
    assert max(normalisation_error(again.grammar).values()) < 1e-5
    found = list(again.log_probabilities(SENTENCES))
    tables = Parser(parser.tables, parser.vocabulary)
    assert found == pytest.approx(list(tables.log_probabilities(SENTENCES)), rel=1e-5)
    assert again.parse(SENTENCES[0]) == tables.parse(SENTENCES[0])
    assert len(list(again.generate(3))) == 3


@pytest.mark.parametrize("mass", [0.5, 0.9, 0.999])
def test_the_fewest_rules_that_keep_the_mass_are_kept(mass):
    parser = parser_of("n-pcfg")
    grammar, left_out = export(parser, mass)
    for name in parser.labels:
        probabilities = [p for *_, p in parser.strongest_rules(name, 1000)]
        kept = sum(rule[0] == name for rule in grammar.binary)
        assert sum(probabilities[: kept - 1]) < mass <= sum(probabilities[:kept]) + 1e-6
        assert left_out[name] == pytest.approx(sum(probabilities[kept:]), abs=1e-5)
    emission = parser.tables.emission_table.double().exp()
    for number, word in enumerate(WORDS):
        tags = [parser.tags.index(tag) for tag, other, _ in grammar.lexical if other == word]
        assert mass * emission[number].sum() <= emission[number, tags].sum() + 1e-9


def test_every_word_can_be_derived_however_little_is_kept():
    """Only one rule of each symbol is left, and words of unused preterminals are assigned to others."""
    parser = parser_of("n-pcfg")
    grammar, left_out = export(parser, 1e-9)
    assert len(grammar.binary) == len(parser.labels)
    assert set(grammar.words) == set(WORDS)
    used = {child for _, left, right, _ in grammar.binary for child in (left, right)}
    assert set(grammar.preterminals) <= used
    assert max(left_out.values()) == 1
    for wrong in (0, 1.5):
        with pytest.raises(RamifyError, match="mass is"):
            export(parser, wrong)


def test_too_many_rules_are_not_written(monkeypatch):
    monkeypatch.setattr("ramify.parser.export.MAX_RULES", 10)
    with pytest.raises(RamifyError, match="More than 10 rules"):
        export(parser_of("n-pcfg"))


def test_no_more_rules_than_the_mass_needs():
    rules = "S -> A A [0.5] | A B [0.25] | B A [0.25]\nA -> 'a' [0.5] | 'b' [0.5]\nB -> 'b' [1.0]"
    parser = Parser.from_binary_grammar(BinaryGrammar.from_nltk(nltk.PCFG.fromstring(rules)))
    assert len(export(parser, 1).grammar.binary) == 3
    assert len(export(parser, 0.75).grammar.binary) == 2
    kept = export(parser, 0.5)
    assert len(kept.grammar.binary) == 1
    assert kept.left_out["S"] == pytest.approx(0.5)


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
        ("", "is not a grammar in NLTK's notation"),
        ("S -> A B", "is not a grammar in NLTK's notation"),
        ("S -> A B [0.5]", "is not a grammar in NLTK's notation"),
        ("S -> [1.0]", "not in Chomsky normal form"),
        ("S -> A [0.5] | S S [0.5]\nA -> A A [0.5] | 'w' [0.5]", "other uses"),
        ("S -> A B [1.0]", "uses 'A', which has no rule"),
        ("S -> A [1.0]\nA -> 'w' [1.0]", "does not derive any sentence of two words"),
    ],
)
def test_files_without_a_grammar_are_refused(tmp_path, content, message):
    (tmp_path / "rules").write_text(content)
    with pytest.raises(RamifyError, match=message) as error:
        read_rules(tmp_path / "rules")
    assert str(tmp_path) in str(error.value)


def test_grammars_that_nltks_notation_cannot_express_are_refused(tmp_path):
    grammar = BinaryGrammar({"S": 1.0}, (("S", "T", "T", 1.0),), (("T", "'\"", 1.0),))
    with pytest.raises(RamifyError, match="both kinds of quotes"):
        write_rules(tmp_path / "rules", grammar)
    grammar = BinaryGrammar({"S!": 1.0}, (("S!", "T", "T", 1.0),), (("T", "w", 1.0),))
    with pytest.raises(RamifyError, match="'S!' cannot be written"):
        write_rules(tmp_path / "rules", grammar)


def test_the_command_and_its_file_in_other_commands(tmp_path):
    write_rules(tmp_path / "first", export(parser_of("n-pcfg")).grammar)
    out = tmp_path / "second"
    result = command("export", "-m", tmp_path / "first", "--out", out, "--mass", "0.9")
    assert result.returncode == 0, result.stderr
    assert "is left out" in result.stderr
    assert command("export", "-m", tmp_path / "first", "--out", out).returncode == 2
    parsed = command("parse", "-m", out, "--decoder", "viterbi", given="the dog saw the dog\n")
    assert parsed.stdout.startswith("(TOP (NT-"), parsed.stderr
    (tmp_path / "gold").write_text("(S (NP (D the) (N dog)) (VP (V saw) (NP (D the) (N dog))))\n")
    assert command("evaluate", "-m", out, tmp_path / "gold").returncode == 0


def test_an_exported_grammar_reads_text_and_parses_as_its_source_does(tmp_path):
    """Each sentence was derived by none of an exported grammar's rules, and punctuation became words."""
    given = parser_of("tn-pcfg")
    rules = TextRules("en", Punctuation(also=frozenset(["the"])), "NFKC")
    source = Parser(given.grammar, given.vocabulary, word_rule=WordRule.from_name("PU X"), text_rules=rules)
    write_rules(tmp_path / "rules.pcfg", export(source).grammar, text_record(source))
    exported = ramify.load(tmp_path / "rules.pcfg")
    assert (exported.text_rules, exported.word_rule) == (source.text_rules, source.word_rule)
    assert exported.vocabulary.normal_form == "NFKC"
    assert str(System.of("model", str(tmp_path / "rules.pcfg")).config["words"]) == "PU X"
    text = ["The dog, it saw.", "Dog saw ﬁve, never seen!", "it's dog"]
    for mine, others in zip(exported.analyse_many(text), source.analyse_many(text), strict=True):
        assert mine.failure is None
        assert np.array_equal(mine.parse.spans, others.parse.spans)
        assert [tag == "PUNCT" for tag in mine.parse.tags] == [tag == "PUNCT" for tag in others.parse.tags]
    # A comment to NLTK, which reads the file as it is.
    assert nltk.PCFG.fromstring((tmp_path / "rules.pcfg").read_text()).start() == nltk.Nonterminal("TOP")


@pytest.mark.parametrize(
    "header",
    ["{", "[1]", '{"words": "a,b", "text": 3}', '{"words": "ptb"}', '{"words": "ptb", "text": {"tokenise": "no"}}'],
)
def test_a_broken_description_of_the_text_is_refused(tmp_path, header):
    write_rules(tmp_path / "rules", export(parser_of("n-pcfg")).grammar)
    (tmp_path / "rules").write_text(f"# ramify: {header}\n" + (tmp_path / "rules").read_text())
    with pytest.raises(RamifyError, match="rules"):
        ramify.load(tmp_path / "rules")


def test_probabilities_far_below_the_others_survive_the_file(tmp_path):
    grammar = BinaryGrammar({"S": 1.0}, (("S", "T", "T", 1.0),), (("T", "a", 1 - 1e-40), ("T", "b", 1e-40)))
    write_rules(tmp_path / "rules", grammar)
    assert read_rules(tmp_path / "rules").lexical[1][2] == pytest.approx(1e-40)

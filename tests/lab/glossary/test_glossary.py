"""Descriptions of grammars: what they contain, on every kind of page."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
from html.parser import HTMLParser
from itertools import islice
from pathlib import Path

import nltk
import pytest
import torch

from ramify.corpus.pcfg import BinaryGrammar
from ramify.corpus.streaming import SentenceStream
from ramify.corpus.vocabulary import Vocabulary
from ramify.lab.glossary.describe import Extent, count_text, describe, rule_for_trees
from ramify.lab.glossary.glossary import Glossary, as_html, as_markdown, percent
from ramify.models import CPCFG, EMPCFG, NPCFG, TDPCFG, TNPCFG
from ramify.parser import Parser, evaluate
from tests.command import ramify

RULES = """
S -> NP VP [0.9] | VP NP [0.1]
NP -> D N [0.8] | NP PP [0.2]
VP -> V NP [1.0]
PP -> P NP [1.0]
D -> 'the' [0.6] | 'a' [0.4]
N -> 'dog' [0.5] | 'cat' [0.3] | 'park' [0.199] | 'rare' [0.001]
V -> 'saw' [1.0]
P -> 'in' [1.0]
"""
TREES = """\
(TOP (S (NP-SBJ (DT The) (NN dog)) (VP (VBD saw) (NP (NP (DT a) (NN cat)) (PP (IN in) (NP (DT the) (NN park))))) (. .)))
(TOP (S (NP-SBJ (DT The) (NN dog)) (VP (VBD saw) (NX (DT the) (NN cat))) (. .)))
(TOP (FRAG (NN dog) (. .)))
(TOP (FRAG (NN dog) (NN dog) (. .)))
"""
"""The third has one word, and the fourth no derivation."""


def parser_of(rules: str) -> Parser:
    return Parser.from_binary_grammar(BinaryGrammar.from_nltk(nltk.PCFG.fromstring(rules)))


def glossary_of(parser: Parser, text: str | None, folder: Path, extent: Extent = Extent()) -> Glossary:  # noqa: B008
    if text is None:
        return describe(parser, "model", None, extent)
    file = folder / "text"
    file.write_text(text)
    stream = SentenceStream(file, "auto", parser.text_rules, rule_for_trees(parser, file, "auto"))
    return describe(parser, "model", count_text("text", parser.analyse_many(stream)), extent)


@pytest.fixture
def glossary(tmp_path: Path) -> Glossary:
    return glossary_of(parser_of(RULES), TREES, tmp_path)


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    (tmp_path / "rules").write_text(RULES)
    return tmp_path / "rules"


def test_symbols_of_trees_counted_by_hand(glossary: Glossary):
    # (S (NP The dog) (VP saw (NP (NP a cat) (PP in (NP the park))))) and (S (NP The dog) (VP saw (NP the cat)))
    counts = [(symbol.name, symbol.count, symbol.share) for symbol in glossary.nonterminals]
    assert counts == [("NP", 6, 6 / 11), ("S", 2, 2 / 11), ("VP", 2, 2 / 11), ("PP", 1, 1 / 11)]
    phrase = glossary.nonterminals[0]
    assert phrase.gold == (("NP", 5), ("NX", 1))
    assert phrase.gold_shares == (("NP", 5 / 6), ("NX", 1 / 6))
    assert phrase.phrases[0] == ("The dog", 2)
    assert set(phrase.phrases[1:]) == {("a cat", 1), ("the park", 1), ("the cat", 1), ("a cat in the park", 1)}
    assert phrase.first_words == (("the", 4), ("a", 2))
    assert phrase.last_words == (("cat", 2), ("dog", 2), ("park", 2))
    assert glossary.nonterminals[1].gold == ()  # whole sentences do not count
    assert [(tag.name, tag.count, tag.gold) for tag in glossary.preterminals] == [
        ("D", 5, (("DT", 5),)), ("N", 5, (("NN", 5),)), ("V", 2, (("VBD", 2),)), ("P", 1, (("IN", 1),))
    ]  # fmt: skip


def test_rules_are_described_in_words(glossary: Glossary):
    first, second = glossary.nonterminals[0].rules
    assert (first.left.meaning, first.right.meaning) == ("the, a", "dog, cat, park")
    assert first.probability == pytest.approx(0.8)
    assert (second.left.symbol, second.left.meaning) == ("NP", "The dog")
    assert (second.right.symbol, second.right.meaning) == ("PP", "in the park")


def test_a_word_that_says_nothing_about_a_preterminal_is_left_out(glossary: Glossary):
    assert [word for word, _ in glossary.preterminals[1].words] == ["dog", "cat", "park"]


def test_remarks_on_a_text(glossary: Glossary):
    sentences, impossible, labels = glossary.remarks()
    for fact in ("2 sentences of text", "11 constituents", "13 words", "all 4 nonterminals", "all 4 preterminals"):
        assert fact in sentences
    assert impossible.endswith(": 1.")
    assert "89%" in labels


def test_one_of_a_kind_is_no_plural(tmp_path):
    [remark] = glossary_of(parser_of("S -> A A [1.0]\nA -> 'a' [1.0]"), "a a\n", tmp_path).remarks()
    for fact in ("1 sentence of text has 1 constituent of", "2 words;", "1 nonterminal and 1 preterminal", "the only"):
        assert fact in remark


def test_plain_text_has_no_gold_labels(tmp_path):
    glossary = glossary_of(parser_of(RULES), "the dog saw a cat\n\nThe dog saw the dog\n", tmp_path, Extent(2, 1, 1, 1))
    assert len(glossary.nonterminals) == len(glossary.preterminals) == 2
    assert glossary.nonterminals[0].phrases == (("the dog", 2),)  # and "The dog" once
    assert not any(symbol.gold for symbol in (*glossary.nonterminals, *glossary.preterminals))
    assert (len(glossary.nonterminals[0].rules), len(glossary.preterminals[0].words)) == (1, 1)
    assert glossary.as_record()["induced"]["alignment"] == {}


def test_without_a_text_the_grammar_tells_of_itself(tmp_path):
    glossary = glossary_of(parser_of(RULES), None, tmp_path)
    # One S, one VP; each NP is 0.2 of another and a PP, which has one of its own: x = 2 + 0.4 x.
    assert [symbol.name for symbol in glossary.nonterminals] == ["NP", "S", "VP", "PP"]
    expected = [10 / 3, 1, 1, 2 / 3]
    assert [symbol.share for symbol in glossary.nonterminals] == pytest.approx(
        [each / 6 for each in expected], rel=1e-5
    )
    phrase = glossary.nonterminals[0]
    assert [pair for pair, _ in phrase.pairs] == ["the dog"]
    assert phrase.pairs[0][1] == pytest.approx(0.8 * 0.6 * 0.5)
    assert phrase.rules[1].left.meaning == "the dog"
    assert phrase.rules[1].right.meaning == ""  # no two words are a PP
    assert "7.0 words" in glossary.remarks()[1]
    assert (phrase.count, phrase.phrases, phrase.first_words) == (None, (), ())


def test_preterminals_of_the_same_word_leave_room_for_other_pairs(tmp_path):
    same = " | ".join(f"A{i} A{j} [0.06]" for i in range(4) for j in range(4))
    words = "\n".join(f"A{i} -> 'a' [1.0]" for i in range(4))
    parser = parser_of(f"S -> {same} | B A0 [0.03] | A0 B [0.01]\n{words}\nB -> 'b' [1.0]")
    glossary = glossary_of(parser, None, tmp_path, Extent(examples=3))
    assert [pair for pair, _ in glossary.nonterminals[0].pairs] == ["a a", "b a", "a b"]


def test_a_pair_of_several_rules_has_the_probability_of_the_strongest(tmp_path):
    rules = "S -> A A [0.5] | C A [0.3] | B A [0.2]\nA -> 'a' [1.0]\nC -> 'a' [1.0]\nB -> 'b' [1.0]"
    (phrase,) = glossary_of(parser_of(rules), None, tmp_path).nonterminals
    assert phrase.pairs == (("a a", pytest.approx(0.5)), ("b a", pytest.approx(0.2)))


def test_sentences_without_end(tmp_path):
    glossary = glossary_of(parser_of("S -> S S [0.6] | A A [0.4]\nA -> 'a' [1.0]"), None, tmp_path)
    assert "no finite expected length" in glossary.remarks()[0]
    assert glossary.nonterminals[0].share is None
    assert "S" in as_markdown(glossary)


SIZES = {"nonterminals": 3, "preterminals": 4, "words": 6}
FAMILIES = {
    "tn-pcfg": lambda: TNPCFG(rank=5, embedding=8, gain=4.0, **SIZES),
    "td-pcfg": lambda: TDPCFG(rank=5, **SIZES),
    "n-pcfg": lambda: NPCFG(embedding=8, gain=4.0, **SIZES),
    "c-pcfg": lambda: CPCFG(embedding=8, gain=4.0, latent=3, **SIZES),
    "em-pcfg": lambda: EMPCFG(**SIZES),
}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("text", [None, "the dog saw a cat\n"])
def test_every_family_has_its_book(family, text, tmp_path):
    torch.manual_seed(0)
    parser = Parser(FAMILIES[family](), Vocabulary("<unk> the dog saw a cat".split()))
    glossary = glossary_of(parser, text, tmp_path)
    assert ("z = 0" in " ".join(glossary.remarks())) == (family == "c-pcfg")
    for symbol in glossary.nonterminals:
        assert [tuple(rule) for rule in parser.strongest_rules(symbol.name, 5)] == [
            (symbol.name, rule.left.symbol, rule.right.symbol, rule.probability) for rule in symbol.rules
        ]
    for tag in glossary.preterminals:
        reported = dict(parser.strongest_words(tag.name, 6))
        assert dict(tag.words) == pytest.approx({word: reported[word] for word, _ in tag.words}, rel=1e-4)
    assert as_html(glossary)


@pytest.mark.parametrize(
    ("share", "shown"), [(0, "0.0%"), (1e-5, "<0.1%"), (0.0123, "1.2%"), (0.0996, "10%"), (0.5, "50%"), (1, "100%")]
)
def test_percentages(share, shown):
    assert percent(share) == shown


HOSTILE = """
S<b> -> A<i> A<i> [1.0]
A<i> -> '<script>alert(x)</script>' [0.5] | '"onclick=alert(x)|*x*' [0.3] | '&amp;\x1b[m' [0.2]
"""
HOSTILE_TEXT = '<script>alert(x)</script> "onclick=alert(x)|*x*\n"onclick=alert(x)|*x* &amp;\x1b[m\n'


class _Reader(HTMLParser):
    """Elements, attributes and text of a page that must be well formed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.content: dict[str, list[str]] = {}
        self._open: list[str] = []
        self.feed(page)
        assert not self._open

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        assert len(dict(attrs)) == len(attrs), attrs
        if tag not in ("meta", "input", "rect"):
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        if self._open:
            self.content.setdefault(self._open[-1], []).append(data)


def test_what_a_stranger_wrote_stays_text_in_the_page(tmp_path):
    page = as_html(glossary_of(parser_of(HOSTILE), HOSTILE_TEXT, tmp_path))
    reader = _Reader(page)
    assert [tag for tag, _ in reader.elements].count("script") == 1
    assert not {tag for tag, _ in reader.elements} & {"b", "i"}
    assert not [name for _, attributes in reader.elements for name in attributes if name.startswith("on")]
    assert "<script>alert(x)</script>" in reader.content["bdi"]
    assert "&amp;\ufffd[m" in reader.content["bdi"]
    assert "\x1b" not in page
    assert not re.search(r"(?:src|href)=\"(?!#)", page)  # nothing is fetched


def test_the_page_runs_its_own_script_and_no_other(glossary):
    reader = _Reader(as_html(glossary))
    [policy] = [attributes["content"] for tag, attributes in reader.elements if "http-equiv" in attributes]
    for tag in ("style", "script"):
        digest = hashlib.sha256("".join(reader.content[tag]).encode()).digest()
        assert f"{tag}-src 'sha256-{base64.b64encode(digest).decode()}'" in policy
    assert policy.startswith("default-src 'none'")


def test_links_within_the_page_lead_somewhere(glossary):
    reader = _Reader(as_html(glossary))
    places = {attributes["id"] for _, attributes in reader.elements if "id" in attributes}
    links = {attributes["href"] for tag, attributes in reader.elements if tag == "a"}
    assert links
    assert all(link.removeprefix("#") in places for link in links)


SEARCH = """
const entries = ENTRIES.map((search) => ({ dataset: { search }, hidden: false, closest: () => null }));
const handlers = {};
const box = { value: "", addEventListener: (name, handler) => { handlers[name] = handler; } };
const reported = { textContent: "" };
const form = { hidden: true, querySelector: (what) => (what === "input" ? box : reported), addEventListener: () => {} };
const section = { hidden: false, querySelector: () => entries.find((entry) => !entry.hidden) || null };
globalThis.document = {
  getElementById: () => form, querySelectorAll: (what) => (what === "section" ? [section] : entries)
};
globalThis.addEventListener = () => {};
require(SCRIPT);
const found = (typed) => {
  box.value = typed;
  handlers.input();
  return [entries.map((entry) => !entry.hidden), section.hidden, reported.textContent];
};
console.log(JSON.stringify([form.hidden, ...QUERIES.map(found)]));
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node to run the page's script with")
def test_the_search_box_filters_by_name_word_and_label(glossary, tmp_path):
    reader = _Reader(as_html(glossary))
    entries = [attributes["data-search"] for _, attributes in reader.elements if "data-search" in attributes]
    assert len(entries) == 8
    (tmp_path / "page.js").write_text("".join(reader.content["script"]))
    queries = ["", "Park", "nx the", "vbd", "nowhere", " ar"]
    given = {"ENTRIES": entries, "SCRIPT": str(tmp_path / "page.js"), "QUERIES": queries}
    code = SEARCH
    for name, value in given.items():
        code = code.replace(name, json.dumps(value))
    done = subprocess.run(["node", "-e", code], capture_output=True, text=True, check=True)
    hidden, *found = json.loads(done.stdout)
    assert hidden is False
    every = ["NP", "S", "VP", "PP", "D", "N", "V", "P"]
    names = [[name for name, shown in zip(every, each[0], strict=True) if shown] for each in found]
    assert names == [every, ["NP", "S", "VP", "PP", "N"], ["NP"], ["V"], [], []]
    assert [each[1] for each in found] == [False, False, False, False, True, True]
    assert [each[2] for each in found[:3]] == ["", "5 of 8 found", "1 of 8 found"]


def test_markdown_and_terminal_take_no_orders_from_words(tmp_path):
    text = as_markdown(glossary_of(parser_of(HOSTILE), HOSTILE_TEXT, tmp_path))
    assert "&lt;script&gt;alert(x)&lt;/script&gt;" in text
    assert "\\|\\*x\\*" in text
    assert "\x1b" not in text
    (tmp_path / "rules").write_text(HOSTILE)
    result = ramify("grammar", "-m", tmp_path / "rules", tmp_path / "text")
    assert result.returncode == 0, result.stderr
    assert "\x1b" not in result.stdout
    assert "<script>alert(x)</script>" in result.stdout


def test_the_command_on_trees_and_text(rules, tmp_path):
    (tmp_path / "test.trees").write_text(TREES)
    reported = ramify("grammar", "-m", rules, tmp_path / "test.trees")
    assert reported.returncode == 0, reported.stderr
    assert "NP  55% of constituents (6)" in reported.stdout
    assert "gold labels  NP 83%, NX 17%, of 6 correct" in reported.stdout
    assert not any(line.endswith(" ") for line in reported.stdout.splitlines())
    piped = ramify("grammar", "-m", rules, "-", "--format", "json", given="the dog saw a cat\n")
    assert json.loads(piped.stdout)["text"] == {"source": "standard input", "sentences": 1, "not_derived": 0}
    trees = "(TOP (S (NP (D the) (N dog)) (VP (V saw) (NP (D a) (N cat)))))\n"
    record = json.loads(ramify("grammar", "-m", rules, "-", "--format", "json", given=trees).stdout)
    assert record["induced"]["alignment"] == {"NP": {"NP": 2}, "VP": {"VP": 1}}
    assert ramify("grammar", "-m", rules).returncode == 0


@pytest.mark.parametrize(
    ("name", "begins"), [("a.html", "<!DOCTYPE html>"), ("a.md", "# The grammar of"), ("a.json", "{"), ("a.txt", "/")]
)
def test_a_file_is_what_its_ending_says(rules, tmp_path, name, begins):
    out = tmp_path / name
    assert ramify("grammar", "-m", rules, "--out", out).returncode == 0
    assert out.read_text().startswith(begins)
    again = ramify("grammar", "-m", rules, "--out", out)
    assert (again.returncode, "--overwrite" in again.stderr) == (2, True)
    assert ramify("grammar", "-m", rules, "--out", out, "--overwrite", "--format", "json").returncode == 0
    assert json.loads(out.read_text())["order"] == "expected use"


@pytest.mark.parametrize(
    ("arguments", "given", "message"),
    [
        (["-"], "", "standard input"),
        (["-"], "dog\n\nnever seen\n", "standard input"),
        (["nowhere.txt"], "", "nowhere.txt"),
        (["--overwrite"], "", "--overwrite"),
        (["--out", "nowhere/a.html"], "", "nowhere"),
        (["--decoder", "viterbi"], "", "--decoder"),
        (["--split-sentences"], "", "--split-sentences"),
        (["--tokenise", "en"], "", "--tokenise"),
        (["--input", "text"], "", "--input"),
        (["--out", "grammar.pdf"], "", ".txt, .md, .json, .html, .htm"),
        (["--out", "grammar"], "", "--format"),
        (["--out", "-"], "", "--out needs the name of a file"),
        (["--out", ".", "--format", "json"], "", ".: "),
        (["--symbols", "0"], "", "--symbols"),
        (["-", "--tokenise", "klingon!"], "the dog", "klingon"),
    ],
)
def test_mistakes_are_one_sentence(rules, arguments, given, message):
    result = ramify("grammar", "-m", rules, *arguments, given=given)
    assert result.returncode == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_a_link_stays_and_its_target_is_written(rules, tmp_path):
    target, link = tmp_path / "target", tmp_path / "link.json"
    link.symlink_to(target.name)
    assert ramify("grammar", "-m", rules, "--out", link).returncode == 0  # it led nowhere
    assert json.loads(target.read_text())["order"] == "expected use"
    target.write_text("mine")
    assert "--overwrite" in ramify("grammar", "-m", rules, "--out", link).stderr
    assert target.read_text() == "mine"
    assert ramify("grammar", "-m", rules, "--out", link, "--overwrite").returncode == 0
    assert link.is_symlink()
    assert target.read_text().startswith("{")
    (tmp_path / "round.json").symlink_to("round.json")
    assert "points to itself" in ramify("grammar", "-m", rules, "--out", tmp_path / "round.json").stderr


def test_a_folder_that_cannot_be_written_is_noticed_before_the_work(tmp_path, monkeypatch):
    # Whoever runs the tests may be allowed everything.
    monkeypatch.setattr("os.access", lambda _, mode: not mode & os.W_OK)
    (tmp_path / "rules").write_text("not read")
    result = ramify("grammar", "-m", tmp_path / "rules", "--out", tmp_path / "a.json")
    assert (result.returncode, str(tmp_path) in result.stderr) == (2, True)


def test_a_real_treebank_has_the_purity_of_its_scores(data_folder, tmp_path):
    """A grammar that knows the treebank's labels, on real trees: the alignment is that of `evaluate`."""
    trees = tmp_path / "dev.trees"
    with (data_folder / "en-wsj-sample" / "dev.trees").open(encoding="utf-8") as whole:
        trees.write_text("".join(islice(whole, 100)), encoding="utf-8")
    torch.manual_seed(0)
    text = trees.read_text(encoding="utf-8").lower()
    words = sorted(set(re.findall(r"[^\s()]+(?=\))", text)))
    parser = Parser(TNPCFG(5, 10, 20, len(words) + 1, embedding=16, gain=8.0), Vocabulary(["<unk>", *words]))
    rule = rule_for_trees(parser, trees, "auto")
    stream = SentenceStream(trees, "auto", parser.text_rules, rule)
    glossary = describe(parser, "model", count_text("dev", parser.analyse_many(stream)))
    labels = evaluate(parser, trees).labels
    assert glossary.text is not None
    assert labels is not None
    assert glossary.text.induced.purity == pytest.approx(labels.many_to_one / 100)
    assert sum(sum(row.values()) for row in glossary.text.induced.alignment.values()) == labels.items

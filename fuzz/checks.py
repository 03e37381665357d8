"""Checks of every reader with arbitrary bytes: it raises a RamifyError of one short sentence, or its result is valid.

`tests/project/test_fuzzing.py` runs these with hypothesis, `fuzz/fuzz_readers.py` with atheris.
"""

from __future__ import annotations

import io
import json
import re
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import get_args

from ramify.corpus.brackets import read_brackets, write_brackets
from ramify.corpus.cleaning import ALL_WORDS, WordRule, guess_word_rule, remove_non_words
from ramify.corpus.conllu import read_conllu, write_conllu
from ramify.corpus.constraint_reading import ConstrainedStream, InlineRules
from ramify.corpus.constraints import forbidden_spans, spans_with_trees
from ramify.corpus.guessing import Kind
from ramify.corpus.lines import read_text_lines
from ramify.corpus.prepare.ctb import chinese_encoding, cut_at_mark_up
from ramify.corpus.prepare.data_splits import block_splits, read_shares, split_files
from ramify.corpus.prepare.manifest import manifest_word_rule
from ramify.corpus.prepare.passages import Corrupt, count_tree_starts, cut_at_margin, read_passages, whole_file
from ramify.corpus.prepare.spmrl import with_plain_punctuation, without_features
from ramify.corpus.punctuation import Punctuation
from ramify.corpus.reading import AS_IS, parse_without_tree, read_sentences
from ramify.corpus.rule_files import read_rules, write_rules
from ramify.corpus.streaming import Pause, SentenceStream
from ramify.corpus.table_rows import Columns, RowCount, json_cells, sentences_from_cells
from ramify.corpus.text import TextRules
from ramify.corpus.vocabulary import Vocabulary
from ramify.errors import RamifyError, RamifyWarning
from ramify.lab.plan.experiment_file import read_plan
from ramify.lab.report.write_report import Page, sections_of
from ramify.lab.results.collection import collect_results

Check = Callable[[bytes, Path], None]


def _or_one_sentence(check: Check) -> Check:
    @wraps(check)
    def checked(data: bytes, scratch: Path) -> None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RamifyWarning)
                check(data, scratch)
        except RamifyError as error:
            sentence = str(error)
            assert "\n" not in sentence, sentence
            assert len(sentence) < 400 + len(str(scratch)), sentence

    return checked


@_or_one_sentence
def brackets(data: bytes, _scratch: Path) -> None:
    """All trees that begin are read, have words of the text, and are read back as they are written."""
    text = data.decode("utf-8", "replace")
    trees = list(read_brackets(text.split("\n"), "data"))
    assert text.count("(") == text.count(")")
    assert len(trees) == count_tree_starts(text.encode())
    position = 0
    for word in (word for tree in trees for word in tree.words):
        position = text.index(word, position) + len(word)
    for tree in trees:
        assert list(read_brackets([write_brackets(tree)], "written")) == [tree]
    rule = guess_word_rule(trees)
    for tree in trees:
        cleaned = remove_non_words(tree, rule)
        assert len(cleaned) == sum(rule.word_mask(tree.tags))
        assert (cleaned.spans[:, 0] < cleaned.spans[:, 1]).all()


@_or_one_sentence
def conllu(data: bytes, _scratch: Path) -> None:
    """No word is lost, and accepted heads lead to one root; sentences can be written and read again."""
    lines = data.decode("utf-8", "replace").split("\n")
    sentences = list(read_conllu(lines, "data"))
    words = [line.split("\t") for line in lines if line.split("\t")[0].isdecimal()]
    assert [form for sentence in sentences for form in sentence.forms] == [
        re.sub(r"\s", "\u00a0", columns[1].strip(), flags=re.ASCII) for columns in words
    ]
    for sentence in sentences:
        heads: tuple[int, ...] | None = None
        with suppress(RamifyError):
            heads = sentence.head_numbers()
            assert heads.count(0) == 1
        read = sentence.with_words(Punctuation())
        tree = parse_without_tree(read)
        (again,) = read_conllu((write_conllu(read, tree.tags, tree, heads) + "\n").split("\n"), "written")
        assert again.forms == sentence.forms
        assert heads is None or again.head_numbers() == heads


@_or_one_sentence
def text_lines(data: bytes, _scratch: Path) -> None:
    """Words of text are those of Python's `split`, line by line; without line feeds, carriage returns end lines."""
    read = AS_IS.sentences(read_text_lines(io.BytesIO(data), "data"), "data")
    sentences = [sentence.tokens for sentence in read]
    text = data.decode("utf-8").removeprefix("\ufeff")
    if "\n" not in text:
        text = text.replace("\r", "\n")
    expected = [tuple(line.split()) for line in text.split("\n")]
    assert sentences == (expected[:-1] if text.endswith("\n") or not text else expected)


@_or_one_sentence
def files(data: bytes, scratch: Path) -> None:
    """Reading a whole file and streaming it give the same sentences, for any guessed kind."""
    file = scratch / "data"
    file.write_bytes(data)
    kind = get_args(Kind)[len(data) % len(get_args(Kind))]
    try:
        streamed = list(SentenceStream(file, kind, AS_IS, ALL_WORDS))
    except RamifyError:
        streamed = None
    try:
        whole = [parse.words for parse in read_sentences(file, kind).parses]
    except RamifyError as error:
        whole = [] if "no sentence" in str(error) else None
    assert whole == (None if streamed is None else [item.tokens for item in streamed if item.tokens])


@_or_one_sentence
def rows(data: bytes, _scratch: Path) -> None:
    """Every row of JSON is one sentence, with the tokens of its text and all its other columns."""
    lines = data.decode("utf-8", "replace").split("\n")
    found = list(sentences_from_cells(json_cells(lines, "data", Columns("words")), AS_IS, RowCount()))
    records = [json.loads(line) for line in lines if line.strip()]
    assert len(found) == len(records)
    for sentence, record in zip(found, records, strict=True):
        given = record.pop("words", None) or ""
        assert list(sentence.tokens) == (given.split() if isinstance(given, str) else given)
        assert sentence.row is not None
        assert json.dumps(sentence.row.values()) == json.dumps(record)


@_or_one_sentence
def prose(data: bytes, scratch: Path) -> None:
    """Splitting prose into sentences loses only white space."""
    file = scratch / "prose"
    file.write_bytes(data)
    tokens = [sentence.tokens for sentence in SentenceStream(file, "text", TextRules(), None, split_sentences=True)]
    assert "".join(map("".join, tokens)) == "".join(data.decode("utf-8").removeprefix("\ufeff").split())


@_or_one_sentence
def inline_constraints(data: bytes, _scratch: Path) -> None:
    """Brackets disappear from the text, and the rest of the sentence has a tree."""
    sentence = InlineRules.of(AS_IS).sentence(data.decode("utf-8", "replace").replace("\0", ""), "data, line 1")
    forbidden = forbidden_spans(sentence)
    assert (forbidden is None) == (sentence.constraints is None)
    assert forbidden is None or spans_with_trees(forbidden)[0, len(sentence.words)]


@_or_one_sentence
def constraint_lines(data: bytes, scratch: Path) -> None:
    """Accepted constraints of a file are met by at least one tree."""
    (scratch / "text").write_text("the old man saw a dog\n" * data.count(b"\n"))
    (scratch / "constraints").write_bytes(data)
    stream = SentenceStream(scratch / "text", "text", AS_IS, None)
    for sentence in ConstrainedStream(stream, scratch / "constraints"):
        assert not isinstance(sentence, Pause)
        forbidden = forbidden_spans(sentence)
        assert forbidden is None or spans_with_trees(forbidden)[0, 6]


@_or_one_sentence
def vocabulary(data: bytes, scratch: Path) -> None:
    """A vocabulary that can be loaded is saved unchanged."""
    file = scratch / "vocab.txt"
    file.write_bytes(data)
    words = Vocabulary.load(file)
    words.save(file)
    assert file.read_bytes() == data.removesuffix(b"\n") + b"\n"
    assert len(words.encode(words.words)) == len(words)


@_or_one_sentence
def rules(data: bytes, scratch: Path) -> None:
    """A grammar that can be read is written and read again unchanged."""
    file = scratch / "rules"
    file.write_bytes(data)
    grammar = read_rules(file)
    write_rules(file, grammar)
    again = read_rules(file)
    assert set(again.nonterminals) == set(grammar.nonterminals)
    assert set(again.words) == set(grammar.words)


@_or_one_sentence
def passages(data: bytes, _scratch: Path) -> None:
    """However a file is cut, it is read to the end, and only existing lines are named."""
    last = data.count(b"\n") + 1
    for cut in (cut_at_margin, cut_at_mark_up):
        assert all(1 <= line <= last for line, _ in cut(data))
        for item in read_passages(data, "data", cut, chinese_encoding(data), without_features):
            if isinstance(item, Corrupt):
                assert item.trees >= 1
                assert int(str(item.error).removeprefix("data, line ").partition(":")[0]) <= last
            else:
                assert with_plain_punctuation(item, frozenset({"PU"})).words == item.words
    whole = list(read_passages(data, "data", whole_file, "utf-8", None))
    if not any(isinstance(item, Corrupt) for item in whole):
        assert len(whole) == count_tree_starts(data)


@_or_one_sentence
def manifest(data: bytes, scratch: Path) -> None:
    """Any file of this name is one of our manifests, or is ignored."""
    (scratch / "manifest.json").write_bytes(data)
    rule = manifest_word_rule((scratch, scratch / "manifest.json")[len(data) % 2])
    assert rule is None or isinstance(rule, WordRule)


@_or_one_sentence
def options(data: bytes, _scratch: Path) -> None:
    """Rules for words and splits, as users may write them."""
    text = data.decode("utf-8", "replace")
    for understood in (_rule_by_name, _shares, lambda text: split_files(["a.mrg", "b/c.mrg"], text)):
        with suppress(RamifyError):
            understood(text)


@_or_one_sentence
def experiment(data: bytes, scratch: Path) -> None:
    """A plan contains every run that its groups name, once."""
    path = scratch / "experiment.toml"
    path.write_bytes(data)
    plan = read_plan(path)
    assert {run.name for group in plan.groups for run in group.runs} == set(plan.runs)


def _rule_by_name(text: str) -> None:
    rule = WordRule.from_name(text)
    assert WordRule.from_name(str(rule)) == rule


def _shares(text: str) -> None:
    shares = read_shares(text)
    if shares is not None:
        block_splits(sum(shares), shares)


@_or_one_sentence
def results(data: bytes, scratch: Path) -> None:
    """Any file of an experiment is a plan, a result or an error, or it is reported."""
    folder = scratch / "experiment"
    run = folder / "runs" / "data" / "model" / "seed-0"
    (run / "results").mkdir(parents=True, exist_ok=True)
    for path in (folder / "experiment.json", run / "results" / "mbr.json", run / "failed.json"):
        path.write_bytes(data)
    runs = collect_results(folder)
    assert runs.results or runs.problems
    page = Page(runs.title, "", sections_of(runs), problems=runs.problems).as_html()
    assert page.count("<script") == 1
    assert len(page) < 200_000


_CHECKS = (
    *(
        brackets,
        conllu,
        text_lines,
        files,
        rows,
        prose,
        inline_constraints,
        constraint_lines,
        vocabulary,
        rules,
        passages,
    ),
    *(manifest, options, experiment, results),
)
CHECKS: dict[str, Check] = {check.__name__: check for check in _CHECKS}

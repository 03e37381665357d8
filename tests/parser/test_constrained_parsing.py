"""Constraints and the branching bonus: in Python, with models, on the command line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import ramify
from ramify.corpus.brackets import read_brackets
from ramify.corpus.builtin import builtin_treebank
from ramify.corpus.constraints import Constraints
from ramify.corpus.streaming import WINDOW
from ramify.corpus.text import TextRules
from ramify.parser.ensemble import _trees
from tests.command import Finished
from tests.command import ramify as command
from tests.structures.brute_force import bracketings
from tests.structures.brute_force import spans_of as brackets_of

SMALL = {"preterminals": 6, "nonterminals": 3, "rank": 5, "embedding": 8, "epochs": 1, "batch_size": 16, "gain": 4.0}
TEXT = "[the old man] saw {it in} the park ,\nit saw a dog .\n\n\\[ it saw {a dog} \\]\n"
SAW_IT = "the old man saw it"


@pytest.fixture(scope="module")
def parser() -> ramify.Parser:
    sentences = [list(parse.words) for parse in builtin_treebank(0, train=60, dev=1, test=1)["train"]]
    return ramify.fit(sentences, **SMALL)


@pytest.fixture(scope="module")
def model(parser: ramify.Parser, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "model"
    parser.save(folder)
    return folder


def spans_of(line: str) -> set[tuple[int, int]]:
    [parse] = read_brackets([line], "line")
    return set(map(tuple, parse.spans.tolist()))


@pytest.mark.parametrize("given", [{"must": [[1, 4]], "must_not": [[1, 3]]}, Constraints([(1, 4)], [(1, 3)])])
def test_constraints_in_python(parser, given):
    plain, found = parser.analyse(SAW_IT), parser.analyse(SAW_IT, constraints=given)
    assert [1, 4] in found.parse.spans.tolist()
    assert found.posteriors[1, 4] == pytest.approx(1, abs=1e-5)
    assert found.posteriors[1, 3] == 0
    assert 0 < found.constraint_probability < 1
    assert plain.constraint_probability is None
    assert found.log_probability == pytest.approx(plain.log_probability, rel=1e-6)
    assert "man saw" in [" ".join(tree.leaves()) for tree in parser.parse(SAW_IT, given).subtrees()]
    unlikely = parser.analyse(SAW_IT, constraints={"must": [[0, 2]]})
    assert unlikely.constraint_probability == pytest.approx(float(plain.posteriors[0, 2]), rel=1e-4)


def test_a_sentence_takes_its_constraints_along(parser):
    constrained = replace(parser.text_rules.sentence(SAW_IT), constraints=Constraints([(1, 4)]))
    first, second, third = parser.analyse_many([SAW_IT, constrained, SAW_IT])
    for found, plain in zip((first, third), list(parser.analyse_many([SAW_IT] * 3))[::2], strict=True):
        assert np.array_equal(found.posteriors, plain.posteriors)
        assert (found.parse, found.log_probability) == (plain.parse, plain.log_probability)
    assert second.parse.spans.tolist() == parser.analyse(SAW_IT, constraints={"must": [[1, 4]]}).parse.spans.tolist()
    spans = parser.distributions([SAW_IT, constrained]).marginals().spans
    np.testing.assert_allclose(spans[1], second.posteriors, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(spans[0], first.posteriors, rtol=1e-4, atol=1e-6)
    assert all(tree.leaves() == SAW_IT.split() for tree, _ in parser.best_parses(constrained, 5))
    best = [{" ".join(node.leaves()) for node in tree.subtrees()} for tree, _ in parser.best_parses(constrained, 5)]
    assert all("old man saw" in phrases for phrases in best)
    assert parser.entropy(constrained) < parser.entropy(SAW_IT)
    assert list(parser.log_probabilities([constrained])) == list(parser.log_probabilities([SAW_IT]))


def test_constraints_by_punctuation_in_python(parser):
    text = "the old man saw it , a dog saw it ."
    found = parser.analyse(text, constraints="punctuation")
    assert found.tree == parser.parse(text, constraints={"must": [[0, 5], [6, 10]]})
    assert 0 < found.constraint_probability < 1
    assert parser.analyse(SAW_IT, constraints="punctuation").constraint_probability is None


def test_wrong_constraints_in_python(parser):
    with pytest.raises(ramify.RamifyError, match=r"The constraints: \[4, 6\] in must .*5 tokens"):
        parser.analyse(SAW_IT, constraints={"must": [[4, 6]]})
    with pytest.raises(ramify.RamifyError, match="'walk' is unknown"):
        parser.parse(SAW_IT, {"walk": []})
    assert parser.analyse(SAW_IT, constraints={}).constraint_probability is None


def test_inline_constraints_on_the_command_line(model):
    result = command("parse", "-m", model, "--constraints", "inline", given=TEXT)
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert (0, 3) in spans_of(lines[0])
    assert (4, 6) not in spans_of(lines[0])
    assert (3, 5) not in spans_of(lines[3])
    assert lines[2] == ""
    assert "Sentences with constraints: 2 of 4; mean log-probability of constraints -" in result.stderr
    plain = command("parse", "-m", model, given="it saw a dog .\n")
    assert plain.stdout.splitlines() == [lines[1]]
    assert "constraints" not in plain.stderr


def test_constraints_by_punctuation_on_the_command_line(model):
    text = "the old man saw it , a dog saw it .\nit saw a dog .\n"
    result = command("parse", "-m", model, "--constraints", "punctuation", given=text)
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert {(0, 5), (6, 10)} <= spans_of(lines[0])
    assert "Sentences with constraints: 1 of 2" in result.stderr
    assert command("parse", "-m", model, given=text).stdout.splitlines()[1] == lines[1]


@pytest.mark.parametrize("decoder", ["mbr", "mbr-labelled", "viterbi", "viterbi-rank", "sample"])
def test_a_file_of_constraints_on_the_command_line(model, tmp_path, decoder):
    (tmp_path / "c.jsonl").write_text('{"must": [[1, 4]], "must_not": [[1, 3]]}\n\n{"must": [[2, 5]]}\n')
    options = ["--constraints", tmp_path / "c.jsonl", "--format", "json", "--decoder", decoder]
    result = command("parse", "-m", model, *options, given=f"{SAW_IT}\n{SAW_IT}\n{SAW_IT}\n")
    assert result.returncode == 0, result.stderr
    records = [json.loads(line) for line in result.stdout.splitlines()]
    spans = [{(i, j) for i, j, _ in record["constituents"]} for record in records]
    assert (1, 4) in spans[0]
    assert (1, 3) not in spans[0]
    assert (2, 5) in spans[2]
    probabilities = [record["constraint_probability"] for record in records]
    assert probabilities[1] is None
    assert 0 < probabilities[0] < 1
    mean = np.log([probabilities[0], probabilities[2]]).mean()
    assert f"2 of 3; mean log-probability of constraints {mean:.4f} nats." in result.stderr


def test_the_average_keeps_out_spans_that_no_member_has():
    """With equal scores, the tree that is split in the middle would win."""
    plain = TextRules().sentence("a b c d")
    constrained = replace(plain, constraints=Constraints((), [(0, 2)]))
    tables = dict.fromkeys(range(2), np.zeros((5, 5), np.float32))
    found = _trees(tables, [plain, constrained], 0.0)
    assert [0, 2] in found[0].tolist()
    assert [0, 2] not in found[1].tolist()
    assert len(found[1]) == 3


def test_the_probability_is_below_a_drawn_tree(model):
    result = command(
        "parse", "-m", model, "--constraints", "inline", "--format", "pretty", given="it [saw it]\nit saw it\n"
    )
    drawn = result.stdout.split("\n\n")
    assert "p(constraints | sentence) = " in drawn[0].splitlines()[-1]
    assert "constraints" not in drawn[1]


def test_constraints_that_the_grammar_cannot_meet(tmp_path):
    (tmp_path / "r.pcfg").write_text("S -> N V [0.5] | N S [0.5]\nN -> 'dog' [1.0]\nV -> 'saw' [1.0]\n")
    arguments = ("parse", "-m", tmp_path / "r.pcfg", "--constraints", "inline", "--format", "json")
    result = command(*arguments, given="dog dog saw\n[dog dog] saw\n")
    records = [json.loads(line) for line in result.stdout.splitlines()]
    assert [record["failure"] for record in records] == [None, "constraints"]
    assert records[1]["constraint_probability"] == 0
    assert records[1]["log_probability"] == pytest.approx(records[0]["log_probability"])
    assert "no parse: constraints 1 (standard input, line 2)" in result.stderr
    assert "Sentences with constraints: 1 of 2." in result.stderr
    assert command(*arguments, "--strict", given="[dog dog] saw\n").returncode == 2


def test_the_average_of_several_models_is_the_best_tree_that_meets_the_constraints(parser, model):
    other = ramify.fit([SAW_IT.split(), "it saw the old man".split()] * 10, **SMALL)
    ensemble = ramify.Ensemble([parser, other])
    given = {"must": [[1, 4]], "must_not": [[1, 3]]}
    found, plain = ensemble.analyse(SAW_IT, constraints=given), ensemble.analyse(SAW_IT)
    assert np.array_equal(found.posteriors, plain.posteriors)
    assert found.constraint_probability is None

    def value(spans) -> float:
        return sum(float(plain.posteriors[i, j]) for i, j in spans if j - i > 1)

    trees = map(brackets_of, bracketings(0, 5))
    best = max(value(spans) for spans in trees if (1, 4) in spans and (1, 3) not in spans)
    spans = set(map(tuple, found.parse.spans.tolist()))
    assert (1, 4) in spans
    assert (1, 3) not in spans
    assert value(spans) == pytest.approx(best)
    result = command("parse", "-m", model, "-m", model, "--constraints", "inline", given="the [old {man saw} it]\n")
    assert (1, 5) in spans_of(result.stdout)
    assert (2, 4) not in spans_of(result.stdout)
    assert "Sentences with constraints: 1 of 1." in result.stderr


@pytest.mark.parametrize(
    ("options", "given", "expected"),
    [
        (["inline"], "it [saw it\n", "standard input, line 1: the '[' at character 4 is not closed"),
        (["inline"], "it saw it\nit {saw} it\n", "line 2: 'saw' (tokens 1-2) must not be a constituent"),
        (["inline"], "{it saw it}\n", "'it saw it' (tokens 0-3) must not be a constituent, but the whole sentence"),
        (["inline"], "(S (D the) (N dog))\n", "standard input: contains trees, but inline constraints need"),
        (["nowhere.jsonl"], "it saw it\n", "nowhere.jsonl: this file of constraints does not exist"),
        (["FILE"], "it saw it\n", "c.jsonl: has more than 1 lines, but standard input has 1 sentences"),
        (["FILE"], "it saw it now\n" * 3, "c.jsonl: has only 2 lines"),
        (["FILE"], "it saw\nit saw\n", "c.jsonl, line 2: [0, 3] in must is outside the sentence, which has 2 tokens"),
        (["FILE"], "it saw it\n\n", "c.jsonl, line 2: [0, 3] in must is outside the sentence, which has 0 tokens"),
        (["FILE"], "it saw it\n. . .\n", "c.jsonl, line 2: '. . .' (tokens 0-3) contains no word"),
        (["FILE"], "it saw it\nit . saw\n", "c.jsonl, line 2: 'saw' (tokens 2-3) must not"),
    ],
)  # fmt: skip
def test_wrong_constraints_are_one_sentence(model, tmp_path, options, given, expected):
    (tmp_path / "c.jsonl").write_text('{}\n{"must": [[0, 3]], "must_not": [[2, 3]]}\n')
    named = [str(tmp_path / "c.jsonl") if each == "FILE" else each for each in options]
    result = command("parse", "-m", model, "--constraints", *named, given=given)
    assert result.returncode == 2
    assert expected in result.stderr
    assert result.stderr.count("error:") == 1


def test_resuming_needs_the_same_constraints_and_bonus(model, tmp_path):
    text, out = tmp_path / "text", tmp_path / "out"
    sentences = [f"{SAW_IT}\n"] * (WINDOW + 10)
    lines = '{"must": [[1, 4]]}\n\n' * (len(sentences) // 2)
    (tmp_path / "c.jsonl").write_text(lines)
    (tmp_path / "other.jsonl").write_text(lines.replace("1, 4", "0, 3"))

    def run(constraints: str | None, prior: float, *options: object) -> Finished:
        given = [] if constraints is None else ["--constraints", constraints]
        return command("parse", "-m", model, text, *given, "--branching", prior, *options)

    ours = str(tmp_path / "c.jsonl")
    text.write_text("".join(sentences))
    whole = run(ours, 0.3)
    text.write_bytes("".join(sentences[:WINDOW]).encode() + b"\xff\n")
    assert run(ours, 0.3, "--out", out).returncode == 2
    begun = (tmp_path / "out.partial").read_text()
    assert begun == "".join(whole.stdout.splitlines(keepends=True)[:WINDOW])
    text.write_text("".join(sentences))
    for constraints, prior, named in (
        (None, 0.3, "constraints"),
        ("inline", 0.3, "constraints"),
        (str(tmp_path / "other.jsonl"), 0.3, "constraints"),
        (ours, 0.0, "branching"),
    ):
        refused = run(constraints, prior, "--out", out, "--resume")
        assert refused.returncode == 2
        assert f"had another {named}" in refused.stderr
    resumed = run(ours, 0.3, "--out", out, "--resume")
    assert resumed.returncode == 0, resumed.stderr
    assert out.read_text() == whole.stdout
    assert "Sentences with constraints: 5 of 10" in resumed.stderr


def test_the_branching_bonus_on_the_command_line(model, tmp_path):
    given = f"{SAW_IT}\n"
    right = command("parse", "-m", model, "--branching", "10", given=given)
    assert spans_of(right.stdout) >= {(0, 5), (1, 5), (2, 5), (3, 5)}
    left = command("parse", "-m", model, "--branching", "-10", given=given)
    assert spans_of(left.stdout) >= {(0, 5), (0, 4), (0, 3), (0, 2)}
    for options in (["--branching", "nan"], ["--branching", "1", "--decoder", "viterbi"]):
        assert command("parse", "-m", model, *options, given=given).returncode == 2
    gold = tmp_path / "gold.trees"
    gold.write_text("(S (D the) (X (A old) (X (N man) (X (V saw) (N it)))))\n")
    for arguments in (
        ["evaluate", "-m", model, gold],
        ["compare", model, "left", gold],
        ["compare", "left", model, gold],
    ):
        shown = command(*arguments, "--branching", "10")
        assert shown.returncode == 0, shown.stderr
        assert "| branching 10 | data sha256:" in shown.stdout
        assert "100" in shown.stdout
        assert "| branching" not in command(*arguments).stdout
    record = json.loads(command("compare", model, "right", gold, "--branching", "10", "--json").stdout)
    assert "branching 10" in record["signature"]
    assert record["systems"][0]["sentence_f1"] == pytest.approx(100)
    assert command("evaluate", "-m", model, gold, "--decoder", "viterbi", "--branching", "1").returncode == 2

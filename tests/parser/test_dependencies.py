"""Heads from a model to a score: punctuation, CoNLL-U output, accuracy and that of chains, errors."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

import ramify
from ramify.corpus.brackets import read_brackets
from ramify.corpus.conllu import read_conllu, write_conllu
from ramify.corpus.constraints import Constraints
from ramify.corpus.sentence import Sentence
from ramify.corpus.streaming import WINDOW
from ramify.corpus.tree import make_parse
from ramify.decoding.heads import projective_heads
from ramify.drawing.terminal import with_head_words
from ramify.errors import RamifyError
from ramify.evaluation.dependencies import (
    HeadScores,
    chain_prediction,
    left_chain,
    load_gold_heads,
    read_head_prediction,
    right_chain,
    score_heads,
    without_punctuation,
)
from ramify.evaluation.tree_lookup import TreeLookup
from ramify.models import Model, register
from ramify.parser.analysis import Analysis, heads_with_punctuation
from ramify.parser.predictions import predict_heads
from ramify.parser.systems import System, evaluate_heads
from ramify.structures.distribution import Marginals
from ramify.terminal import failure_lines
from tests.command import ramify as command
from tests.corpus.test_conllu import BAD_HEADS, BAD_WORDS, word
from tests.decoding.test_dependencies import is_projective, is_tree

GOLD = """\
# sent_id = 1
1	The	_	DET	_	_	2	det	_	_
2	dog	_	NOUN	_	_	4	nsubj	_	_
3	,	_	PUNCT	_	_	2	punct	_	_
4	barks	_	VERB	_	_	0	root	_	_
5	loudly	_	ADV	_	_	6	advmod	_	_
6	.	_	PUNCT	_	_	4	punct	_	_

# sent_id = 2
1	Yes	_	INTJ	_	_	0	root	_	_
2	!	_	PUNCT	_	_	1	punct	_	_

# sent_id = 3
1	It	_	PRON	_	_	2	nsubj	_	_
2	sleeps	_	VERB	_	_	0	root	_	_

"""
FIRST = GOLD.partition("\n\n")[0] + "\n\n"


def random_tree(length: int, seed: int) -> tuple[int, ...]:
    return tuple(projective_heads(np.random.default_rng(seed).random((length + 1, length))).tolist())


@given(st.lists(st.booleans(), min_size=1, max_size=12).filter(any), st.integers(0, 1000))
def test_punctuation_depends_on_the_nearest_word_and_the_tree_stays_projective(is_word, seed):
    heads = random_tree(sum(is_word), seed)
    found = heads_with_punctuation(heads, is_word)
    assert is_tree(found)
    assert is_projective(found)
    places = [place for place, word in enumerate(is_word, start=1) if word]
    for token, head in enumerate(found, start=1):
        if is_word[token - 1]:
            assert head == (places[heads[places.index(token)] - 1] if heads[places.index(token)] else 0)
        else:
            assert head == min(places, key=lambda place: (abs(place - token), place))
    # Removing it again gives back the words as they were.
    assert tuple(without_punctuation(found, is_word).tolist()) == heads


def test_dependents_of_punctuation_get_its_head():
    # In GOLD, `loudly` depends on the full stop, which depends on `barks`.
    assert without_punctuation((2, 4, 2, 0, 6, 4), [True, True, False, True, True, False]).tolist() == [2, 3, 0, 3]
    # Through several tokens, and up to a root that is not a word.
    assert without_punctuation((2, 3, 0, 2), [True, False, False, True]).tolist() == [0, 0]


def test_accuracy_is_counted_by_hand():
    gold, predicted = [np.array([2, 0, 2, 3])], [np.array([2, 3, 0, 2])]
    scores = HeadScores.of(gold, predicted)
    # The first head is right; the arc between words 2 and 3 is right but for its direction.
    assert (scores.directed, scores.undirected, scores.words, scores.sentences) == (25, 50, 4, 1)
    nothing = HeadScores.of(gold, [np.full(4, -1)])
    assert (nothing.directed, nothing.undirected) == (0, 0)


@given(st.integers(1, 9), st.integers(0, 99), st.integers(0, 99))
def test_undirected_accuracy_is_that_of_sets_of_pairs(length, seed, other):
    gold, predicted = random_tree(length, seed), random_tree(length, other)
    pairs = [{frozenset((word, head)) for word, head in enumerate(heads, start=1)} for heads in (gold, predicted)]
    scores = HeadScores.of([np.array(gold)], [np.array(predicted)])
    assert scores.undirected == pytest.approx(100 * len(pairs[0] & pairs[1]) / length)
    same = sum(a == b for a, b in zip(gold, predicted, strict=True))
    assert scores.directed == pytest.approx(100 * same / length)


def test_chains():
    assert left_chain(4).tolist() == [0, 1, 2, 3]
    assert right_chain(4).tolist() == [2, 3, 4, 0]
    assert left_chain(1).tolist() == right_chain(1).tolist() == [0]


@pytest.fixture
def gold_file(tmp_path: Path) -> Path:
    (tmp_path / "gold.conllu").write_text(GOLD)
    return tmp_path / "gold.conllu"


def test_gold_is_read_without_punctuation_and_without_single_words(gold_file):
    gold = load_gold_heads(gold_file)
    assert gold.words.places == [0, 2]
    assert [heads.tolist() for heads in gold.heads] == [[2, 3, 0, 3], [2, 0]]
    assert " | heads, root included | punctuation removed by UPOS | sentences of 2+ words | data" in gold.signature()
    assert len(load_gold_heads(gold_file, longest=2).heads) == 1
    gold_file.write_text(GOLD.replace("ADV", "_"))
    assert "by UPOS or, where it is missing, form" in load_gold_heads(gold_file).signature()


def test_chains_are_scored(gold_file):
    gold = load_gold_heads(gold_file)
    right = score_heads(gold, chain_prediction("right-chain", gold))
    assert right.scores.directed == pytest.approx(100 * 4 / 6)  # not barks -> loudly, and loudly is not the root
    assert right.scores.undirected == pytest.approx(100 * 5 / 6)  # loudly -> barks is right
    assert {span: scores.sentences for span, scores in right.by_length.items()} == {"2-10": 2, "2-40": 2}


@pytest.mark.parametrize("without", ["nothing", "punctuation", "short"])
def test_heads_of_other_systems_are_aligned_by_their_words(gold_file, tmp_path: Path, without):
    predicted = tmp_path / "predicted.conllu"
    first, second, third = GOLD.split("\n\n")[:3]
    if without == "punctuation":
        words = [("the", 2), ("dog", 3), ("barks", 0), ("loudly", 3)]
        first = "\n".join(f"{n}\t{form}\t_\t_\t_\t_\t{head}\t_\t_\t_" for n, (form, head) in enumerate(words, start=1))
    parts = [first, third] if without == "short" else [first, second, third]
    predicted.write_text("\n\n".join(parts) + "\n\n")
    gold = load_gold_heads(gold_file)
    assert score_heads(gold, read_head_prediction(predicted, gold)).scores.directed == 100


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda text: text.replace("barks", "runs"), "line 2: word 4 is 'runs', but the gold sentence has 'barks'"),
        (lambda text: text.replace("\n\n", "\n\n" + text[text.index("1\tIt") :]), "but the gold sentence has"),
        (lambda text: text[: text.index("# sent_id = 2")], "has 1 sentences, but .* has 3, 2 of them"),
        (lambda text: text.replace("\t0\troot", "\t_\t_", 1), "line 5: 'barks' has no head"),
        (lambda text: "the dog barks\n" + text, "is not CoNLL-U and has no heads"),
        (lambda text: text.replace("\t2\tnsubj", "\t0\troot"), "line 15: 'sleeps' is a second root"),
    ],
)
def test_other_sentences_and_bad_heads_are_refused(gold_file, tmp_path: Path, spoil, message):
    predicted = tmp_path / "predicted.conllu"
    predicted.write_text(spoil(GOLD))
    with pytest.raises(RamifyError, match=message):
        read_head_prediction(predicted, load_gold_heads(gold_file))


@register("test-chains")
class Chains(Model):
    """Every word depends on its right neighbour, in right-branching trees."""

    def __init__(self, words: int) -> None:
        super().__init__()
        self.words = words
        self.weight = nn.Parameter(torch.zeros(1))

    def objective(self, word_ids, lengths, noise=None, dropout=0.0):  # noqa: ARG002
        return -(self.weight**2).expand(len(word_ids))

    def marginals(self, word_ids, lengths):
        B, N = word_ids.shape
        spans, arcs = torch.zeros(B, N + 1, N + 1), torch.zeros(B, N + 1, N)
        for b, length in enumerate(lengths.tolist()):
            for i in range(length):
                spans[b, i, i + 1] = spans[b, i, length] = 1
                # Posteriors of 0.6 and 0.4, so that the decoder has a choice.
                arcs[b, (i + 2) % (length + 1), i], arcs[b, i, i] = 0.6, 0.4
        return Marginals(torch.zeros(B), spans, arcs=arcs)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("heads") / "model"
    ramify.fit([["the", "dog", "barks"], ["a", "cat", "sleeps"]] * 10, model="test-chains", epochs=1).save(folder)
    return folder


@pytest.fixture(scope="module")
def without_heads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("none") / "model"
    ramify.fit([["the", "dog", "barks"], ["a", "cat", "sleeps"]] * 10, preterminals=4, epochs=1).save(folder)
    return folder


def test_a_model_with_heads_has_them_in_its_analyses(model, without_heads):
    parser = ramify.load(model)
    analysis = parser("the dog , barks .")
    assert analysis.heads == (2, 4, 2, 0, 4)
    assert analysis.as_record()["heads"] == [2, 4, 2, 0, 4]
    assert parser("dog").heads == (0,)
    assert [each.heads for each in parser.pipe(["a cat sleeps", ". .", ""])] == [(2, 3, 0), None, None]
    (within,) = parser.analyse_many(["the dog barks loudly"], heads="constituents")
    # `the` may depend on the head of `dog barks loudly` alone, which would not be its neighbour in the right chain.
    assert within.heads == (0, 1, 2, 3)
    other = ramify.load(without_heads)("the dog barks")
    assert other.heads is None
    assert "heads" not in other.as_record()


def test_an_average_has_no_heads_but_an_ensemble_of_one_has_those_of_its_model(model, without_heads, gold_file):
    parser, gold = ramify.load(model), load_gold_heads(gold_file)
    for heads in ("projective", "constituents"):
        (alone,) = ramify.Ensemble([parser]).analyse_many(["the dog barks loudly"], heads=heads)
        (expected,) = parser.analyse_many(["the dog barks loudly"], heads=heads)
        assert alone.heads == expected.heads
    both = ramify.Ensemble([parser, without_heads])
    assert both("the dog barks").heads is None
    with pytest.raises(RamifyError, match=r"^both has no heads; score it against bracketed trees"):
        predict_heads(both, gold, "both")
    average = System.average([System.of("model", str(folder)) for folder in (model, without_heads)])
    with pytest.raises(RamifyError, match=r"^average of 2 has no heads"):
        evaluate_heads([average], gold)


def test_heads_that_fit_the_constituents_follow_constraints_and_prior(model, gold_file):
    parser = ramify.load(model)
    sentence = Sentence.from_tokens(["the", "dog", "barks", "loudly"])
    constrained = dataclasses.replace(sentence, constraints=Constraints([(0, 2), (0, 3)]))
    left = ((0, 4), (0, 3), (0, 2))
    for each, prior in ((constrained, 0.0), (sentence, -9.0)):
        (found,) = parser.analyse_many([each], branching=prior, heads="constituents")
        assert tuple(map(tuple, found.parse.spans.tolist())) == left
        # In left-branching constituents the right chain is possible.
        assert found.heads == (2, 3, 4, 0)
    gold = load_gold_heads(gold_file)
    (row,) = evaluate_heads([System.of("model", str(model))], gold, heads="constituents", branching=-9.0)
    assert row.scores == score_heads(gold, chain_prediction("right-chain", gold)).scores
    assert "| branching -9 |" in row.signature
    shown = command("evaluate", "-m", model, gold_file, "--branching", -9).stdout
    assert "branching -9" in " ".join(shown.split())


def test_resuming_needs_the_same_heads(model, tmp_path: Path):
    text, out = tmp_path / "text", tmp_path / "out"
    text.write_bytes(b"the dog barks\n" * WINDOW + b"\xff\n")
    given = ("parse", "-m", model, text, "--format", "json", "--out", out)
    assert command(*given).returncode == 2
    text.write_text("the dog barks\n" * (WINDOW + 1))
    refused = command(*given, "--heads", "constituents", "--resume")
    assert "had another heads (projective, not constituents)" in " ".join(refused.stderr.split())
    assert command(*given, "--resume").returncode == 0


def test_trees_in_comments_of_conllu_are_members_of_an_average(tmp_path: Path):
    trees = ["(ROOT (S (NP (D the) (N dog)) (V barks) (. .)))", "(ROOT (S (D a) (X (N cat) (V sleeps))))"]
    parses = list(read_brackets(trees, "trees"))
    blocks = [write_conllu(Sentence.from_tokens(parse.words), parse.tags, parse, None) for parse in parses]
    (tmp_path / "other.conllu").write_text("\n".join(blocks) + "\n")
    (tmp_path / "other.trees").write_text("\n".join(trees))
    found, expected = (TreeLookup(tmp_path / f"other.{ending}") for ending in ("conllu", "trees"))
    for parse in reversed(parses):
        words = [word for word in parse.words if word != "."]
        assert found.spans_of(words).tolist() == expected.spans_of(words).tolist()
    ensemble = ramify.Ensemble([tmp_path / "other.conllu"])
    assert (1, 3) in map(tuple, ensemble("a cat sleeps").parse.spans.tolist())
    (tmp_path / "bare.conllu").write_text(GOLD)
    with pytest.raises(RamifyError, match="the comment '# constituency"):
        TreeLookup(tmp_path / "bare.conllu")


def test_drawn_trees_show_the_head_of_every_constituent_that_has_one(model):
    drawn = command("parse", "-m", model, "--format", "pretty", given="the dog , barks\n").stdout
    assert "X[barks]" in drawn
    assert drawn.count("[") == 2
    parse = make_parse("abcd", "____", [(0, 4), (0, 2), (2, 4)], "XYZ")
    assert with_head_words(parse, (3, 0, 4, 2)).labels == ("X[b]", "Y", "Z[d]")


def test_systems_are_scored_by_the_command(model, gold_file):
    given = ("--baseline", "left-chain", "--baseline", "right-chain", "--predicted", f"other={gold_file}", gold_file)
    result = command("evaluate", "-m", model, *given, "--json")
    assert result.returncode == 0, result.stderr
    rows = {row["system"]: row for row in map(json.loads, result.stdout.splitlines())}
    assert list(rows) == [f"{model} (mbr)", "other", "left-chain", "right-chain"]
    assert rows["other"]["scores"] == {"directed": 100, "undirected": 100, "words": 6, "sentences": 2}
    assert rows[f"{model} (mbr)"]["scores"] == rows["right-chain"]["scores"]
    assert rows["left-chain"]["scores"]["directed"] == pytest.approx(100 / 6)
    shown = command("evaluate", *given, "--details").stdout
    assert "heads, root included" in shown
    assert "Directed accuracy by length" in shown


def test_no_head_of_a_sentence_without_a_parse_counts_as_right(gold_file):
    class Failing:
        def bonus_for(self, decoder, branching):  # noqa: ARG002
            return 0.0

        def analyse_many(self, sentences, decoder, seed, branching, heads):  # noqa: ARG002
            unknown = np.zeros(4, bool)
            yield Analysis.flat(sentences[0], unknown, "too long")
            yield dataclasses.replace(Analysis.flat(sentences[1], unknown[:2]), heads=(2, 0))

    gold = load_gold_heads(gold_file)
    prediction = predict_heads(Failing(), gold, "failing", heads="constituents")  # type: ignore[arg-type]
    found = score_heads(gold, prediction)
    assert found.system == "failing (mbr, constituents)"
    assert found.failures == {"too long": (1,)}
    assert found.scores.directed == found.scores.undirected == pytest.approx(100 * 2 / 6)
    [line] = failure_lines([found], 2, "All their heads count as wrong.")
    assert line.endswith("All their heads count as wrong.")


def test_runs_get_a_row_for_their_mean(gold_file):
    result = command(
        "evaluate", "--baseline", "a=left-chain", "--baseline", "a=right-chain", gold_file, "--json"
    ).stdout.splitlines()
    first, second, mean = map(json.loads, result)
    directed = [row["scores"]["directed"] for row in (first, second)]
    assert mean["system"] == "mean of 2: a"
    assert mean["run_directed"] == directed
    assert mean["scores"]["directed"] == pytest.approx(sum(directed) / 2)
    assert mean["directed_std"] == pytest.approx(abs(directed[0] - directed[1]) / 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--baseline", "left"], "baseline 'left' has no heads; for CoNLL-U choose one of left-chain"),
        (
            ["--baseline", "left-chain", "--evalb"],
            "contains heads, not trees; leave out --words, --convention and --evalb",
        ),
        (["--baseline", "left-chain", "--words", "none"], "contains heads, not trees"),
        (
            ["--predicted", "a.conllu", "--predicted", "b.conllu", "--average"],
            "contains heads, but an average has none; leave out --average",
        ),
        (["--baseline", "left-chain", "--max-length", "1"], "max-length"),
    ],
)
def test_options_without_meaning_for_heads_are_refused(gold_file, arguments, message):
    result = command("evaluate", *arguments, gold_file)
    assert result.returncode == 2
    assert message in " ".join(result.stderr.split())


@pytest.mark.parametrize("name", [*BAD_HEADS, "tabs lost", "broken ID", "overlapping ranges"])
@pytest.mark.parametrize("side", ["gold", "predicted"])
def test_evaluation_reports_a_damaged_file_in_one_sentence(gold_file, tmp_path: Path, side, name):
    bad = tmp_path / "bad.conllu"
    text, message = BAD_HEADS.get(name) or BAD_WORDS[name]
    bad.write_text(FIRST + text + "\n")
    given = ["--baseline", "left-chain", bad] if side == "gold" else ["--predicted", bad, gold_file]
    if side == "predicted":
        words = [line.split("\t") for line in text.splitlines() if line.split("\t")[0].isdecimal()]
        rows = [word(n, columns[1], n - 1) for n, columns in enumerate(words, start=1)]
        gold_file.write_text(FIRST + "".join(rows) + "\n\n")
    result = command("evaluate", *given)
    assert result.returncode == 2
    complaint = " ".join(result.stderr.split())
    assert complaint.startswith(f"error: {bad}, line ")
    if name in BAD_HEADS:
        assert message.partition(": ")[2].partition(" in line ")[0] in complaint


def test_a_model_without_heads_and_a_chain_without_trees_are_refused(without_heads, gold_file, tmp_path: Path):
    result = command("evaluate", "-m", without_heads, gold_file)
    assert result.returncode == 2
    assert f"{without_heads} has no heads; score it against bracketed trees" in " ".join(result.stderr.split())
    (tmp_path / "gold.trees").write_text("(TOP (S (NP (D the) (N dog)) (V barks)))\n")
    result = command("evaluate", "--baseline", "left-chain", tmp_path / "gold.trees")
    assert "baseline 'left-chain' has heads but no trees" in result.stderr
    result = command("compare", "left", "right", gold_file)
    assert "contains heads in CoNLL-U, not trees" in result.stderr


@pytest.mark.needs("spacy")
def test_conllu_is_written_and_read_back(model):
    given = "the dog, barks (loud) .\n\nyes\n. .\n"
    result = command("parse", "-m", model, "--format", "conllu", "--tokenise", "en", given=given)
    assert result.returncode == 0, result.stderr
    first, second, third = read_conllu(result.stdout.splitlines(keepends=True), "output")
    assert first.comments == (
        "# text = the dog, barks (loud) .",
        "# constituency = (ROOT (X (_ the) (X (_ dog) (PUNCT ,) (X (_ barks) (PUNCT -LRB-) (_ loud)))) "
        "(PUNCT -RRB-) (PUNCT .))",
    )
    assert first.forms == ("the", "dog", ",", "barks", "(", "loud", ")", ".")
    assert first.head_numbers() == (2, 4, 2, 6, 4, 0, 6, 6)
    assert first.upos == ("_", "_", "PUNCT", "_", "PUNCT", "_", "PUNCT", "PUNCT")
    assert "2\tdog\t_\t_\t_\t_\t4\tdep\t_\tSpaceAfter=No\n3\t,\t_\tPUNCT\t_\t_\t2\tpunct\t_\t_\n" in result.stdout
    assert second.head_numbers() == (0,)
    assert third.heads == ("_", "_")
    assert result.stdout.endswith("\n\n")


def test_without_heads_the_columns_are_empty_and_trees_are_scored_from_the_comments(without_heads, tmp_path):
    trees = "(TOP (S (NP (D the) (N dog)) (V barks) (. .)))\n(TOP (S (NP (D a) (N cat)) (V sleeps)))\n"
    (tmp_path / "gold.trees").write_text(trees)
    out = tmp_path / "out.conllu"
    result = command("parse", "-m", without_heads, tmp_path / "gold.trees", "--format", "conllu", "--out", out)
    assert result.returncode == 0, result.stderr
    first, _ = read_conllu(out.read_text().splitlines(keepends=True), "out")
    assert first.heads == ("_",) * 4
    with pytest.raises(RamifyError, match="'the' has no head"):
        first.head_numbers()
    result = command("evaluate", "-m", without_heads, "--predicted", out, tmp_path / "gold.trees", "--json")
    ours, theirs = map(json.loads, result.stdout.splitlines())
    assert ours["scores"] == theirs["scores"]
    assert ours["labels"] == theirs["labels"]
    bare = tmp_path / "bare.conllu"
    bare.write_text("".join(line for line in out.read_text().splitlines(keepends=True) if "constituency" not in line))
    result = command("evaluate", "--predicted", bare, tmp_path / "gold.trees")
    assert "the comment '# constituency = (ROOT ...)'" in " ".join(result.stderr.split())
    result = command(
        "parse", "-m", without_heads, "--format", "conllu", "--out", tmp_path / "x", "--resume", given="a b"
    )
    assert "Only formats with one line per sentence can be resumed" in result.stderr


token = st.text(st.characters(exclude_categories=("Cs", "Cc", "Z")), min_size=1, max_size=6)


@given(st.lists(st.tuples(token, st.booleans(), st.booleans()), min_size=1, max_size=8), st.integers(0, 99), st.data())
def test_written_conllu_is_read_back(tokens, seed, data):
    forms = tuple(form for form, _, _ in tokens)
    if len(forms) > 1 and set(forms) == {"_"}:
        return
    text, offsets = "", []
    for form, _, space in tokens:
        offsets.append((len(text), len(text) + len(form)))
        text += form + " " * space
    sentence = Sentence(text, tuple(offsets), tuple(is_word for _, is_word, _ in tokens))
    heads = data.draw(st.sampled_from([None, random_tree(len(forms), seed)]))
    tree = make_parse(forms, ["T"] * len(forms), [(0, len(forms))], ["NT"])
    written = write_conllu(sentence, tree.tags, tree, heads) + "\n"
    (read,) = read_conllu(written.split("\n"), "written")
    assert read.forms == forms
    assert [upos == "PUNCT" for upos in read.upos] == [not is_word for is_word in sentence.is_word]
    assert read.heads == (("_",) * len(forms) if heads is None else tuple(map(str, heads)))
    found = read.constituency()
    assert found is not None
    assert found.spans.tolist() == tree.spans.tolist()
    assert [word.replace("-LRB-", "(").replace("-RRB-", ")") for word in found.words] == [
        form.replace("-LRB-", "(").replace("-RRB-", ")") for form in forms
    ]
    assert read.comments[0] == "# text = " + text.rstrip(" ")


def test_chains_on_a_real_treebank_are_what_another_count_gives(data_folder: Path):
    """Counted over the raw lines, with dependents of punctuation moved up one token at a time."""
    file = data_folder / "ud" / "fr-sequoia" / "test.conllu"
    right = left = words = 0
    for block in file.read_text(encoding="utf-8").split("\n\n"):
        rows = [line.split("\t") for line in block.split("\n") if line.split("\t")[0].isdecimal()]
        head, punct = {row[0]: row[6] for row in rows}, {row[0] for row in rows if row[3] == "PUNCT"}
        kept = [row[0] for row in rows if row[0] not in punct]
        if len(kept) < 2:
            continue
        while any(head[word] in punct for word in kept):
            head = {word: head[above] if above in punct else above for word, above in head.items()}
        words += len(kept)
        left += sum(head[word] == before for word, before in zip(kept, ["0", *kept], strict=False))
        right += sum(head[word] == after for word, after in zip(kept, [*kept[1:], "0"], strict=True))
    gold = load_gold_heads(file)
    for name, count in (("left-chain", left), ("right-chain", right)):
        scores = score_heads(gold, chain_prediction(name, gold)).scores
        assert scores.words == words
        assert scores.directed == pytest.approx(100 * count / words)

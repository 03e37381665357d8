"""Several parsers as one."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import ramify
from ramify.cli import app
from ramify.corpus.brackets import write_brackets
from ramify.corpus.builtin import builtin_treebank
from ramify.errors import RamifyError
from ramify.evaluation.agreement import MemberAgreement
from ramify.evaluation.baselines import balanced, left_branching, random_tree, right_branching
from ramify.evaluation.gold import unlabelled_parse
from ramify.storage.ensemble_folder import checksum_of
from tests.conftest import FIXTURES
from tests.structures.brute_force import bracketings, spans_of

TINY = {"preterminals": 8, "rank": 8, "embedding": 16, "epochs": 2, "batch_size": 8, "learning_rate": 0.01}


def run(*arguments: object, code: int = 0):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, (result.output, result.exception)
    return result


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two grammars with different families, symbols and vocabularies, and trees of two other parsers."""
    folder = tmp_path_factory.mktemp("ensemble")
    for name, parses in builtin_treebank(0, train=150, dev=10, test=40).items():
        (folder / f"{name}.trees").write_text("".join(write_brackets(parse) + "\n" for parse in parses))
    ramify.train(folder / "train.trees", folder / "tn", **TINY)
    ramify.train(
        folder / "train.trees", folder / "n", model="n-pcfg", vocabulary=40, **TINY | {"preterminals": 6, "rank": None}
    )
    test = builtin_treebank(0, train=150, dev=10, test=40)["test"]
    for name, branching in (("left", left_branching), ("right", right_branching), ("balanced", balanced)):
        trees = (unlabelled_parse(parse.words, branching(len(parse))) for parse in test)
        (folder / f"{name}.trees").write_text("".join(write_brackets(tree) + "\n" for tree in trees))
    return folder


@pytest.fixture(scope="module")
def sentences() -> list[list[str]]:
    test = builtin_treebank(0, train=150, dev=10, test=40)["test"]
    return [list(parse.words) for parse in test if 3 <= len(parse) <= 8]


def score(table: np.ndarray, spans) -> float:
    return sum(float(table[i, j]) for i, j in spans if j - i > 1)


@pytest.mark.parametrize("weights", [None, [1.0, 3.0, 0.5]])
def test_no_tree_has_a_higher_weighted_sum_of_posteriors(folder, sentences, weights):
    members = [folder / "tn", folder / "n", folder / "balanced.trees"]
    ensemble = ramify.Ensemble(members, weights)
    parsers = [ramify.load(folder / "tn"), ramify.load(folder / "n")]
    weights = weights or [1.0, 1.0, 0.25]  # trees beside posteriors count a quarter
    share = np.array(weights) / sum(weights)
    for words in sentences[:12]:
        N = len(words)
        expected = sum(w * parser.posteriors(words) for w, parser in zip(share, parsers, strict=False))
        for i, j in balanced(N):
            expected[i, j] += share[2]
        found = ensemble.analyse(words)
        np.testing.assert_allclose(np.triu(found.posteriors, 2), np.triu(expected, 2), atol=1e-5)
        best = max(score(expected, spans_of(tree)) for tree in bracketings(0, N))
        assert score(expected, found.parse.spans) == pytest.approx(best, abs=1e-5)
        assert len(found.parse.spans) == N - 1


def test_members_with_trees_alone_count_a_quarter_only_beside_posteriors(folder):
    models = FIXTURES / "models"
    with_trees = [models / "on-lstm", models / "diora"]
    assert ramify.Ensemble([models / "crf", *with_trees]).weights == (1, 0.25, 0.25)
    assert ramify.Ensemble(with_trees).weights == (1, 1)
    assert ramify.Ensemble([folder / "tn", folder / "left.trees"]).weights == (1, 0.25)
    assert ramify.Ensemble([folder / "tn", folder / "left.trees"], [1, 1]).weights == (1, 1)


def test_an_average_of_trees_has_the_best_mean_f1(folder, sentences):
    names = ("left", "right", "balanced")
    ensemble = ramify.Ensemble([folder / f"{name}.trees" for name in names])
    for words in sentences[:12]:
        N = len(words)
        trees = [{tuple(span) for span in tree(N).tolist()} for tree in (left_branching, right_branching, balanced)]

        def mean_f1(spans, trees=trees):
            return sum(len(set(spans) & tree) for tree in trees)  # all have as many spans

        found = ensemble.analyse(words).parse
        best = max(mean_f1([s for s in spans_of(tree) if s[1] - s[0] > 1]) for tree in bracketings(0, N))
        assert mean_f1([tuple(span) for span in found.spans.tolist()]) == best
        assert set(found.labels) == {"X"}


def test_an_ensemble_of_one_is_that_model(folder, sentences):
    parser, ensemble = ramify.load(folder / "tn"), ramify.Ensemble([folder / "tn"])
    for one, other in zip(parser.pipe(sentences), ensemble.pipe(sentences), strict=True):
        assert one.parse == other.parse
        assert one.log_probability == other.log_probability
        assert np.array_equal(one.posteriors, other.posteriors)
    twice = ramify.Ensemble([parser, folder / "tn"])
    for one, other in zip(parser.pipe(sentences), twice.pipe(sentences), strict=True):
        assert one.parse.spans.tolist() == other.parse.spans.tolist()


def test_labels_are_the_most_probable_ones_given_the_averaged_tree(folder, sentences):
    """By the posterior of every label when all other brackets are impossible."""
    ensemble = ramify.Ensemble([folder / "tn", folder / "balanced.trees", folder / "balanced.trees"])
    parser = ramify.load(folder / "tn")
    for words in sentences[:6]:
        found = ensemble.analyse(words)
        pcfg = parser.distributions([words])
        scores = pcfg.scores() - 1e4
        for i, j in found.parse.spans:
            scores[0, i, j] = 0
        for i in range(len(words)):
            scores[0, i, i + 1] = 0
        labels, tags = pcfg.with_span_scores(scores).symbol_posteriors()
        for (i, j), label, p in zip(found.parse.spans, found.parse.labels, found.label_posteriors, strict=True):
            best = int(labels[0, i, j].argmax())
            assert label == parser.labels[best]
            assert p == pytest.approx(float(labels[0, i, j, best]) * found.posteriors[i, j], abs=1e-4)
        assert found.parse.tags == tuple(parser.tags[t] for t in tags[0].argmax(-1))


def test_punctuation_and_short_sentences_are_as_usual(folder):
    ensemble = ramify.Ensemble([folder / "tn", folder / "n"])
    found = list(ensemble.pipe(["", "dog", "the dog", "the old man saw a dog"]))
    assert [len(each.parse.spans) for each in found] == [0, 0, 1, 5]
    assert [each.failure for each in found] == [None] * 4
    assert np.isnan(found[3].log_probability)
    assert json.loads(ramify.parser.FORMATS["json"](found[3]))["log_probability"] is None
    too_long = next(ensemble.analyse_many(["the old man saw a dog"], max_length=3))
    assert too_long.failure == "too long"


def test_members_that_fail_do_not_vote(folder, sentences, monkeypatch):
    ensemble = ramify.Ensemble([folder / "tn", folder / "balanced.trees"])
    views = type(ensemble.members[0]).views

    def failing(self, given, max_length=None):  # noqa: ARG001
        return views(self, given, 1)

    monkeypatch.setattr(type(ensemble.members[0]), "views", failing)
    words = sentences[0]
    found = ensemble.analyse(words)
    assert found.parse.spans.tolist() == balanced(len(words)).tolist()
    assert found.posteriors.max() == 1
    alone = ramify.Ensemble([folder / "tn", folder / "tn"]).analyse(words)
    assert alone.failure == "too long"


def test_a_saved_ensemble_is_the_same(folder, sentences, tmp_path):
    ensemble = ramify.Ensemble([f"first={folder / 'tn'}", folder / "n"], [2.0, 1.0])
    ensemble.save(tmp_path / "both")
    loaded = ramify.load(tmp_path / "both")
    assert isinstance(loaded, ramify.Ensemble)
    assert loaded.names == ("first", "n")
    assert loaded.weights == (2.0, 1.0)
    for one, other in zip(ensemble.pipe(sentences), loaded.pipe(sentences), strict=True):
        assert one.parse == other.parse
    assert ramify.evaluate(loaded, folder / "test.trees").perplexity is None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["both"]
    with pytest.raises(RamifyError, match="not empty"):
        ensemble.save(tmp_path / "both")
    inner = ramify.Ensemble([loaded, folder / "n"])  # an ensemble among the members counts as its own members
    assert inner.names == ("first", "n #2", "n #3")
    assert inner.weights == pytest.approx((2 / 3, 1 / 3, 1))


def test_an_ensemble_that_cannot_be_saved_leaves_nothing(folder, tmp_path):
    with pytest.raises(RamifyError, match="is not a trained model"):
        ramify.Ensemble([folder / "tn", folder / "left.trees"]).save(tmp_path / "both")
    broken = ramify.Ensemble([folder / "tn", folder / "n"])
    broken.members[1].parser.description = None
    with pytest.raises(RamifyError, match="trained model"):
        broken.save(tmp_path / "both")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda config: config["ensemble"][0].update(folder="../tn"), "the list of members"),
        (
            lambda config: config["ensemble"][0].update(folder="member-99"),
            "member-99: this model folder does not exist",
        ),
        (lambda config: config["ensemble"][0].update(weight=-1), "the list of members"),
        (lambda config: config["ensemble"][0].update(weight=float("nan")), "the list of members"),
        (lambda config: config["ensemble"][0].update(sha256="0" * 64), "differs from the member that was saved"),
        (lambda config: config.update(ensemble=[]), "the list of members"),
        (lambda config: config.update(ensemble=7), "the list of members"),
        (lambda config: config.update(format=9), "format"),
        (lambda config: config.update(words=None), "config.json"),
    ],
)
def test_a_changed_folder_is_refused(folder, tmp_path, change, message):
    ramify.Ensemble([folder / "tn", folder / "n"]).save(tmp_path / "both")
    config = json.loads((tmp_path / "both" / "config.json").read_text())
    change(config)
    (tmp_path / "both" / "config.json").write_text(json.dumps(config))
    with pytest.raises(RamifyError, match=message):
        ramify.load(tmp_path / "both")


def test_a_member_outside_the_folder_is_refused(folder, tmp_path):
    ramify.Ensemble([folder / "tn", folder / "n"]).save(tmp_path / "both")
    shutil.move(tmp_path / "both" / "member-1", tmp_path / "elsewhere")
    (tmp_path / "both" / "member-1").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RamifyError, match="member-1: is a link"):
        ramify.load(tmp_path / "both")


def test_commands_average(folder, tmp_path):
    test = folder / "test.trees"
    averaged = run("parse", "-m", folder / "tn", "-m", folder / "n", "--trees", folder / "left.trees", test)
    ensemble = ramify.Ensemble([folder / "tn", folder / "n", folder / "left.trees"])
    expected = [write_brackets(each.parse) for each in ensemble.pipe(list(map(list, _words())))]
    assert averaged.stdout.splitlines() == expected
    run("ensemble", "-m", folder / "tn", "-m", folder / "n", "--out", tmp_path / "both")
    both = run("parse", "-m", tmp_path / "both", test).stdout
    assert both == run("parse", "-m", folder / "tn", "-m", folder / "n", test).stdout
    run("parse", "-m", tmp_path / "both", "--out", tmp_path / "out", test)
    assert (tmp_path / "out").read_text() == both


def _words() -> list[tuple[str, ...]]:
    return [parse.words for parse in builtin_treebank(0, train=150, dev=10, test=40)["test"]]


def test_evaluate_shows_the_average_and_the_agreement_of_members(folder):
    members = ["-m", folder / "tn", "-m", folder / "n", "--predicted", folder / "balanced.trees"]
    printed = run("evaluate", *members, "--average", folder / "test.trees").stdout
    assert "average of 3" in printed
    assert "S-F1 between the members" in printed
    rows = [
        json.loads(line)
        for line in run("evaluate", *members, "--average", "--json", folder / "test.trees").stdout.splitlines()
    ]
    average = next(row for row in rows if row["system"].startswith("average"))
    ensemble = ramify.Ensemble([folder / "tn", folder / "n", folder / "balanced.trees"])
    expected = ramify.evaluate(ensemble, folder / "test.trees")
    assert average["scores"]["sentence_f1"] == pytest.approx(expected.scores.sentence_f1)
    assert average["agreement"]["columns"][-3:] == ["average", "left", "right"]
    assert average["perplexity"] is None


def test_compare_takes_an_average_as_one_side(folder):
    one = json.loads(
        run("compare", "right", "-m", folder / "tn", "--trees", folder / "left.trees", folder / "test.trees",
            "--samples", 10, "--json").stdout
    )  # fmt: skip
    assert one["systems"][1]["system"] == "average of 2 (mbr)"
    three = run("compare", "right", "left", "-m", folder / "tn", "-m", folder / "n", folder / "test.trees", code=1)
    assert "needs two systems, not 3" in str(three.exception)


def test_commands_that_need_one_model_say_so(folder, tmp_path):
    ramify.Ensemble([folder / "tn", folder / "n"]).save(tmp_path / "both")
    test = str(folder / "test.trees")
    for command in (["score", test], ["generate"], ["export", "--out", str(tmp_path / "rules.pcfg")], ["grammar"]):
        result = CliRunner().invoke(app, [*command, "-m", str(tmp_path / "both")])
        assert isinstance(result.exception, RamifyError), command
        assert "is an ensemble" in str(result.exception)


def test_decoders_by_derivation_are_refused(folder):
    ensemble = ramify.Ensemble([folder / "tn", folder / "n"])
    with pytest.raises(RamifyError, match="use mbr"):
        next(ensemble.analyse_many(["a b"], decoder="viterbi"))


def test_different_words_are_refused_with_the_sentence(tmp_path):
    """One grammar was learnt from text with punctuation, the other from text without."""
    lines = ["the dog saw a cat .", "a cat saw the dog .", "it saw the cat ."] * 5
    kept = ramify.fit(lines, punctuation="keep", **TINY)
    removed = ramify.fit(lines, **TINY)
    ensemble = ramify.Ensemble([removed, kept])
    assert len(ensemble.parse("the dog saw a cat").leaves()) == 5
    with pytest.raises(RamifyError, match=r"different words in 'it saw the cat \.', first at '\.'"):
        ensemble.parse("it saw the cat .")
    kept.save(tmp_path / "kept")
    removed.save(tmp_path / "removed")
    (tmp_path / "text").write_text("a cat\nit saw the cat .\n")
    result = run("parse", "-m", tmp_path / "kept", "-m", tmp_path / "removed", tmp_path / "text", code=1)
    assert "text, line 2" in str(result.exception)


@pytest.mark.needs("spacy")
def test_different_tokenisers_are_refused_unless_one_is_given(tmp_path):
    lines = ["the dog saw a cat", "a cat saw the dog", "it saw the cat"] * 5
    ramify.fit(lines, **TINY).save(tmp_path / "spaces")
    ramify.fit(lines, tokenise="en", **TINY).save(tmp_path / "english")
    members = ["-m", tmp_path / "spaces", "-m", tmp_path / "english"]
    (tmp_path / "text").write_text("it's a dog\n")
    refused = run("parse", *members, tmp_path / "text", code=1)
    assert "different words" in str(refused.exception)
    for order in (members, [*members[2:], *members[:2]]):  # whichever comes first
        assert "'s" in run("parse", *order, "--tokenise", "en", tmp_path / "text").stdout


def test_members_with_different_rules_for_words_are_refused(folder):
    other = ramify.fit(ramify.corpus.reading.read_sentences(folder / "train.trees"), words="NN", **TINY)
    with pytest.raises(RamifyError, match="different rules for words"):
        ramify.Ensemble([folder / "tn", other])


@pytest.mark.parametrize("weights", [[1.0], [1.0, -1.0], [1.0, 0.0], [1.0, float("inf")]])
def test_weights_are_checked(folder, weights):
    with pytest.raises(RamifyError, match="positive number for each member"):
        ramify.Ensemble([folder / "tn", folder / "n"], weights)


def test_a_list_of_members_is_needed():
    for wrong in ("runs/one", []):
        with pytest.raises(RamifyError, match="list of members"):
            ramify.Ensemble(wrong)


def agreement_of(*trees, count: int = 30) -> MemberAgreement:
    found = MemberAgreement([f"m{place}" for place in range(len(trees))])
    for n in range(8, 8 + count):
        found.add([tree(n) for tree in trees], trees[0](n), n)
    return found


def test_agreement_is_the_mean_f1_of_two_trees():
    found = MemberAgreement(["a", "b"])
    found.add([np.array([[0, 4], [0, 2], [2, 4]]), np.array([[0, 4], [1, 4], [2, 4]])], right_branching(4), 4)
    found.add([left_branching(3), left_branching(3)], left_branching(3), 3)
    found.add([left_branching(2), left_branching(2)], left_branching(2), 2)  # has only one tree, so it says nothing
    assert found.sentences == 2
    assert found.table[0, 1] == pytest.approx(75)
    assert found.with_others() == pytest.approx([75, 75])
    columns = dict(zip(found.columns, found.table[0], strict=True))
    assert columns["average"] == pytest.approx(75)
    assert columns["left"] == pytest.approx((50 + 100) / 2)
    assert columns["right"] == pytest.approx(25)


def test_members_that_branch_one_way_collapsed():
    rng = np.random.default_rng(0)
    found = agreement_of(balanced, left_branching, right_branching, lambda n: random_tree(n, rng)).collapsed()
    assert "left branching" in found["m1"]
    assert "right branching" in found["m2"]
    assert "m0" not in found


def test_a_member_far_from_the_others_collapsed():
    rng = np.random.default_rng(0)
    assert list(agreement_of(balanced, balanced, balanced, lambda n: random_tree(n, rng)).collapsed()) == ["m3"]
    assert agreement_of(balanced, lambda n: random_tree(n, rng)).collapsed() == {}  # of two, which one is wrong?
    assert agreement_of(balanced, balanced, right_branching, count=10).collapsed() == {}  # too few sentences


def test_collapsed_members_are_named_and_left_out_only_on_request(folder, tmp_path):
    found = run("parse", "-m", folder / "tn", "--trees", folder / "right.trees", folder / "test.trees")
    assert "right.trees may have collapsed: its trees are nearly right branching" in found.stderr
    ensemble = ramify.Ensemble([folder / "tn", folder / "right.trees"])
    agreement = ensemble.agreement(list(map(list, _words())))
    assert list(agreement.collapsed()) == ["right.trees"]
    assert ensemble.without(agreement.collapsed()).names == ("tn",)
    with pytest.raises(RamifyError, match=r"tn, because; right\.trees, because"):
        ensemble.without(dict.fromkeys(ensemble.names, "because"))
    run("ensemble", "-m", folder / "tn", "-m", folder / "n", "--leave-out-collapsed", "--out", tmp_path / "x", code=1)
    printed = run("ensemble", "-m", folder / "tn", "-m", folder / "n", "--out", tmp_path / "x", folder / "test.trees")
    assert "S-F1 between the members" in printed.stdout
    assert checksum_of(tmp_path / "x") == checksum_of(tmp_path / "x")


def test_a_branching_bonus_is_named_in_the_signature(folder):
    parser = ramify.load(folder / "tn")
    for system in (parser, ramify.Ensemble([parser, folder / "n"])):
        favoured = ramify.evaluate(system, folder / "test.trees", branching=5.0)
        assert "branching 5" in favoured.signature
        right = ramify.evaluate("right", folder / "test.trees")
        assert favoured.scores.sentence_f1 == pytest.approx(right.scores.sentence_f1)
        assert "branching" not in ramify.evaluate(system, folder / "test.trees").signature
    with pytest.raises(RamifyError, match="branching bonus does not work with the decoder"):
        next(parser.analyse_many(["a b"], "viterbi", branching=1.0))
    with pytest.raises(RamifyError, match="finite"):
        next(parser.analyse_many(["a b"], branching=float("nan")))

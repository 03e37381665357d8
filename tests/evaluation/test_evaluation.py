import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ramify.corpus.brackets import read_brackets
from ramify.corpus.builtin import builtin_treebank
from ramify.corpus.cleaning import WordRule
from ramify.corpus.reading import Corpus
from ramify.errors import RamifyError
from ramify.evaluation.baselines import RANDOM_RUNS, baseline_predictions
from ramify.evaluation.evaluation import Evaluation, mean_of_runs, score
from ramify.evaluation.gold import Gold, Prediction, load_gold, unlabelled_parse
from ramify.evaluation.labels import recall_by_label
from ramify.evaluation.spans import CONVENTIONS, Convention
from ramify.version import VERSION


@pytest.fixture(scope="module", name="gold")
def _gold() -> Gold:
    return load_gold(Corpus(builtin_treebank(0, train=1, dev=1, test=60)["test"], "brackets", "test", "ab12cd34ef"))


def random_runs(gold: Gold) -> list[Evaluation]:
    return [score(gold, prediction) for prediction in baseline_predictions("random", gold, seed=3)]


def test_the_signature_names_everything_a_score_depends_on(gold: Gold) -> None:
    assert gold.signature("tn") == (
        f"ramify {VERSION} | S-F1 tn | words none | sentences of 2+ words | data sha256:ab12cd34"
    )
    short = load_gold(gold.corpus, WordRule.from_name("Y X"), longest=10)
    assert "kim | words X Y | sentences of 2-10 words" in short.signature("kim")
    assert max(short.lengths) == 10
    found = score(gold, baseline_predictions("right", gold)[0], "kim")
    assert found.signature == gold.signature("kim")


def test_short_sentences_and_those_without_words_are_left_out_but_keep_their_places() -> None:
    lines = ["(S (NN dog))", "(X (. .))", "(S (DT the) (NN dog) (. .))", "(S (DT a) (NN dog) (VBZ runs))"]
    corpus = Corpus(list(read_brackets(lines, "x")), "brackets", "x", "0")
    gold = load_gold(corpus, WordRule.from_name("."))
    assert (gold.lengths, gold.places) == ([2, 3], [2, 3])
    assert load_gold(corpus, WordRule.from_name("."), longest=2).places == [2]
    with pytest.raises(RamifyError, match="x: no sentence has 2-2 words"):
        load_gold(corpus, WordRule.from_name("none"), longest=2)


@settings(max_examples=25)  # every one relabels the whole treebank
@given(st.integers(0, 2**32 - 1), st.sampled_from(CONVENTIONS))
def test_f1_is_unchanged_by_relabelling(gold: Gold, seed: int, convention: Convention) -> None:
    rng = np.random.default_rng(seed)
    renamed = [replace(parse, labels=tuple(map(str, rng.integers(9, size=len(parse.labels))))) for parse in gold.parses]
    prediction = baseline_predictions("random", gold, seed)[0]
    before, after = score(gold, prediction, convention), score(replace(gold, parses=renamed), prediction, convention)
    assert before.by_convention == after.by_convention
    assert before.by_length == after.by_length
    assert score(gold, Prediction("gold", renamed), convention).scores.sentence_f1 == 100


def test_a_mean_over_runs_is_the_mean_of_every_score(gold: Gold) -> None:
    runs = random_runs(gold)
    mean = mean_of_runs(runs, "random", best="run 3")
    f1 = [run.scores.sentence_f1 for run in runs]
    assert len(set(f1)) == RANDOM_RUNS
    assert mean.run_f1 == tuple(f1)
    assert mean.scores.sentence_f1 == pytest.approx(np.mean(f1))
    # The biased one, as in published tables.
    assert mean.f1_std == pytest.approx(np.sqrt(np.mean((np.array(f1) - np.mean(f1)) ** 2)))
    assert mean.f1_max == max(f1)
    for label, recall in mean.recall_by_label.items():
        each = [run.recall_by_label[label].recall for run in runs]
        assert recall.recall == pytest.approx(np.mean(each))
        assert recall.constituents == runs[0].recall_by_label[label].constituents
    assert mean.by_length["2-10"].corpus_f1 == pytest.approx(np.mean([r.by_length["2-10"].corpus_f1 for r in runs]))
    assert (mean.system, mean.best_by_dev_likelihood) == ("random", "run 3")
    assert mean_of_runs(runs[:1], "random") == runs[0]
    assert (runs[0].f1_std, runs[0].f1_max) == (None, None)


def test_random_trees_are_seeded(gold: Gold) -> None:
    assert random_runs(gold) == random_runs(gold)
    other = [score(gold, prediction) for prediction in baseline_predictions("random", gold, seed=4)]
    assert other[0].scores != random_runs(gold)[0].scores
    with pytest.raises(RamifyError, match="seed is -1"):
        baseline_predictions("random", gold, seed=-1)


def test_every_sentence_of_a_baseline_moves_the_counter(gold: Gold) -> None:
    moved: list[int] = []
    baseline_predictions("random", gold, on_sentence=lambda: moved.append(1))
    assert len(moved) == RANDOM_RUNS * len(gold.parses)


def test_gold_as_its_own_prediction_is_perfect_in_everything(gold: Gold) -> None:
    log_p = [-1.0 * n for n in gold.lengths[:-1]] + [-np.inf]
    found = score(gold, Prediction("gold", gold.parses, log_p, failures={"no derivation": (9,)}), with_evalb=True)
    assert found.labels is not None
    assert found.tags is not None
    assert (found.labels.many_to_one, found.tags.many_to_one, found.tags.v_measure) == (100, 100, pytest.approx(100))
    assert found.recall_homogeneity == pytest.approx(100)
    assert all(recall.recall == 100 for recall in found.recall_by_label.values())
    assert sum(recall.share for recall in found.recall_by_label.values()) == pytest.approx(100)
    assert found.evalb is not None
    assert found.evalb["all"].f1 == 100
    assert (found.perplexity, found.not_derived) == (np.inf, 1)
    record = json.loads(json.dumps(found.as_record(), allow_nan=False))
    assert record["perplexity"] is None
    assert record["by_convention"]["kim"]["sentence_f1"] == 100
    assert "EVALB COLLINS.prm" in record["evalb_signature"]


def test_recall_homogeneity_is_a_product(gold: Gold) -> None:
    # All labels right, but half of the constituents, the last ones, not found.
    half = [replace(p, spans=p.spans[: len(p.spans) // 2], labels=p.labels[: len(p.spans) // 2]) for p in gold.parses]
    found = score(gold, Prediction("half", half))
    assert found.labels is not None
    assert found.labels.homogeneity == pytest.approx(100)
    assert found.recall_homogeneity == pytest.approx(found.scores.recall)
    assert 20 < found.scores.recall < 60


def test_systems_without_labels_have_no_agreement(gold: Gold) -> None:
    bare = Prediction("bare", [unlabelled_parse(parse.words, parse.spans) for parse in gold.parses])
    found = score(gold, bare, with_evalb=True)
    assert found.scores.sentence_f1 == 100
    assert (found.labels, found.tags, found.recall_homogeneity, found.evalb, found.calibration) == (None,) * 5
    assert found.recall_by_label == recall_by_label(gold.parses, gold.spans)

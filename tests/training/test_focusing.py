"""Training focused on the trees of other parsers."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

import ramify
from ramify.corpus.brackets import write_brackets
from ramify.corpus.builtin import builtin_treebank
from ramify.corpus.reading import read_sentences
from ramify.corpus.tree import Parse
from ramify.decoding.best_trees import add_branching
from ramify.errors import RamifyError, RamifyWarning
from ramify.evaluation.baselines import balanced, left_branching, right_branching
from ramify.evaluation.gold import unlabelled_parse
from ramify.models import FAMILIES
from ramify.parser.ensemble_members import ModelMember, TreesMember, View, open_member
from ramify.training.dev_set import dev_measure
from ramify.training.focusing import SpanScores, scores_of_teachers
from ramify.training.settings import Settings, recorded_settings
from tests.structures.brute_force import tree_weights
from tests.training.test_resume import Crash, crash_after, same

BRANCHING = (left_branching, right_branching)
SMALL = {"preterminals": 8, "nonterminals": 4, "rank": 8, "embedding": 16, "epochs": 3, "batch_size": 8}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("focus")
    parses = builtin_treebank(1, train=120, dev=1, test=1)["train"]
    (folder / "text.txt").write_text("".join(" ".join(parse.words) + "\n" for parse in parses))
    for name, branching in (("left", left_branching), ("right", right_branching)):
        trees = (unlabelled_parse(parse.words, branching(len(parse))) for parse in parses)
        (folder / f"{name}.trees").write_text("".join(write_brackets(tree) + "\n" for tree in trees))
    ramify.train(folder / "text.txt", folder / "teacher", seed=5, **SMALL)
    return folder


@pytest.fixture(scope="module")
def student(folder: Path) -> Path:
    ramify.train(folder / "text.txt", folder / "student", teachers=[folder / "teacher", folder / "left.trees"], **SMALL)
    return folder / "student"


@pytest.mark.parametrize("family", ["tn-pcfg", "sn-pcfg", "hol-pcfg", "n-pcfg", "td-pcfg", "em-pcfg", "c-pcfg"])
def test_the_objective_is_the_logarithm_of_all_favoured_trees(family):
    torch.manual_seed(0)
    arguments = FAMILIES[family].arguments({"preterminals": 4, "nonterminals": 3}, words=9)
    model = FAMILIES[family](**arguments).double()
    lengths, generator = torch.tensor([5, 2, 4]), torch.Generator().manual_seed(1)
    word_ids = torch.randint(9, (3, 5), generator=generator)
    scores = 2 * torch.rand(3, 6, 6, generator=generator, dtype=torch.float64).triu(2)
    pcfg, cost = model.with_cost(word_ids, lengths)
    expected = [sum(tree_weights(pcfg, b, scores).values()).log() - cost[b] for b in range(3)]
    found = model.objective(word_ids, lengths, span_scores=scores)
    assert found.tolist() == pytest.approx([each.item() for each in expected], abs=1e-9)


def test_strength_zero_is_ordinary_training_bit_for_bit(folder, tmp_path):
    ramify.train(folder / "text.txt", tmp_path / "plain", **SMALL)
    ramify.train(folder / "text.txt", tmp_path / "zero", teachers=[folder / "left.trees"], focus=0.0, **SMALL)
    plain, zero = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("plain", "zero"))
    assert plain == zero


def test_a_student_follows_its_teachers(folder):
    text = (folder / "text.txt").read_text().splitlines()
    f1 = {}
    for name in ("left", "right"):
        parser = ramify.fit(text, teachers=[folder / f"{name}.trees"], focus=3.0, learning_rate=0.01, **SMALL)
        f1[name] = ramify.evaluate(parser, folder / f"{name}.trees").scores.sentence_f1
    assert min(f1.values()) > 90


def test_the_epoch_is_chosen_and_reported_without_scores(folder, student):
    records = [json.loads(line) for line in (student / "metrics.jsonl").read_text().splitlines()]
    assert all(record["train_perplexity"] is None for record in records)
    best = min(record["dev_perplexity"] for record in records)
    assert records[-1]["best_epoch"] == 1 + [record["dev_perplexity"] for record in records].index(best)
    held_out = [line for place, line in enumerate((folder / "text.txt").read_text().splitlines(), 1) if place % 20 == 0]
    log_p = list(ramify.load(student).log_probabilities(held_out))
    words = sum(len(line.split()) + 1 for line in held_out)
    assert math.exp(-sum(log_p) / words) == pytest.approx(best, rel=1e-4)


def test_a_student_of_an_average_keeps_the_epoch_that_agrees_best_with_it(folder, tmp_path):
    text = (folder / "text.txt").read_text().splitlines()
    teachers = [folder / "teacher", folder / "left.trees"]
    data = {"teachers": teachers, "dev": text[:30], "focus_on": "average", "focus": 2.0, "learning_rate": 0.01}
    with pytest.raises(Crash):
        ramify.train(text, tmp_path / "run", on_epoch=crash_after(1), checkpoint_minutes=0, **data, **SMALL)
    parser = ramify.train(text, tmp_path / "run", dev=text[:30], resume=True)
    records = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    agreement = [record["dev_agreement"] for record in records]
    assert records[-1]["best_epoch"] == 1 + agreement.index(max(agreement))
    f1 = []
    systems = parser, ramify.Ensemble(teachers)
    for ours, theirs in zip(*(system.analyse_many(text[:30]) for system in systems), strict=True):
        length = len(ours.parse)
        one, other = (set(map(tuple, each.parse.spans.tolist())) - {(0, length)} for each in (ours, theirs))
        f1.append(2 * len(one & other) / (len(one) + len(other)) if one or other else 1.0)
    assert 100 * sum(f1) / len(f1) == pytest.approx(max(agreement), abs=0.01)


def test_agreement_counts_more_than_perplexity():
    better, worse = ({"dev_perplexity": x, "dev_agreement": y} for x, y in ((90.0, 60.0), (80.0, 50.0)))
    assert dev_measure(better) < dev_measure(worse)


@pytest.mark.parametrize("steps", [0, 5, 25])
@pytest.mark.slow
def test_a_resumed_student_is_the_same_to_the_bit_and_needs_no_teachers(folder, student, tmp_path, steps):
    teachers = [folder / "teacher", folder / "left.trees"]
    with pytest.raises(Crash):
        ramify.train(
            folder / "text.txt", tmp_path / "run", teachers=teachers, checkpoint_minutes=0,
            on_progress=crash_after(steps), **SMALL,
        )  # fmt: skip
    ramify.train(folder / "text.txt", tmp_path / "run", resume=True)
    same(tmp_path / "run", student)


def test_a_student_stopped_while_its_teachers_parse_needs_them_again(folder, student, tmp_path):
    def crash(done: int, total: int) -> None:
        assert (done, total) == (114, 228)  # of 120 sentences, 6 are held out
        raise Crash

    teachers = [folder / "teacher", folder / "left.trees"]
    with pytest.raises(Crash):
        ramify.train(folder / "text.txt", tmp_path / "run", teachers=teachers, on_teacher=crash, **SMALL)
    with pytest.raises(RamifyError, match=r"started with teacher, left\.trees"):
        ramify.train(folder / "text.txt", tmp_path / "run", resume=True)
    with pytest.raises(RamifyError, match="same teachers"):
        ramify.train(folder / "text.txt", tmp_path / "run", teachers=teachers[:1], resume=True)
    ramify.train(folder / "text.txt", tmp_path / "run", teachers=teachers, resume=True)
    same(tmp_path / "run", student)


def test_the_config_names_the_teachers(student):
    teachers = json.loads((student / "config.json").read_text())["teachers"]
    assert [teacher["name"] for teacher in teachers] == ["teacher", "left.trees"]
    assert all(len(teacher["sha256"]) == 64 for teacher in teachers)


def test_scores_are_sums_of_posteriors_or_counts_of_trees(folder):
    corpus = read_sentences(folder / "text.txt")
    teacher = ramify.load(folder / "teacher")
    members = [open_member(folder / "teacher"), open_member(folder / "left.trees"), open_member(folder / "left.trees")]
    place = next(place for place, parse in enumerate(corpus.parses) if len(parse) > 4)
    words = corpus.parses[place].words
    analysis = teacher.analyse(list(words))
    for focus_on in ("posteriors", "trees"):
        table = scores_of_teachers(members, [corpus], focus_on).of([place])[0].numpy()
        expected = np.zeros((len(words) + 1, len(words) + 1))
        if focus_on == "posteriors":
            expected += np.triu(analysis.posteriors, 2)
        else:
            expected[tuple(analysis.parse.spans.T)] += 1
        expected[tuple(left_branching(len(words)).T)] += 2
        np.testing.assert_allclose(table, expected, atol=1e-6)


class Fixed(ModelMember):
    """A model that gives every sentence of N words the tree that `tree` has for N."""

    def __init__(self, name, tree) -> None:
        self.name, self.tree = name, tree

    def views(self, sentences, max_length=None):  # noqa: ARG002
        for sentence in sentences:
            spans = self.tree(len(sentence.words))
            yield View(of_tree(len(sentence.words), spans).astype(np.float32), spans)


def test_a_teacher_that_collapsed_is_left_out_with_a_warning(folder, recwarn):
    corpus = read_sentences(folder / "text.txt")
    good, bad = Fixed("good", balanced), Fixed("bad", left_branching)
    trees = open_member(folder / "left.trees")
    with pytest.warns(RamifyWarning, match="bad is left out.*left branching"):
        found = scores_of_teachers([good, bad, good, trees], [corpus], "posteriors")
    expected = scores_of_teachers([good, trees, good], [corpus], "posteriors")
    assert np.array_equal(found.values, expected.values)
    for teachers in ([bad], [bad, trees], [bad, bad]):  # all that there are
        scores = scores_of_teachers(teachers, [corpus], "trees")
        assert scores.values.max() == len(teachers)
    assert not recwarn.list  # except the expected first one


def test_scores_of_sentences_of_one_length_form_a_batch(tmp_path):
    lengths = [3, 2, 3]
    scores = SpanScores(lengths, np.arange(7, dtype=np.float32))
    batch = scores.of([2, 0])
    assert batch.shape == (2, 4, 4)
    assert batch[0, [0, 0, 1], [2, 3, 3]].tolist() == [4, 5, 6]
    assert batch[1, [0, 0, 1], [2, 3, 3]].tolist() == [0, 1, 2]
    assert float(batch.sum()) == 18
    scores.save(tmp_path)
    assert SpanScores.load(tmp_path, lengths).values.tolist() == scores.values.tolist()
    with pytest.raises(RamifyError, match="another shape"):
        SpanScores.load(tmp_path, [3, 3, 3])


def test_the_strength_decays_epoch_by_epoch():
    settings = Settings(focus=2.0, focus_decay=0.5)
    assert [settings.focus_in(epoch) for epoch in (1, 2, 3)] == [2.0, 1.0, 0.5]
    assert Settings().focus_in(7) == 1.0


def test_the_strength_of_each_epoch_reaches_the_model(folder, monkeypatch):
    seen = []
    objective = FAMILIES["tn-pcfg"].objective

    def watched(self, *arguments, span_scores=None, **others):
        if self.training:
            seen.append(0.0 if span_scores is None else float(span_scores.max()))
        return objective(self, *arguments, span_scores=span_scores, **others)

    monkeypatch.setattr(FAMILIES["tn-pcfg"], "objective", watched)
    text = (folder / "text.txt").read_text().splitlines()
    ramify.fit(text, teachers=[folder / "left.trees"] * 2, focus=1.5, focus_decay=0.5, **SMALL | {"batch_size": 200})
    assert set(seen) == {3.0, 1.5, 0.75}
    seen.clear()
    ramify.fit(text, teachers=[folder / "left.trees"], focus_decay=0.0, **SMALL | {"batch_size": 200, "epochs": 2})
    assert set(seen) == {1.0, 0.0}


def test_sentences_left_out_by_a_curriculum_keep_their_scores(folder, monkeypatch):
    """With short sentences alone, places in the epoch are not places in the corpus."""
    seen = []
    objective = FAMILIES["tn-pcfg"].objective

    def watched(self, *arguments, span_scores=None, **others):
        if span_scores is not None:
            seen.extend(map(float, span_scores.sum((1, 2))))
        return objective(self, *arguments, span_scores=span_scores, **others)

    monkeypatch.setattr(FAMILIES["tn-pcfg"], "objective", watched)
    text = ["a b c d e f", "a b c", "d e f g h", "c b a"] * 5
    (folder / "some.trees").write_text("(((((a b) c) d) e) f)\n((a b) c)\n((((d e) f) g) h)\n(c (b a))\n")
    ramify.fit(text, teachers=[folder / "some.trees"], curriculum=3, **SMALL | {"epochs": 1})
    assert set(seen) == {2.0}  # of every tree over three words


def of_tree(length: int, spans: np.ndarray) -> np.ndarray:
    table = np.zeros((length + 1, length + 1))
    table[spans[:, 0], spans[:, 1]] = 1
    return table


@pytest.mark.parametrize("bonus", [0.0, 2.0, -2.0])
def test_an_average_teaches_its_trees_with_the_bonus(folder, bonus):
    corpus = read_sentences(folder / "text.txt")
    teacher = ramify.load(folder / "teacher")
    teacher.branching = bonus
    members = [ModelMember(teacher, "teacher"), open_member(folder / "left.trees")]
    found = scores_of_teachers(members, [corpus], "average")
    ensemble = ramify.Ensemble(members)
    for place, analysis in enumerate(ensemble.analyse_many([parse.words for parse in corpus.parses])):
        tree, scores = found.of([place])[0].numpy(), analysis.posteriors.copy()
        add_branching(scores, ensemble.branching)
        # Trees may differ if their scores differ only in the last digits.
        expected = scores[tuple(analysis.parse.spans.T)].sum()
        assert tree.sum() == len(analysis.parse.words) - 1
        assert (scores * tree).sum() == pytest.approx(expected, abs=1e-4)
    if abs(bonus) > 1:  # more than any posterior, so that these trees are known
        side = right_branching if bonus > 0 else left_branching
        place = max(range(len(corpus.parses)), key=lambda place: len(corpus.parses[place]))
        length = len(corpus.parses[place])
        np.testing.assert_array_equal(found.of([place])[0].numpy(), of_tree(length, side(length)))


def test_progress_counts_the_sentences_of_every_teacher(folder):
    corpus = read_sentences(folder / "text.txt")
    members = [open_member(folder / "left.trees"), open_member(folder / "right.trees")]
    for focus_on, total in (("trees", 240), ("average", 120)):
        seen: list[tuple[int, int]] = []
        scores_of_teachers(members, [corpus], focus_on, lambda *counts, seen=seen: seen.append(counts))
        assert seen == [(done, total) for done in range(120, total + 1, 120)]


def test_a_setting_of_earlier_versions_is_accepted(student):
    settings = json.loads((student / "config.json").read_text())["settings"]
    assert recorded_settings(settings | {"focus_branching": 0.2}) == recorded_settings(settings)


def test_a_sentence_without_a_tree_is_named(folder):
    line = (folder / "text.txt").read_text().splitlines()[0]
    with pytest.raises(RamifyError, match=r"left\.trees: contains no tree for sentences, sentence 2 \(quite new\)"):
        ramify.fit([line, "quite new", line, line], dev=[line], teachers=[folder / "left.trees"], **SMALL)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"focus": 1.0}, "focus has no effect without teachers"),
        ({"focus_on": "average"}, "focus_on has no effect without teachers"),
        ({"focus_decay": 0.5}, "focus_decay has no effect without teachers"),
        ({"teachers": ["right"]}, "neither a model folder nor a file of trees"),
        ({"teachers": "runs"}, "must be a list"),
        ({"teachers": ["nowhere"]}, "nowhere"),
        ({"focus": -1.0}, "at least 0"),
        ({"focus": math.nan}, "at least 0"),
        ({"focus_decay": math.inf}, "at least 0"),
        ({"focus_on": "leaves"}, "posteriors, trees, average"),
    ],
)
def test_invalid_settings_are_refused(settings, message):
    with pytest.raises(RamifyError, match=message):
        ramify.fit(["a b c", "b c a"], **{**SMALL, **settings})


def test_a_family_that_takes_no_span_scores_is_refused(folder, monkeypatch):
    monkeypatch.setattr(FAMILIES["tn-pcfg"], "takes_span_scores", False)
    with pytest.raises(RamifyError, match="tn-pcfg does not support teachers"):
        ramify.fit(["a b c", "b c a"], teachers=[folder / "left.trees"], epochs=1)


def test_parsers_in_memory_can_teach(folder):
    text = (folder / "text.txt").read_text().splitlines()
    teacher = ramify.load(folder / "teacher")
    ours = ramify.fit(text, teachers=[teacher], **SMALL)
    theirs = ramify.fit(text, teachers=[str(folder / "teacher")], **SMALL)
    assert all(map(torch.equal, ours.model.state_dict().values(), theirs.model.state_dict().values()))


def test_trees_are_found_by_their_words_in_any_order(tmp_path):
    path = tmp_path / "trees"
    path.write_text("(S (X the dog) barks)\n(S a (X (X dog , ) barks))\n(S (X the dog) barks)\n(S the (X dog barks))\n")
    member = TreesMember(path, "trees")

    def spans(*words: str) -> list[list[int]]:
        (view,) = member.views([ramify.parser.tree_parser.Sentence.from_tokens(words)])
        return sorted(view.spans.tolist())

    assert spans("A", "dog", "barks") == [[0, 3], [1, 3]]  # the comma is left out
    # A repeated sentence gets its trees in order, then the last one.
    assert [spans("the", "dog", "barks")[0] for _ in range(4)] == [[0, 2], [0, 2], [0, 3], [0, 3]]


def test_a_parser_that_fails_has_an_empty_view(folder):
    member = ModelMember(ramify.load(folder / "teacher"), "teacher")
    parse = Parse(("the",) * 9, ("_",) * 9, np.zeros((0, 2), np.int32), ())
    (view,) = member.views([ramify.parser.tree_parser.Sentence.from_tokens(parse.words)], max_length=4)
    assert view.failure == "too long"
    assert not view.posteriors.any()
    assert len(view.spans) == 0

"""The tree CRF with span scores from an LSTM: network and loss compared with explicit loops, and a whole run."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

import ramify
from ramify.corpus.brackets import write_brackets
from ramify.corpus.builtin import builtin_treebank
from ramify.errors import RamifyError
from ramify.evaluation.baselines import left_branching, right_branching
from ramify.evaluation.gold import unlabelled_parse
from ramify.models import CRF, crf
from ramify.models.crf import mean_posteriors
from tests.command import ramify as command
from tests.structures.brute_force import bracketings, spans_of
from tests.training.test_resume import Crash, crash_after, same

SMALL = {"embedding": 8, "width": 8, "batch_size": 8, "epochs": 3, "learning_rate": 0.02, "dropout": 0.1}
LENGTHS = [5, 2, 1, 4]


def small(layers: int = 2, seed: int = 0) -> CRF:
    torch.manual_seed(seed)
    model = CRF(words=9, embedding=3, width=4, layers=layers).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(8)  # so that scores differ from each other
    return model


def batch(lengths=LENGTHS, seed: int = 1) -> tuple[Tensor, Tensor]:
    word_ids = torch.randint(9, (len(lengths), max(lengths)), generator=torch.Generator().manual_seed(seed))
    return word_ids, torch.tensor(lengths)


def states(model: CRF, words: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Forward and backward states of the last layer, word by word (Hochreiter and Schmidhuber 1997)."""
    weights = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    x = weights["embedding.weight"][[9, *words, 10]]

    def sigmoid(z: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-z))

    for layer in range(len(model.encoder)):
        found = {}
        for suffix, order in (("", range(len(x))), ("_reverse", reversed(range(len(x))))):
            w_x, w_h, b_x, b_h = (
                weights[f"encoder.{layer}.{kind}_l0{suffix}"]
                for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            )
            h, c = np.zeros(4), np.zeros(4)
            for t in order:
                into, forget, cell, out = np.split(w_x @ x[t] + b_x + w_h @ h + b_h, 4)
                c = sigmoid(forget) * c + sigmoid(into) * np.tanh(cell)
                h = sigmoid(out) * np.tanh(c)
                found[suffix, t] = h
        forward, backward = (np.stack([found[suffix, t] for t in range(len(x))]) for suffix in ("", "_reverse"))
        x = np.concatenate([forward, backward], 1)
    return forward, backward


def span_score(model: CRF, words: list[int], i: int, j: int) -> float:
    """v' relu(W [f_j - f_i; b_i - b_j] + c); state t has read the symbol at place t, where 0 is the start symbol."""
    forward, backward = states(model, words)
    difference = np.concatenate([forward[j] - forward[i], backward[i + 1] - backward[j + 1]])
    hidden = model.hidden.weight.detach().numpy() @ difference + model.hidden.bias.detach().numpy()
    return float(model.score.weight.detach().numpy()[0] @ np.maximum(hidden, 0))


@pytest.mark.parametrize("layers", [1, 2])
def test_span_scores_are_those_of_an_explicit_loop(layers):
    model = small(layers)
    word_ids, lengths = batch()
    found = model(word_ids, lengths).log_potentials.detach()
    for b, length in enumerate(LENGTHS):
        words = word_ids[b, :length].tolist()
        for i in range(length):
            for j in range(i + 2, length + 1):
                assert found[b, i, j].item() == pytest.approx(span_score(model, words, i, j))
    assert not found.tril(1).any()  # nor have single words a score
    assert found.std() > 0.1


def random_teachers(lengths=LENGTHS) -> tuple[Tensor, list[list[tuple[frozenset, float]]]]:
    """Span scores of distributions over all trees, three teachers strong, and these distributions."""
    rng, table, every = np.random.default_rng(2), torch.zeros(len(lengths), max(lengths) + 1, max(lengths) + 1), []
    table = table.double()
    for b, length in enumerate(lengths):
        trees = [spans_of(tree) for tree in bracketings(0, length)]
        shares = rng.dirichlet(np.ones(len(trees)))
        every.append(list(zip(trees, shares.tolist(), strict=True)))
        for spans, share in every[-1]:
            for i, j in spans:
                if j - i > 1:
                    table[b, i, j] += 3 * share
    return table, every


def test_the_objective_is_minus_the_cross_entropy_of_the_teachers_trees():
    """E[log p(t | w)] by enumeration, and its gradient by the span scores: theirs minus ours."""
    model = small()
    word_ids, lengths = batch()
    table, teachers = random_teachers()
    found = model.objective(word_ids, lengths, span_scores=table)
    trees = model(word_ids, lengths)
    for b, length in enumerate(LENGTHS):
        scores = trees.log_potentials[b]
        log_weights = [sum(scores[i, j] for i, j in spans if j - i > 1) for spans, _ in teachers[b]]
        log_z = torch.stack([torch.as_tensor(x).double() for x in log_weights]).logsumexp(0)
        expected = sum(share * (x - log_z) for (_, share), x in zip(teachers[b], log_weights, strict=True))
        assert found[b].item() == pytest.approx(float(expected.detach()), abs=1e-9)
        if length == 1:
            assert found[b] == 0
    (gradient,) = torch.autograd.grad(found.sum(), model.score.weight, retain_graph=True)
    difference = (table.where(lengths[:, None, None] > 1, 0) / 3 - trees.marginals().spans.triu(2)).detach()
    (expected,) = torch.autograd.grad((difference * trees.log_potentials).sum(), model.score.weight)
    torch.testing.assert_close(gradient, expected)


def test_the_scale_of_the_teachers_does_not_count_and_sentences_without_a_teacher_teach_nothing():
    model = small()
    word_ids, lengths = batch()
    table, _ = random_teachers()
    factors = torch.tensor([2.0, 0.5, 1.0, 0.0])
    once, scaled = (model.objective(word_ids, lengths, span_scores=x) for x in (table, table * factors[:, None, None]))
    torch.testing.assert_close(scaled[:3], once[:3])
    assert once[3] < 0
    assert scaled[3] == 0
    gradients = torch.autograd.grad(scaled[2:].sum(), list(model.parameters()))
    assert not any(gradient.any() for gradient in gradients)


def test_a_sentence_does_not_depend_on_its_padding_or_its_batch():
    model = small()
    word_ids, lengths = batch()
    table, _ = random_teachers()
    word_ids[1, 2:] = 7
    together = model.objective(word_ids, lengths, span_scores=table)
    posteriors = model.marginals(word_ids, lengths).spans
    for b, length in enumerate(LENGTHS):
        alone = word_ids[b : b + 1, :length], lengths[b : b + 1]
        scores = table[b : b + 1, : length + 1, : length + 1]
        one = model.objective(*alone, span_scores=scores)
        torch.testing.assert_close(one[0], together[b])
        torch.testing.assert_close(model.marginals(*alone).spans[0], posteriors[b, : length + 1, : length + 1])
        ours, theirs = (
            torch.autograd.grad(x, list(model.parameters()), retain_graph=True, materialize_grads=True)
            for x in (one[0], together[b])
        )
        for mine, other in zip(ours, theirs, strict=True):
            torch.testing.assert_close(mine, other)


def test_every_parameter_learns_and_dropout_depends_on_the_noise_alone():
    model = small()
    word_ids, lengths = batch()
    table, _ = random_teachers()

    def objective(seed: int | None, dropout: float = 0.5) -> Tensor:
        noise = None if seed is None else torch.Generator().manual_seed(seed)
        return model.objective(word_ids, lengths, noise, dropout, span_scores=table)

    assert torch.equal(objective(1), objective(1))
    assert not torch.equal(objective(1), objective(2))
    assert torch.equal(objective(None, 0.0), objective(3, 0.0))
    objective(None, 0.0).sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad.abs().max() > 0, name


def test_embeddings_and_the_states_of_every_layer_drop_out(monkeypatch):
    dropped = []

    def watched(x: Tensor, share: float, noise: torch.Generator | None) -> Tensor:
        dropped.append((tuple(x.shape), share, noise))
        return x

    monkeypatch.setattr(crf, "apply_dropout", watched)
    noise = torch.Generator()
    small(layers=2)(*batch(), noise, 0.4)
    assert dropped == [(shape, 0.4, noise) for shape in ((4, 7, 3), (4, 7, 8), (4, 7, 8))]


def test_without_span_scores_there_is_no_objective():
    with pytest.raises(ValueError, match="span scores"):
        small().objective(*batch())


def test_trees_that_are_not_binary_are_refused():
    table = torch.zeros(1, 4, 4)
    table[0, 0, 3] = table[0, 0, 2] = 2
    assert mean_posteriors(table, torch.tensor([3]))[0].sum() == 2
    table[0, 0, 2] = 1.9
    with pytest.raises(RamifyError, match="binary"):
        mean_posteriors(table, torch.tensor([3]))


def test_wrong_sizes_are_refused():
    for name in ("words", "embedding", "width", "layers"):
        with pytest.raises(ValueError, match=f"{name} is 0"):
            CRF(**{"words": 3, name: 0})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Text, two files of trees over it, and a model."""
    folder = tmp_path_factory.mktemp("crf")
    parses = builtin_treebank(1, train=80, dev=1, test=1)["train"]
    (folder / "text.txt").write_text("".join(" ".join(parse.words) + "\n" for parse in parses))
    for name, branching in (("left", left_branching), ("right", right_branching)):
        trees = (unlabelled_parse(parse.words, branching(len(parse))) for parse in parses)
        (folder / f"{name}.trees").write_text("".join(write_brackets(tree) + "\n" for tree in trees))
    grammar = {"preterminals": 4, "nonterminals": 2, "rank": 4, "embedding": 8, "epochs": 1}
    ramify.train(folder / "text.txt", folder / "grammar", **grammar)
    ramify.train(folder / "text.txt", folder / "whole", model="crf", teachers=teachers(folder), **SMALL)
    return folder


def teachers(folder: Path) -> list[Path]:
    return [folder / "grammar", folder / "left.trees"]


@pytest.mark.parametrize("steps", [0, 7])
@pytest.mark.slow
def test_a_resumed_run_is_the_same_to_the_bit_and_needs_no_teachers(folder, tmp_path, steps):
    with pytest.raises(Crash):
        ramify.train(
            folder / "text.txt", tmp_path / "run", model="crf", teachers=teachers(folder), checkpoint_minutes=0,
            on_progress=crash_after(steps), **SMALL,
        )  # fmt: skip
    ramify.train(folder / "text.txt", tmp_path / "run", resume=True)
    same(tmp_path / "run", folder / "whole")


def test_the_epoch_is_chosen_by_the_cross_entropy_of_the_dev_set(folder):
    """Including the scores of the teachers."""
    records = [json.loads(line) for line in (folder / "whole" / "metrics.jsonl").read_text().splitlines()]
    losses = [record["dev_loss"] for record in records]
    assert all(record["dev_perplexity"] is None for record in records)
    assert losses[-1] < losses[0]
    assert records[-1]["best_epoch"] == 1 + losses.index(min(losses))


def test_a_student_finds_its_teachers_trees_again(folder):
    """On ten sentences: the loss reaches its minimum, and a loaded model gives the same trees."""
    sentences = (folder / "text.txt").read_text().splitlines()[:10]
    for name in ("left", "right"):
        seen = []
        parser = ramify.fit(
            sentences, dev=sentences, model="crf", teachers=[folder / f"{name}.trees"], embedding=16, width=16,
            epochs=25, learning_rate=0.02, dropout=0.0, batch_size=4,
            on_epoch=lambda record, seen=seen: seen.append(record["dev_loss"]),
        )  # fmt: skip
        assert seen[-1] < 0.1 * seen[0]
        parser.save(folder / f"student of {name}")
        again = ramify.load(folder / f"student of {name}")
        (folder / "gold").write_text("".join((folder / f"{name}.trees").read_text().splitlines(True)[:10]))
        result = ramify.evaluate(again, folder / "gold")
        assert result.scores.sentence_f1 > 95
        assert result.perplexity is None


def test_analyses_have_posteriors_and_obey_constraints(folder):
    parser = ramify.load(folder / "whole")
    analysis = parser.analyse("the dog saw a cat")
    assert analysis.failure is None
    assert analysis.posteriors[0, 5] == pytest.approx(1)
    assert np.triu(analysis.posteriors, 2).sum() == pytest.approx(4, abs=1e-4)
    constrained = parser.analyse("the dog saw a cat", constraints={"must_not": analysis.parse.spans[1:].tolist()})
    assert not {*map(tuple, constrained.parse.spans[1:])} & {*map(tuple, analysis.parse.spans[1:])}
    assert parser.analyse("dog").failure is None
    with pytest.raises(RamifyError, match="needs a grammar"):
        parser.analyse("the dog saw a cat", decoder="viterbi")


def test_a_student_can_teach_and_join_an_ensemble(folder):
    text = (folder / "text.txt").read_text().splitlines()[:20]
    student = ramify.fit(text, model="crf", teachers=[folder / "whole"], **SMALL | {"epochs": 1})
    together = ramify.Ensemble([student, ramify.load(folder / "whole")])
    assert len(together.analyse("the dog saw a cat").parse.spans) == 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "crf learns only from the trees of other parsers"),
        (["--teacher", "left.trees", "--focus", "1"], "leave out focus"),
        (["--teacher", "left.trees", "--preterminals", "3"], "crf has no option preterminals"),
        (["--teacher", "flat.trees"], "binary trees"),
    ],
)
def test_invalid_options_are_refused_on_the_command_line(folder, monkeypatch, options, message):
    monkeypatch.chdir(folder)
    lines = (folder / "text.txt").read_text().splitlines()
    (folder / "flat.trees").write_text("".join(f"(S {line})\n" for line in lines))
    result = command("train", "text.txt", "--model", "crf", "--out", "refused", *options)
    assert result.returncode == 2
    assert message in " ".join(result.stderr.split())


def test_the_command_line_trains_on_a_model_and_on_trees(folder, monkeypatch):
    monkeypatch.chdir(folder)
    given = ["--teacher", "grammar", "--teacher", "right.trees", "--width", "4", "--layers", "2", "--epochs", "1"]
    result = command("train", "text.txt", "--model", "crf", "--out", "by-command", *given)
    assert result.returncode == 0, result.stderr
    config = json.loads((folder / "by-command" / "config.json").read_text())
    assert config["grammar"] == {"words": config["grammar"]["words"], "embedding": 128, "width": 4, "layers": 2}
    assert [teacher["name"] for teacher in config["teachers"]] == ["grammar", "right.trees"]

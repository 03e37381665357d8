"""DIORA: charts and loss compared with a recursion over single cells, trees with all trees, and a whole run."""

from __future__ import annotations

import json
import math
from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import ramify
from ramify.corpus.builtin import builtin_treebank
from ramify.models import DIORA
from ramify.models import diora as module
from ramify.models.batches import pad
from ramify.models.diora_charts import best_spans, inside_plan
from tests.structures.brute_force import bracketings, extent, spans_of
from tests.vocabularies import vocabulary_of

CPU = torch.device("cpu")


def small(seed: int = 0, words: int = 30, embedding: int = 5, width: int = 4) -> DIORA:
    """Weights and biases of size one, so that softmaxes are uneven and every term of an equation matters."""
    torch.manual_seed(seed)
    model = DIORA(words, embedding, width).double()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter)
    return model


class Recursion:
    """Vectors and energies of one sentence, cell by cell from the equations."""

    def __init__(self, model: DIORA, word_ids: list[int]) -> None:
        self.tensors = dict(model.named_parameters())
        self.N, self.word_ids = len(word_ids), word_ids
        self.inside, self.outside = cache(self._inside), cache(self._outside)

    def composed(self, which: str, x: Tensor, y: Tensor) -> Tensor:
        hidden = self.tensors[f"{which}.first.weight"] @ torch.cat([x, y]) + self.tensors[f"{which}.first.bias"]
        again = self.tensors[f"{which}.second.weight"] @ hidden.clamp(min=0) + self.tensors[f"{which}.second.bias"]
        return again.clamp(min=0)

    def score(self, which: str, x: Tensor, y: Tensor) -> Tensor:
        return x @ self.tensors[f"{which}.score"] @ y

    def averaged(self, which: str, options: list[tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]]):
        energies = torch.stack([self.score(which, x, y) + e + f for (x, e), (y, f) in options])
        p = energies.exp() / energies.exp().sum()
        vector = sum(p[k] * self.composed(which, x, y) for k, ((x, _), (y, _)) in enumerate(options))
        length = vector.square().sum().sqrt()
        return (vector / length if length > 0 else vector), (p * energies).sum()

    def _inside(self, i: int, j: int) -> tuple[Tensor, Tensor]:
        if j - i == 1:
            x = self.tensors["embedding.weight"][self.word_ids[i]]
            h = (self.tensors["leaf.weight"] @ x + self.tensors["leaf.bias"]).tanh()
            return h / h.square().sum().sqrt(), torch.zeros((), dtype=x.dtype)
        return self.averaged("inside", [(self.inside(i, k), self.inside(k, j)) for k in range(i + 1, j)])

    def _outside(self, i: int, j: int) -> tuple[Tensor, Tensor]:
        if (i, j) == (0, self.N):
            root = self.tensors["root"][0]
            return root / root.square().sum().sqrt(), torch.zeros((), dtype=root.dtype)
        options = [(self.inside(h, i), self.outside(h, j)) for h in range(i)]
        options += [(self.outside(i, k), self.inside(j, k)) for k in range(j + 1, self.N + 1)]
        return self.averaged("outside", options)

    def objective(self, negatives: list[int]) -> Tensor:
        losses = []
        for t, word in enumerate(self.word_ids):
            o, _ = self.outside(t, t + 1)
            rivals = [word] + [other for other in negatives if other != word]
            matrix, embedding = self.tensors["to_words.weight"], self.tensors["embedding.weight"]
            scores = torch.stack([o @ matrix @ embedding[rival] for rival in rivals])
            losses.append((scores.exp() / scores.exp().sum())[0].log())
        return torch.stack(losses).mean()


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_objective_and_gradients_are_those_of_the_recursion_on_a_ragged_batch(seed, monkeypatch):
    monkeypatch.setattr(module, "NEGATIVES", 7)
    model = small(seed)
    lengths = torch.tensor([4, 1, 6, 2, 4])
    word_ids = torch.randint(30, (5, 6))
    negatives = model.negatives(torch.Generator().manual_seed(9)).tolist()
    assert len(set(negatives)) == 7
    found = model.objective(word_ids, lengths, torch.Generator().manual_seed(9))
    for b, length in enumerate(lengths.tolist()):
        expected = Recursion(model, word_ids[b, :length].tolist()).objective(negatives)
        torch.testing.assert_close(found[b], expected, rtol=1e-10, atol=1e-12)
        ours = torch.autograd.grad(found[b], list(model.parameters()), retain_graph=True, allow_unused=True)
        theirs = torch.autograd.grad(expected, list(model.parameters()), allow_unused=True)
        for (name, parameter), one, two in zip(model.named_parameters(), ours, theirs, strict=True):
            one, two = (torch.zeros_like(parameter) if x is None else x for x in (one, two))
            torch.testing.assert_close(one, two, rtol=1e-8, atol=1e-11, msg=f"{name}, length {length}")


def test_vectors_and_energies_of_all_cells_are_those_of_the_recursion():
    """Including all energies of the outside chart, although the loss uses only those of inner cells."""
    model, word_ids = small(3), [3, 1, 4, 1, 5]
    inside, outside = model.charts(torch.tensor([word_ids]))
    recursion = Recursion(model, word_ids)
    spans = [(i, i + width) for width in range(1, 6) for i in range(6 - width)]
    for (vectors, energy), expected, order in (
        (inside, recursion.inside, spans),
        (outside, recursion.outside, [*sorted(spans, key=lambda span: (span[0] - span[1], span[0]))]),
    ):
        assert len(vectors) == len(energy) == len(order)
        for row, span in enumerate(order):
            vector, e = expected(*span)
            torch.testing.assert_close(vectors[row, 0], vector, rtol=1e-10, atol=1e-12)
            torch.testing.assert_close(energy[row, 0], e, rtol=1e-10, atol=1e-12)


def test_a_cell_of_two_words_by_hand():
    """Width 1: the leaves are 1 and -1, the only split composes to a positive number, which becomes 1."""
    model = DIORA(3, embedding=1, width=1).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.embedding.weight.copy_(torch.tensor([[0.0], [2.0], [-1.0]]))
        model.leaf.weight.fill_(1)
        model.inside.first.weight.copy_(torch.tensor([[3.0, 1.0]]))
        model.inside.second.weight.fill_(1)
        model.inside.score.fill_(0.5)
        model.root.fill_(-4)
    (vectors, energy), (around, _) = model.charts(torch.tensor([[1, 2]]))
    assert vectors.flatten().tolist() == [1, -1, 1]
    assert energy.flatten().tolist() == [0, 0, -0.5]
    assert around[0].item() == -1


def test_padding_and_the_rest_of_the_batch_do_not_matter():
    model = small(4).float()
    word_ids, lengths = torch.randint(30, (4, 7)), torch.tensor([3, 7, 5, 3])
    elsewhere = word_ids.clone()
    for row, length in zip(elsewhere, lengths.tolist(), strict=True):
        row[length:] = 29
    objective, spans = model.objective(word_ids, lengths), model.marginals(word_ids, lengths).spans
    torch.testing.assert_close(model.objective(elsewhere, lengths), objective)
    assert torch.equal(model.marginals(elsewhere, lengths).spans, spans)
    for b, length in enumerate(lengths.tolist()):
        alone = word_ids[b : b + 1, :length], lengths[b : b + 1]
        torch.testing.assert_close(model.objective(*alone)[0], objective[b])
        assert torch.equal(model.marginals(*alone).spans[0], spans[b, : length + 1, : length + 1])
        assert spans[b].sum() == length - 1


def test_without_noise_the_negatives_are_always_the_same():
    model = small(5, words=500).float()
    batch = torch.randint(500, (2, 4)), torch.tensor([4, 4])
    assert torch.equal(model.objective(*batch), model.objective(*batch))
    assert model.draws()  # so training passes noise, and every step has other negatives
    noise = torch.Generator().manual_seed(1)
    first, second = model.objective(*batch, noise), model.objective(*batch, noise)
    assert not torch.equal(first, second)
    assert torch.equal(first, model.objective(*batch, torch.Generator().manual_seed(1)))


def test_negatives_are_different_words_drawn_by_the_rank_of_their_frequency():
    noise, counts = torch.Generator().manual_seed(0), torch.zeros(400)
    model = small(words=400)
    for _ in range(300):
        negatives = model.negatives(noise)
        assert len(negatives.unique()) == len(negatives) == 100
        counts[negatives] += 1
    thirds = counts[100:].view(3, 100).sum(1)
    assert (counts[:5] > 250).all()
    assert thirds[0] > 1.2 * thirds[1] > 1.2 * thirds[2]
    assert sorted(small(words=40).negatives(noise).tolist()) == list(range(40))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_an_untrained_model_distinguishes_words_and_favours_no_side(seed):
    """With the vocabulary of a real text: if all word vectors are similar, trees branch to the side that S favours."""
    torch.manual_seed(seed)
    model, N = DIORA(8000), 20
    word_ids = torch.randint(8000, (40, N))
    leaves = model.charts(word_ids)[0][0][:N].flatten(0, 1)
    cosines = leaves @ leaves.T
    assert (cosines.sum() - len(leaves)).abs() / (len(leaves) * (len(leaves) - 1)) < 0.05
    spans = model.marginals(word_ids, torch.full((40,), N)).spans
    # Of a left-branching tree all 18 inner constituents begin with the first word, of a right-branching one none.
    begin, end = spans[:, 0, :N].sum().item(), spans[:, 1:, N].sum().item()
    assert 0.2 < begin / (begin + end) < 0.8
    assert (begin + end) / 40 < 9


def test_untrained_models_guess_and_a_single_word_has_no_alternatives():
    torch.manual_seed(0)
    objective = DIORA(1000).objective(torch.randint(1000, (8, 5)), torch.full((8,), 5))
    assert objective.mean().item() == pytest.approx(-math.log(101), abs=0.1)
    assert small(words=1).objective(torch.zeros(1, 3, dtype=torch.long), torch.tensor([3])).item() == 0


@settings(max_examples=40, deadline=None)
@given(length=st.integers(1, 7), shorter=st.integers(1, 7), seed=st.integers(0, 10**6), whole=st.booleans())
def test_the_tree_is_the_best_of_all_trees(length, shorter, seed, whole):
    """Integers have ties; then any of the best trees is accepted."""
    plan, lengths = inside_plan(length, CPU), torch.tensor([length, min(shorter, length)])
    generator = torch.Generator().manual_seed(seed)
    scores = [torch.randn(*stage.first.shape, 2, generator=generator).double() for stage in plan]
    if whole:
        scores = [each.round() for each in scores]
    found = best_spans(plan, scores, lengths)
    for b, N in enumerate(lengths.tolist()):
        sums = {}
        for tree in bracketings(0, N):
            spans = frozenset((i, j) for i, j in spans_of(tree) if j - i > 1)
            sums[spans] = sum(scores[j - i - 2][i, k - i - 1, b].item() for i, k, j in splits(tree))
        spans = frozenset(map(tuple, found[b].nonzero().tolist()))
        assert sums[spans] == pytest.approx(max(sums.values()))
        assert found[b].unique().tolist() in ([0.0, 1.0], [0.0])


def splits(tree) -> list[tuple[int, int, int]]:
    if isinstance(tree, int):
        return []
    (i, k), (_, j) = extent(tree[0]), extent(tree[1])
    return [(i, k, j), *splits(tree[0]), *splits(tree[1])]


def test_equal_splits_are_made_in_the_middle():
    plan = inside_plan(4, CPU)
    found = best_spans(plan, [torch.zeros(*stage.first.shape, 1) for stage in plan], torch.tensor([4]))
    assert found[0].nonzero().tolist() == [[0, 2], [0, 4], [2, 4]]


def test_the_spans_are_those_of_the_tree_with_the_best_scores_of_the_recursion():
    model, word_ids = small(6), torch.randint(30, (3, 5))
    lengths = torch.tensor([5, 4, 5])
    spans = model.marginals(word_ids, lengths).spans
    for b, N in enumerate(lengths.tolist()):
        recursion = Recursion(model, word_ids[b, :N].tolist())

        def local(i, k, j, recursion=recursion):
            return recursion.score("inside", recursion.inside(i, k)[0], recursion.inside(k, j)[0]).item()

        best = max(bracketings(0, N), key=lambda tree: sum(local(*split) for split in splits(tree)))
        assert set(map(tuple, spans[b].nonzero().tolist())) == {(i, j) for i, j in spans_of(best) if j - i > 1}


def test_the_model_can_be_made_without_memory_and_estimates_its_own():
    with torch.device("meta"):
        model = DIORA(10_000, embedding=64, width=64)
    assert all(parameter.is_meta for parameter in model.parameters())
    assert model.numbers_per_sentence(40) > model.numbers_per_sentence(20) > 0
    assert "width 64" in model.described()
    assert model.sizes() == {"width": 64}


def short_sentences(seed: int, count: int) -> list[tuple[str, ...]]:
    """Sentences of 5 to 7 words."""
    parses = builtin_treebank(seed, train=40 * count, dev=1, test=1)["train"]
    return [parse.words for parse in parses if 5 <= len(parse) <= 7][:count]


@pytest.mark.slow
def test_it_learns_ten_sentences_by_heart():
    sentences = short_sentences(0, 10)
    assert len(sentences) == 10
    vocabulary = vocabulary_of(sentences)
    torch.manual_seed(0)
    model = DIORA(len(vocabulary), embedding=16, width=16)
    learner = model.learner(0.02, 3.0)
    word_ids, lengths = pad([vocabulary.encode(words) for words in sentences], CPU)
    losses = []
    for step in range(80):
        objective = model.objective(word_ids, lengths, torch.Generator().manual_seed(step))
        losses.append(-objective.mean().item())
        learner.update(objective)
    assert losses[0] > 0.9 * math.log(len(vocabulary))
    assert losses[-1] < 0.2 * losses[0]


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    file = tmp_path_factory.mktemp("text") / "text.txt"
    file.write_text("".join(" ".join(words) + "\n" for words in short_sentences(1, 30)))
    return file


def test_it_is_trained_resumed_exactly_saved_loaded_and_scored(text, tmp_path):
    given = {"model": "diora", "width": 8, "embedding": 6, "batch_size": 8, "seed": 3}
    whole = ramify.train(text, tmp_path / "whole", epochs=2, **given)
    ramify.train(text, tmp_path / "parts", epochs=1, **given)
    parts = ramify.train(text, tmp_path / "parts", epochs=2, resume=True)
    for name, tensor in whole.model.state_dict().items():
        assert torch.equal(tensor, parts.model.state_dict()[name]), name
    record = json.loads((tmp_path / "whole" / "metrics.jsonl").read_text().splitlines()[-1])
    assert record["dev_perplexity"] is None
    assert 0 < record["dev_loss"] < 10
    again = ramify.load(tmp_path / "whole")
    analysis = again.analyse("the dog saw a cat")
    np.testing.assert_array_equal(analysis.parse.spans, whole.analyse("the dog saw a cat").parse.spans)
    assert set(np.unique(analysis.posteriors)) == {0, 1}
    gold = tmp_path / "gold.trees"
    gold.write_text("(TOP (S (NP (D the) (N dog)) (VP (V saw) (NP (D a) (N cat)))))\n")
    result = ramify.evaluate(again, gold)
    assert 0 <= result.scores.sentence_f1 <= 100
    assert result.perplexity is None
    with pytest.raises(ramify.RamifyError, match="needs a grammar"):
        again.analyse("the dog saw a cat", decoder="viterbi")
    with pytest.raises(ramify.RamifyError, match=r"diora .*dropout"):
        ramify.train(text, tmp_path / "other", model="diora", dropout=0.1)

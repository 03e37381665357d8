"""Language models with distances: probabilities, causality, ragged batches, dropout, training and parsing."""

from __future__ import annotations

import itertools
import json

import pytest
import torch

import ramify
from ramify.corpus.brackets import write_brackets
from ramify.corpus.builtin import builtin_treebank
from ramify.models import FAMILIES
from ramify.models.batches import pad
from ramify.models.next_word import NextWordModel, drop_units
from tests.vocabularies import vocabulary_of

READERS = [
    name
    for name, family in FAMILIES.items()
    if family.__module__.startswith("ramify.") and issubclass(family, NextWordModel)
]
SMALL = {"embedding": 20, "width": 30}
every_reader = pytest.mark.parametrize("family", READERS)


def made(family: str, words: int = 7, **options: int) -> NextWordModel:
    """A small model of float64 whose probabilities and distances are far from uniform."""
    torch.manual_seed(0)
    model = FAMILIES[family](words=words, **SMALL | options).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter * 3 + 0.1 * torch.randn_like(parameter))
    return model


def next_symbol(model: NextWordModel, prefix: list[int]) -> torch.Tensor:
    """(words + 1,) log-probabilities of the symbol after a prefix, the end last."""
    inputs = model.symbol_embedding[[model.words, *prefix]]
    state = model.read(inputs[None])[0][0, -1]
    return (model.symbol_embedding @ state + model.symbol_bias).log_softmax(0)


def test_there_are_two_families():
    assert READERS == ["on-lstm", "prpn"]


@every_reader
def test_the_objective_is_the_product_of_all_steps(family):
    model = made(family)
    words = [3, 0, 6, 6, 1]
    steps = [next_symbol(model, words[:t])[symbol] for t, symbol in enumerate([*words, model.words])]
    found = model.objective(torch.tensor([words]), torch.tensor([5]))
    torch.testing.assert_close(found[0], torch.stack(steps).sum())


@every_reader
@torch.no_grad()
def test_probabilities_of_all_sentences_sum_to_one(family):
    """The probabilities of all sentences of up to three words, and that of a longer sentence."""
    model = made(family, words=2)
    ended = sum(
        float(model.objective(torch.tensor([[*words, 0]]), torch.tensor([n])).exp())
        for n in range(4)
        for words in itertools.product(range(2), repeat=n)
    )
    not_ended = sum(
        float(sum(next_symbol(model, list(words[:t]))[words[t]] for t in range(4)).exp())
        for words in itertools.product(range(2), repeat=4)
    )
    assert 0.01 < not_ended < 0.99
    assert ended + not_ended == pytest.approx(1, abs=1e-12)


@every_reader
def test_later_words_change_nothing_before_them(family):
    model = made(family)
    word_ids = torch.randint(7, (1, 20), generator=torch.Generator().manual_seed(1))
    states, distances = model.read(model._inputs(word_ids))
    for t in (0, 9, 19):
        changed = word_ids.clone()
        changed[0, t] = (changed[0, t] + 1) % 7
        other_states, other_distances = model.read(model._inputs(changed))
        assert torch.equal(other_distances[0, : t + 1], distances[0, : t + 1])
        assert torch.equal(other_states[0, : t + 1], states[0, : t + 1])
        assert other_distances[0, t + 1] != distances[0, t + 1]
        assert (other_states[0, t + 1] != states[0, t + 1]).any()
        before = model.distances(word_ids, torch.tensor([20])) == model.distances(changed, torch.tensor([20]))
        assert before[0, :t].all()
        assert not before[0, t]


@every_reader
def test_a_sentence_does_not_depend_on_its_batch(family):
    model = made(family)
    sentences = [[3], [5, 1, 2, 2, 0, 4, 6, 1], [6, 6, 1]]

    def results(batch, lengths):
        batch, lengths = torch.tensor(batch), torch.tensor(lengths)
        found = model.objective(batch, lengths)
        gradients = [
            torch.autograd.grad(each, list(model.parameters()), retain_graph=True, materialize_grads=True)
            for each in found
        ]
        return found, model.distances(batch, lengths), gradients

    for padding in (0, 5):
        padded = [words + [padding] * (8 - len(words)) for words in sentences]
        log_p, distances, gradients = results(padded, [1, 8, 3])
        for b, words in enumerate(sentences):
            (alone,), ((*own,),), (own_gradients,) = results([words], [len(words)])
            torch.testing.assert_close(log_p[b], alone)
            torch.testing.assert_close(distances[b, : len(words)], torch.stack(own))
            for ours, theirs in zip(gradients[b], own_gradients, strict=True):
                torch.testing.assert_close(ours, theirs)


@every_reader
def test_marginals_have_the_likelihood_and_the_tree(family):
    model = made(family)
    batch = torch.tensor([[5, 1, 2, 2, 0, 4], [6, 3, 1, 0, 0, 0]]), torch.tensor([6, 3])
    found = model.marginals(*batch)
    torch.testing.assert_close(found.log_partition, model.objective(*batch))
    torch.testing.assert_close(model.distances_and_objective(*batch)[0], model.distances(*batch))
    assert found.spans.sum((1, 2)).tolist() == [5, 2]
    assert found.spans[1, 0, 3] == 1


@every_reader
def test_every_parameter_learns(family):
    model = made(family)
    model.objective(torch.randint(7, (4, 18)), torch.tensor([18, 12, 18, 2])).sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().max() > 0, name


@every_reader
@torch.no_grad()
def test_dropout_follows_the_noise(family):
    model = made(family)
    batch = torch.tensor([[5, 1, 2, 2, 0, 4]]), torch.tensor([6])

    def objective(seed: int | None, dropout: float) -> float:
        noise = None if seed is None else torch.Generator().manual_seed(seed)
        return float(model.objective(*batch, noise, dropout))

    plain = objective(None, 0.0)
    assert objective(None, 0.5) == objective(1, 0.0) == plain
    assert objective(1, 0.5) == objective(1, 0.5)
    assert len({plain, objective(1, 0.5), objective(2, 0.5), objective(1, 0.4)}) == 4


def test_dropped_units_are_the_same_at_all_steps():
    x = drop_units(torch.ones(3, 5, 400), 0.25, torch.Generator().manual_seed(0))
    assert torch.equal(x, x[:, :1].expand(3, 5, 400))
    assert bool(((x == 0) | (x == 1 / 0.75)).all())
    assert (x[:, 0] == 0).float().mean(1).tolist() == pytest.approx([0.25] * 3, abs=0.07)
    assert not torch.equal(x[0], x[1])


@pytest.fixture(scope="module")
def treebank(tmp_path_factory):
    place = tmp_path_factory.mktemp("treebank")
    for name, parses in builtin_treebank(3, train=60, dev=10, test=10).items():
        (place / f"{name}.trees").write_text("".join(write_brackets(parse) + "\n" for parse in parses))
    return place


@pytest.mark.slow
@every_reader
def test_a_model_learns_ten_sentences_by_heart(family):
    parses = builtin_treebank(3, train=10, dev=1, test=1)["train"]
    vocabulary = vocabulary_of([parse.words for parse in parses], 500)
    batch = pad([vocabulary.encode(parse.words) for parse in parses], torch.device("cpu"))
    torch.manual_seed(0)
    model = FAMILIES[family](words=len(vocabulary), embedding=40, width=40)
    learner = model.learner(0.02, 3.0)
    symbols = int((batch[1] + 1).sum())
    perplexities = []
    for _ in range(80):
        log_p = model.objective(*batch)
        perplexities.append(float((-log_p.detach().sum() / symbols).exp()))
        learner.update(log_p)
    assert perplexities[0] > 30
    assert perplexities[-1] < 4


@every_reader
@pytest.mark.slow
def test_a_run_is_resumed_saved_loaded_and_scored(family, treebank, tmp_path):
    settings = {"model": family, "batch_size": 8, "dropout": 0.3, "seed": 2, **SMALL}
    whole = ramify.train(treebank, tmp_path / "whole", epochs=2, **settings)
    ramify.train(treebank, tmp_path / "parts", epochs=1, **settings)
    ramify.train(treebank, tmp_path / "parts", epochs=2, resume=True)
    weights = [(tmp_path / each / "model.safetensors").read_bytes() for each in ("whole", "parts")]
    assert weights[0] == weights[1]
    record = json.loads((tmp_path / "whole" / "metrics.jsonl").read_text().splitlines()[-1])
    again = ramify.load(tmp_path / "whole")
    result = ramify.evaluate(again, treebank / "dev.trees")
    assert result.perplexity == pytest.approx(record["dev_perplexity"], rel=1e-6)
    assert result.scores.sentence_f1 == pytest.approx(record["dev_f1"], abs=0.01)
    text = "the dog saw a cat"
    for decoder in ("mbr", "biased"):
        analysis = again.analyse(text, decoder=decoder)
        assert str(analysis.tree) == str(whole.analyse(text, decoder=decoder).tree)
        assert analysis.log_probability == pytest.approx(next(iter(again.log_probabilities([text]))), rel=1e-6)
        assert len(analysis.parse.spans) == 4


@every_reader
def test_commands_that_need_a_grammar_are_refused(family):
    parser = ramify.fit([["a", "b", "c"]] * 8, model=family, epochs=1, **SMALL)
    for use in (
        lambda: next(parser.generate(1)),
        lambda: parser.grammar,
        lambda: parser.best_parses("a b c"),
        lambda: parser.analyse("a b c", decoder="viterbi"),
        lambda: parser.distributions(["a b c"]),
    ):
        with pytest.raises(ramify.RamifyError, match="needs a grammar"):
            use()
    with pytest.raises(ramify.RamifyError, match="does not support teachers"):
        ramify.fit([["a", "b", "c"]] * 8, model=family, teachers=[parser], **SMALL)


@every_reader
def test_a_model_votes_in_an_ensemble_with_a_grammar(family):
    sentences = [["a", "b", "c", "d"]] * 8
    reader = ramify.fit(sentences, model=family, epochs=1, **SMALL)
    grammar = ramify.fit(sentences, preterminals=4, rank=4, embedding=8, epochs=1)
    found = ramify.Ensemble([reader, grammar]).analyse("a b c d").posteriors
    expected = 0.2 * reader.analyse("a b c d").posteriors + 0.8 * grammar.analyse("a b c d").posteriors
    assert found == pytest.approx(expected, abs=1e-6)

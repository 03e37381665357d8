"""Expectation maximisation: counts are those of all derivations, and every epoch increases the likelihood."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch

from ramify.models import EMPCFG
from ramify.models.em_pcfg import MIN_LOG_PROBABILITY, PSEUDO_COUNT, ExpectationMaximisation
from ramify.storage.checkpoint import Position
from ramify.training.loop import train_epoch
from ramify.training.settings import Settings
from tests.models.normalisation import normalisation_error
from tests.structures.brute_force import derivations
from tests.structures.test_derivations import rules_of

SENTENCES = [np.array(words) for words in ([1, 2, 3], [2, 2], [1, 3, 2, 1], [3, 1], [2, 3, 3])]


def grammar_and_settings() -> tuple[EMPCFG, Settings]:
    torch.manual_seed(0)
    settings = Settings(model="em-pcfg", nonterminals=2, preterminals=2, batch_size=2)
    return EMPCFG(2, 2, 5).double(), settings


def test_an_epoch_is_one_step_of_em():
    grammar, settings = grammar_and_settings()
    root, binary, words = torch.zeros(2), torch.zeros(2, 4, 4), torch.zeros(5, 2)
    for sentence in SENTENCES:
        rules = grammar(torch.from_numpy(sentence)[None], torch.tensor([len(sentence)]))
        found = list(derivations(rules, 0))
        total = sum(d.probability for d in found)
        for d in found:
            share = d.probability / total
            phrases = tuple((i, j, a) for (i, j), a in sorted(d.labels.items(), key=lambda x: (x[0][0], -x[0][1])))
            root[d.labels[0, len(sentence)]] += share
            for rule in rules_of((phrases, d.tags), 2):
                binary[rule] += share
            for word, tag in zip(sentence, d.tags, strict=True):
                words[word, tag] += share
    optimizer = grammar.learner(settings.learning_rate, settings.clip)
    assert isinstance(optimizer, ExpectationMaximisation)
    train_epoch(grammar, optimizer, SENTENCES, settings, Position())
    words += PSEUDO_COUNT
    expected = {"root": root / root.sum(), "binary": binary / binary.sum((1, 2), keepdim=True), "word_table": words}
    expected["word_table"] = words / words.sum(0)
    for name, parameter in grammar.named_parameters():
        torch.testing.assert_close(parameter.detach().exp().float(), expected[name], msg=name)
    assert max(normalisation_error(grammar).values()) < 1e-9


def test_no_epoch_makes_the_text_less_probable():
    grammar, settings = grammar_and_settings()
    optimizer, seen = grammar.learner(settings.learning_rate, settings.clip), []
    for epoch in range(1, 15):
        position = Position(epoch=epoch)
        train_epoch(grammar, optimizer, SENTENCES, settings, position)
        seen.append(position.log_probability)
    # The added counts of words are a prior, which may cost a tiny amount of likelihood.
    assert all(later > earlier - 0.05 for earlier, later in pairwise(seen))
    assert seen[-1] > seen[0] + 1


def test_an_epoch_without_sentences_left_changes_nothing():
    grammar, settings = grammar_and_settings()
    optimizer = grammar.learner(settings.learning_rate, settings.clip)
    position = Position()
    train_epoch(grammar, optimizer, SENTENCES, settings, position)
    before = grammar.binary.detach().clone()
    train_epoch(grammar, optimizer, SENTENCES, settings, position)
    assert torch.equal(grammar.binary, before)


def test_an_unused_symbol_keeps_its_rules():
    grammar, _ = grammar_and_settings()
    before = grammar.binary.detach().clone()
    counts = torch.zeros(2, 4, 4, dtype=torch.float64)
    counts[0, 1, 2] = 3
    grammar.maximise([torch.tensor([1.0, 0.0]).double(), counts, torch.ones(5, 2).double()])
    assert torch.equal(grammar.binary[1], before[1])
    assert grammar.binary[0].exp().sum().item() == pytest.approx(1)
    for parameter in grammar.parameters():  # a rule of probability zero is a finite number in the model's file
        assert parameter.isfinite().all()
        assert parameter.min() >= MIN_LOG_PROBABILITY

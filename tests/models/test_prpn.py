"""PRPN compared with its equations, one sentence and one slot at a time."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import ramify
from ramify.corpus.vocabulary import Vocabulary
from ramify.models import PRPN
from ramify.models.prpn import gated_softmax, slot_gates, visible
from tests.models.test_next_word import made


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gate(own, other):
    """The gate that a distance `other` in between leaves for a step with the distance `own`."""
    return (min(1, max(-1, 2 * (own - other) / 0.1 + 1)) + 1) / 2


def slow_distances(state, inputs):
    """Distances and predictions of the next ones; words before the start are zero."""
    kernel, bias = state["parsing.convolution.weight"], state["parsing.convolution.bias"]
    result = []
    for t in range(len(inputs)):
        features = bias.copy()
        for back in range(6):
            if t - back >= 0:
                features += kernel[:, :, 5 - back] @ inputs[t - back]
        features = (features - features.mean()) / np.sqrt(features.var() + 1e-5)
        features = features * state["parsing.normalise.weight"] + state["parsing.normalise.bias"]
        logits = state["parsing.distance.weight"] @ np.maximum(features, 0) + state["parsing.distance.bias"]
        result.append(sigmoid(logits))
    return np.array(result).T


def attend(key, memory, gates):
    """The sum of the memory's states (hidden, cell) by attention times gates."""
    scores = np.array([key @ hidden for hidden, _ in memory]) / np.sqrt(len(key))
    weights = np.exp(scores) * gates
    weights = weights / weights.sum() if weights.sum() else weights
    return tuple(sum(w * state[part] for w, state in zip(weights, memory, strict=True)) for part in range(2))


def slow_read(state, inputs):
    """The vectors that predict the symbol after each input of one sentence, and the distances.

    Steps are counted from 1; memory[0] is the zero state before the first one.
    """
    width = state["key_of_state.weight"].shape[0]
    distances, predicted = slow_distances(state, inputs)
    d, following = [None, *distances], [None, *predicted]
    memory, outputs = [(np.zeros(width), np.zeros(width))], []
    for t in range(1, len(inputs) + 1):
        seen = range(max(0, t - 15), t)
        gates = [np.prod([gate(d[t], d[j]) for j in range(i + 1, t)]) for i in seen]
        projected = state["of_input.weight"] @ inputs[t - 1] + state["of_input.bias"]
        key = projected[4 * width :] + state["key_of_state.weight"] @ memory[t - 1][0]
        hidden, cell = attend(key, [memory[i] for i in seen], gates)
        parts = projected[: 4 * width] + state["cell_of_state.weight"] @ hidden
        f, i, o, new = np.split(parts, 4)
        cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(new)
        hidden = sigmoid(o) * np.tanh(cell)
        memory.append((hidden, cell))
        gates = [np.prod([gate(following[t], d[j]) for j in range(i + 1, t + 1)]) for i in seen]
        key = state["key_of_next.weight"] @ hidden + state["key_of_next.bias"]
        summary, _ = attend(key, [memory[i] for i in seen], gates)
        between = state["output.0.weight"] @ np.concatenate([hidden, summary]) + state["output.0.bias"]
        outputs.append(state["output.2.weight"] @ np.maximum(between, 0) + state["output.2.bias"])
    return np.array(outputs), distances


@pytest.mark.parametrize("spread", [0.3, 1.0, 4.0])
@torch.no_grad()
def test_the_model_follows_its_equations(spread):
    """With more words than slots, and distances so close or far that gates are open, closed and in between."""
    model = made("prpn", width=20)
    with torch.no_grad():
        model.parsing.distance.weight *= spread
    state = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    table, bias = state["symbol_embedding"], state["symbol_bias"]
    word_ids = torch.randint(7, (2, 24), generator=torch.Generator().manual_seed(3))
    found = model.distances(word_ids, torch.tensor([24, 24])).detach().numpy()
    log_p = model.objective(word_ids, torch.tensor([24, 24]))
    for b, words in enumerate(word_ids.tolist()):
        outputs, distances = slow_read(state, table[[7, *words]])
        assert found[b] == pytest.approx(distances[1:], abs=1e-10)
        logits = outputs @ table.T + bias
        normalised = logits - np.log(np.exp(logits).sum(1, keepdims=True))
        expected = sum(row[symbol] for row, symbol in zip(normalised, [*words, 7], strict=True))
        assert float(log_p[b]) == pytest.approx(expected, abs=1e-6)  # of the sum of weights, see EPSILON


def test_gates_by_hand():
    """A larger distance in between closes a gate, by half if it is larger by 0.05."""
    distances = torch.tensor([[0.5, 0.2, 0.9, 0.45, 0.5]], dtype=torch.float64)
    expected = [
        [1, 1, 1, 1, 1],
        [0, 1, 1, 1, 1],
        [1, 1, 1, 1, 1],
        [0, 0, 0, 1, 1],
        [0, 0, 0, 1, 1],
    ]
    assert slot_gates(distances, distances)[0].tolist() == pytest.approx(np.array(expected))
    close = torch.tensor([[0.5, 0.55, 0.5, 0.45]], dtype=torch.float64)
    assert slot_gates(close, close)[0, 3].tolist() == pytest.approx([0, 0, 0.5, 1])
    assert slot_gates(close, close)[0, 2].tolist() == pytest.approx([0.5, 0.5, 1, 1])


def test_the_prediction_looks_from_the_next_word():
    distances = torch.tensor([[0.5, 0.2, 0.9]], dtype=torch.float64)
    following = torch.tensor([[0.45, 0.3, 0.95]], dtype=torch.float64)
    expected = [[0.5, 1, 1], [0, 1, 1], [1, 1, 1]]
    assert slot_gates(following, distances)[0].tolist() == pytest.approx(np.array(expected))


def test_fifteen_states_are_visible():
    seen = visible(20, torch.device("cpu"))
    assert seen.sum(1).tolist() == [*range(1, 16), 15, 15, 15, 15, 15]
    assert seen[19].nonzero().flatten().tolist() == list(range(5, 20))


def test_attention_without_an_open_gate_is_zero():
    scores = torch.tensor([[1.0, 2.0, -torch.inf]], requires_grad=True)
    gates = torch.tensor([[0.0, 0.0, 0.0]], requires_grad=True)
    found = gated_softmax(scores, gates)
    assert found.tolist() == [[0, 0, 0]]
    open_gates = gated_softmax(torch.tensor([3.0, 3.0, -200.0]), torch.tensor([0.5, 0.25, 1]))
    assert open_gates.tolist() == pytest.approx([2 / 3, 1 / 3, 0])


def test_gradients_are_finite_where_gates_are_closed():
    model = made("prpn")
    with torch.no_grad():
        model.parsing.distance.weight *= 100
    model.objective(torch.randint(7, (3, 20)), torch.tensor([20, 20, 9])).sum().backward()
    assert all(bool(parameter.grad.isfinite().all()) for parameter in model.parameters())


def test_the_gap_before_a_word_is_that_of_the_step_which_reads_it():
    """A word with a large distance begins a constituent; the place of the kernel says which word that is."""
    model = PRPN(words=5, embedding=4, width=2)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.symbol_embedding[4, 0] = 1
        model.parsing.convolution.weight[0, 0, 5] = 1  # the last place of the kernel is the word itself
        model.parsing.normalise.weight.fill_(1)
        model.parsing.distance.weight[0, 0] = 9
    found = model.distances(torch.tensor([[1, 2, 4, 3, 1, 2]]), torch.tensor([6]))
    assert found[0].argmax() == 2
    assert found[0, [0, 1, 3, 4, 5]].tolist() == pytest.approx([0.5] * 5)
    parser = ramify.Parser(model, Vocabulary(["<unk>", *"abcx"]))
    spans = {tuple(span) for span in parser.analyse("a b x c a b").parse.spans.tolist()}
    assert {(0, 2), (2, 6)} <= spans


def test_a_distance_depends_on_the_word_and_five_before_it():
    model = made("prpn")
    word_ids = torch.zeros(1, 12, dtype=torch.long)
    before = model.distances(word_ids, torch.tensor([12]))
    word_ids[0, 3] = 1
    changed = model.distances(word_ids, torch.tensor([12])) != before
    assert changed[0].nonzero().flatten().tolist() == [3, 4, 5, 6, 7, 8]


def test_sizes_are_reported():
    model = PRPN(words=5, embedding=20, width=30)
    assert model.sizes() == {"width": 30}
    assert model.described() == "a PRPN, 30 wide"

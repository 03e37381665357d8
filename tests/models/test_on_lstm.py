"""ON-LSTM compared with its equations, one unit at a time."""

from __future__ import annotations

from math import exp, tanh

import numpy as np
import pytest
import torch

import ramify
from ramify.corpus.vocabulary import Vocabulary
from ramify.models import ONLSTM
from ramify.models.on_lstm import OrderedLayer
from tests.models.test_next_word import made


def sigmoid(x):
    return 1 / (1 + exp(-x))


def cumax(logits):
    """The cumulative sum of a softmax."""
    weights = [exp(x - max(logits)) for x in logits]
    return [sum(weights[: k + 1]) / sum(weights) for k in range(len(weights))]


def slow_layer(state, prefix, inputs, chunk):
    """Hidden states and distances of one sentence, unit by unit, from a state dict."""
    of_input, bias, of_state = (
        state[prefix + name].numpy() for name in ("of_input.weight", "of_input.bias", "of_state.weight")
    )
    width = of_state.shape[1]
    C = width // chunk
    h, c, states, distances = [0.0] * width, [0.0] * width, [], []
    for x in inputs:
        logits = [float(of_input[k] @ x + of_state[k] @ np.array(h) + bias[k]) for k in range(len(bias))]
        forget = cumax(logits[:C])
        enter = [1 - value for value in cumax(logits[C : 2 * C])]
        units = logits[2 * C :]
        for k in range(width):
            f, i, o = (sigmoid(units[gate * width + k]) for gate in range(3))
            overlap = forget[k // chunk] * enter[k // chunk]
            f_hat = f * overlap + (forget[k // chunk] - overlap)
            i_hat = i * overlap + (enter[k // chunk] - overlap)
            c[k] = f_hat * c[k] + i_hat * tanh(units[3 * width + k])
            h[k] = o * tanh(c[k])
        states.append(list(h))
        distances.append(1 - sum(forget) / C)
    return np.array(states), np.array(distances)


@pytest.mark.parametrize("chunk", [1, 2, 6])
def test_a_layer_follows_its_equations(chunk):
    torch.manual_seed(1)
    layer = OrderedLayer(4, 6, chunk).double()
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.mul_(4)
    x = torch.randn(3, 7, 4, dtype=torch.float64)
    states, distances = layer(x)
    for b in range(3):
        expected_states, expected_distances = slow_layer(layer.state_dict(), "", x[b].numpy(), chunk)
        assert states[b].detach().numpy() == pytest.approx(expected_states, abs=1e-12)
        assert distances[b].detach().numpy() == pytest.approx(expected_distances, abs=1e-12)


@pytest.mark.parametrize("layers", [1, 2, 3])
@torch.no_grad()
def test_the_model_follows_its_equations(layers):
    """The start symbol is read first, and the second layer, or the only one, has the distances."""
    model = made("on-lstm", layers=layers)
    state = model.state_dict()
    table, bias = state["symbol_embedding"].numpy(), state["symbol_bias"].numpy()
    words = [4, 0, 2, 2, 6]
    x, distances = table[[7, *words]], []
    for number in range(layers):
        x, found = slow_layer(state, f"layers.{number}.", x, 10)
        distances.append(found)
    batch = torch.tensor([words]), torch.tensor([5])
    parsing = distances[0] if layers == 1 else distances[1]
    assert model.distances(*batch)[0].detach().numpy() == pytest.approx(parsing[1:], abs=1e-12)
    log_p = 0.0
    for hidden, symbol in zip(x, [*words, 7], strict=True):
        logits = table @ hidden + bias
        log_p += logits[symbol] - np.log(np.exp(logits).sum())
    assert float(model.objective(*batch)) == pytest.approx(log_p, abs=1e-10)


def test_master_gates_by_hand():
    """Two chunks of one unit; the forget gate keeps (1/4, 1), the input gate writes (1/2, 0)."""
    layer = OrderedLayer(1, 2, 1).double()
    with torch.no_grad():
        layer.of_state.weight.zero_()
        layer.of_input.weight.zero_()
        layer.of_input.bias.copy_(torch.tensor([0, np.log(3), 0, 0, 0, 0, 0, 0, 100, 100, 100, 100]))
    states, distances = layer(torch.zeros(1, 2, 1, dtype=torch.float64))
    assert distances[0].tolist() == pytest.approx([3 / 8, 3 / 8])
    # Of the first unit 1/4 * 1/2 overlaps; all else of the gates is as the masters say, and f = i = 1/2, o = 1.
    kept, written = 1 / 16 + 1 / 8, 1 / 16 + 3 / 8
    assert states[0, :, 0].tolist() == pytest.approx([np.tanh(written), np.tanh(kept * written + written)])
    assert states[0, :, 1].tolist() == pytest.approx([0, 0])


def test_the_gap_before_a_word_is_that_of_the_step_which_reads_it():
    """A word that makes the master gate forget everything begins a constituent."""
    model = ONLSTM(words=5, embedding=20, width=20, layers=1)
    layer = model.layers[0]
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.symbol_embedding[4, 0] = 1
        layer.of_input.bias[0] = 20  # all is kept ...
        layer.of_input.weight[1, 0] = 40  # ... but at word 4 only the last of two chunks
    found = model.distances(torch.tensor([[1, 2, 4, 3, 1, 2]]), torch.tensor([6]))
    assert found[0].tolist() == pytest.approx([0, 0, 0.5, 0, 0, 0], abs=1e-6)
    parser = ramify.Parser(model, Vocabulary(["<unk>", *"abcx"]))
    spans = {tuple(span) for span in parser.analyse("a b x c a b").parse.spans.tolist()}
    assert {(0, 2), (2, 6)} <= spans


def test_the_last_layer_is_as_wide_as_the_embeddings():
    model = ONLSTM(words=5, embedding=20, width=30, layers=3)
    assert [layer.width for layer in model.layers] == [30, 30, 20]
    assert model.sizes() == {"layers": 3, "width": 30}
    assert model.described() == "an ON-LSTM of 3 layers, 30 wide"


@pytest.mark.parametrize("options", [{"width": 25}, {"embedding": 25}])
def test_sizes_that_chunks_do_not_divide_are_refused(options):
    with pytest.raises(ramify.RamifyError, match="must be a multiple of 10"):
        ramify.fit([["a", "b"]] * 4, model="on-lstm", **options)


def test_recurrent_weights_are_left_out_too():
    torch.manual_seed(0)
    layer = OrderedLayer(4, 20)
    x = torch.randn(2, 3, 4)
    first, other = layer(x)[0], layer(x, torch.Generator().manual_seed(0), 0.5)[0]
    assert torch.equal(first[:, 0], other[:, 0])
    assert not torch.equal(first[:, 1], other[:, 1])

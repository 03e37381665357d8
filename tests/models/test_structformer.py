"""StructFormer: gates by hand and by explicit loops, loss, padding, and a whole run."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import ramify
from ramify.corpus.brackets import write_brackets
from ramify.corpus.builtin import builtin_treebank
from ramify.errors import RamifyError
from ramify.models import structformer
from ramify.models.batches import pad
from ramify.models.structformer import StructFormer, boundaries, draw_masked, head_probabilities, margin
from ramify.training.loop import noise_for
from ramify.training.settings import load_settings

WORDS = 11
CPU = torch.device("cpu")


def small(width: int = 6, layers: int = 2, seed: int = 0) -> StructFormer:
    """A model in double precision with random parameters, so that initial values hide nothing."""
    torch.manual_seed(seed)
    model = StructFormer(WORDS, width, layers).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0, 0.5)
    return model


def random_batch(lengths, seed=0):
    """Sentences (B, N); the padding holds random words too."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(WORDS, (len(lengths), max(lengths)), generator=generator), torch.tensor(lengths)


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def margin_by_loops(tau, delta):
    """Of one sentence: tau has one number less than delta."""
    N = len(delta)
    around = [math.inf, *tau, math.inf]
    lacking = [
        min(around[i], around[j + 1]) - max(delta[i : j + 1])
        for i in range(N)
        for j in range(i, N)
        if (i, j) != (0, N - 1)
    ]
    return max([0, *lacking])


def heads_by_loops(tau, delta, scales):
    """p(h | l) of one sentence, rows of N numbers, before the diagonal is removed; tau is shifted already."""
    N = len(delta)
    result = []
    for l in range(N):  # noqa: E741
        crossing = [sigmoid(scales[0] * (delta[l] - distance)) for distance in tau]
        left_reach = [min([1.0, *crossing[i:l]]) for i in range(l + 1)]
        right_reach = [min([1.0, *crossing[l:j]]) for j in range(l, N)]
        row = [0.0] * N
        for i in range(l + 1):
            p_left = left_reach[i] - (left_reach[i - 1] if i else 0)
            for j in range(l, N):
                p_right = right_reach[j - l] - (right_reach[j - l + 1] if j + 1 < N else 0)
                weights = [math.exp(scales[1] * delta[h]) for h in range(i, j + 1)]
                for h in range(i, j + 1):
                    row[h] += p_left * p_right * weights[h - i] / sum(weights)
        result.append(row)
    return result


def normalised(x, weight=None, bias=None):
    x = (x - x.mean()) / (x.var(unbiased=False) + 1e-5).sqrt()
    return x if weight is None else x * weight + bias


def scores_by_loops(state, embedded):
    """tau (N-1,) and delta (N,) of one sentence (N, width), word by word."""
    x = list(embedded)
    for k in range(3):
        weight, bias = state[f"convolutions.{k}.weight"], state[f"convolutions.{k}.bias"]
        x = [
            normalised(bias + sum(weight[..., 4 + d] @ x[t + d] for d in range(-4, 5) if 0 <= t + d < len(x))).tanh()
            for t in range(len(x))
        ]

    def score(name, vector):
        hidden = normalised(state[f"{name}.hidden.weight"] @ vector + state[f"{name}.hidden.bias"]).tanh()
        return (state[f"{name}.score.weight"] @ hidden + state[f"{name}.score.bias"]).squeeze()

    tau = [score("distance", torch.cat([x[t], x[t + 1]])) for t in range(len(x) - 1)]
    return [float(each) for each in tau], [float(score("height", each)) for each in x]


def log_probability_by_loops(model, words, masked):
    """The sum of log p over the masked words of one sentence, from the numbers in the state dict."""
    state, width, N = model.state_dict(), model.width, len(words)
    seen = [WORDS if hidden else word for word, hidden in zip(words, masked, strict=True)]
    embedded = [state["embedding.weight"][word] for word in seen]
    tau, delta = scores_by_loops(state, embedded)
    shift = margin_by_loops(tau, delta)
    heads = heads_by_loops([each - shift for each in tau], delta, state["log_scales"].exp().tolist())
    for t in range(N):
        heads[t][t] = 0.0
    x = [embedded[t] + state["position"][t] for t in range(N)]
    for k in range(len(model.layers)):
        of = {name.removeprefix(f"layers.{k}."): value for name, value in state.items()}
        H = len(of["direction"])
        size = width // H
        normed = [normalised(each, of["attention_norm.weight"], of["attention_norm.bias"]) for each in x]
        projected = [of["projection.weight"] @ each + of["projection.bias"] for each in normed]
        attended = []
        for l in range(N):  # noqa: E741
            mixed = []
            for a in range(H):
                to_head, to_dependents = of["direction"][a].softmax(0).tolist()
                total = torch.zeros(size, dtype=torch.float64)
                query = projected[l][a * size : (a + 1) * size]
                for h in range(N):
                    key = projected[h][width + a * size : width + (a + 1) * size]
                    value = projected[h][2 * width + a * size : 2 * width + (a + 1) * size]
                    allowed = to_head * heads[l][h] + to_dependents * heads[h][l]
                    total += sigmoid(float(query @ key) / math.sqrt(size)) * allowed * value
                mixed.append(total)
            attended.append(of["output.weight"] @ torch.cat(mixed) + of["output.bias"])
        x = [one + other for one, other in zip(x, attended, strict=True)]
        for t in range(N):
            normed_t = normalised(x[t], of["feed_forward_norm.weight"], of["feed_forward_norm.bias"])
            inner = of["inner.weight"] @ normed_t + of["inner.bias"]
            inner = torch.where(inner > 0, inner, 0.01 * inner)
            x[t] = x[t] + of["outer.weight"] @ inner + of["outer.bias"]
    result = 0.0
    for t in range(N):
        if masked[t]:
            found = normalised(x[t], state["norm.weight"], state["norm.bias"])
            logits = state["embedding.weight"][:WORDS] @ found + state["word_bias"]
            result += float(logits[words[t]] - logits.exp().sum().log())
    return result


def test_the_constituent_of_a_word_ends_where_the_distance_exceeds_its_height():
    # Words a b c d with distances 3, 1, 5 after a, b, c: b (height 2) reaches c, but neither a nor d.
    tau, delta = torch.tensor([[3.0, 1, 5, 0]]), torch.tensor([[4.0, 2, 0, 6]])
    crossing = (1000 * (delta[:, :, None] - tau[:, None])).sigmoid()
    crossing[..., 3] = 0
    left, right = boundaries(crossing)
    first, last = left.argmax(-1).tolist()[0], right.argmax(-1).tolist()[0]
    assert list(zip(first, last, strict=True)) == [(0, 2), (1, 2), (2, 2), (0, 3)]
    heads = head_probabilities(left, right, 1000 * delta)
    # a is the highest of a..c, b of b..c; d, the highest of all, is its own head.
    assert heads.round().tolist()[0] == [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]


def test_soft_boundaries_by_hand():
    crossing = torch.tensor([[[0.9, 0.5, 0.0], [0.2, 0.7, 0.0], [0.6, 0.3, 0.0]]])
    left, right = boundaries(crossing)
    torch.testing.assert_close(left[0], torch.tensor([[1.0, 0, 0], [0.2, 0.8, 0], [0.3, 0, 0.7]]))
    torch.testing.assert_close(right[0], torch.tensor([[0.1, 0.4, 0.5], [0, 0.3, 0.7], [0, 0, 1.0]]))


def test_heads_by_hand():
    # The second of two words is twice as likely a head as the first; word 0 reaches it with probability 0.6.
    left, right = boundaries(torch.tensor([[[0.6, 0.0], [0.0, 0.0]]]))
    heads = head_probabilities(left, right, torch.tensor([[0.0, math.log(2)]]))
    torch.testing.assert_close(heads[0], torch.tensor([[0.4 + 0.6 / 3, 0.6 * 2 / 3], [0, 1.0]]))


def test_the_margin_by_hand():
    # The span of b and c lies between the distances 5 and 4 and has the height 1.5; b alone lies between 5 and 1.
    tau, delta = torch.tensor([[5.0, 1, 4]]), torch.tensor([[5.5, 1.5, 1, 4.5]])
    assert margin(torch.cat([tau, torch.zeros(1, 1)], 1), delta, torch.tensor([4])).tolist() == [2.5]
    # Nothing to calibrate where every word is high, and in a sentence of one word.
    assert margin(torch.zeros(2, 3), torch.ones(2, 3), torch.tensor([3, 1])).tolist() == [0, 0]


def test_after_the_shift_every_head_but_the_root_reaches_beyond_its_span():
    generator = torch.Generator().manual_seed(3)
    tau, delta = (torch.randn(20, 6, generator=generator, dtype=torch.float64) for _ in range(2))
    tau = tau + 1 - margin(tau + 1, delta, torch.full((20,), 6))[:, None]
    for distances, heights in zip(tau.tolist(), delta.tolist(), strict=True):
        assert margin_by_loops(distances[:-1], heights) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("lengths", [[5, 5], [7, 4, 1, 2]])
def test_margins_and_heads_are_those_of_explicit_loops(lengths):
    model = small()
    word_ids, sizes = random_batch(lengths)
    embedded = model.embedding(word_ids)
    tau, delta = model.distances_and_heights(embedded, sizes)
    shifts, heads = margin(tau, delta, sizes), model.head_probabilities(embedded, sizes)
    scales = model.log_scales.exp().tolist()
    for b, N in enumerate(lengths):
        expected_tau, expected_delta = scores_by_loops(model.state_dict(), embedded[b, :N].detach())
        assert tau[b, : N - 1].tolist() == pytest.approx(expected_tau)
        assert delta[b, :N].tolist() == pytest.approx(expected_delta)
        shift = margin_by_loops(expected_tau, expected_delta)
        assert shifts[b].item() == pytest.approx(shift)
        expected = heads_by_loops([each - shift for each in expected_tau], expected_delta, scales)
        assert [sum(row) for row in expected] == pytest.approx([1] * N)
        for t in range(N):
            expected[t][t] = 0
            assert heads[b, t, :N].tolist() == pytest.approx(expected[t])
        assert float(heads[b, :N, N:].detach().abs().sum()) == float(heads[b, N:, :N].detach().abs().sum()) == 0


def test_heads_sum_to_one_before_the_diagonal_is_removed():
    lengths, N = torch.tensor([6, 3, 1]), 6
    generator = torch.Generator().manual_seed(1)
    crossing = torch.rand(3, N, N, generator=generator, dtype=torch.float64)
    crossing = crossing.masked_fill(torch.arange(N) >= lengths[:, None, None] - 1, 0)
    logits = 3 * torch.randn(3, N, generator=generator, dtype=torch.float64)
    heads = head_probabilities(*boundaries(crossing), logits)
    assert bool((heads >= 0).all())
    torch.testing.assert_close(heads.sum(-1), torch.ones(3, N, dtype=torch.float64))
    inside = torch.arange(N) < lengths[:, None]
    across = inside[:, :, None] != inside[:, None]
    assert heads[across].tolist() == [0] * int(across.sum())


@pytest.mark.parametrize(("width", "layers"), [(6, 2), (128, 1)])
def test_the_loss_is_that_of_explicit_loops(width, layers):
    model = small(width, layers)
    assert len(model.layers[0].direction) == max(1, width // 64)
    if width > 6:
        with torch.no_grad():
            for parameter in model.parameters():
                parameter *= 0.2
    lengths = [5, 2, 1, 4]
    word_ids, sizes = random_batch(lengths)
    found = model.objective(word_ids, sizes).tolist()
    for b, N in enumerate(lengths):
        words = word_ids[b, :N].tolist()
        rounds = [[t % 3 == k for t in range(N)] for k in range(3)]
        assert found[b] == pytest.approx(sum(log_probability_by_loops(model, words, each) for each in rounds))
    noise = torch.Generator().manual_seed(5)
    drawn = draw_masked(torch.arange(5) < sizes[:, None], torch.Generator().manual_seed(5))
    found = model.objective(word_ids, sizes, noise).tolist()
    for b, N in enumerate(lengths):
        masked = drawn[b, :N].tolist()
        expected = log_probability_by_loops(model, word_ids[b, :N].tolist(), masked) * N / sum(masked)
        assert found[b] == pytest.approx(expected)


def test_every_gradient_is_that_of_the_values():
    model = small(3, 1)
    word_ids, sizes = random_batch([4, 2])
    names, parameters = zip(*model.named_parameters(), strict=True)

    def loss(*values):
        state = dict(zip(names, values, strict=True))
        return torch.func.functional_call(model, state, (word_ids, sizes))

    model.forward = model.objective
    assert torch.autograd.gradcheck(loss, parameters, atol=1e-6, fast_mode=True)


def test_a_sentence_does_not_depend_on_its_padding_or_its_neighbours():
    model = small()
    word_ids, sizes = random_batch([7, 4, 1, 2])
    together = model.objective(word_ids, sizes)
    distances = model.distances(word_ids, sizes)
    for b, N in enumerate(sizes.tolist()):
        alone, length = word_ids[b : b + 1, :N], sizes[b : b + 1]
        value = model.objective(alone, length)
        assert together[b].tolist() == pytest.approx(value.item())
        assert distances[b, 1:N].tolist() == pytest.approx(model.distances(alone, length)[0, 1:].tolist())
        for name, parameter in model.named_parameters():
            (ours,) = torch.autograd.grad(together[b], parameter, retain_graph=True, allow_unused=True)
            (theirs,) = torch.autograd.grad(value, parameter, retain_graph=True, allow_unused=True)
            torch.testing.assert_close(ours, theirs, msg=name)


def test_every_word_of_the_dev_set_is_predicted_once(monkeypatch):
    counts = torch.zeros(3, 8, dtype=torch.int64)
    original = StructFormer.masked_log_probability

    def counted(self, word_ids, lengths, masked, *others):
        counts.add_(masked)
        return original(self, word_ids, lengths, masked, *others)

    monkeypatch.setattr(StructFormer, "masked_log_probability", counted)
    small().objective(*random_batch([8, 3, 1]))
    assert counts.tolist() == [[1] * 8, [1] * 3 + [0] * 5, [1] + [0] * 7]


def test_a_masked_word_is_not_seen():
    model = small()
    word_ids, sizes = random_batch([6])
    masked = torch.tensor([[False, True, False, False, True, False]])
    others = word_ids.clone()
    others[masked] = (others[masked] + 1) % WORDS

    def heads(ids):
        return model.head_probabilities(model.embedding(ids.masked_fill(masked, WORDS)), sizes)

    assert torch.equal(heads(word_ids), heads(others))
    # The probabilities of all words in one place sum to one.
    masked = torch.tensor([[False, True, False, False, False, False]])
    fillers = word_ids.repeat(WORDS, 1)
    fillers[:, 1] = torch.arange(WORDS)
    found = model.masked_log_probability(fillers, sizes.expand(WORDS), masked.expand(WORDS, -1))
    assert found.exp().sum().item() == pytest.approx(1)


def test_about_a_third_of_the_words_is_masked_and_at_least_one():
    inside = torch.arange(50) < torch.tensor([50] * 200 + [1] * 10)[:, None]
    masked = draw_masked(inside, torch.Generator().manual_seed(0))
    assert not bool((masked & ~inside).any())
    assert float(masked[:200].float().mean()) == pytest.approx(0.3, abs=0.02)
    assert masked[200:, 0].tolist() == [True] * 10
    short = draw_masked(torch.ones(500, 2, dtype=torch.bool), torch.Generator().manual_seed(0))
    assert int(short.sum(1).min()) == 1
    assert float(short[:, 0].float().mean()) == pytest.approx(float(short[:, 1].float().mean()), abs=0.1)


def test_training_values_are_comparable_with_those_of_the_dev_set():
    model = small()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter *= 0.3
    word_ids, sizes = random_batch([9, 9, 9, 4])
    noise = torch.Generator().manual_seed(2)
    drawn = torch.stack([model.objective(word_ids, sizes, noise).detach() for _ in range(300)]).mean(0)
    torch.testing.assert_close(drawn, model.objective(word_ids, sizes).detach(), rtol=0.05, atol=0.0)


def test_noise_alone_decides_what_is_masked_and_dropped():
    model = small()
    batch = random_batch([6, 3])

    def value(seed, dropout):
        return model.objective(*batch, torch.Generator().manual_seed(seed), dropout).tolist()

    assert value(1, 0.1) == value(1, 0.1)
    assert value(1, 0.1) != value(2, 0.1)
    assert value(1, 0.1) != value(1, 0.0)
    assert model.objective(*batch, None, 0.1).tolist() == model.objective(*batch).tolist()
    assert model.draws()


def test_the_distance_after_a_word_is_given_to_the_word_after_it(monkeypatch):
    tau = torch.tensor([[1.0, 9.0, 2.0, 7.0]])  # the largest stands after the second word
    monkeypatch.setattr(StructFormer, "distances_and_heights", lambda *_: (tau, torch.zeros(1, 4)))
    model = small()
    assert model.distances(torch.zeros(1, 4, dtype=torch.int64), torch.tensor([4])).tolist() == [[0, 1, 9, 2]]
    spans = model.marginals(torch.zeros(1, 4, dtype=torch.int64), torch.tensor([4])).spans[0].nonzero().tolist()
    assert spans == [[0, 2], [0, 4], [2, 4]]


def test_no_word_is_masked_when_a_sentence_is_parsed():
    model = small()
    word_ids, sizes = random_batch([5])
    tau, _ = scores_by_loops(model.state_dict(), model.embedding.weight.detach()[word_ids[0]])
    assert model.distances(word_ids, sizes)[0, 1:].tolist() == pytest.approx(tau)


def test_words_beyond_the_last_position_share_it(monkeypatch):
    model, batch = small(), random_batch([6, 4])
    with torch.no_grad():
        model.position[3:] = model.position[2]
    expected = model.objective(*batch).tolist()
    monkeypatch.setattr(structformer, "POSITIONS", 3)
    model.position = torch.nn.Parameter(model.position.detach()[:3].clone())
    assert model.objective(*batch).tolist() == pytest.approx(expected)


def test_a_width_that_heads_cannot_share_is_refused():
    with pytest.raises(RamifyError, match="width 200 cannot be divided among 3 attention heads"):
        ramify.fit([["a", "b"]] * 4, model="structformer", width=200)


def test_the_state_can_be_stored_and_the_constructor_works_on_meta():
    with torch.device("meta"):
        assert StructFormer(WORDS).device.type == "meta"
    assert {tensor.dtype for tensor in StructFormer(WORDS, 8, 1).state_dict().values()} == {torch.float32}
    assert StructFormer(WORDS, 8, 1).sizes() == {"width": 8, "layers": 1}


@pytest.mark.slow
def test_ten_sentences_are_learnt_by_heart():
    parses = builtin_treebank(2, train=10, dev=1, test=1)["train"]
    numbers = {word: k for k, word in enumerate(sorted({word for parse in parses for word in parse.words}))}
    word_ids, lengths = pad([np.array([numbers[word] for word in parse.words]) for parse in parses], CPU)
    torch.manual_seed(0)
    model = StructFormer(len(numbers), 32, 2)
    learner = model.learner(0.01, 3.0)
    start = -float(model.objective(word_ids, lengths).detach().mean())
    for step in range(150):
        learner.update(model.objective(word_ids, lengths, noise_for(0, 1, step)))
    assert -float(model.objective(word_ids, lengths).detach().mean()) < 0.25 * start


@pytest.fixture(scope="module")
def treebank(tmp_path_factory):
    folder = tmp_path_factory.mktemp("treebank")
    for split, parses in builtin_treebank(3, train=60, dev=10, test=10).items():
        (folder / f"{split}.trees").write_text("".join(write_brackets(parse) + "\n" for parse in parses))
    return folder


@pytest.mark.slow
def test_training_resumes_exactly_and_the_model_is_saved_loaded_and_scored(treebank, tmp_path):
    given = {"model": "structformer", "width": 16, "layers": 1, "batch_size": 8}
    whole = ramify.train(treebank, tmp_path / "whole", epochs=2, **given)
    ramify.train(treebank, tmp_path / "parts", epochs=1, **given)
    parts = ramify.train(treebank, tmp_path / "parts", epochs=2, resume=True)
    for name, tensor in whole.model.state_dict().items():
        assert torch.equal(tensor, parts.model.state_dict()[name]), name
    again = ramify.load(tmp_path / "whole")
    analysis = again.analyse("the dog saw a cat .")
    assert str(analysis.tree) == str(whole.analyse("the dog saw a cat .").tree)
    assert set(analysis.posteriors[:5].round(3).ravel().tolist()) <= {0.0, 1.0}
    result = ramify.evaluate(again, treebank / "test.trees")
    assert result.perplexity is None
    assert 0 <= result.scores.sentence_f1 <= 100
    with pytest.raises(RamifyError, match=r"biased .*prpn and on-lstm"):
        again.analyse("the dog saw a cat", decoder="biased")


def test_it_is_averaged_with_a_grammar(treebank):
    ours = ramify.fit(treebank, model="structformer", width=16, layers=1, epochs=1)
    grammar = ramify.fit(treebank, model="tn-pcfg", preterminals=4, nonterminals=2, rank=4, embedding=8, epochs=1)
    both = ramify.Ensemble([ours, grammar])
    assert len(both.analyse("the dog saw a cat").parse.spans) == 4


def test_defaults_of_the_family_and_of_the_preset():
    settings = load_settings(None, {"model": "structformer"})
    assert (settings.batch_size, settings.dropout) == (32, 0.1)
    assert settings.model_arguments(9) == {"words": 9, "width": 256, "layers": 3}
    published = load_settings(None, {}, preset="structformer")
    assert published.model_arguments(9) == {"words": 9, "width": 512, "layers": 8}
    assert (published.epochs, published.batch_tokens, published.learning_rate) == (100, 4096, 0.0003)

"""Every engine compared with the reference: values and every gradient, on ragged batches and odd shapes."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from ramify.structures.low_rank import LowRankPCFG
from tests.structures.random_rules import inside, marginals, parameters, random_rules, random_scores

FAST = ["scaled", "compiled"]
ALL = ["reference", *FAST]

SHAPES = [
    # n, p, d: with few symbols (through the symbols) and with many (through the d x d products)
    (3, 4, 7),
    (7, 4, 3),
    (1, 1, 1),
    (1, 3, 1),
    (2, 5, 3),
    (3, 5, 2),
    (12, 5, 4),
    # more than a block of columns, and a part of one
    (19, 18, 70),
    (70, 3, 18),
    # without a head
    (5, 4, None),
    (1, 2, None),
]
LENGTHS = [[6, 4, 2, 5], [1], [1, 2, 1], [9], [2, 2], [7, 1, 3]]


def gradients(rules: LowRankPCFG, scores: torch.Tensor, engine: str) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    log_z = inside(rules, scores, engine)
    possible = log_z > -torch.inf
    upstream = torch.linspace(-1, 2, len(log_z), dtype=log_z.dtype)  # different per sentence, one negative
    inputs = {**parameters(rules), "span_scores": scores}
    if not possible.any():
        return log_z.detach(), {}
    values = torch.autograd.grad((log_z * upstream)[possible].sum(), list(inputs.values()))
    return log_z.detach(), dict(zip(inputs, values, strict=True))


@pytest.mark.parametrize("engine", FAST)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-11), (torch.float32, 2e-5)])
def test_value_and_every_gradient_equal_the_reference(engine, shape, lengths, dtype, tolerance):
    rules = random_rules(*shape, lengths, dtype=dtype)
    scores = random_scores(rules)
    exact_rules = replace(
        rules, **{name: t.detach().double().requires_grad_() for name, t in parameters(rules).items()}
    )
    exact_scores = scores.detach().double().requires_grad_()
    expected, expected_gradients = gradients(exact_rules, exact_scores, "reference")
    found, found_gradients = gradients(rules, scores, engine)
    torch.testing.assert_close(found.double(), expected, rtol=tolerance, atol=tolerance)
    assert found_gradients.keys() == expected_gradients.keys()
    for name, gradient in found_gradients.items():
        torch.testing.assert_close(
            gradient.double(),
            expected_gradients[name],
            rtol=tolerance,
            atol=tolerance,
            msg=lambda m, n=name: f"{n}: {m}",
        )


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-11), (torch.float32, 2e-5)])
def test_a_batch_of_sentences_with_separate_rules_equals_the_reference(shape, cores, dtype, tolerance, on_cores):
    on_cores(cores)
    rules = random_rules(*shape, [6, 1, 4, 2, 5], dtype=dtype, per_sentence=True)
    scores = random_scores(rules)
    found, found_gradients = gradients(rules, scores, "compiled")
    expected, expected_gradients = gradients(rules.to(torch.float64), scores.double(), "reference")
    torch.testing.assert_close(found.double(), expected, rtol=tolerance, atol=tolerance)
    for name, gradient in found_gradients.items():
        torch.testing.assert_close(
            gradient.double(),
            expected_gradients[name],
            rtol=tolerance,
            atol=tolerance,
            msg=lambda m, n=name: f"{n}: {m}",
        )
    exact, trees = (
        marginals(rules.to(torch.float64), scores.detach().double(), "reference"),
        marginals(rules, scores.detach()),
    )
    torch.testing.assert_close(trees.spans.double(), exact.spans, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("engine", FAST)
@pytest.mark.parametrize("shape", SHAPES)
def test_marginals_equal_the_reference(engine, shape):
    rules = random_rules(*shape, lengths=[7, 3, 1, 5, 2], sharpness=2)
    scores = random_scores(rules).detach()
    expected, found = marginals(rules, scores, "reference"), marginals(rules, scores, engine)
    for name, value in expected.tensors().items():
        torch.testing.assert_close(
            getattr(found, name), value, rtol=1e-10, atol=1e-12, msg=lambda m, n=name: f"{n}: {m}"
        )


@pytest.mark.parametrize("engine", FAST)
@pytest.mark.parametrize("shape", [(3, 4, 7), (7, 4, 3), (3, 4, None)])
def test_gradients_by_finite_differences(engine, shape):
    rules = random_rules(*shape, lengths=[4, 3])
    scores = torch.zeros(2, 5, 5, dtype=torch.float64, requires_grad=True)

    def total(*tensors: torch.Tensor) -> torch.Tensor:
        *rest, span_scores = tensors
        return inside(replace(rules, **dict(zip(parameters(rules), rest, strict=True))), span_scores, engine)

    assert torch.autograd.gradcheck(total, (*parameters(rules).values(), scores))


@pytest.mark.parametrize("engine", ALL)
def test_gradient_of_span_scores_is_the_posterior(engine):
    rules = random_rules(4, 5, 6, lengths=[6, 3])
    scores = torch.zeros(2, 7, 7, dtype=torch.float64, requires_grad=True)
    inside(rules, scores, engine).sum().backward()
    torch.testing.assert_close(scores.grad, marginals(rules, engine=engine).spans)


@pytest.mark.parametrize("engine", ALL)
@pytest.mark.parametrize("sharpness", [1, 5])
def test_posteriors_of_wide_spans_sum_to_length_minus_one(engine, sharpness):
    rules = random_rules(6, 9, 11, lengths=[12, 5, 2, 9, 30], sharpness=sharpness)
    found = marginals(rules, engine=engine)
    torch.testing.assert_close(found.spans.triu(2).sum((1, 2)), (rules.lengths - 1).double())
    words = found.spans.diagonal(1, 1, 2)
    torch.testing.assert_close(words.sum(1), rules.lengths.double())


@pytest.mark.parametrize("engine", ALL)
def test_a_batch_equals_its_sentences_one_by_one(engine):
    rules = random_rules(5, 6, 7, lengths=[9, 4, 1, 2, 6])
    together, trees = inside(rules, engine=engine), marginals(rules, engine=engine)
    for b, length in enumerate(rules.lengths.tolist()):
        alone = replace(rules, words=rules.words[b : b + 1, :length], lengths=rules.lengths[b : b + 1])
        torch.testing.assert_close(inside(alone, engine=engine)[0], together[b])
        torch.testing.assert_close(marginals(alone, engine=engine).spans[0], trees.spans[b, : length + 1, : length + 1])


@pytest.mark.parametrize("engine", ALL)
def test_padding_does_not_matter(engine):
    rules = random_rules(3, 4, 5, lengths=[3, 5])
    words = rules.words.detach().clone()
    words[0, 3:] = torch.nan
    assert torch.equal(inside(replace(rules, words=words), engine=engine), inside(rules, engine=engine))
    for given in (words, rules.words.detach().clone()):
        log_z = inside(replace(rules, words=given.requires_grad_()), engine=engine)
        found = torch.autograd.grad(log_z.sum(), [given, rules.left])
        assert not found[0][0, 3:].any()
        assert all(gradient.isfinite().all() for gradient in found)
    found, expected = marginals(replace(rules, words=words), engine=engine), marginals(rules, engine=engine)
    torch.testing.assert_close(vars(found), vars(expected))


@pytest.mark.parametrize("engine", FAST)
@pytest.mark.parametrize("shape", [(10, 20, 30), (30, 20, 10), (20, 10, None)])
def test_no_nan_at_length_200_with_extreme_logits(engine, shape):
    rules = random_rules(*shape, lengths=[200, 150], sharpness=20, dtype=torch.float32)
    scores = torch.zeros(2, 201, 201, requires_grad=True)
    log_z = inside(rules, scores, engine)
    with torch.no_grad():
        exact = inside(random_rules(*shape, lengths=[200, 150], sharpness=20), engine="reference")
    torch.testing.assert_close(log_z.double(), exact, rtol=1e-5, atol=0)
    log_z.sum().backward()
    for name, value in {**parameters(rules), "span_scores": scores}.items():
        assert value.grad.isfinite().all(), name
    torch.testing.assert_close(scores.grad.triu(2).sum((1, 2)), torch.tensor([199.0, 149.0]), rtol=1e-3, atol=0)
    torch.testing.assert_close(rules.words.grad.sum((1, 2)), torch.tensor([200.0, 150.0]), rtol=1e-3, atol=0)


@pytest.mark.parametrize("engine", ALL)
@pytest.mark.parametrize("shape", [(3, 4, 7), (7, 4, 3), (3, 4, None)])
def test_an_impossible_sentence_is_reported_and_affects_no_other(engine, shape):
    rules = random_rules(*shape, lengths=[5, 4])
    words = rules.words.detach().clone()
    words[0, 2] = -torch.inf  # no preterminal has this word
    words.requires_grad_()
    impossible = replace(rules, words=words)
    scores = torch.zeros(2, 6, 6, dtype=torch.float64, requires_grad=True)
    log_z = inside(impossible, scores, engine)
    assert log_z[0] == -torch.inf
    torch.testing.assert_close(log_z[1], inside(rules)[1])
    log_z[1].backward()
    for value in (*parameters(impossible).values(), scores):
        assert value.grad.isfinite().all()
    assert not words.grad[0].any()
    assert not scores.grad[0].any()
    found = marginals(impossible, engine=engine)
    assert not found.spans[0].any()
    assert all(not value.isnan().any() for value in found.tensors().values())


@pytest.mark.parametrize("engine", ALL)
def test_everything_forbidden_is_impossible_without_nan(engine):
    rules = random_rules(3, 4, 5, lengths=[4])
    scores = torch.full((1, 5, 5), -torch.inf, dtype=torch.float64)
    assert inside(rules, scores, engine) == -torch.inf
    assert not marginals(rules, scores, engine).spans.any()


@pytest.mark.parametrize("engine", ALL)
def test_rules_of_probability_zero_get_zero_gradients_or_true_ones_but_no_nan(engine):
    rules = random_rules(4, 5, 6, lengths=[5, 3])
    head = rules.head.detach().clone()
    head[0], head[:, 2] = -torch.inf, -torch.inf
    head.requires_grad_()
    inside(replace(rules, head=head), engine=engine).sum().backward()
    assert head.grad.isfinite().all()
    assert not head.grad[0].any()


@pytest.mark.parametrize("engine", ALL)
def test_a_forbidden_span_has_posterior_zero_exactly(engine):
    rules = random_rules(3, 4, 5, lengths=[5])
    scores = torch.zeros(1, 6, 6, dtype=torch.float64)
    scores[0, 1, 3] = -torch.inf
    assert marginals(rules, scores, engine).spans[0, 1, 3] == 0
    assert marginals(rules, engine=engine).spans[0, 1, 3] > 0


def test_a_mirrored_grammar_mirrors_the_posteriors():
    rules = random_rules(3, 4, 5, lengths=[6])
    mirrored = replace(rules, left=rules.right, right=rules.left, words=rules.words.flip(1))
    found = marginals(mirrored).spans[0]
    torch.testing.assert_close(found.flip(0, 1).T, marginals(rules).spans[0])


def test_rules_that_do_not_fit_together_are_refused():
    rules = random_rules(3, 4, 5, lengths=[6])
    with pytest.raises(ValueError, match="left has shape"):
        replace(rules, left=rules.left[1:])
    with pytest.raises(ValueError, match="lengths must lie"):
        replace(rules, lengths=torch.tensor([7]))
    with pytest.raises(ValueError, match="span_scores has shape"):
        inside(rules, torch.zeros(1, 6, 6))
    with pytest.raises(ValueError, match="engine 'magic' is not one of"):
        inside(rules, engine="magic")


@pytest.fixture
def many_small_shards(monkeypatch, on_cores):
    """Every sentence a shard and a group, on two threads."""
    for name in ("SHARD_BYTES", "GROUP_BYTES"):
        monkeypatch.setattr(f"ramify.structures.low_rank.shards.{name}", 1)
    on_cores(2)


@pytest.fixture
def many_small_groups(monkeypatch):
    """Every sentence a group of one shard."""
    monkeypatch.setattr("ramify.structures.low_rank.shards._group", lambda *_: 1)


@pytest.mark.parametrize("pieces", ["many_small_shards", "many_small_groups"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("lengths", LENGTHS)
def test_a_batch_in_pieces_equals_the_reference(request, shape, lengths, pieces):
    request.getfixturevalue(pieces)
    rules = random_rules(*shape, lengths)
    scores = random_scores(rules)
    expected, expected_gradients = gradients(rules, scores, "reference")
    found, found_gradients = gradients(rules, scores, "compiled")
    torch.testing.assert_close(found, expected, rtol=1e-11, atol=1e-11)
    for name, gradient in found_gradients.items():
        torch.testing.assert_close(gradient, expected_gradients[name], rtol=1e-11, atol=1e-11)
    trees, exact = marginals(rules, scores.detach()), marginals(rules, scores.detach(), "reference")
    for name, value in exact.tensors().items():
        torch.testing.assert_close(getattr(trees, name), value, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("shape", [(6, 9, 11), (30, 60, 200), (7, 5, None)])
def test_a_sentence_has_the_same_posteriors_in_every_batch(shape):
    """Bit for bit: results do not depend on other sentences or on the number of cores."""
    n, p, d = shape
    lengths = [9, 4, 7, 12, 3, 12, 1]
    rules = random_rules(n, p, d or n, lengths, dtype=torch.float32)
    rules = rules if d else replace(rules, head=None)
    together = marginals(rules)
    for b, length in enumerate(lengths):
        alone = marginals(rules.sentence(b).replace(words=rules.words[b : b + 1, :length]))
        assert torch.equal(alone.log_partition, together.log_partition[b : b + 1])
        assert torch.equal(alone.best_tag_posterior[0], together.best_tag_posterior[b, :length])
        for name in ("spans", "best_label", "best_label_posterior"):
            assert torch.equal(getattr(alone, name)[0], getattr(together, name)[b, : length + 1, : length + 1])


def test_rules_that_changed_in_place_are_seen():
    rules = random_rules(3, 4, 5, lengths=[6])
    before = marginals(rules)
    with torch.no_grad():
        rules.left.copy_(rules.left.flip(0))
    torch.testing.assert_close(marginals(rules).spans, marginals(rules, engine="reference").spans)
    assert not torch.allclose(before.spans, marginals(rules).spans)


@pytest.mark.usefixtures("many_small_shards")
def test_threads_give_the_same_bits_twice():
    rules = random_rules(6, 9, 11, lengths=[9, 4, 7, 12, 3, 12], dtype=torch.float32)
    scores = random_scores(rules)
    first, first_gradients = gradients(rules, scores, "compiled")
    again, again_gradients = gradients(rules, scores, "compiled")
    assert torch.equal(first, again)
    assert all(torch.equal(first_gradients[name], again_gradients[name]) for name in first_gradients)

"""Dense rules: the reference compared with enumeration of all trees, the fast paths with the reference."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from ramify.structures.dense import DensePCFG, compiled
from tests.structures.brute_force import derivations, tree_weights
from tests.structures.random_rules import inside, marginals, parameters, random_dense_rules, random_rules, random_scores

FAST = ["compiled", "scaled"]
ALL = ["reference", *FAST]
SHAPES = [(3, 4), (1, 1), (1, 3), (4, 1), (5, 2)]
LENGTHS = [[6, 4, 2, 5], [1], [1, 2, 1], [9], [2, 2], [7, 1, 3], [3, 3, 3]]
both_kinds = pytest.mark.parametrize("per_sentence", [False, True], ids=["shared", "per-sentence"])


def gradients(rules: DensePCFG, scores: torch.Tensor, log_z: torch.Tensor) -> dict[str, torch.Tensor]:
    upstream = torch.linspace(-1, 2, len(log_z), dtype=log_z.dtype)  # different per sentence, one negative
    possible = log_z > -torch.inf
    inputs = {**parameters(rules), "span_scores": scores}
    if not possible.any():
        return {}
    values = torch.autograd.grad((log_z * upstream)[possible].sum(), list(inputs.values()))
    return dict(zip(inputs, values, strict=True))


def assert_same(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor], tolerance: float) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(
            found[name].double(), value, rtol=tolerance, atol=tolerance, msg=lambda m, n=name: f"{n}: {m}"
        )


@both_kinds
@pytest.mark.parametrize("engine", ALL)
@pytest.mark.parametrize(("n", "p"), SHAPES)
def test_value_marginals_and_every_gradient_equal_enumeration(engine, n, p, per_sentence):
    rules = random_dense_rules(n, p, [6, 1, 2, 3, 4, 5], per_sentence=per_sentence)
    scores = random_scores(rules)
    log_z, found = inside(rules, scores, engine), marginals(rules, scores, engine)
    totals = []
    for b, length in enumerate(rules.lengths.tolist()):
        if length == 1:
            totals.append(torch.tensor(-torch.inf, dtype=torch.float64))
            continue
        weights = tree_weights(rules, b, scores)
        totals.append(torch.stack(list(weights.values())).sum().log())
        expected = torch.zeros_like(scores[b])
        for spans, weight in weights.items():
            for i, j in spans:
                expected[i, j] += (weight.log() - totals[-1]).exp().detach()
        torch.testing.assert_close(found.spans[b], expected)
    expected = torch.stack(totals)
    torch.testing.assert_close(log_z, expected)
    enumerated = gradients(rules, scores, expected)
    enumerated["span_scores"] = enumerated["span_scores"].nan_to_num()  # 0 * inf at the forbidden span
    assert_same(gradients(rules, scores, log_z), enumerated, 1e-10)


@pytest.mark.parametrize("engine", ALL)
def test_labels_and_tags_equal_enumeration_of_all_derivations(engine):
    rules = random_dense_rules(2, 3, [4, 3, 2], sharpness=2)
    found = marginals(rules, engine=engine)
    for b, length in enumerate(rules.lengths.tolist()):
        labels = torch.zeros(length + 1, length + 1, 2, dtype=torch.float64)
        tags = torch.zeros(length, 3, dtype=torch.float64)
        for derivation in derivations(rules, b):
            for (i, j), label in derivation.labels.items():
                labels[i, j, label] += derivation.probability
            for i, tag in enumerate(derivation.tags):
                tags[i, tag] += derivation.probability
        total = labels[0, length].sum()
        torch.testing.assert_close(found.log_partition[b].exp(), total)
        label, tag = (labels / total).max(-1), (tags / total).max(-1)
        spans = slice(0, length + 1)
        torch.testing.assert_close(found.best_label_posterior[b, spans, spans], label.values)
        assert torch.equal(found.best_label[b, spans, spans], label.indices)
        torch.testing.assert_close(found.best_tag_posterior[b, :length], tag.values)
        assert torch.equal(found.best_tag[b, :length], tag.indices)


@both_kinds
@pytest.mark.parametrize("engine", FAST)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-11), (torch.float32, 2e-5)])
def test_the_fast_paths_equal_the_reference(engine, shape, lengths, per_sentence, dtype, tolerance):
    rules = random_dense_rules(*shape, lengths, per_sentence=per_sentence, dtype=dtype)
    scores = random_scores(rules)
    exact = DensePCFG(*(t.detach().double().requires_grad_() for t in parameters(rules).values()), rules.lengths)
    exact_scores = scores.detach().double().requires_grad_()
    expected, found = inside(exact, exact_scores, "reference"), inside(rules, scores, engine)
    torch.testing.assert_close(found.double(), expected, rtol=tolerance, atol=tolerance)
    assert_same(gradients(rules, scores, found), gradients(exact, exact_scores, expected), tolerance)


@both_kinds
@pytest.mark.parametrize("cores", [2, 3, 8])
def test_the_cores_share_the_sentences(on_cores, cores, per_sentence):
    on_cores(cores)
    rules = random_dense_rules(3, 4, [6, 4, 1, 5, 2], per_sentence=per_sentence)
    scores = random_scores(rules)
    assert len(compiled.pieces(rules)) == min(cores, 5)
    expected, found = inside(rules, scores, "reference"), inside(rules, scores, "compiled")
    torch.testing.assert_close(found, expected)
    assert_same(gradients(rules, scores, found), gradients(rules, scores, expected), 1e-11)
    expected, found = marginals(rules, scores, "reference"), marginals(rules, scores, "compiled")
    torch.testing.assert_close(vars(found), vars(expected), rtol=1e-10, atol=1e-12)


@both_kinds
@pytest.mark.parametrize("engine", FAST)
@pytest.mark.parametrize("shape", SHAPES)
def test_marginals_equal_the_reference(engine, shape, per_sentence):
    rules = random_dense_rules(*shape, [7, 3, 1, 5, 2], per_sentence=per_sentence, sharpness=2)
    scores = random_scores(rules).detach()
    expected, found = marginals(rules, scores, "reference"), marginals(rules, scores, engine)
    for name, value in expected.tensors().items():
        torch.testing.assert_close(
            getattr(found, name), value, rtol=1e-10, atol=1e-12, msg=lambda m, n=name: f"{n}: {m}"
        )


@both_kinds
@pytest.mark.parametrize("engine", FAST)
def test_gradients_by_finite_differences(engine, per_sentence):
    rules = random_dense_rules(2, 3, [4, 3], per_sentence=per_sentence)
    scores = torch.zeros(2, 5, 5, dtype=torch.float64, requires_grad=True)

    def total(*tensors: torch.Tensor) -> torch.Tensor:
        *rest, span_scores = tensors
        return inside(DensePCFG(*rest, rules.lengths), span_scores, engine)

    assert torch.autograd.gradcheck(total, (*parameters(rules).values(), scores))


@both_kinds
@pytest.mark.parametrize("engine", ALL)
def test_a_batch_equals_its_sentences_one_by_one(engine, per_sentence):
    rules = random_dense_rules(3, 4, [9, 4, 1, 2, 6], per_sentence=per_sentence)
    together, trees = inside(rules, engine=engine), marginals(rules, engine=engine)
    for b, length in enumerate(rules.lengths.tolist()):
        alone = rules.sentence(b)
        alone = replace(alone, words=alone.words[:, :length])
        torch.testing.assert_close(inside(alone, engine=engine)[0], together[b])
        torch.testing.assert_close(marginals(alone, engine=engine).spans[0], trees.spans[b, : length + 1, : length + 1])
    chosen = torch.tensor([3, 0])
    torch.testing.assert_close(inside(rules.select(chosen), engine=engine), together[chosen])


@pytest.mark.parametrize("engine", ALL)
def test_span_scores_may_be_a_part_of_a_larger_table(engine):
    rules = random_dense_rules(3, 4, [5, 5, 5])
    scores = random_scores(rules).detach()
    expected = inside(rules, scores, engine)[1:]
    torch.testing.assert_close(inside(rules.select(slice(1, 3)), scores[1:], engine), expected)


@pytest.mark.parametrize("engine", ALL)
def test_a_low_rank_grammar_in_dense_form_is_the_same_grammar(engine):
    rules = random_rules(4, 5, 6, lengths=[7, 3, 5])
    tensor = torch.einsum("al,bl,cl->abc", rules.head.exp(), rules.left.exp(), rules.right.exp()).log()
    written_out = DensePCFG(rules.root, tensor, rules.words, rules.lengths)
    torch.testing.assert_close(inside(written_out, engine=engine), inside(rules))
    expected = marginals(rules)
    for name, value in vars(marginals(written_out, engine=engine)).items():
        torch.testing.assert_close(value, getattr(expected, name))


@pytest.mark.parametrize("engine", FAST)
def test_no_nan_at_length_200_with_extreme_logits(engine):
    shape, lengths = (5, 8), [200, 150]
    rules = random_dense_rules(*shape, lengths, sharpness=10, dtype=torch.float32)
    scores = torch.zeros(2, 201, 201, requires_grad=True)
    log_z = inside(rules, scores, engine)
    with torch.no_grad():
        exact = inside(random_dense_rules(*shape, lengths, sharpness=10), engine="reference")
    torch.testing.assert_close(log_z.double(), exact, rtol=1e-5, atol=0)
    log_z.sum().backward()
    for name, value in {**parameters(rules), "span_scores": scores}.items():
        assert value.grad.isfinite().all(), name
    torch.testing.assert_close(scores.grad.triu(2).sum((1, 2)), torch.tensor([199.0, 149.0]), rtol=1e-3, atol=0)
    torch.testing.assert_close(rules.binary.grad.sum(), torch.tensor(348.0), rtol=1e-3, atol=0)


@pytest.mark.parametrize("engine", ALL)
def test_an_impossible_sentence_is_reported_and_affects_no_other(engine):
    rules = random_dense_rules(3, 4, [5, 4])
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
    rules = random_dense_rules(3, 4, [4])
    scores = torch.full((1, 5, 5), -torch.inf, dtype=torch.float64)
    assert inside(rules, scores, engine) == -torch.inf
    assert not marginals(rules, scores, engine).spans.any()


@pytest.mark.parametrize("engine", ALL)
def test_rules_of_probability_zero_get_gradients_without_nan(engine):
    rules = random_dense_rules(4, 5, [5, 3])
    binary = rules.binary.detach().clone()
    binary[0], binary[:, 2] = -torch.inf, -torch.inf
    binary.requires_grad_()
    inside(replace(rules, binary=binary), engine=engine).sum().backward()
    assert binary.grad.isfinite().all()
    assert not binary.grad[0].any()


@pytest.mark.parametrize("engine", FAST)
@pytest.mark.parametrize("name", ["root", "binary", "words"])
def test_nan_is_not_mistaken_for_impossible(engine, name):
    rules = random_dense_rules(3, 4, [5, 4])
    spoilt = getattr(rules, name).detach().clone()
    spoilt[0] = torch.nan
    assert inside(replace(rules, **{name: spoilt}), engine=engine)[0].isnan()


@pytest.mark.parametrize("engine", ALL)
def test_padding_does_not_matter(engine):
    rules = random_dense_rules(3, 4, [3, 5])
    words = rules.words.detach().clone()
    words[0, 3:] = torch.nan
    assert torch.equal(inside(replace(rules, words=words), engine=engine), inside(rules, engine=engine))


def test_rules_that_do_not_fit_together_are_refused():
    rules = random_dense_rules(3, 4, [6])
    with pytest.raises(ValueError, match="binary has shape"):
        replace(rules, binary=rules.binary[1:])
    with pytest.raises(ValueError, match="span_scores has shape"):
        inside(rules, torch.zeros(1, 6, 6))
    with pytest.raises(ValueError, match="engine 'magic' is not one of"):
        inside(rules, engine="magic")


def test_compiled_loops_refuse_unsupported_tensors():
    rules = random_dense_rules(3, 4, [5])
    with pytest.raises(ValueError, match="takes float32 or float64 on a CPU"):
        inside(rules.to(torch.bfloat16), engine="compiled")
    torch.testing.assert_close(inside(rules.to(torch.bfloat16)).double(), inside(rules), rtol=0.05, atol=0)

"""Lexicalised families: networks compared with a forward pass in plain torch, sums, samples, learning."""

from __future__ import annotations

import math
from collections import Counter
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import ramify
from ramify.decoding.decoders import check_decoder, decode
from ramify.errors import RamifyError
from ramify.lab.glossary.describe import describe
from ramify.lab.glossary.glossary import facts_of
from ramify.models import FAMILIES, Grammar
from ramify.models.delexicalised import delexicalise
from ramify.models.generation import make_sampler
from ramify.models.lexicalised import LexicalisedGrammar, WithWordTable
from ramify.structures.fallback import reliable_log_partition
from ramify.structures.lexicalised import compiled
from ramify.structures.lexicalised.distribution import head_of_span
from tests.models.normalisation import normalisation_error

N, P, R, WORDS, EMBEDDING = 3, 4, 5, 11, 6
M = N + P
LEXICALISED = [name for name, family in FAMILIES.items() if issubclass(family, LexicalisedGrammar)]
every_family = pytest.mark.parametrize("family", LEXICALISED)


def made(family: str, words: int = WORDS, scale: float = 0.5, **sizes: float) -> LexicalisedGrammar:
    arguments: dict[str, Any] = {"nonterminals": N, "preterminals": P, "words": words, "embedding": EMBEDDING, **sizes}
    if family == "nbl-pcfg":
        arguments.setdefault("rank", R)
    torch.manual_seed(len(family))
    grammar = FAMILIES[family](**arguments).double()
    with torch.no_grad():  # weights large enough that a missing or additional ReLU makes a difference
        for parameter in grammar.parameters():
            parameter += scale * torch.randn_like(parameter)
    return grammar


class Plain:
    """The forward pass from a state dict, computed separately for all words and symbols."""

    def __init__(self, state: dict[str, Tensor]) -> None:
        self.state = state

    def linear(self, name: str, x: Tensor) -> Tensor:
        result = x @ self.state[f"{name}.weight"].T
        return result + self.state[f"{name}.bias"] if f"{name}.bias" in self.state else result

    def residual(self, name: str, x: Tensor) -> Tensor:
        return x + torch.relu(self.linear(f"{name}.second", torch.relu(self.linear(f"{name}.first", x))))

    def encoded(self, name: str, x: Tensor) -> Tensor:
        return self.residual(f"{name}.2", self.residual(f"{name}.1", self.linear(f"{name}.0", x)))

    def root(self) -> Tensor:
        return self.linear("start.3", self.encoded("start", self.state["start_embedding"]))[0].softmax(0)

    def pair(self, name: str, word: int, symbol: Tensor) -> Tensor:
        """W [w; A] + b with the matrix in one piece."""
        matrix = torch.cat([self.state[f"{name}.of_word.weight"], self.state[f"{name}.of_symbol.weight"]], 1)
        joined = torch.cat([self.state["word_embedding.weight"][word], symbol])
        return matrix @ joined + self.state[f"{name}.of_word.bias"]

    def words(self, embeddings: Tensor) -> Tensor:
        """(k, q)"""
        return self.linear("word_network.layer", self.encoded("word_network.encoder", embeddings)).softmax(1)


@torch.no_grad()
def test_the_networks_of_nbl_pcfg() -> None:
    grammar = made("nbl-pcfg")
    plain = Plain(grammar.state_dict())
    symbols, components = plain.state["nonterminal_embedding"], plain.state["component_embedding"]
    word_ids, lengths = torch.tensor([[4, 0, 4], [10, 2, 7]]), torch.tensor([3, 2])
    found = grammar(word_ids, lengths)
    torch.testing.assert_close(found.root.exp(), plain.root())
    torch.testing.assert_close(found.head_child.exp(), plain.linear("head_child", components).softmax(1).T)
    other = plain.linear("other_child", components).softmax(1)  # (r, 2 m): all symbols on the left, then on the right
    torch.testing.assert_close(found.other_child.exp(), torch.stack([other[:, :M].T, other[:, M:].T]))
    of_symbols, of_components = plain.words(symbols), plain.words(components)
    for b, n in product(range(2), range(3)):
        word = int(word_ids[b, n])
        torch.testing.assert_close(found.root_words[b, n].exp(), of_symbols[:, word])
        torch.testing.assert_close(found.words[b, n].exp(), of_components[:, word])
        for a in range(N):
            x = torch.relu(plain.pair("pair", word, symbols[a])) + plain.state["word_embedding.weight"][word]
            expected = plain.linear("component.1", plain.residual("component.0", x)).softmax(0)
            torch.testing.assert_close(found.components[b, n, a].exp(), expected)


@torch.no_grad()
def test_the_networks_of_nl_pcfg() -> None:
    grammar = made("nl-pcfg")
    plain = Plain(grammar.state_dict())
    symbols = plain.state["symbol_embedding"]
    word_ids, lengths = torch.tensor([[4, 0, 4], [10, 2, 7]]), torch.tensor([3, 2])
    found = grammar(word_ids, lengths)
    torch.testing.assert_close(found.root.exp(), plain.root())
    words = plain.words(symbols)
    for b, n in product(range(2), range(3)):
        word = int(word_ids[b, n])
        torch.testing.assert_close(found.words[b, n].exp(), words[:, word])
        for a in range(N):
            x = plain.residual("head_child.1", plain.residual("head_child.0", plain.pair("pair", word, symbols[a])))
            heads = plain.linear("head_child.2", x).softmax(0)  # all symbols with the other on the left, then right
            others = plain.pair("other_child", word, symbols[a]).view(2 * M, M).softmax(1)
            torch.testing.assert_close(found.rules[b, n, a].exp(), (heads[:, None] * others).view(2, M, M))


@every_family
def test_the_table_of_words_makes_the_same_distributions(family: str) -> None:
    grammar = made(family)
    ready = grammar.for_parsing()
    assert isinstance(ready, WithWordTable)
    assert ready.for_parsing() is ready
    word_ids, lengths = torch.randint(WORDS, (3, 5)), torch.tensor([5, 2, 4])
    with torch.no_grad():
        torch.testing.assert_close(
            ready(word_ids, lengths).log_partition(), grammar(word_ids, lengths).log_partition()
        )  # fmt: skip
    assert ready.numbers_per_sentence(9) == grammar.numbers_per_sentence(9)
    assert ready.expected_seconds(9) == grammar.expected_seconds(9)


@every_family
def test_every_parameter_learns(family: str) -> None:
    torch.manual_seed(2)
    grammar = made(family, scale=0.0)
    grammar.objective(torch.arange(10).reshape(2, 5), torch.tensor([5, 5])).sum().backward()
    for name, parameter in grammar.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().max() > 0, name


@every_family
def test_every_matrix_is_xavier_uniform_initially(family: str) -> None:
    sizes = {"nonterminals": 12, "preterminals": 20, "words": 200, "embedding": 32}
    torch.manual_seed(0)
    for name, parameter in FAMILIES[family](
        **sizes, **({"rank": 25} if family == "nbl-pcfg" else {})
    ).named_parameters():
        if parameter.dim() == 2 and len(parameter) > 1:
            bound = (6 / sum(parameter.shape)) ** 0.5
            assert parameter.abs().max() <= bound, name
            assert parameter.std().item() == pytest.approx(bound / 3**0.5, rel=0.1), name


OUTPUTS = {
    "nbl-pcfg": {"start.3", "component.1", "head_child", "other_child", "word_network.layer"},
    "nl-pcfg": {"start.3", "head_child.2", "other_child.of_word", "other_child.of_symbol", "word_network.layer"},
}


@every_family
def test_gain_multiplies_the_initial_weights_of_the_output_layers_alone(family: str) -> None:
    plain, larger = (made(family, scale=0, gain=gain).state_dict() for gain in (1, 3))
    for name, value in plain.items():
        layer, _, kind = name.rpartition(".")
        factor = 3 if kind == "weight" and layer in OUTPUTS[family] else 1
        torch.testing.assert_close(larger[name], factor * value, msg=name)


def test_the_numbers_and_operations_of_a_chart_are_counted() -> None:
    grammar, length, rank = made("nbl-pcfg", rank=70).float(), 6, 70
    with torch.no_grad():
        pcfg = grammar.forward(torch.randint(WORDS, (1, length)), torch.tensor([length]))
        chart = compiled.inside_of(compiled.Tables.of(pcfg), pcfg)
        found = compiled.outside_of(chart)
    kept = chart.mixed.numel() + chart.heads.size + chart.symbols.numel() + found.above.numel() + found.symbols.numel()
    assert grammar.numbers_per_sentence(length) == kept + chart.mixed.numel() + 2 * chart.components.numel()
    spans = [(i, j) for j in range(length + 1) for i in range(j)]
    heads = sum(j - i for i, j in spans)
    heads_of_splits = sum((j - i) * (j - i - 1) for i, j in spans)
    # s, `head` and `closed` have n terms for every H, `mixed` one for every split; each is a product and a sum.
    assert grammar.chart_flop(length) == 2 * rank * (3 * N * heads + heads_of_splits)


@every_family
def test_span_scores_favour_spans_in_training(family: str) -> None:
    grammar = made(family)
    word_ids, lengths = torch.tensor([[1, 2, 3, 4]]), torch.tensor([4])
    scores = torch.zeros(1, 5, 5, dtype=torch.float64)
    scores[0, 1, 3] = 2.0
    with torch.no_grad():
        found = grammar.objective(word_ids, lengths, span_scores=scores)
        plain, posterior = grammar.objective(word_ids, lengths), grammar.marginals(word_ids, lengths).spans[0, 1, 3]
    expected = plain.exp() * (1 + posterior * (math.exp(2) - 1))
    torch.testing.assert_close(found.exp(), expected)


@every_family
def test_an_unknown_word_may_be_any_word(family: str) -> None:
    """More probable than as <unk>, and no more than the sum over all words where none of them heads a phrase."""
    grammar = made(family)
    word_ids, lengths = torch.tensor([[1, 0, 3]]), torch.tensor([3])
    with torch.no_grad():
        distribution = grammar(word_ids, lengths)
        opened = distribution.with_any_word(word_ids == 0)
    assert opened.log_partition() > distribution.log_partition()
    assert reliable_log_partition(opened)[0].item() < 0


@every_family
def test_sentences_are_drawn_as_often_as_they_are_probable(family: str) -> None:
    """All sentences of two words over a tiny vocabulary; longer ones are counted together."""
    grammar = made(family, words=2, scale=1.0)
    ids = torch.tensor(list(product(range(2), repeat=2)))
    with torch.no_grad():
        shares = grammar(ids, torch.full((len(ids),), 2)).log_partition().exp().tolist()
    sampler, draws = make_sampler(grammar, np.random.default_rng(0)), 3000
    drawn = [sampler.draw(2) for _ in range(draws)]
    seen = Counter(None if each is None else tuple(each.word_ids.tolist()) for each in drawn)
    assert 0 < seen[None] < draws
    for words, share in zip(ids.tolist(), shares, strict=True):
        assert abs(seen[tuple(words)] - draws * share) <= 4 * math.sqrt(draws * share * (1 - share))
    longer = next(each for each in iter(lambda: sampler.draw(12), ...) if each is not None and len(each.word_ids) > 3)
    assert longer.spans[0].tolist() == [0, len(longer.word_ids)]
    assert len(longer.labels) == len(longer.spans) == len(longer.tags) - 1


SENTENCES = ["the dog saw a cat", "a cat saw the dog", "the old dog sleeps", "a bird sings", "the bird saw a cat"]


@pytest.fixture(scope="module", params=LEXICALISED)
def parser(request):
    options = {"rank": 8} if request.param == "nbl-pcfg" else {}
    return ramify.fit(
        [line.split() for line in SENTENCES * 4], model=request.param, nonterminals=3, preterminals=4, embedding=8,
        epochs=2, seed=1, min_count=1, **options,
    )  # fmt: skip


def test_a_model_is_saved_loaded_parsed_with_scored_and_drawn_from(parser, tmp_path):
    parser.save(tmp_path / "model")
    again = ramify.load(tmp_path / "model")
    sentence = "the old cat saw a dog"
    for decoder in ("mbr", "mbr-labelled", "sample"):
        here, there = parser.analyse(sentence, decoder, seed=3), again.analyse(sentence, decoder, seed=3)
        assert str(here.tree) == str(there.tree)
        assert len(here.parse.spans) == 5
        assert here.log_probability == pytest.approx(there.log_probability)
    (scored,) = again.log_probabilities([sentence])
    assert scored == pytest.approx(again.analyse(sentence).log_probability, rel=1e-5)
    assert again.entropy(sentence) > 0
    arcs = again.distributions([sentence, "a dog"]).arc_posteriors()
    torch.testing.assert_close(arcs[0].sum(0), torch.ones(6), rtol=1e-4, atol=1e-4)
    assert len(list(again.generate(3, seed=1))) == 3
    assert again.analyse("dog").failure is None


def test_commands_that_need_rules_without_words_are_refused(parser):
    for needs in (lambda: parser.tables, lambda: parser.strongest_rules(), lambda: parser.strongest_words("T-0")):
        with pytest.raises(RamifyError, match="depend on head words"):
            needs()


def test_bilexical_grammars_have_a_best_derivation_instead_of_a_best_tree():
    grammar = made("nbl-pcfg")
    with pytest.raises(RamifyError, match="use the decoder mbr, or viterbi-rank"):
        check_decoder(grammar, "viterbi")
    check_decoder(grammar, "viterbi-rank")


def test_lexicalised_families_are_not_pcfgs():
    assert LEXICALISED
    assert not any(issubclass(FAMILIES[name], Grammar) for name in LEXICALISED)


def test_a_description_averages_rules_over_the_head_words_of_derivations():
    grammar = made("nbl-pcfg", words=4, scale=0.8)
    found = delexicalise(grammar.for_parsing())
    assert max(normalisation_error(found.grammar).values()) < 1e-9
    torch.testing.assert_close(found.heads.sum(1), torch.ones(N, dtype=torch.float64))
    torch.testing.assert_close(found.dependents.sum((1, 2)), torch.ones(N, dtype=torch.float64))
    sampler = make_sampler(grammar, np.random.default_rng(1))
    drawn = [each for each in (sampler.draw(500) for _ in range(1500)) if each is not None]
    assert len(drawn) > 1490  # sentences end, so that those of 500 words and more do not matter
    tags, words = (np.concatenate([getattr(each, name) for each in drawn]) for name in ("tags", "word_ids"))
    for tag in range(P):
        total = (tags == tag).sum()
        for word in range(4):
            share = float(found.grammar.emission_table[word, tag].exp())
            assert abs((words[tags == tag] == word).sum() / total - share) < 5 * math.sqrt(share / total)


def test_the_glossary_has_heads_and_dependents(parser):
    if not isinstance(parser.model, FAMILIES["nbl-pcfg"]):
        with pytest.raises(RamifyError, match="cannot be averaged"):
            describe(parser, "model")
        return
    glossary = describe(parser, "model")
    assert "depend on head words" in " ".join(glossary.remarks())
    for symbol in glossary.nonterminals:
        assert symbol.rules
        assert symbol.heads
        assert {"heads", "dependents on the left"} <= {fact.name for fact in facts_of(symbol)}


@pytest.mark.parametrize("heads", ["projective", "constituents"])
@pytest.mark.parametrize(("family", "decoder"), [("nbl-pcfg", "viterbi-rank"), ("nl-pcfg", "viterbi")])
def test_the_best_tree_keeps_its_own_heads(family, decoder, heads):
    grammar = made(family, scale=0.3)
    word_ids, lengths = torch.randint(WORDS, (12, 6), generator=torch.Generator().manual_seed(3)), torch.full((12,), 6)
    lengths[0] = 1
    best = grammar.forward(word_ids, lengths).argmax()
    seeds = [(0, b) for b in range(12)]
    assert best[0] is None
    (alone, *found), (_, *by_posteriors) = (
        decode(grammar, word_ids, lengths, each, seeds, heads=heads) for each in (decoder, "mbr")
    )
    assert alone.heads.tolist() == [0]
    assert [each.heads.tolist() for each in found] == [tree.heads.tolist() for tree in best[1:]]
    assert any(each.heads.tolist() != other.heads.tolist() for each, other in zip(found, by_posteriors, strict=True))


@pytest.mark.slow
@every_family
def test_heads_of_sampled_trees_fit_them_and_are_as_frequent_as_their_posteriors(family):
    grammar, draws, length = made(family, scale=0.3), 600, 4
    words = torch.randint(WORDS, (1, length), generator=torch.Generator().manual_seed(1))
    lengths = torch.tensor([length])
    seeds = [(0, b) for b in range(draws)]
    drawn = decode(grammar, words.expand(draws, -1), lengths.expand(draws), "sample", seeds)
    frequencies = np.zeros((length + 1, length))
    for each in drawn:
        for i, j in each.spans:
            head_of_span(each.heads, int(i), int(j))  # refuses a constituent with more than one head
        frequencies[each.heads, np.arange(length)] += 1 / draws
    arcs = grammar.forward(words, lengths).arc_posteriors()[0]
    assert 0.1 < arcs.max() < 0.95  # not all draws are the same
    np.testing.assert_allclose(frequencies, arcs.detach().numpy(), atol=4 * 0.5 / math.sqrt(draws))

"""The networks of all families compared with a forward pass in plain torch from the tensors of their state dicts.

The names are those in model files, so neither the names nor their use may change.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import gelu

from ramify.models import FAMILIES, Grammar

N, P, D, WORDS, EMBEDDING, LATENT = 3, 4, 5, 11, 6, 2
M = N + P
LOW_RANK = {"rank": D}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "tn-pcfg": ("tn-pcfg", LOW_RANK),
    "tn-pcfg, tanh": ("tn-pcfg", {**LOW_RANK, "activation": "tanh"}),
    "tn-pcfg, sigmoid": ("tn-pcfg", {**LOW_RANK, "activation": "sigmoid"}),
    "tn-pcfg, gelu": ("tn-pcfg", {**LOW_RANK, "activation": "gelu"}),
    "tn-pcfg, shared projection": ("tn-pcfg", {**LOW_RANK, "shared_projection": True}),
    "tn-pcfg, tied embeddings": ("tn-pcfg", {**LOW_RANK, "tied_embeddings": True}),
    "tn-pcfg, pre-norm": ("tn-pcfg", {**LOW_RANK, "pre_norm": True}),
    "tn-pcfg, unit rows": ("tn-pcfg", {**LOW_RANK, "unit_rows": True}),
    "tn-pcfg, both, shared": ("tn-pcfg", {**LOW_RANK, "pre_norm": True, "unit_rows": True, "shared_projection": True}),
    "tn-pcfg, both, compound": ("tn-pcfg", {**LOW_RANK, "pre_norm": True, "unit_rows": True, "latent": LATENT}),
    "tn-pcfg, compound": ("tn-pcfg", {**LOW_RANK, "latent": LATENT}),
    "td-pcfg": ("td-pcfg", LOW_RANK),
    "sn-pcfg": ("sn-pcfg", {}),
    "sc-pcfg": ("sc-pcfg", {"latent": LATENT}),
    "hol-pcfg": ("hol-pcfg", {}),
    "hol-pcfg, odd size": ("hol-pcfg", {"embedding": 7}),
    "n-pcfg": ("n-pcfg", {}),
    "c-pcfg": ("c-pcfg", {"latent": LATENT}),
    "em-pcfg": ("em-pcfg", {}),
}
ACTIVATIONS = {"relu": torch.relu, "tanh": torch.tanh, "sigmoid": torch.sigmoid, "gelu": gelu}


def made(case: str) -> Grammar:
    family, options = CASES[case]
    sizes = {"nonterminals": N, "preterminals": P, "words": WORDS, **options}
    if family not in ("td-pcfg", "em-pcfg"):
        sizes.setdefault("embedding", EMBEDDING)
    torch.manual_seed(len(case))
    grammar = FAMILIES[family](**sizes).double()
    with torch.no_grad():  # weights large enough that a missing or additional ReLU makes a difference
        for parameter in grammar.parameters():
            parameter += 0.5 * torch.randn_like(parameter) if family != "em-pcfg" else 0
    return grammar


class Plain:
    """The forward pass of one sentence from a state dict; z is a vector, or None."""

    def __init__(self, case: str, state: dict[str, Tensor], z: Tensor | None) -> None:
        self.family, self.options = CASES[case]
        self.state, self.z = state, z

    def linear(self, name: str, x: Tensor) -> Tensor:
        result = x @ self.state[f"{name}.weight"].T
        return result + self.state[f"{name}.bias"] if f"{name}.bias" in self.state else result

    def output(self, name: str, x: Tensor) -> Tensor:
        """A linear layer, or temperature times cosine with each of its rows."""
        if f"{name}.log_temperature" not in self.state:
            return self.linear(name, x)
        rows, tau = self.state[f"{name}.weight"], self.state[f"{name}.log_temperature"].exp()
        assert f"{name}.bias" not in self.state
        return tau * torch.stack([torch.stack([each @ row / (each.norm() * row.norm()) for row in rows]) for each in x])

    def norm(self, name: str, x: Tensor) -> Tensor:
        """Divided by the root of the mean square, times a weight for each number."""
        return x / x.square().mean(-1, keepdim=True).sqrt() * self.state[f"{name}.weight"]

    def convolved(self, relation: str, x: Tensor) -> Tensor:
        """Every row bound to a relation vector: the circular convolution by its sum, without Fourier transforms."""
        v = self.state["relations"][("left", "right", "word").index(relation)]
        e = len(v)
        made = [[sum(v[s] * row[(t - s) % e] for s in range(e)) for t in range(e)] for row in x]
        return torch.tensor(made, dtype=x.dtype)

    def with_z(self, name: str, x: Tensor) -> Tensor:
        """A linear layer of symbols with z joined to each."""
        return self.linear(name, x if self.z is None else torch.cat([x, self.z.expand(len(x), -1)], 1))

    def encoded(self, name: str, x: Tensor, blocks: int) -> Tensor:
        """A layer and residual blocks: x + relu(W2 relu(W1 x))."""
        x = self.with_z(f"{name}.0", x)
        if self.options.get("pre_norm"):
            for block in range(1, blocks + 1):
                inner = gelu(self.linear(f"{name}.{block}.first", self.norm(f"{name}.{block}.norm", x)))
                x = x + self.linear(f"{name}.{block}.second", inner)
            return self.norm(f"{name}.{blocks + 1}", x)
        for block in range(1, blocks + 1):
            inner = torch.relu(self.linear(f"{name}.{block}.first", x))
            x = x + torch.relu(self.linear(f"{name}.{block}.second", inner))
        return x

    def rules(self) -> tuple[Tensor, Tensor]:
        """p(S -> A) (n,) and p(A -> B C) (n, m, m)."""
        if self.family in ("sn-pcfg", "sc-pcfg"):
            symbols = self.state["symbol_embedding"]
            parents = symbols[:N] + torch.relu(self.with_z("parent.0", symbols[:N]))
            left, right = (symbols + torch.relu(self.linear(f"{side}.0", symbols)) for side in ("left", "right"))
            left, right = ((child @ parents.T).softmax(0) for child in (left, right))
            root = (symbols[:N] @ self.state["start_embedding"][0]).softmax(0)
            return root, torch.einsum("ba,ca->abc", left, right)
        if self.family == "hol-pcfg":
            symbols, tau = self.state["symbols"], self.state["log_temperatures"].exp()
            left, right = (
                (tau[1] * symbols @ self.convolved(side, symbols[:N]).T).softmax(0) for side in ("left", "right")
            )
            root = (tau[0] * symbols[:N] @ self.state["start"][0]).softmax(0)
            return root, torch.einsum("ba,ca->abc", left, right)
        if self.family in ("n-pcfg", "c-pcfg"):
            root = self.linear("start_layer", self.encoded("start_encoder", self.state["start_embedding"], 2))[0]
            binary = self.with_z("rule_layer", self.state["nonterminal_embedding"]).softmax(1)
            return root.softmax(0), binary.view(N, M, M)
        if self.family == "em-pcfg":
            return self.state["root"].exp(), self.state["binary"].exp()
        if self.family == "td-pcfg":
            root, head, left, right = (self.state[name] for name in ("root", "head", "left", "right"))
        else:
            symbols = self.state["symbol_embedding"]
            activation = ACTIVATIONS[self.options.get("activation", "relu")]
            pre_norm = self.options.get("pre_norm", False)
            last = {name: f"{name}.{2 + pre_norm}" for name in ("head", "left", "right")}
            if self.options.get("shared_projection"):
                last = dict.fromkeys(last, "projection")

            def inner(name: str, rows: Tensor) -> Tensor:
                return self.encoded(name, rows, 1) if pre_norm else activation(self.with_z(f"{name}.0", rows))

            head, left, right = (
                self.output(last[name], inner(name, rows))
                for name, rows in (("head", symbols[:N]), ("left", symbols), ("right", symbols))
            )
            root = self.output(f"start.{3 + pre_norm}", self.encoded("start", self.state["start_embedding"], 2))[0]
        factors = (head.softmax(1), left.softmax(0), right.softmax(0))
        return root.softmax(0), torch.einsum("al,bl,cl->abc", *factors)

    def words(self) -> Tensor:
        """p(T -> w) (p, q)."""
        if self.family == "em-pcfg":
            return self.state["word_table"].exp().T
        if self.family == "td-pcfg":
            return self.state["word_logits"].softmax(0).T
        if self.family == "hol-pcfg":
            bound = self.convolved("word", self.state["symbols"][N:])
            return (self.state["log_temperatures"][2].exp() * bound @ self.state["word_vectors"].T).softmax(1)
        if self.family in ("sn-pcfg", "sc-pcfg"):
            tags = self.state["symbol_embedding"][N:]
            states = tags + self.encoded("preterminal_encoder", tags, 3)
        else:
            tied = self.options.get("tied_embeddings")
            tags = self.state["symbol_embedding"][N:] if tied else self.state["preterminal_embedding"]
            states = self.encoded("preterminal_encoder", tags, 2)
        return self.output("word_layer", states).softmax(1)


@pytest.mark.parametrize("case", CASES)
@torch.no_grad()
def test_the_networks_are_those_of_the_state_dict(case: str) -> None:
    grammar = made(case)
    z = torch.randn(2, LATENT, dtype=torch.float64) if grammar.latent else None
    shared = grammar.rules(z)
    everything = torch.arange(WORDS)
    emission = grammar.emission(everything if z is None else everything.expand(2, -1), z)
    for sentence in range(1 if z is None else len(z)):
        plain = Plain(case, grammar.state_dict(), None if z is None else z[sentence])
        root, binary = plain.rules()
        own = shared if z is None else shared.of_sentence(sentence)
        torch.testing.assert_close(own.root.exp(), root)
        torch.testing.assert_close(tensor_of(own), binary)
        words = emission if z is None else emission[sentence]
        torch.testing.assert_close(words.exp().T, plain.words())


def tensor_of(shared: Any) -> Tensor:
    """p(A -> B C) (n, m, m) of rules in any form."""
    if hasattr(shared, "binary"):
        return shared.binary.exp()
    head = torch.eye(N, dtype=torch.float64) if shared.head is None else shared.head.exp()
    return torch.einsum("al,bl,cl->abc", head, shared.left.exp(), shared.right.exp())


def test_every_family_is_among_the_cases() -> None:
    assert {family for family, _ in CASES.values()} == {
        name for name, family in FAMILIES.items() if issubclass(family, Grammar)
    }


@torch.no_grad()
def test_the_encoder_is_a_bidirectional_lstm_with_the_maximum_over_time() -> None:
    """Kim, Dyer and Rush (2019), step by step for each sentence alone."""
    grammar = made("c-pcfg")
    state = {name.removeprefix("encoder."): value for name, value in grammar.state_dict().items()}
    word_ids, lengths = torch.tensor([[1, 5, 2, 2], [7, 3, 0, 0]]), torch.tensor([4, 2])
    z, cost = grammar.encoder(word_ids, lengths, None)
    for b, length in enumerate(lengths.tolist()):
        words = state["embedding.weight"][word_ids[b, :length]]
        both = []
        for suffix, order in (("", range(length)), ("_reverse", reversed(range(length)))):
            h = c = words.new_zeros(words.shape[1])
            seen = torch.empty_like(words)
            for t in order:
                gates = sum(
                    state[f"states.weight_{kind}_l0{suffix}"] @ x + state[f"states.bias_{kind}_l0{suffix}"]
                    for kind, x in (("ih", words[t]), ("hh", h))
                )
                enter, forget, candidate, leave = gates.chunk(4)
                c = forget.sigmoid() * c + enter.sigmoid() * candidate.tanh()
                h = seen[t] = leave.sigmoid() * c.tanh()
            both.append(seen)
        highest = torch.cat(both, 1).amax(0)
        found = highest @ state["parameters_of_z.weight"].T + state["parameters_of_z.bias"]
        mean, log_variance = found.chunk(2)
        torch.testing.assert_close(z[b], mean)
        divergence = sum(0.5 * (m**2 + v.exp() - v - 1) for m, v in zip(mean, log_variance, strict=True))
        torch.testing.assert_close(cost[b], divergence)


OUTPUT_LAYERS = {
    "tn-pcfg": {"head.2", "left.2", "right.2", "start.3", "word_layer"},
    "tn-pcfg, shared projection": {"projection", "start.3", "word_layer"},
    "n-pcfg": {"start_layer", "rule_layer", "word_layer"},
    "c-pcfg": {"start_layer", "rule_layer", "word_layer"},
    "sn-pcfg": {"word_layer"},
    "sc-pcfg": {"word_layer"},
}


@pytest.mark.parametrize("case", OUTPUT_LAYERS)
def test_the_gain_multiplies_the_weights_of_every_output_layer_and_nothing_else(case: str) -> None:
    family, options = CASES[case]

    def weights(gain: float) -> dict[str, Tensor]:
        torch.manual_seed(0)
        sizes = {"nonterminals": N, "preterminals": P, "words": WORDS, "embedding": EMBEDDING, **options}
        return FAMILIES[family](**sizes, gain=gain).state_dict()

    plain, strong = weights(1.0), weights(3.0)
    multiplied = {f"{layer}.weight" for layer in OUTPUT_LAYERS[case]}
    assert multiplied <= plain.keys()
    for name, value in plain.items():
        torch.testing.assert_close(strong[name], 3 * value if name in multiplied else value)


TEMPERATURES = {
    "tn-pcfg, unit rows": [f"{layer}.log_temperature" for layer in sorted(OUTPUT_LAYERS["tn-pcfg"])],
    "hol-pcfg": ["log_temperatures"],
}


@pytest.mark.parametrize(("case", "names"), TEMPERATURES.items())
def test_the_gain_multiplies_temperatures_where_there_are_any(case: str, names: list[str]) -> None:
    family, options = CASES[case]

    def state(gain: float) -> dict[str, Tensor]:
        torch.manual_seed(0)
        sizes = {"nonterminals": N, "preterminals": P, "words": WORDS, "embedding": EMBEDDING, **options}
        return FAMILIES[family](**sizes, gain=gain).state_dict()

    plain, strong = state(1.0), state(3.0)
    assert set(names) <= plain.keys()
    for name, value in plain.items():
        torch.testing.assert_close(strong[name].exp(), 3 * value.exp() if name in names else value.exp())


def test_initial_temperatures_are_those_published() -> None:
    torch.manual_seed(0)
    grammar = made("tn-pcfg, unit rows").__class__(N, P, D, WORDS, unit_rows=True)
    for layer, expected in ((grammar.start[-1], 2.0), (grammar.left[-1], 12.5), (grammar.word_layer, 9.0)):
        assert layer.log_temperature.exp().item() == pytest.approx(expected)
    holographic = FAMILIES["hol-pcfg"](N, P, WORDS)
    torch.testing.assert_close(holographic.log_temperatures.exp(), torch.tensor([2.0, 12.5, 9.0]))


def test_the_gain_of_em_pcfg_is_the_deviation_of_its_logits() -> None:
    def tables(gain: float) -> list[Tensor]:
        torch.manual_seed(0)
        return list(FAMILIES["em-pcfg"](nonterminals=2, preterminals=2, words=5, gain=gain).parameters())

    for one, two in zip(tables(1.0), tables(2.0), strict=True):
        dim = {1: (0,), 2: (0,), 3: (1, 2)}[one.dim()]
        shifted, doubled = (x - x.mean(dim, keepdim=True) for x in (one, two))
        torch.testing.assert_close(doubled, 2 * shifted)

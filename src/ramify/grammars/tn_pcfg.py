"""TN-PCFG: the tensor-decomposed PCFG whose parameters are made by neural networks (Yang et al. 2021, sec. 5)."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from ramify.grammars.base import LowRankGrammar, SharedRules
from ramify.inference.emission import word_log_probabilities
from ramify.inference.rules import LowRankRules
from ramify.inference.together import Part, together

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "relu": nn.ReLU,
    "tanh": nn.Tanh,
    "sigmoid": nn.Sigmoid,
    "gelu": nn.GELU,
}


class _Residual(nn.Module):
    """x + relu(W2 relu(W1 x))"""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(size, size), nn.Linear(size, size)

    def forward(self, x: Tensor) -> Tensor:
        update: Tensor = self.second(self.first(x).relu()).relu()
        return x + update


class TNPCFG(LowRankGrammar):
    """Embeddings are unit Gaussian, linear layers keep PyTorch's own initialisation, as in the paper.

    `activation` is the one inside the three networks f_u, f_v, f_w of the binary rules (the paper's ablation);
    the start and word networks always use ReLU. `gain` multiplies the initial weights of all output layers. With 1,
    as in the paper, every distribution starts nearly uniform, so all symbols are nearly alike, and it takes
    many steps to tell them apart; a larger gain parts them from the start.
    """

    def __init__(
        self,
        nonterminals: int,
        preterminals: int,
        rank: int,
        words: int,
        embedding: int = 256,
        activation: str = "relu",
        gain: float = 1.0,
    ) -> None:
        super().__init__(nonterminals, preterminals, rank, words)
        if activation not in ACTIVATIONS:
            raise ValueError(f"activation {activation!r} is not one of {', '.join(ACTIVATIONS)}")

        def output(size: int) -> nn.Linear:
            layer = nn.Linear(embedding, size)
            with torch.no_grad():
                layer.weight *= gain
            return layer

        def encoder() -> list[nn.Module]:
            return [nn.Linear(embedding, embedding), _Residual(embedding), _Residual(embedding)]

        def rule_network() -> nn.Sequential:
            return nn.Sequential(nn.Linear(embedding, embedding), ACTIVATIONS[activation](), output(rank))

        self.symbol_embedding = nn.Parameter(torch.randn(nonterminals + preterminals, embedding))
        self.start_embedding = nn.Parameter(torch.randn(1, embedding))
        self.preterminal_embedding = nn.Parameter(torch.randn(preterminals, embedding))
        self.head, self.left, self.right = rule_network(), rule_network(), rule_network()
        self.start = nn.Sequential(*encoder(), output(nonterminals))
        self.preterminal_encoder = nn.Sequential(*encoder())
        self.word_layer = output(words)

    def _parts(self) -> dict[str, Part]:
        """Start and binary rules, normalised as Theorem 1 asks, and the states that the words are drawn from."""
        symbols, n = self.symbol_embedding, self.nonterminals

        def part(function: Callable[[], Tensor], embedding: nn.Parameter, network: nn.Module) -> Part:
            return Part(function, [embedding, *network.parameters()])

        return {  # the longest first, so that no core is left with it at the end
            "states": part(
                lambda: self.preterminal_encoder(self.preterminal_embedding),  # (p, embedding)
                self.preterminal_embedding,
                self.preterminal_encoder,
            ),
            "left": part(lambda: self.left(symbols).log_softmax(0), symbols, self.left),
            "right": part(lambda: self.right(symbols).log_softmax(0), symbols, self.right),
            "head": part(lambda: self.head(symbols[:n]).log_softmax(1), symbols, self.head),
            "root": part(lambda: self.start(self.start_embedding)[0].log_softmax(0), self.start_embedding, self.start),
        }

    def _run(self, *names: str) -> dict[str, Tensor]:
        parts = {name: part for name, part in self._parts().items() if name in names}
        return dict(zip(parts, together(list(parts.values())), strict=True))

    def shared_rules(self) -> SharedRules:
        """Start and binary rules."""
        return SharedRules(**self._run(*SharedRules._fields))

    def emission(self, word_ids: Tensor) -> Tensor:
        """log p(T -> w) (..., p) of the words given by their numbers (...)."""
        return self._emission(self._run("states")["states"], word_ids)

    def _emission(self, states: Tensor, word_ids: Tensor) -> Tensor:
        return word_log_probabilities(states, self.word_layer.weight, self.word_layer.bias, word_ids)

    def rules(self, word_ids: Tensor, lengths: Tensor) -> LowRankRules:
        """The rules for a batch of sentences (B, N), padded with any valid word number."""
        made = self._run("states", *SharedRules._fields)
        words = self._emission(made.pop("states"), word_ids)
        return LowRankRules(**made, words=words, lengths=lengths)

"""TN-PCFG: the tensor-decomposed PCFG whose tables are computed by neural networks (Yang et al. 2021, sec. 5)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ramify.models.linear import Linear
from ramify.models.low_rank_grammar import LowRankGrammar
from ramify.models.networks import (
    CosineLayer,
    SymbolLayer,
    SymbolNetwork,
    initialise,
    multiply_weights,
    state_network,
)
from ramify.models.options import ACTIVATIONS, TEMPERATURES
from ramify.models.parallel_networks import part, parts_by_rows
from ramify.runtime.parallel_autograd import Part


class TNPCFG(LowRankGrammar):
    """Embeddings are unit Gaussian, and linear layers have PyTorch's initialisation, as in the paper.

    `activation` is that of the three networks f_u, f_v, f_w of the binary rules (the paper's ablation); the start and
    word networks always use ReLU. `gain` multiplies the initial weights of all output layers. With 1, as in the paper,
    all distributions start nearly uniform, so all symbols are similar, and many steps pass before they differ; with a
    larger gain they differ from the start. With `latent` it is a compound grammar.

    Three options follow its successors for thousands of symbols (Yang, Liu and Tu 2022): with `shared_projection`, f_u,
    f_v and f_w end in the same projection to the rank; with `tied_embeddings`, rules and words share the embeddings of
    the preterminals; with the `initialisation` xavier-normal, all matrices including embeddings are initialised so.

    Two options limit the scale of the logits, so that symbols do not become similar. With `pre_norm`, all networks have
    residual blocks x + W2 gelu(W1 rmsnorm(x)), f_u, f_v and f_w one block in place of their activation, and a norm
    before the output layer. With `unit_rows`, every logit of an output layer is a learnt temperature times a cosine;
    `gain` then multiplies the temperatures.
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
        latent: int = 0,
        shared_projection: bool = False,
        tied_embeddings: bool = False,
        initialisation: str = "own",
        pre_norm: bool = False,
        unit_rows: bool = False,
    ) -> None:
        super().__init__(nonterminals, preterminals, rank, words, latent)
        if activation not in ACTIVATIONS:
            raise ValueError(f"activation {activation!r} is not one of {', '.join(ACTIVATIONS)}")
        if pre_norm and activation != "relu":
            raise ValueError("pre_norm blocks have GELU inside; leave out activation")
        self.symbol_embedding = nn.Parameter(torch.randn(nonterminals + preterminals, embedding))
        self.start_embedding = nn.Parameter(torch.randn(1, embedding))
        self.preterminal_embedding = None if tied_embeddings else nn.Parameter(torch.randn(preterminals, embedding))

        def output_layer(outputs: int, of: str, bias: bool = True) -> nn.Linear:
            return CosineLayer(embedding, outputs, TEMPERATURES[of]) if unit_rows else Linear(embedding, outputs, bias)

        def rule_network() -> SymbolNetwork:
            if pre_norm:
                inner = state_network(embedding, latent, 1, pre_norm)
            else:
                kind = getattr(nn, ACTIVATIONS[activation])
                inner = [SymbolLayer(embedding, latent, embedding), kind(inplace=True) if kind is nn.ReLU else kind()]
            return SymbolNetwork(*inner, *(() if shared_projection else (output_layer(rank, "rules"),)))

        self.head, self.left, self.right = rule_network(), rule_network(), rule_network()
        self.projection = output_layer(rank, "rules", bias=False) if shared_projection else nn.Identity()
        start = state_network(embedding, latent, pre_norm=pre_norm)
        self.start = SymbolNetwork(*start, output_layer(nonterminals, "root"))
        self.preterminal_encoder = SymbolNetwork(*state_network(embedding, latent, pre_norm=pre_norm))
        self.word_layer = output_layer(words, "words")
        initialise(self, initialisation)
        to_rank = [self.projection] if shared_projection else [self.head[-1], self.left[-1], self.right[-1]]
        multiply_weights([*to_rank, self.start[-1], self.word_layer], gain)

    def _parts(self, z: Tensor | None) -> dict[str, list[Part]]:
        symbols, n, p = self.symbol_embedding, self.nonterminals, self.preterminals
        tags = symbols if self.preterminal_embedding is None else self.preterminal_embedding

        def states(rows: slice) -> Tensor:
            found: Tensor = self.preterminal_encoder(tags[rows], z)
            return found

        def rules(network: SymbolNetwork, rows: int, summing_to_one: int) -> list[Part]:
            def made() -> Tensor:
                logits: Tensor = self.projection(network(symbols[:rows], z))
                return logits.log_softmax(summing_to_one)

            return [part(made, rows, z, [symbols], network, self.projection)]

        def root() -> Tensor:
            logits: Tensor = self.start(self.start_embedding, z)
            return logits.squeeze(-2).log_softmax(-1)

        return {
            "states": parts_by_rows(states, slice(len(tags) - p, len(tags)), z, [tags], self.preterminal_encoder),
            "left": rules(self.left, n + p, -2),
            "right": rules(self.right, n + p, -2),
            "head": rules(self.head, n, -1),
            "root": [part(root, 1, z, [self.start_embedding], self.start)],
        }

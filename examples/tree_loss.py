"""A distribution over trees in a custom loss: an encoder of words whose tags must form good phrases.

Any network can supply log p(word | preterminal); the rules are separate parameters. The loss is minus log p(words),
summed over all trees, minus the log posterior of a phrase that is known in advance.

    python examples/tree_loss.py
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ramify.structures.low_rank import LowRankPCFG

NONTERMINALS, PRETERMINALS, RANK, WORDS = 4, 6, 8, 20


class Rules(nn.Module):
    """Low-rank rules as free parameters, normalised so that all probabilities sum to one."""

    def __init__(self) -> None:
        super().__init__()
        symbols = NONTERMINALS + PRETERMINALS
        self.root = nn.Parameter(torch.randn(NONTERMINALS))
        self.head = nn.Parameter(torch.randn(NONTERMINALS, RANK))
        self.left, self.right = (nn.Parameter(torch.randn(symbols, RANK)) for _ in range(2))

    def forward(self, words: Tensor, lengths: Tensor) -> LowRankPCFG:
        """A distribution over the labelled trees of each sentence."""
        return LowRankPCFG(
            self.root.log_softmax(-1), self.head.log_softmax(-1), self.left.log_softmax(0), self.right.log_softmax(0),
            words, lengths,
        )  # fmt: skip


class Tagger(nn.Module):
    """Any network that computes log p(word | preterminal) of the words of each sentence."""

    def __init__(self) -> None:
        super().__init__()
        self.logits = nn.Sequential(nn.Embedding(PRETERMINALS, 16), nn.Linear(16, WORDS))

    def forward(self, word_ids: Tensor) -> Tensor:
        """(B, N, p) for words (B, N)."""
        table: Tensor = self.logits(torch.arange(PRETERMINALS)).log_softmax(-1)
        return table.T[word_ids]


def train(steps: int = 30) -> tuple[list[float], Tensor]:
    """The losses of all steps, and the posteriors at the end."""
    torch.manual_seed(0)
    rules, tagger = Rules(), Tagger()
    word_ids, lengths = torch.randint(WORDS, (2, 6)), torch.tensor([6, 4])
    optimizer = torch.optim.Adam([*rules.parameters(), *tagger.parameters()], lr=0.05)
    losses = []
    for _ in range(steps):
        pcfg = rules(tagger(word_ids), lengths)
        log_z = pcfg.log_partition()
        # The first three words of the first sentence should be a phrase: forbid every span that crosses it.
        scores = torch.zeros(2, 7, 7)
        scores[0, 1:3, 4:] = -torch.inf
        log_phrase = pcfg.with_span_scores(scores).log_partition()[0] - log_z[0]  # log p(phrase | words)
        loss = -log_z.mean() - log_phrase
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    with torch.no_grad():
        return losses, rules(tagger(word_ids), lengths).marginals().spans


if __name__ == "__main__":
    found, posteriors = train()
    print(f"loss {found[0]:.2f} -> {found[-1]:.2f}; p(words 0-2 are a phrase) = {float(posteriors[0, 0, 3]):.2f}")

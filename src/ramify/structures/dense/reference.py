"""The inside algorithm for dense rules in log space: the reference that every faster path is tested against.

Baker (1979), written for clarity: posteriors and every gradient come from autograd. Vectorised over the batch and over
all spans of one width; the rule tensor has four blocks, because either child is a phrase (n symbols) or a word (p).
"""

from __future__ import annotations

import torch
from torch import Tensor

from ramify.structures.autograd_marginals import marginals_by_autograd
from ramify.structures.dense.distribution import DensePCFG
from ramify.structures.distribution import Marginals
from ramify.structures.log_space import SUM, Semiring


def chart(
    pcfg: DensePCFG, span_scores: Tensor, words: Tensor, semiring: Semiring = SUM
) -> tuple[Tensor, dict[int, Tensor]]:
    """log p(w) (B,), and for each width > 1 the log inside scores of the nonterminals (B, starts, n).

    In the semiring `BEST` they are the log-probabilities of the best derivations instead (CYK).
    """
    add, matmul = semiring
    B, N, _ = words.shape
    n = pcfg.nonterminals
    by_children = pcfg.binary.movedim(-3, -1)  # (..., m, m, n)
    phrase, word = slice(None, n), slice(n, None)

    def parents(pairs: Tensor, left: slice, right: slice) -> Tensor:
        """From log-weights of pairs of children (B, starts, left, right) to those of parents (B, starts, n)."""
        return matmul(pairs.flatten(2), by_children[..., left, right, :].flatten(-3, -2))

    leaf = words + torch.diagonal(span_scores, 1, 1, 2)[..., None]
    symbols: dict[int, Tensor] = {}
    for width in range(2, N + 1):
        starts = N - width + 1
        if width == 2:
            found = [parents(leaf[:, :-1, :, None] + leaf[:, 1:, None, :], word, word)]
        else:
            shorter = symbols[width - 1]
            found = [
                parents(leaf[:, :starts, :, None] + shorter[:, 1:, None, :], word, phrase),
                parents(shorter[:, :starts, :, None] + leaf[:, width - 1 :, None, :], phrase, word),
            ]
        if width > 3:
            splits = [
                symbols[s][:, :starts, :, None] + symbols[width - s][:, s : s + starts, None, :]
                for s in range(2, width - 1)
            ]
            found.append(parents(add(torch.stack(splits), 0), phrase, phrase))
        scores = torch.diagonal(span_scores, width, 1, 2)[..., None]
        symbols[width] = add(torch.stack(found), 0) + scores
    # A sentence of one word has no derivation: every start rule leads to a binary rule.
    at_width = [leaf.new_full((B,), -torch.inf)]
    at_width += [add(symbols[w][:, 0] + pcfg.root, -1) for w in range(2, N + 1)]
    log_z = torch.stack(at_width).gather(0, pcfg.lengths.to(words.device)[None] - 1)[0]
    return log_z, symbols


def inside(pcfg: DensePCFG) -> Tensor:
    """log p(w) of each sentence (B,)."""
    return chart(pcfg, pcfg.scores(), pcfg.masked_words())[0]


def marginals(pcfg: DensePCFG) -> Marginals:
    """Posteriors of spans, labels and tags, all of them as gradients of log p(w)."""
    return marginals_by_autograd(chart, pcfg)

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ramify.structures.dense import DensePCFG
from ramify.structures.distribution import Marginals
from ramify.structures.low_rank import LowRankPCFG
from ramify.structures.pcfg import PCFG


def random_rules(
    n: int,
    p: int,
    d: int | None,
    lengths: Sequence[int],
    *,
    per_sentence: bool = False,
    seed: int = 0,
    sharpness: float = 1.0,
    dtype: torch.dtype = torch.float64,
) -> LowRankPCFG:
    """Normalised rules from Gaussian logits times `sharpness`; the words are drawn from a vocabulary of 50.

    Without a rank d they have no head, as in a Simple PCFG. They are shared by the batch, or one set per sentence.
    """
    generator = torch.Generator().manual_seed(seed)

    def logits(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64) * sharpness

    table = logits(p, 50).log_softmax(1)
    word_ids = torch.randint(50, (len(lengths), max(lengths)), generator=generator)
    components, sets = n if d is None else d, [len(lengths)] if per_sentence else []
    tensors = {
        "root": logits(*sets, n).log_softmax(-1),
        "head": logits(*sets, n, components).log_softmax(-1),
        "left": logits(*sets, n + p, components).log_softmax(-2),
        "right": logits(*sets, n + p, components).log_softmax(-2),
        "words": table.T[word_ids],
    }
    made = {name: tensor.to(dtype).requires_grad_() for name, tensor in tensors.items()}
    return LowRankPCFG(**made | ({"head": None} if d is None else {}), lengths=torch.tensor(lengths))


def random_dense_rules(
    n: int,
    p: int,
    lengths: Sequence[int],
    *,
    per_sentence: bool = False,
    seed: int = 0,
    sharpness: float = 1.0,
    dtype: torch.dtype = torch.float64,
) -> DensePCFG:
    """The same for dense rules, shared by the batch or one set for each sentence."""
    generator = torch.Generator().manual_seed(seed)
    m, sets = n + p, [len(lengths)] if per_sentence else []

    def logits(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64) * sharpness

    table = logits(p, 50).log_softmax(1)
    word_ids = torch.randint(50, (len(lengths), max(lengths)), generator=generator)
    tensors = (
        logits(*sets, n).log_softmax(-1),
        logits(*sets, n, m * m).log_softmax(-1).unflatten(-1, (m, m)),
        table.T[word_ids],
    )
    return DensePCFG(*(t.to(dtype).requires_grad_() for t in tensors), torch.tensor(lengths))


def random_scores(rules: PCFG, seed: int = 1) -> Tensor:
    """Span scores with a forbidden span, one that does not make any of the sentences impossible."""
    B, N, _ = rules.words.shape
    scores = torch.randn(B, N + 1, N + 1, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    if N > 2:
        scores[rules.lengths > 2, 0, 2] = -torch.inf
    return scores.to(rules.words.dtype).requires_grad_()


def parameters(rules: PCFG) -> dict[str, Tensor]:
    return {name: tensor for name, tensor in rules.tensors().items() if name != "span_scores"}


def inside(pcfg: PCFG, span_scores: Tensor | None = None, engine: str = "auto") -> Tensor:
    return pcfg.with_span_scores(span_scores).log_partition(engine)


def marginals(pcfg: PCFG, span_scores: Tensor | None = None, engine: str = "auto") -> Marginals:
    return pcfg.with_span_scores(span_scores).marginals(engine)

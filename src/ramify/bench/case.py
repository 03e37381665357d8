"""What to measure, and how many floating-point operations it is worth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ramify.errors import RamifyError
from ramify.grammars import FAMILIES, Grammar
from ramify.parser.batches import check_fits
from ramify.training.run import check_size
from ramify.training.settings import Settings

TASKS = ("train", "inside", "parse")


@dataclass(frozen=True)
class Case:
    """What to measure; sizes as in `Settings`."""

    model: str = "tn-pcfg"
    nonterminals: int = 30
    preterminals: int = 60
    rank: int = 200
    batch: int = 4
    length: int = 20
    vocabulary: int = 10_000
    task: str = "train"
    seconds: float = 3.0
    """Repeat for so long, and at least three times"""

    def __post_init__(self) -> None:
        if self.task not in TASKS:
            raise RamifyError(f"task {self.task!r} is unknown; choose one of {', '.join(TASKS)}.")
        if self.model not in FAMILIES:
            raise RamifyError(f"model {self.model!r} is unknown; choose one of {', '.join(FAMILIES)}.")
        for name in ("nonterminals", "preterminals", "rank", "batch", "vocabulary"):
            if getattr(self, name) < 1:
                raise RamifyError(f"{name} is {getattr(self, name)}, but must be at least 1.")
        if self.length < 2:
            raise RamifyError(f"length is {self.length}, but a sentence with a tree has 2 words or more.")

    def grammar(self) -> Grammar:
        """Newly initialised, always the same."""
        settings = Settings(
            model=self.model, nonterminals=self.nonterminals, preterminals=self.preterminals, rank=self.rank
        )
        arguments = settings.grammar_arguments(self.vocabulary)
        check_size(self.model, arguments)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            grammar = FAMILIES[self.model](**arguments)
        check_fits(grammar, self.length)
        return grammar

    def word_ids(self) -> Tensor:
        """(batch, length) words drawn at random, always the same."""
        generator = torch.Generator().manual_seed(0)
        return torch.randint(self.vocabulary, (self.batch, self.length), generator=generator)


def chart_flop(case: Case, grammar: Grammar) -> float:
    """Of one inside pass over the batch: spans, words, splits."""
    n, p, d, N = case.nonterminals, case.preterminals, case.rank, case.length
    spans, splits = N * (N - 1) // 2, N * (N * N - 1) // 6
    if grammar.rank is None:
        return case.batch * (spans * 2 * n * (n + p) ** 2 + 2 * n * n * splits)
    return case.batch * (spans * min(6 * n * d, 4 * d * d) + 4 * N * p * d + 2 * d * splits)


def network_flop(case: Case, grammar: Grammar) -> float:
    """Of one forward pass through the networks that make the batch's rules, the softmax over words included."""
    total = 0.0

    def count(layer: nn.Module, inputs: tuple[Tensor | None, ...], _: Any) -> None:
        nonlocal total
        assert isinstance(layer, nn.Linear)
        total += 2 * sum(x.numel() for x in inputs if x is not None) * layer.out_features

    hooks = [layer.register_forward_hook(count) for layer in grammar.modules() if isinstance(layer, nn.Linear)]
    sets = case.batch if grammar.latent else 1  # of rules: a compound grammar makes them for every sentence
    with torch.no_grad():
        grammar.rules(torch.zeros(sets, 2, dtype=torch.long), torch.full((sets,), 2))
    for hook in hooks:
        hook.remove()
    layer = getattr(grammar, "word_layer", None)
    if isinstance(layer, nn.Linear):  # which is not called as a layer
        total += 2 * sets * grammar.preterminals * layer.weight.numel()
    return total


def flop(case: Case, grammar: Grammar) -> float:
    """Of one repetition of the task: a gradient counts twice its forward pass, recomputation not at all."""
    if case.task == "train":
        return 3 * (chart_flop(case, grammar) + network_flop(case, grammar))
    return (3 if case.task == "inside" else 2) * chart_flop(case, grammar)

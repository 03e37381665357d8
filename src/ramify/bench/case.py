"""The cases to measure, and the number of their floating-point operations."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from ramify.errors import RamifyError
from ramify.models import FAMILIES, GenerativeModel, Grammar
from ramify.models.batches import check_fits
from ramify.models.lexicalised import LexicalisedGrammar
from ramify.training.checks import check_size
from ramify.training.settings import Settings, load_settings

TASKS = ("train", "inside", "parse")


@dataclass(frozen=True)
class Case:
    """A case to measure; sizes as in `Settings`."""

    model: str = "tn-pcfg"
    nonterminals: int = 30
    preterminals: int = 60
    rank: int | None = 200
    """None for families without a rank"""
    batch: int = 4
    length: int = 20
    vocabulary: int = 10_000
    task: str = "train"
    preset: str | None = None
    """Source of the settings other than the sizes"""
    seconds: float = 3.0
    """Repeat for this long, and at least three times"""
    compound: bool = False
    """Separate rules for every sentence; `preset` can also request this"""

    def __post_init__(self) -> None:
        if self.task not in TASKS:
            raise RamifyError(f"task {self.task!r} is unknown; choose one of {', '.join(TASKS)}.")
        if self.model not in FAMILIES:
            raise RamifyError(f"model {self.model!r} is unknown; choose one of {', '.join(FAMILIES)}.")
        for name in ("nonterminals", "preterminals", "rank", "batch", "vocabulary"):
            if (value := getattr(self, name)) is not None and value < 1:
                raise RamifyError(f"{name} is {getattr(self, name)}, but must be at least 1.")
        if self.length < 2:
            raise RamifyError(f"length is {self.length}, but a tree needs at least 2 words; give 2 or more.")

    def grammar(self) -> GenerativeModel:
        """Newly initialised, always the same."""
        arguments = self.settings().model_arguments(self.vocabulary)
        check_size(self.model, arguments)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            grammar = FAMILIES[self.model](**arguments)
        if not isinstance(grammar, GenerativeModel):
            raise RamifyError(
                f"{self.model} is not a grammar, and only grammars can be measured; choose another model."
            )
        check_fits(grammar, self.length)
        return grammar

    def settings(self) -> Settings:
        """The settings of the training run that this step belongs to."""
        taken = ("model", *FAMILIES[self.model].option_names())
        sizes: dict[str, Any] = {
            name: getattr(self, name) for name in ("model", "nonterminals", "preterminals", "rank") if name in taken
        }
        return load_settings(None, sizes | {"compound": self.compound or None}, preset=self.preset)

    def word_ids(self) -> Tensor:
        """(batch, length) random words, always the same."""
        generator = torch.Generator().manual_seed(0)
        return torch.randint(self.vocabulary, (self.batch, self.length), generator=generator)


def chart_flop(case: Case, grammar: GenerativeModel) -> float:
    """Operations of one inside pass over the batch: spans, words, splits; the cheaper way through a low-rank chart."""
    if isinstance(grammar, LexicalisedGrammar):
        return case.batch * grammar.chart_flop(case.length)
    n, p, d, N = case.nonterminals, case.preterminals, grammar.rank, case.length
    spans, splits = case.batch * N * (N - 1) // 2, case.batch * N * (N * N - 1) // 6
    if d is None:
        return spans * 2 * n * (n + p) ** 2 + 2 * n * n * splits
    through_symbols, through_rank = spans * 6 * n * d, spans * 4 * d * d + 4 * n * d * d
    of_spans = spans * 4 * n * n if grammar.is_simple else min(through_symbols, through_rank)
    return of_spans + case.batch * 4 * N * p * d + 2 * d * splits


def network_flop(case: Case, grammar: GenerativeModel) -> float:
    """Operations of one forward pass through the networks that compute the batch's rules, including the softmax."""
    shapes = (
        copy.deepcopy(grammar).to("meta").requires_grad_(False)
    )  # a meta tensor has no numbers, so counting is fast for any size
    sets = case.batch if grammar.latent else 1  # sets of rules: a compound grammar has one for every sentence
    z = torch.zeros(sets, grammar.latent, device="meta") if grammar.latent else None
    no_words = torch.zeros(sets, 0, dtype=torch.long, device="meta")
    with FlopCounterMode(display=False) as counter:
        if isinstance(shapes, LexicalisedGrammar):
            shapes.run_networks(torch.zeros(case.batch * case.length, dtype=torch.long, device="meta"))
        elif isinstance(shapes, Grammar):
            shapes.rules(z)
            shapes.emission(no_words, z)
    return float(counter.get_total_flops())


def flop(case: Case, grammar: GenerativeModel) -> float:
    """Operations of one repetition of the task: a gradient counts twice its forward pass, recomputation nothing."""
    if case.task == "train":
        return 3 * (chart_flop(case, grammar) + network_flop(case, grammar))
    return (3 if case.task == "inside" else 2) * chart_flop(case, grammar)

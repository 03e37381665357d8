"""The interface of a model to the other packages: an objective to maximise, posteriors, and arguments to save.

A model is anything that can be trained on sentences and then predicts which spans are constituents. A grammar
(grammar.py) is the richest kind: it also has rules, a likelihood and derivations.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from ramify.errors import RamifyError
from ramify.structures.distribution import Marginals, TreeDistribution

UNTAGGED = "_"


class Model(nn.Module, ABC):
    """A trainable model of sentences. The constructor takes keyword arguments that JSON can hold, `words` among them.

    These arguments are the options of the family, and `words`, the size of the vocabulary. A stored model consists of
    these arguments and the state dict. The state dict contains float32 tensors that share no memory, and the
    constructor must also work on torch's `meta` device.
    """

    has_likelihood: ClassVar[bool] = False
    """Whether `objective` is log p(w), or a lower bound of it, so that the model has a perplexity"""
    has_posteriors: ClassVar[bool] = True
    """Whether `marginals` are probabilities; False for a model with a single tree, whose spans count as 0 and 1"""
    allows_dropout: ClassVar[bool] = True
    takes_span_scores: ClassVar[bool] = False
    """Whether `objective` takes `span_scores`, so that training can be focused on the trees of other parsers"""
    needs_teachers: ClassVar[bool] = False
    """Whether `objective` needs `span_scores`, also on the dev set: the model learns only from other parsers"""
    divides_work: ClassVar[bool] = False
    """Whether `objective` divides its work among the cores itself, so that torch's own loops should run on one"""
    betas: ClassVar[tuple[float, float]] = (0.75, 0.999)
    """Betas of Adam; the default is that of Yang et al. (2021)"""
    words: int
    """Size of the vocabulary"""

    @abstractmethod
    def objective(
        self,
        word_ids: Tensor,
        lengths: Tensor,
        noise: torch.Generator | None = None,
        dropout: float = 0.0,
        span_scores: Tensor | None = None,
    ) -> Tensor:
        """(B,) the objective that training maximises, for sentences (B, N) padded with any valid word number.

        It is differentiable. With `noise`, as in a training step, it may be a random estimate; without, as on a dev
        set, it is not random. All randomness must come from `noise`, so that a run can be resumed. `dropout` is the
        share of units that a training step leaves out, which needs noise. `span_scores` (B, N+1, N+1) favour spans;
        they are given only to models that take them, so other models need no such argument.
        """

    @abstractmethod
    def marginals(self, word_ids: Tensor, lengths: Tensor) -> Marginals:
        """Span posteriors, without gradients, for sentences (B, N); labels and tags if the model has them.

        A model that predicts a single tree returns 1 for its spans and 0 for all others. With a likelihood,
        `log_partition` is the objective; otherwise it has no meaning.
        """

    def networks(self, word_ids: Tensor, lengths: Tensor) -> TreeDistribution | None:  # noqa: ARG002
        """The distribution over the trees of a batch (B, N), whose networks all groups of the batch share.

        None if every group computes its whole objective. Otherwise `objective_of` computes the rest.
        """
        return None

    def objective_of(
        self,
        distribution: Any,
        noise: torch.Generator | None = None,
        dropout: float = 0.0,
        span_scores: Tensor | None = None,
    ) -> Tensor:
        """(B,) the objective of sentences whose distribution `networks` returned."""
        raise NotImplementedError

    def learner(self, learning_rate: float, clip: float) -> Learner:
        """The optimizer of the parameters: Adam."""
        from ramify.models.adam import AdamLearner

        return AdamLearner(self.parameters(), learning_rate, self.betas, clip)

    def described(self) -> str:
        """Family and size, for messages."""
        return f"this {type(self).__name__}"

    def sizes(self) -> dict[str, int]:
        """Its sizes by name, for messages."""
        return {}

    def label_names(self) -> tuple[str, ...]:
        """Names of the labels of spans, by number; a single name for models without labels."""
        return ("X",)

    def tag_names(self) -> tuple[str, ...]:
        """Names of the tags of words, by number; a single name for models without tags."""
        return (UNTAGGED,)

    def draws(self) -> bool:
        """Whether a training step needs random numbers without dropout."""
        return False

    def for_parsing(self) -> Model:
        """The same model, prepared for many sentences."""
        return self

    def numbers_per_sentence(self, length: int) -> int:
        """Estimate of the numbers that the computation for one sentence keeps in memory."""
        return 16 * (length + 1) ** 2

    def working_bytes(self, lengths: Sequence[int]) -> int:
        """Estimate of the peak memory for parsing a batch of sentences of these lengths, without the results."""
        return 4 * len(lengths) * self.numbers_per_sentence(max(lengths))

    def expected_seconds(self, length: int) -> float:
        """Estimate of the time to parse one sentence on one core; sentences that take minutes are announced."""
        return 1e-6 * length**2

    @property
    def table_numbers(self) -> int:
        """Estimate of the numbers that the model keeps for parsing besides its parameters."""
        return 0

    @property
    def device(self) -> torch.device:
        """The device of its parameters."""
        return next(chain(self.parameters(), self.buffers())).device

    @classmethod
    def default_settings(cls) -> dict[str, Any]:
        """Default settings of a run, by name, that differ from the general defaults."""
        return {}

    @classmethod
    def option_names(cls) -> tuple[str, ...]:
        """The names of the family's options."""
        return tuple(name for name in inspect.signature(cls).parameters if name != "words")

    @classmethod
    def arguments(cls, options: Mapping[str, Any], words: int) -> dict[str, Any]:
        """All arguments of the constructor: the options given, defaults for the others."""
        chosen = {name: value for name, value in options.items() if value is not None} | {"words": words}
        result = {each.name: chosen.get(each.name, each.default) for each in inspect.signature(cls).parameters.values()}
        for name, value in result.items():
            if value is inspect.Parameter.empty:
                raise RamifyError(f"{cls.__name__} needs the option {name}, which is missing; give it.")
        return result


class Learner(torch.optim.Optimizer, ABC):
    """An optimizer that takes an objective to maximise."""

    # Torch wraps these for its compiler, and their first call imports it, which takes as long as importing torch.
    add_param_group = inspect.unwrap(torch.optim.Optimizer.add_param_group)
    zero_grad = inspect.unwrap(torch.optim.Optimizer.zero_grad)
    state_dict = inspect.unwrap(torch.optim.Optimizer.state_dict)
    load_state_dict = inspect.unwrap(torch.optim.Optimizer.load_state_dict)

    @abstractmethod
    def state_shapes(self, parameter: nn.Parameter) -> dict[str, tuple[int, ...]]:
        """The names and shapes of the tensors in the state of a parameter, for checkpoints."""

    def loss(self, objective: Tensor, sentences: int) -> Tensor:
        """The loss of some of the sentences of a batch (B,): minus the sum divided by the number of `sentences`."""
        return -objective.sum() / sentences

    def update(self, objective: Tensor) -> None:
        """One step up the objective (B,) of a batch."""
        self.zero_grad(set_to_none=True)
        self.loss(objective, len(objective)).backward()
        self.step()

    def set_learning_rate(self, rate: float) -> None:
        """The state of all parameters."""
        for group in self.param_groups:
            group["lr"] = rate

    def finish_epoch(self) -> None:
        """Called at the end of every epoch."""

"""The training loop."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from ramify.errors import RamifyError
from ramify.models.base import Learner, Model
from ramify.models.batches import WordIds
from ramify.runtime.processes import ALONE, World
from ramify.runtime.threads import torch_on_one_core
from ramify.storage.checkpoint import Position
from ramify.training.groups import Batch, check_groups, grouped_step
from ramify.training.guidance import Guidance
from ramify.training.settings import Settings


@dataclass(frozen=True)
class Progress:
    """The progress of training, reported after every step."""

    epoch: int
    sentences_done: int
    sentences: int
    sentences_per_second: float
    perplexity: float
    """Of the training sentences of this epoch so far, each under the grammar at its step"""

    @classmethod
    def at(cls, position: Position, sentences: int) -> Progress:
        """The progress at this position, given the number of sentences per epoch."""
        rate = position.sentences / position.seconds if position.seconds else 0.0
        seen = safe_exp(-position.log_probability / position.words) if position.words else math.nan
        return cls(position.epoch, position.sentences, sentences, rate, seen)


def equal_length_batches(
    sentences: Sequence[WordIds], batch_size: int, rng: np.random.Generator, batch_tokens: int | None = None
) -> list[list[int]]:
    """Places of the sentences, in batches of equal length in random order.

    A batch has `batch_size` sentences or, if given, as many as fit into `batch_tokens` words, but at least one.
    """
    by_length: dict[int, list[int]] = {}
    for place in rng.permutation(len(sentences)).tolist():
        by_length.setdefault(len(sentences[place]), []).append(place)
    batches = []
    for length, places in by_length.items():
        size = batch_size if batch_tokens is None else max(1, batch_tokens // length)
        batches += [places[start : start + size] for start in range(0, len(places), size)]
    return [batches[i] for i in rng.permutation(len(batches))]


def train_epoch(
    grammar: Model,
    learner: Learner,
    sentences: Sequence[WordIds],
    settings: Settings,
    position: Position,
    on_step: Callable[[Progress], None] = lambda _: None,
    guidance: Guidance | None = None,
    world: World = ALONE,
) -> None:
    """Train for the rest of the current epoch; `position` is updated and consistent whenever `on_step` is called.

    The order of the sentences depends only on the seed and the number of the epoch. `guidance` gives the span scores of
    the sentences by their places. The processes of `world` share the work of every step.
    """
    groups = settings.gradient_groups or 1
    check_groups(learner, groups)
    learner.set_learning_rate(settings.learning_rate * settings.decay ** (position.epoch - 1))
    device = grammar.device
    grammar.train()
    places = list(range(len(sentences)))
    if (longest := settings.longest_in(position.epoch)) is not None:
        places = [place for place in places if len(sentences[place]) <= longest]
        sentences = [sentences[place] for place in places]
        if not sentences:
            raise RamifyError(
                f"The curriculum starts with sentences of at most {longest} words, but no training sentence is that "
                "short; raise curriculum."
            )
    order = np.random.default_rng([settings.seed, position.epoch])
    batches = equal_length_batches(sentences, settings.batch_size, order, settings.batch_tokens)
    for batch in batches[position.batches :]:
        started = time.perf_counter()
        word_ids = torch.from_numpy(np.stack([sentences[each] for each in batch])).to(device)
        chosen = [places[each] for each in batch]
        span_scores = None if guidance is None else guidance.span_scores(chosen, position.epoch, device)
        numbers = settings.seed, position.epoch, position.batches
        drawing = bool(grammar.draws() or settings.dropout)
        if groups == 1:
            noise = noise_for(*numbers) if drawing else None
            log_z = train_step(grammar, learner, word_ids, noise, settings.dropout, span_scores)
        else:
            given = Batch(word_ids, partial(_noise_of_group, numbers, drawing), settings.dropout, span_scores)
            log_z = grouped_step(grammar, learner, given, groups, world)
        position.batches += 1
        position.sentences += len(batch)
        position.log_probability += float(log_z.sum())
        position.words += len(batch) * (word_ids.shape[1] + 1)
        position.seconds += time.perf_counter() - started
        if math.isnan(position.log_probability):
            raise RamifyError(
                f"Training diverged in epoch {position.epoch} (the loss is not a number); lower the learning rate."
            )
        on_step(Progress.at(position, len(sentences)))
    with torch_on_one_core() if groups > 1 else nullcontext():
        learner.finish_epoch()


def noise_for(seed: int, epoch: int, batch: int, *group: int) -> torch.Generator:
    """The random generator of a step, or of one group of its sentences. It depends only on these numbers.

    A run can therefore be resumed, and it does not matter which process draws.
    """
    mixed = np.random.SeedSequence([seed, epoch, batch, *group]).generate_state(1, np.uint64)
    return torch.Generator().manual_seed(int(mixed[0] >> np.uint64(1)))


def _noise_of_group(numbers: tuple[int, int, int], drawing: bool, group: int) -> torch.Generator | None:
    # Counted from 1, because zeros at the end of these numbers have no effect.
    return noise_for(*numbers, group + 1) if drawing else None


def train_step(
    grammar: Model,
    learner: Learner,
    word_ids: Tensor,
    noise: torch.Generator | None = None,
    dropout: float = 0.0,
    span_scores: Tensor | None = None,
) -> Tensor:
    """One step that increases the objective of a batch (B, N), such as log p(w); returns it (B,) before the step.

    `noise` is for models that draw samples and for `dropout`, the share of units that the step leaves out. If a model
    divides its work among the cores itself, the rest is too small for torch's threads.
    """
    guided = {} if span_scores is None else {"span_scores": span_scores}
    B, N = word_ids.shape
    lengths = torch.full((B,), N, device=word_ids.device)
    with torch_on_one_core() if grammar.divides_work else nullcontext():
        objective = grammar.objective(word_ids, lengths, noise, dropout, **guided)
        learner.update(objective)
    return objective.detach()


def safe_exp(x: float) -> float:
    """exp, or infinity if a float would overflow."""
    return math.exp(x) if x < 700 else math.inf

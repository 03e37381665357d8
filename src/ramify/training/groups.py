"""A training step whose result does not depend on the number of processes and threads, bit for bit.

A batch is divided into a fixed number of groups of sentences. Each group is computed on one core, with separate noise,
and the gradients of the groups are added in the order of a fixed binary tree. A process adds those of its groups that
are below one node of the tree, and sends the sums.

If a model has one distribution for all sentences, every process computes its networks once, and the gradients of a
group are those of this distribution. Then the softmax over the vocabulary is computed once instead of for each group,
and processes send much less: the rules of a small grammar are far fewer than its parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor

from ramify.errors import RamifyError
from ramify.models.base import Learner, Model
from ramify.runtime import threads
from ramify.runtime.processes import World

Node = tuple[int, int]
"""The range of groups below it: the first, and the one after the last"""


def check_groups(learner: Learner, groups: int) -> None:
    """Refuse learners that replace `Learner.update`."""
    if groups > 1 and type(learner).update is not Learner.update:
        raise RamifyError(
            f"{type(learner).__name__} replaces Learner.update, so its gradients cannot be divided into groups; train "
            "with gradient_groups 1, in one process."
        )


class Batch(NamedTuple):
    """The input of a step."""

    word_ids: Tensor
    """(B, N)"""
    noise: Callable[[int], torch.Generator | None]
    """The noise of each group, by its number"""
    dropout: float = 0.0
    span_scores: Tensor | None = None
    """(B, N+1, N+1)"""

    def scores_of(self, sentences: slice) -> dict[str, Tensor]:
        """The span scores as an argument, if there are any."""
        return {} if self.span_scores is None else {"span_scores": self.span_scores[sentences]}


def grouped_step(model: Model, learner: Learner, batch: Batch, groups: int, world: World) -> Tensor:
    """One step that increases the objective of a batch; returns the objective (B,) before the step, in every process.

    Processes exchange everything before the step, so that a process whose peers have ended has a complete model.
    """
    B = len(batch.word_ids)
    sentences = [slice(begin, end) for begin, end in pairwise(B * k // groups for k in range(groups + 1))]
    filled = [k for k, group in enumerate(sentences) if group.start < group.stop]
    begin, end = world.share(groups)
    mine = [k for k in filled if begin <= k < end]
    with threads.in_fixed_pieces(groups):
        learner.zero_grad(set_to_none=True)
        start = _start_of(model, batch)

        def run(k: int) -> tuple[Tensor, Tensor]:
            with torch.enable_grad():
                found = start.objective(sentences[k], k)
                gradients = torch.autograd.grad(learner.loss(found, B), start.sources, materialize_grads=True)
            return found.detach(), torch.cat([gradient.flatten() for gradient in gradients])

        computed = dict(zip(mine, _on_one_core_each(run, mine, batch.word_ids.device), strict=True))
        sizes = [source.numel() for source in start.sources]
        known, none = (start.sources[0].detach().new_zeros(size) for size in (B, sum(sizes)))
        for k, (found, _) in computed.items():
            known[sentences[k]] = found
        objectives = _of_all_processes(known, sentences, world)
        total = summed_over_groups({k: each for k, (_, each) in computed.items()}, filled, groups, world, none)
        gradients = [part.view_as(made) for part, made in zip(total.split(sizes), start.made, strict=True)]
        torch.autograd.backward(start.made, gradients)
        learner.step()
    return objectives


class _Start(NamedTuple):
    """The starting point of the computation of a group."""

    made: list[Tensor]
    """Outputs of the networks or, if groups compute these too, the parameters"""
    sources: list[Tensor]
    """The same numbers as leaves for the gradients of groups"""
    objective: Callable[[slice, int], Tensor]
    """The objective of the sentences of a group, given with its number"""


def _start_of(model: Model, batch: Batch) -> _Start:
    word_ids = batch.word_ids
    B, N = word_ids.shape
    lengths = torch.full((B,), N, device=word_ids.device)
    # On a GPU, the last bits of the networks may differ between processes.
    whole = model.networks(word_ids, lengths) if word_ids.device.type == "cpu" else None
    if whole is None:
        parameters: list[Tensor] = [parameter for parameter in model.parameters() if parameter.requires_grad]

        def whole_objective(group: slice, number: int) -> Tensor:
            noise, scores = batch.noise(number), batch.scores_of(group)
            return model.objective(word_ids[group], lengths[group], noise, batch.dropout, **scores)

        return _Start(parameters, parameters, whole_objective)
    made = {name: tensor for name, tensor in whole.tensors().items() if tensor.requires_grad}
    sources = {name: tensor.detach().requires_grad_() for name, tensor in made.items()}
    cut = whole.replace(**sources)

    def without_networks(group: slice, number: int) -> Tensor:
        return model.objective_of(cut.select(group), batch.noise(number), batch.dropout, **batch.scores_of(group))

    return _Start(list(made.values()), list(sources.values()), without_networks)


def _on_one_core_each(
    run: Callable[[int], tuple[Tensor, Tensor]], groups: Sequence[int], device: torch.device
) -> list[tuple[Tensor, Tensor]]:
    """Compute several groups at a time if there are several threads; on a GPU, one after another."""
    if len(groups) > 1 and device.type == "cpu":
        return threads.in_pieces(run, groups)
    with threads.on_one_core():
        return [run(k) for k in groups]


def _of_all_processes(known: Tensor, sentences: Sequence[slice], world: World) -> Tensor:
    """(B,) the objectives of all sentences, of which each process has those of its groups."""
    shares = [world.share(len(sentences), rank) for rank in range(world.size)]
    bounds = [(sentences[begin].start, sentences[end - 1].stop) for begin, end in shares]
    return torch.cat([row[begin:end] for row, (begin, end) in zip(world.gathered(known), bounds, strict=True)])


def summed_over_groups(
    mine: Mapping[int, Tensor], filled: Sequence[int], groups: int, world: World, none: Tensor
) -> Tensor:
    """(size,) the sum over all groups that have sentences, in every process, given the groups of this process.

    Each process receives one part of the numbers from all others and adds it up; then all receive the sums. For any
    number of processes, each sends about twice the numbers. `none` (size,) has their type.
    """
    known = {(k, k + 1): gradient for k, gradient in mine.items()}
    if world.size == 1:
        return _found(tree_sum((0, groups), known))
    nodes = [_nodes_to_send(rank, filled, groups, world) for rank in range(world.size)]
    size, width = len(none), -(-len(none) // world.size)
    sent = none.new_zeros(max(map(len, nodes)), world.size * width)
    for row, node in zip(sent, nodes[world.rank], strict=False):
        row[:size] = _found(tree_sum(node, known))
    received = world.exchanged(sent.view(len(sent), world.size, width).transpose(0, 1).contiguous())
    of_all = {node: received[rank, row] for rank, sums in enumerate(nodes) for row, node in enumerate(sums)}
    return world.gathered(_found(tree_sum((0, groups), of_all))).flatten()[:size]


def _nodes_to_send(rank: int, filled: Sequence[int], groups: int, world: World) -> list[Node]:
    nodes = largest_within((0, groups), world.share(groups, rank))
    return [(first, last) for first, last in nodes if any(first <= k < last for k in filled)]


def _found(total: Tensor | None) -> Tensor:
    assert total is not None, "a batch has at least one sentence"
    return total


def tree_sum(node: Node, known: Mapping[Node, Tensor]) -> Tensor | None:
    """The sum of the groups below a node, given sums of nodes below it; None if no group has sentences.

    Every node adds its left half to its right half, so the order of additions depends only on the number of groups.
    """
    if node in known:
        return known[node]
    first, last = node
    if last - first == 1:
        return None
    middle = (first + last) // 2
    left, right = tree_sum((first, middle), known), tree_sum((middle, last), known)
    return right if left is None else left if right is None else left + right


def largest_within(node: Node, groups: Node) -> list[Node]:
    """The largest nodes, from this one downwards, whose groups all lie between the given first and last one."""
    (first, last), (begin, end) = node, groups
    if begin <= first and last <= end:
        return [node]
    if last <= begin or end <= first:
        return []
    middle = (first + last) // 2
    return [*largest_within((first, middle), groups), *largest_within((middle, last), groups)]

"""Checks before training begins."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from ramify.errors import RamifyError
from ramify.models import FAMILIES, Model
from ramify.models.batches import check_tables_fit
from ramify.parser.ensemble_members import MemberInput, check_member
from ramify.runtime.shapes import only_shapes
from ramify.training.settings import Settings

MAX_PARAMETERS = 2**31


def check_teachers(teachers: Sequence[MemberInput], settings: Settings, resumed: bool) -> None:
    """Refuse a focus without teachers, and teachers that cannot be used, before any data is read."""
    if isinstance(teachers, str | Path):
        raise RamifyError(f"teachers is {str(teachers)!r}, but must be a list; put the teacher into a list.")
    chosen = {
        "focus": settings.focus is not None,
        "focus_on": settings.focus_on != Settings.focus_on,
        "focus_decay": settings.focus_decay != Settings.focus_decay,
    }
    for name, is_set in chosen.items():
        if is_set and not teachers and not resumed:
            raise RamifyError(f"{name} has no effect without teachers; give at least one teacher, or leave out {name}.")
    family = FAMILIES[settings.model]
    if teachers and not family.takes_span_scores:
        raise RamifyError(f"{settings.model} does not support teachers; leave them out, or choose crf or a PCFG.")
    if family.needs_teachers:
        if not teachers and not resumed:
            raise RamifyError(
                f"{settings.model} learns only from the trees of other parsers, but there is no teacher; give at least "
                "one with --teacher, or from Python with teachers."
            )
        if settings.focus is not None or settings.focus_decay != 1:
            raise RamifyError(f"{settings.model} learns only from its teachers; leave out focus and focus_decay.")
    for teacher in teachers:
        check_member(teacher)


def check_storable(name: str, model: Model) -> None:
    """Refuse, before training, a model that could not be saved and loaded again."""
    tensors = model.state_dict()
    places = {tensor.data_ptr() for tensor in tensors.values() if tensor.numel()}
    if len(places) < sum(1 for tensor in tensors.values() if tensor.numel()):
        raise RamifyError(
            f"{name}: two of its tensors share memory, which a model folder cannot store; copy one of them."
        )
    for each, tensor in tensors.items():
        if tensor.dtype != torch.float32:
            raise RamifyError(f"{name}: {each} is {tensor.dtype}, but a model folder stores only float32; convert it.")


def check_size(model: str, arguments: dict[str, Any]) -> None:
    """Refuse a model whose parameters or tables do not fit into memory, before any of them is allocated."""
    try:
        with only_shapes():
            empty = FAMILIES[model](**arguments)
    except (TypeError, ValueError) as error:
        raise RamifyError(f"{model} does not accept these options ({error}); change them.") from error
    size = sum(parameter.numel() for parameter in empty.parameters())
    if size > MAX_PARAMETERS:
        raise RamifyError(
            f"This model would have {size:,} parameters, but at most {MAX_PARAMETERS:,} are possible; use fewer "
            "symbols or smaller embeddings."
        )
    check_tables_fit(empty)

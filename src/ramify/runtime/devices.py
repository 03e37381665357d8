"""Torch devices by name."""

from __future__ import annotations

import torch

from ramify.errors import RamifyError


def choose_device(name: str, number: int | None = None) -> torch.device:
    """A torch device by name; `auto` is a GPU if there is one, and `number` chooses one of several."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and number is not None and torch.cuda.is_available():
        name = f"cuda:{number % torch.cuda.device_count()}"
    try:
        device = torch.device(name)
        torch.ones(1, device=device).item()  # more than allocating, which `meta` could do
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise RamifyError(
            f"device {name!r} is not available here; use cpu, or auto for a GPU if there is one."
        ) from error
    return device

"""Where tensors are."""

from __future__ import annotations

import torch

from ramify.errors import RamifyError


def choose_device(name: str) -> torch.device:
    """A torch device by name; `auto` is a GPU where there is one."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
        torch.ones(1, device=device).item()  # more than allocating, which `meta` could do
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise RamifyError(f"device {name!r} is not available here; use cpu.") from error
    return device

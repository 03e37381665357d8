"""Named tensors in a file with a checksum: whole, unharmed and of the right shapes, or refused."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from ramify.errors import RamifyError
from ramify.files import write_atomically

SEAL = "ramify"
Shapes = Mapping[str, tuple[int, ...]]


def _checksum(tensors: Mapping[str, Tensor], facts: str) -> str:
    digest = hashlib.sha256(facts.encode())
    for name in sorted(tensors):
        digest.update(name.encode())
        digest.update(tensors[name].numpy().data)
    return digest.hexdigest()


def save_tensors(path: Path, tensors: Mapping[str, Tensor], facts: dict[str, Any] | None = None) -> None:
    """Write tensors, and facts in terms of JSON, as safetensors."""
    ready = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    described = json.dumps(facts or {}, sort_keys=True)
    # One entry, because several would be written in an order that changes from run to run.
    seal = json.dumps({"facts": described, "sha256": _checksum(ready, described)})
    write_atomically(path, save(ready, {SEAL: seal}))


def load_tensors(path: Path, expected: Shapes) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """What `save_tensors` wrote; names and shapes are compared with `expected` before anything is allocated."""
    try:
        with safe_open(path, framework="pt") as handle:
            slices = {name: handle.get_slice(name) for name in handle.keys()}  # noqa: SIM118
            found = {name: tuple(part.get_shape()) for name, part in slices.items() if part.get_dtype() == "F32"}
            if found != dict(expected):
                wrong = sorted(name for name in found.keys() | expected.keys() if found.get(name) != expected.get(name))
                raise RamifyError(
                    f"{path}: does not fit the folder's config; {wrong[0]} has the wrong shape or type, or is missing."
                )
            tensors = {name: handle.get_tensor(name) for name in expected}
            seal = json.loads((handle.metadata() or {}).get(SEAL, "{}"))
    except (OSError, SafetensorError, ValueError, RecursionError) as error:
        raise RamifyError(f"{path}: is damaged or not a safetensors file ({error}).") from error
    facts = str(seal.get("facts")) if isinstance(seal, dict) else ""
    if not isinstance(seal, dict) or seal.get("sha256") != _checksum(tensors, facts):
        raise RamifyError(f"{path}: its checksum does not fit its content; it is damaged, so fetch or train it again.")
    for name, tensor in tensors.items():
        if not bool(tensor.isfinite().all()):
            raise RamifyError(f"{path}: {name} holds numbers that are not finite; the model is broken.")
    try:
        told = json.loads(facts)
    except (ValueError, RecursionError) as error:
        raise RamifyError(f"{path}: is damaged; what it tells of itself cannot be read.") from error
    return tensors, told if isinstance(told, dict) else {}


def shapes_of(tensors: Mapping[str, Tensor]) -> dict[str, tuple[int, ...]]:
    """To compare a file with."""
    return {name: tuple(tensor.shape) for name, tensor in tensors.items()}


def chosen_device(name: str) -> torch.device:
    """A torch device by name; `auto` is a GPU where there is one."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
        torch.ones(1, device=device).item()  # more than allocating, which `meta` could do
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise RamifyError(f"device {name!r} is not available here; use cpu.") from error
    return device

"""Named tensors in a file with a checksum; damaged files and unexpected shapes are errors."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from ramify.errors import RamifyError
from ramify.storage.files import write_atomically

METADATA_KEY = "ramify"
LARGEST_HEADER = 100_000_000
"""The limit of the format; checkpoints store the metrics of every epoch in the header"""
LARGEST_HOLE = 1 << 24
"""In bytes; smaller files are not checked for holes"""
STORED_TYPES = ("F32", "F16")
"""Types of numbers in a file, by the names of the format; F16 where it holds them exactly"""
Shapes = Mapping[str, tuple[int, ...]]


def _checksum(tensors: Mapping[str, Tensor], facts: str) -> str:
    digest = hashlib.sha256(facts.encode())
    for name in sorted(tensors):
        digest.update(name.encode())
        digest.update(tensors[name].numpy().data)
    return digest.hexdigest()


def save_tensors(path: Path, tensors: Mapping[str, Tensor], facts: dict[str, Any] | None = None) -> None:
    """Write tensors, and facts as JSON values, as safetensors."""
    ready = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    described = json.dumps(facts or {}, sort_keys=True)
    # A single entry, because the order of several would change from run to run.
    seal = json.dumps({"facts": described, "sha256": _checksum(ready, described)})
    write_atomically(path, save(ready, {METADATA_KEY: seal}))


def load_tensors(
    path: Path, expected: Shapes, largest_header: int = LARGEST_HEADER
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Load tensors as float32; names and shapes are compared with `expected` before memory is allocated."""
    _check_file(path, largest_header)
    _check_memory(path, expected)
    try:
        with safe_open(path, framework="pt") as handle:
            slices = {name: handle.get_slice(name) for name in handle.keys()}  # noqa: SIM118
            found = {name: tuple(part.get_shape()) for name, part in slices.items() if part.get_dtype() in STORED_TYPES}
            if found != dict(expected):
                wrong = sorted(name for name in found.keys() | expected.keys() if found.get(name) != expected.get(name))
                raise RamifyError(
                    f"{path}: does not match config.json: {wrong[0]} is missing or has another shape or type; get "
                    "another copy."
                )
            tensors = {name: handle.get_tensor(name) for name in expected}
            seal = json.loads((handle.metadata() or {}).get(METADATA_KEY, "{}"))
    except (OSError, SafetensorError, ValueError, RecursionError) as error:
        raise RamifyError(f"{path}: is damaged or not a safetensors file ({error}); get another copy.") from error
    except (MemoryError, RuntimeError) as error:
        raise RamifyError(f"{path}: does not fit into memory; use a machine with more memory.") from error
    facts = str(seal.get("facts")) if isinstance(seal, dict) else ""
    if not isinstance(seal, dict) or seal.get("sha256") != _checksum(tensors, facts):
        raise RamifyError(f"{path}: is damaged, because its checksum does not match; get another copy, or train again.")
    for name, tensor in tensors.items():
        if not bool(tensor.isfinite().all()):
            raise RamifyError(f"{path}: {name} contains numbers that are not finite; get another copy, or train again.")
    try:
        metadata = json.loads(facts)
    except (ValueError, RecursionError) as error:
        raise RamifyError(f"{path}: is damaged, because its metadata cannot be read; get another copy.") from error
    as_float = {name: tensor.float() for name, tensor in tensors.items()}
    return as_float, metadata if isinstance(metadata, dict) else {}


def _check_file(path: Path, largest_header: int) -> None:
    """Refuse files that only claim to be large: with a long header, or consisting mostly of holes."""
    try:
        with path.open("rb") as handle:
            header = int.from_bytes(handle.read(8), "little")
            found = os.fstat(handle.fileno())
    except OSError as error:
        raise RamifyError(f"{path}: cannot be read ({error.strerror}); check its permissions.") from error
    if header > largest_header:
        raise RamifyError(
            f"{path}: is damaged or not a safetensors file (its header would have {header:,} bytes); get another copy."
        )
    on_disk = 512 * getattr(found, "st_blocks", 0)  # 0 if the file system does not report it
    if found.st_size > LARGEST_HOLE and 0 < on_disk < found.st_size // 16:
        raise RamifyError(
            f"{path}: should have {found.st_size:,} bytes, but only {on_disk:,} are on disk; get a complete copy "
            "of the file."
        )


def _check_memory(path: Path, expected: Shapes) -> None:
    """Refuse more numbers than the free memory can hold."""
    needed, free = 4 * sum(map(math.prod, expected.values())), psutil.virtual_memory().available
    if needed > free:
        raise RamifyError(
            f"{path}: needs {needed / 2**30:.1f} GB of memory, but only {free / 2**30:.1f} GB are free; use a machine "
            "with more memory."
        )


def exact_half(tensor: Tensor) -> Tensor:
    """The tensor as float16 if that changes no number, otherwise unchanged."""
    half = tensor.half()
    return half if torch.equal(half.to(tensor.dtype), tensor) else tensor


def shapes_of(tensors: Mapping[str, Tensor]) -> dict[str, tuple[int, ...]]:
    """The checksum of a file's tensors and facts."""
    return {name: tuple(tensor.shape) for name, tensor in tensors.items()}

"""Networks as shapes alone: built without memory for their parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

_KEEP_SHAPE: set[Any] = {Tensor.normal_, nn.init.normal_, Tensor.log_softmax}
"""Initialisation by these needs no computation: the result has the shape and type of the first argument"""


class _WithoutDecompositions(TorchFunctionMode):
    """Answers for functions that torch computes in Python on `meta`: it would import SymPy and its compiler for them,
    which takes as long as importing torch itself.
    """

    def __torch_function__(
        self, function: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        options = dict(kwargs or {})
        if function in _KEEP_SHAPE:
            return args[0] if args else options["tensor"]
        if function is torch.randn:
            function = torch.empty
            options.pop("generator", None)
        return function(*args, **options)


@contextmanager
def only_shapes() -> Iterator[None]:
    """Tensors made in this context have a shape and a type, but no values; they are on the device `meta`."""
    with torch.device("meta"), _WithoutDecompositions():
        yield

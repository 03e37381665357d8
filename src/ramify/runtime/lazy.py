"""Names that are imported on first use, so that `--help` and corpus tools do not wait for torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any, TypeVar

Value = TypeVar("Value")


def attributes_from(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package; `homes` maps its names to the modules that define them."""

    def __getattr__(name: str) -> Any:  # noqa: N807
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(homes[name]), name)

    return __getattr__


class LazyRegistry(Mapping[str, Value]):
    """Values by name, each given as (module, attribute); listing or searching the names imports none of them."""

    def __init__(self, homes: Mapping[str, tuple[str, str]]) -> None:
        self._homes = homes
        self._values: dict[str, Value] = {}

    def add(self, name: str, value: Value) -> None:
        """Add a value that is already imported."""
        self._values[name] = value

    def __getitem__(self, name: str) -> Value:
        if name not in self._values:
            module, attribute = self._homes[name]
            self._values[name] = getattr(import_module(module), attribute)
        return self._values[name]

    def __contains__(self, name: object) -> bool:
        return name in self._homes or name in self._values

    def __iter__(self) -> Iterator[str]:
        return iter({**self._homes, **self._values})

    def __len__(self) -> int:
        return len({**self._homes, **self._values})

"""docs/api.md, made from the docstrings of the public names: `python -m tools.api_page` writes it, a test compares."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import ramify

PAGE = Path(__file__).resolve().parent.parent / "docs" / "api.md"
HEAD = """# Python API

Everything that `import ramify` offers. This page is generated from the docstrings: `python -m tools.api_page`.
[architecture.md](architecture.md) shows how the parts fit together, and where to add a family or a distribution.
"""


def page() -> str:
    """The whole page."""
    return HEAD + "".join(_section(name, getattr(ramify, name)) for name in ramify.__all__ if name != "__version__")


def _section(name: str, value: Any) -> str:
    if inspect.isclass(value):
        members = "".join(_member(name, attribute, value) for attribute in vars(value) if _is_shown(attribute, value))
        return f"\n## `ramify.{name}`\n\n{_text(value)}\n{members}"
    return f"\n## `ramify.{name}{_signature(value)}`\n\n{_text(value)}\n"


def _is_shown(attribute: str, owner: type) -> bool:
    member = inspect.getattr_static(owner, attribute)
    documented = isinstance(member, (property, staticmethod, classmethod)) or inspect.isfunction(member)
    return documented and (attribute == "__call__" or not attribute.startswith("_"))


def _member(name: str, attribute: str, owner: type) -> str:
    member = inspect.getattr_static(owner, attribute)
    value = member.fget if isinstance(member, property) else getattr(owner, attribute)
    arguments = "" if isinstance(member, property) else _signature(value)
    shown = f"{name.lower()}{arguments}" if attribute == "__call__" else f"{name.lower()}.{attribute}{arguments}"
    return f"\n### `{shown}`\n\n{_text(value)}\n"


def _signature(function: Any) -> str:
    signature = inspect.signature(function)
    shown = [each.replace(annotation=each.empty) for name, each in signature.parameters.items() if name != "self"]
    text = str(signature.replace(parameters=shown, return_annotation=signature.empty))
    return re.sub(r"<function <lambda> at [^>]*>", "...", text)


def _text(value: Any) -> str:
    return inspect.cleandoc(value.__doc__ or "")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

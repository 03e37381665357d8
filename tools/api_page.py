"""docs/api.md, made from the docstrings of the public names: `python -m tools.api_page` writes it, a test compares."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from dataclasses import is_dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import ramify

PAGE = Path(__file__).resolve().parent.parent / "docs" / "api.md"
HEAD = """# Python API

All public names of `ramify`. Start with `ramify.load`, `ramify.fit` or `ramify.train`: each returns a `Parser`. Its
method `parse` returns an `nltk.Tree`, and `analyse` returns an `Analysis`, with probabilities. `ramify.evaluate` scores
a parser.

This page is generated from the docstrings: `python -m tools.api_page`. [architecture.md](architecture.md) shows how the
parts fit together, and where to add a family or a distribution.
"""
FIRST = ("load", "fit", "train", "evaluate", "Parser", "Analysis", "Constraints", "Ensemble", "Evaluation", "Settings")
"""The names that most users need, in this order; the others follow"""


def page() -> str:
    """The whole page."""
    others = (name for name in ramify.__all__ if name not in FIRST and name != "__version__")
    return HEAD + "".join(_section(name, getattr(ramify, name)) for name in (*FIRST, *others))


def _section(name: str, value: Any) -> str:
    if inspect.isclass(value):
        # Including those inherited from our own classes.
        owners = {
            attribute: base
            for base in reversed(value.__mro__)
            if base.__module__.startswith("ramify")
            for attribute in vars(base)
        }
        members = "".join(_member(name, each, owner) for each, owner in owners.items() if _is_shown(each, owner))
        return f"\n## `ramify.{name}`\n\n{_text(value)}\n{_fields(value)}{members}"
    return f"\n## `ramify.{name}{_signature(value)}`\n\n{_text(value)}\n"


def _fields(owner: type) -> str:
    """A table of the fields of a dataclass, those of its bases first."""
    if not is_dataclass(owner):
        return ""
    rows: list[str] = []
    for base in reversed([each for each in owner.__mro__ if is_dataclass(each)]):
        [definition] = ast.parse(textwrap.dedent(inspect.getsource(base))).body
        assert isinstance(definition, ast.ClassDef)
        body = definition.body
        for place, node in enumerate(body):
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                following = body[place + 1] if place + 1 < len(body) else None
                about = base.__dataclass_fields__[node.target.id].metadata.get("help", "")  # type: ignore[attr-defined]
                if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
                    about = inspect.cleandoc(str(following.value.value))
                text = " ".join(about.replace("\\[", "[").split()).replace("|", "\\|")
                rows.append(f"| `{node.target.id}` | {text} |\n")
    return "\n| field | what |\n|---|---|\n" + "".join(rows)


def _is_shown(attribute: str, owner: type) -> bool:
    member = inspect.getattr_static(owner, attribute)
    kinds = (property, cached_property, staticmethod, classmethod)
    documented = isinstance(member, kinds) or inspect.isfunction(member)
    if getattr(member, "__name__", attribute) != attribute:  # kept for earlier versions
        return False
    return documented and (attribute == "__call__" or not attribute.startswith("_"))


def _member(name: str, attribute: str, owner: type) -> str:
    member = inspect.getattr_static(owner, attribute)
    is_value = isinstance(member, (property, cached_property))
    value = getattr(member, "fget", None) or getattr(member, "func", None) if is_value else getattr(owner, attribute)
    arguments = "" if is_value else _signature(value)
    owner_name = name if isinstance(member, classmethod) else name.lower()
    shown = f"{owner_name}{arguments}" if attribute == "__call__" else f"{owner_name}.{attribute}{arguments}"
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

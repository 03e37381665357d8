"""The notebook of the docs runs from top to bottom, and the result of every cell can be displayed."""

from __future__ import annotations

import ast
import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

import ramify
from ramify.corpus.builtin import builtin_treebank
from ramify.errors import RamifyError
from tests.conftest import PROJECT

TOUR = PROJECT / "docs" / "tour.ipynb"


def cells() -> list[dict[str, Any]]:
    return json.loads(TOUR.read_text(encoding="utf-8"))["cells"]


@pytest.fixture
def with_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder to run in; if no model `en` is bundled, it has a small model in a folder with this name."""
    monkeypatch.chdir(tmp_path)
    try:
        ramify.load("en")
    except RamifyError:
        text = [" ".join(parse.words) for parse in builtin_treebank(0, train=200, dev=1, test=1)["train"]]
        ramify.train(text, tmp_path / "en", preterminals=8, nonterminals=4, rank=8, epochs=2)


@pytest.mark.needs("spacy")
@pytest.mark.usefixtures("with_model")
def test_it_runs_from_top_to_bottom() -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    pictures = 0
    for cell in cells():
        if cell["cell_type"] != "code":
            continue
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, TOUR.name, "exec"), names)
        if last is None or (isinstance(last.value, ast.Call) and getattr(last.value.func, "id", "") == "print"):
            exec(compile(ast.Module([last] if last else [], []), TOUR.name, "exec"), names)
            continue
        shown = eval(compile(ast.Expression(last.value), TOUR.name, "eval"), names)
        if hasattr(shown, "_repr_svg_"):
            assert ET.fromstring(shown._repr_svg_()).tag.endswith("svg")
            pictures += 1
        assert repr(shown)
    assert pictures >= 4


def test_it_is_stored_without_results() -> None:
    code = [cell for cell in cells() if cell["cell_type"] == "code"]
    assert len(code) >= 8
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    assert len({cell["id"] for cell in cells()}) == len(cells())

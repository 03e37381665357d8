"""docs/api.md matches the docstrings."""

from __future__ import annotations

import ramify
from tools.api_page import PAGE, page


def test_the_page_is_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m tools.api_page"


def test_every_public_name_is_explained_and_there_are_few():
    assert len(ramify.__all__) <= 20
    for name in ramify.__all__:
        assert name == "__version__" or getattr(ramify, name).__doc__, name

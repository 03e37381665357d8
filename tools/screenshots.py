"""Take the screenshots of the page in docs/serve.md, from a running server with two models.

ramify serve -m demo=runs/demo -m small=runs/small --text sentences.txt --port 8000
python -m tools.screenshots http://127.0.0.1:8000/ docs/example/serve
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from tests.conftest import CHROMIUM

GOLD = (
    "(S (NP (DT the) (JJ old) (NN woman)) (VP (VBD watched) (NP (NP (DT the) (NN dog)) (CC and) "
    "(NP (DT the) (NN man))) (PP (IN in) (NP (DT the) (NN garden)))))"
)


def _single(page: Page) -> None:
    page.select_option("#model-1", "")
    page.wait_for_selector(".single svg.tree")


def explore(page: Page) -> None:
    """A label's glossary."""
    _single(page)
    page.locator("svg.tree g.constituent-node").nth(1).click()
    page.wait_for_selector(".rules")


def compare(page: Page) -> None:
    """Two models."""
    page.locator("svg.tree g.constituent-node").nth(1).hover()


def score(page: Page) -> None:
    """Gold brackets, and a span that is required."""
    _single(page)
    page.locator("#gold-box summary").click()
    page.fill("#gold", GOLD)
    page.click("#score")
    page.wait_for_selector(".glyph")


MARGIN = 16
STATES: dict[str, tuple[Callable[[Page], None], str, str]] = {
    "explore": (explore, "light", "#result"),
    "compare": (compare, "dark", ".pair"),
    "score": (score, "light", ".single"),
}


def main() -> None:
    """Write all pictures."""
    address, folder = sys.argv[1], Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for name, (act, scheme, part) in STATES.items():
            page = browser.new_page(
                viewport={"width": 1200, "height": 1000},
                color_scheme="dark" if scheme == "dark" else "light",
                reduced_motion="reduce",
            )
            page.goto(address)
            page.wait_for_selector("svg.tree")
            act(page)
            page.wait_for_timeout(500)
            box = page.locator(part).bounding_box()
            assert box is not None
            place = {"x": box["x"] - MARGIN, "y": box["y"] - MARGIN}
            size = {"width": box["width"] + 2 * MARGIN, "height": box["height"] + 2 * MARGIN}
            page.screenshot(path=folder / f"{name}.png", full_page=True, clip={**place, **size})
            page.close()
        browser.close()


if __name__ == "__main__":
    main()

"""The page in a real browser: every feature, without a console error or a request to another machine."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from ramify.parser import FORMATS, Parser
from ramify.serve.guard import LOOPBACK
from ramify.serve.limits import Limits
from ramify.serve.served_models import ServedModel, ServedModels
from ramify.serve.server import make_server, open_socket
from tests.conftest import CHROMIUM
from tests.serve.conftest import MARKUP, SENTENCE

pytestmark = [pytest.mark.slow, pytest.mark.needs("chromium")]
GOLD = "(S (NP (DT the) (JJ old) (NN woman)) (VP (VBD watched) (NP (DT the) (NN dog))))"
ACCESSIBILITY = (Path(__file__).parent / "accessibility.js").read_text(encoding="utf-8")
HEBREW = "הזקן ראה כלב"


@pytest.fixture(scope="module")
def address(parser: Parser, learnt: Parser) -> Iterator[str]:
    """The page of two models; names and labels of the second hold markup."""
    labels = [f"<b>NP</b><script>alert(3)</script>{number}" for number in range(len(learnt.labels))]
    marked = Parser(learnt.model, learnt.vocabulary, labels, text_rules=learnt.text_rules)
    served_models = ServedModels([ServedModel("true", parser), ServedModel(MARKUP, marked, own_example="the dog")])
    server = make_server(served_models, LOOPBACK, Limits())
    with closing(open_socket("127.0.0.1", 0)) as bound:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{bound.getsockname()[1]}/"
        server.should_exit = True
        thread.join(60)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    expect.set_options(timeout=30_000)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@dataclass
class Watched:
    """The console messages and requests of a page."""

    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)


@pytest.fixture
def watched() -> Watched:
    return Watched()


@pytest.fixture
def context(browser: Browser, address: str, watched: Watched) -> Iterator[BrowserContext]:
    context = browser.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True)
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    context.set_default_timeout(30_000)
    context.on("console", lambda message: watched.said.append(f"{message.type}: {message.text}"))
    context.on("weberror", lambda error: watched.said.append(str(error.error)))
    context.on("dialog", lambda dialog: watched.said.append(f"dialog: {dialog.message}"))
    context.on("request", lambda request: watched.asked.append(request.url))
    yield context
    context.close()
    # A refused request is reported by the browser too; what it says is checked where it is expected.
    wrong = [each for each in watched.said if "status of 422" not in each]
    assert not wrong, wrong
    foreign = [each for each in watched.asked if not each.startswith((address, "blob:", "file:", "data:"))]
    assert not foreign, foreign


def opened(context: BrowserContext, address: str, single: bool = True) -> Page:
    page = context.new_page()
    page.goto(address)
    expect(page.locator("svg.tree")).to_have_count(2)  # two models are compared from the start
    if single:
        page.select_option("#model-1", "")
        expect(page.locator("svg.tree")).to_have_count(1)
    return page


@pytest.fixture
def page(context: BrowserContext, address: str) -> Page:
    return opened(context, address)


def type_in(page: Page, text: str) -> None:
    page.fill("#text", text)
    page.press("#text", "Enter")
    first = text.split("\n")[0]
    expect(page.locator("#sentence")).to_have_text(first)


def nodes(page: Page) -> list[str]:
    return page.locator("svg.tree").first.locator("g.constituent-node > text.constituent").all_text_contents()


def cell(page: Page, start: int, end: int) -> tuple[float, float]:
    """The middle of a cell of the first triangle, as a place to click."""
    box = page.locator("svg.chart").first.bounding_box()
    grid = page.evaluate("JSON.parse(document.getElementById('saved').textContent).results[0][0].chart")
    scale = box["width"] / grid["width"]
    x = grid["left"] + (end + 0.5) * grid["cell"]
    return scale * x, scale * (grid["top"] + (start + 0.5) * grid["cell"])


def test_an_example_is_parsed_on_opening(page):
    expect(page.locator("#sentence")).to_have_text(SENTENCE)
    assert page.input_value("#text") == SENTENCE
    assert len(nodes(page)) == len(SENTENCE.split()) - 1
    assert page.locator("svg.tree text.word").all_text_contents() == SENTENCE.split()
    assert page.locator("svg.chart text.word").all_text_contents() == SENTENCE.split()
    assert page.locator("svg.tree").get_attribute("aria-label") == f"Tree of: {SENTENCE}"


def attributes(page: Page, selector: str, names: tuple[str, ...]) -> set[tuple[str | None, ...]]:
    script = "(all, names) => all.map((each) => [...names.map((name) => each.getAttribute(name)), each.textContent])"
    return {tuple(each) for each in page.locator(selector).evaluate_all(script, list(names))}


def in_svg(svg: str, tag: str, names: tuple[str, ...], css: str) -> set[tuple[str | None, ...]]:
    found = set()
    for given, text in re.findall(rf'<{tag} class="(?:{css})"([^>]*?)/?>(?:([^<]*)</{tag}>)?', svg):
        values = dict(re.findall(r'([\w-]+)="([^"]*)"', given))
        found.add((*(values.get(name) for name in names), text))
    return found


TEXT = ("x", "y", "font-size", "text-anchor", "direction")
RECT = ("x", "y", "width", "height", "fill-opacity")


@pytest.mark.parametrize("sentence", [SENTENCE, f"{SENTENCE} and {SENTENCE} and {SENTENCE}", HEBREW, "dog"])
def test_the_layout_is_that_of_the_svg(page, parser, sentence):
    type_in(page, sentence)
    for layout in ("auto", "horizontal", "vertical"):
        page.select_option("#layout", layout)
        expect(page.locator("#result")).not_to_have_attribute("aria-busy", "true")
        analysis = parser.analyse(sentence)
        svg = analysis.as_svg(None if layout == "auto" else layout)
        assert attributes(page, "svg.tree .edge", ("points",)) == in_svg(svg, "polyline", ("points",), "edge")
        assert attributes(page, "svg.tree .shade", RECT) == in_svg(svg, "rect", RECT, "shade known")
        drawn = attributes(page, "svg.tree text:not(.glyph)", TEXT)
        assert drawn == in_svg(svg, "text", TEXT, "word|tag|constituent")
        size = re.search(r'viewBox="([^"]+)"', svg)
        assert size is not None
        assert page.locator("svg.tree").get_attribute("viewBox") == size[1]


@pytest.mark.parametrize("sentence", [SENTENCE, "the man watched the dog"])
def test_the_triangle_is_that_of_the_svg(page, parser, sentence):
    type_in(page, sentence)
    svg = parser.analyse(sentence).as_chart()
    assert attributes(page, "svg.chart .shade", RECT) == in_svg(svg, "rect", RECT, "shade")
    assert attributes(page, "svg.chart .chosen", RECT[:4]) == in_svg(svg, "rect", RECT[:4], "chosen")
    assert attributes(page, "svg.chart .empty", RECT[:4]) == in_svg(svg, "rect", RECT[:4], "empty")
    assert attributes(page, "svg.chart text.word", TEXT) == in_svg(svg, "text", TEXT, "word")


def test_the_pointer_links_cells_spans_and_words(page):
    x, y = cell(page, 0, 3)
    page.locator("svg.chart").hover(position={"x": x, "y": y})
    linked = page.locator("svg.tree g.word-node.linked text.word")
    expect(linked).to_have_text(["the", "old", "woman"])
    expect(page.locator("#sentence .linked")).to_have_text(["the", "old", "woman"])
    expect(page.locator("svg.chart .word.linked")).to_have_text(["the", "old", "woman"])
    page.locator("svg.tree g.constituent-node").first.hover()
    expect(linked).to_have_text(SENTENCE.split())
    cursor = page.locator("svg.chart .cursor")
    assert float(cursor.get_attribute("width")) > 0
    page.mouse.move(2, 2)
    expect(linked).to_have_count(0)
    assert float(cursor.get_attribute("width")) == 0


def test_a_label_leads_to_its_glossary(page, context, address):
    node = page.locator("svg.tree g.constituent-node").first
    label = node.locator("text.constituent").text_content()
    node.click()
    card = page.locator(".details")
    expect(card.locator("h4")).to_contain_text(label)
    expected = context.request.get(f"{address}v1/grammar", params={"model": "true", "symbol": label}).json()["symbol"]
    expect(card.locator("h4")).to_contain_text(expected["use"])
    for fact in expected["facts"]:
        expect(card.locator("dl")).to_contain_text(fact["pieces"][0]["text"])
    expect(card.locator(".rules li")).to_have_count(len(expected["rules"]))
    child = expected["rules"][0]["children"][0]["symbol"]
    card.locator(".rules button").first.click()
    expect(page.locator(".details h4")).to_contain_text(child)
    page.locator("svg.tree g.tag-node").first.click()
    expect(page.locator(".details dt").first).to_have_text("words")
    page.locator(".details").get_by_label("Close").click()
    expect(page.locator(".details")).to_have_count(0)


def test_spans_are_required_and_forbidden(page, learnt):
    page.select_option("#model-0", MARKUP)
    type_in(page, "a b c d e f")
    before = learnt.analyse("a b c d e f")
    missing = next((i, i + 2) for i in range(5) if [i, i + 2] not in before.parse.spans.tolist())
    x, y = cell(page, *missing)
    page.locator("svg.chart").click(position={"x": x, "y": y})
    expect(page.locator(".details")).to_contain_text("not a constituent of this tree")
    page.get_by_label("must be a constituent").check()
    expect(page.locator(".chip")).to_contain_text("required")
    expect(page.locator("svg.tree .must")).to_have_count(1)
    expect(page.locator("#live")).to_contain_text("changed")
    expect(page.locator(".remarks")).to_contain_text("p(constraints)")
    given = {"must": [list(missing)], "must_not": []}
    expected = learnt.analyse("a b c d e f", constraints=given)
    saved = json.loads(page.locator("#saved").text_content())
    shown = [each[:2] for each in saved["results"][0][0]["constituents"]]
    assert shown == expected.parse.spans.tolist()
    page.get_by_label("must not be a constituent").check()
    expect(page.locator(".chip")).to_contain_text("forbidden")
    expect(page.locator("svg.chart .cell-must-not")).to_have_count(1)
    page.locator(".chip button").click()
    expect(page.locator(".chip")).to_have_count(0)


def test_the_keyboard_moves_in_the_triangle_and_constrains(page):
    page.select_option("#model-0", MARKUP)
    type_in(page, "a b c d e f")
    chart = page.locator("svg.chart")
    chart.focus()
    for key in ("Home", "ArrowRight", "ArrowDown"):
        page.keyboard.press(key)
    expect(page.locator("#live")).to_contain_text("b c: posterior")
    page.keyboard.press("+")
    expect(page.locator(".chip")).to_have_text(re.compile("required: b c"))
    expect(page.locator("svg.chart")).to_be_focused()
    page.keyboard.press("Home")
    page.keyboard.press("+")  # a b crosses b c
    expect(page.locator("#problem")).to_contain_text("must be constituents but cross")
    expect(page.locator(".chip")).to_have_count(1)
    page.locator("svg.chart").focus()
    for key in ("Home", "ArrowRight", "ArrowDown", "0"):
        page.keyboard.press(key)
    expect(page.locator(".chip")).to_have_count(0)
    page.locator("svg.chart").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".details h3")).to_be_focused()


def test_the_list_is_a_tree_for_the_keyboard(page):
    page.locator(".as-list summary").click()
    page.mouse.move(2, 2)
    items = page.get_by_role("treeitem")
    assert items.count() == 2 * len(SENTENCE.split()) - 1
    items.first.focus()
    expect(page.locator("svg.tree g.word-node.linked")).to_have_count(len(SENTENCE.split()))
    page.keyboard.press("ArrowRight")
    expect(items.nth(1)).to_be_focused()
    page.keyboard.press("End")
    expect(items.last).to_be_focused()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowLeft")
    expect(items.first).to_have_attribute("aria-expanded", "false")
    expect(items.nth(1)).to_be_hidden()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator(".details h3")).to_be_focused()


def test_two_systems_are_shown_side_by_side(context, address, parser, learnt):
    page = opened(context, address, single=False)
    ours, theirs = ({tuple(s) for s in p.analyse(SENTENCE).parse.spans.tolist()} for p in (parser, learnt))
    trees = page.locator("svg.tree")
    expect(trees.nth(0).locator(".differs")).to_have_count(len(ours - theirs))
    expect(trees.nth(1).locator(".differs")).to_have_count(len(theirs - ours))
    assert ours != theirs
    expect(page.locator(".verdict").first).to_contain_text(f"{len(ours & theirs)} of {len(ours)} brackets")
    page.select_option("#model-1", "true")
    page.select_option("#decoder-1", "viterbi")
    expect(page.get_by_role("heading", name="true, viterbi", exact=True)).to_be_visible()
    best = {tuple(s) for s in parser.analyse(SENTENCE, "viterbi").parse.spans.tolist()}
    expect(trees.nth(0).locator(".differs")).to_have_count(len(ours - best))


def test_gold_brackets_are_scored(page, context, address):
    page.locator("#gold-box summary").click()
    page.fill("#gold", f"{GOLD}\n(S (NP (DT the) (NN man))\n   (VP (VBD slept)))")
    page.click("#score")
    body = {"sentences": [{"gold": GOLD}, {"gold": "(S (NP (DT the) (NN man)) (VP (VBD slept)))"}]}
    expected = context.request.post(f"{address}v1/parse", data=body).json()
    expect(page.locator(".source")).to_contain_text(f"S-F1 {expected['scores']['sentence_f1']:.1f} over 2 sentences")
    score = expected["results"][0]["gold"]["score"]
    expect(page.locator(".verdict")).to_contain_text(f"F1 {score['f1']:.1f}")
    expect(page.locator("svg.tree .right")).to_have_count(score["correct"])
    expect(page.locator("svg.tree .wrong")).to_have_count(score["predicted"] - score["correct"])
    page.fill("#gold", "(S (NP the")
    page.click("#score")
    expect(page.locator("#problem")).to_contain_text("sentence 1")


def upload(page: Page, name: str, content: bytes) -> None:
    page.set_input_files("#file", {"name": name, "mimeType": "text/plain", "buffer": content})


def test_files_are_opened(page):
    upload(page, f"{MARKUP}.txt".replace("/", ""), f"the dog slept\n\n{SENTENCE}\r\na man walked\n".encode())
    expect(page.locator("#list li")).to_have_count(3)
    expect(page.locator(".source")).to_contain_text("<img src=x")
    page.locator("#list button").nth(1).click()
    expect(page.locator("#sentence")).to_have_text(SENTENCE)
    expect(page.locator("#list button").nth(1)).to_have_attribute("aria-current", "true")
    upload(page, "gold.trees", f"{GOLD}\n".encode() * 3)
    expect(page.locator(".source")).to_contain_text("over 3 sentences")
    upload(page, "broken.txt", b"\xff\xfe\xff")
    expect(page.locator("#problem")).to_have_text("broken.txt: is not text in UTF-8; save it as such.")
    upload(page, "empty.txt", b" \n")
    expect(page.locator("#problem")).to_contain_text("holds no sentence")
    upload(page, "large.txt", b"a " * (1 << 20))
    expect(page.locator("#problem")).to_contain_text("open a smaller file")
    upload(page, "long.txt", b"the dog slept\n" * 1100)
    expect(page.locator("#problem")).to_contain_text("the first 1,000 sentences are shown, 100 are left out")
    expect(page.locator("#list li")).to_have_count(1000)


def downloaded(page: Page, name: str) -> tuple[str, str]:
    with page.expect_download() as waiting:
        page.get_by_role("group", name="Download all trees as").get_by_role("button", name=name, exact=True).click()
    return waiting.value.suggested_filename, Path(waiting.value.path()).read_text(encoding="utf-8")


def test_trees_are_downloaded_and_copied(page, parser):
    sentences = [SENTENCE, "the dog slept"]
    type_in(page, "\n".join(sentences))
    expect(page.locator("#list li")).to_have_count(2)
    analyses = list(parser.analyse_many(sentences))
    brackets = "".join(FORMATS["brackets"](each) + "\n" for each in analyses)
    assert downloaded(page, "Brackets") == ("trees.trees", brackets)
    name, content = downloaded(page, "JSON")
    assert name == "trees.jsonl"
    records = [json.loads(line) for line in content.splitlines()]
    assert [each["constituents"] for each in records] == [each.as_record()["constituents"] for each in analyses]
    assert downloaded(page, "LaTeX")[1] == "".join(FORMATS["forest"](each) + "\n" for each in analyses)
    assert downloaded(page, "SVG") == ("tree.svg", analyses[0].as_svg())
    copies = page.get_by_role("group", name="Copy the tree as")
    expected = {
        "Brackets": FORMATS["brackets"](analyses[0]),
        "LaTeX (forest)": FORMATS["forest"](analyses[0]),
        "LaTeX (qtree)": FORMATS["qtree"](analyses[0]),
        "SVG": analyses[0].as_svg(),
    }
    for name, content in expected.items():
        copies.get_by_role("button", name=name, exact=True).click()
        expect(page.locator("#live")).to_have_text(f"Copied as {name}.")
        assert page.evaluate("navigator.clipboard.readText()") == content


def test_a_saved_page_opens_from_a_file(context, address, watched, tmp_path):
    page = opened(context, address, single=False)
    type_in(page, f"{SENTENCE}\n{MARKUP}")
    expect(page.locator("#list li")).to_have_count(2)
    page.locator("svg.tree g.constituent-node").first.click()
    expect(page.locator(".details h4")).to_be_visible()
    before = page.locator("svg.tree").first.inner_html()
    name, content = downloaded(page, "This page")
    assert name == "ramify.html"
    (tmp_path / "saved.html").write_text(content, encoding="utf-8")
    watched.asked.clear()
    saved = context.new_page()
    saved.goto((tmp_path / "saved.html").as_uri())
    expect(saved.locator("svg.tree")).to_have_count(2)
    assert saved.locator("svg.tree").first.inner_html().replace(" selected", "") == before.replace(" selected", "")
    assert all(each.startswith(("file:", "data:")) for each in watched.asked)
    expect(saved.locator("#ask")).to_be_hidden()
    expect(saved.locator("#about")).to_contain_text("saved page")
    saved.locator("svg.tree g.constituent-node").first.click()
    expect(saved.locator(".details .rules")).to_be_visible()
    expect(saved.locator(".choices")).to_have_count(0)
    saved.locator("#list button").nth(1).click()
    expect(saved.locator("#sentence")).to_have_text(MARKUP)
    assert not saved.locator("img").count()


def test_markup_stays_text(context, address):
    page = opened(context, address, single=False)
    type_in(page, MARKUP)
    expect(page.locator("svg.tree text.word").first).to_have_text("<img")
    page.locator("svg.tree").nth(1).locator("g.constituent-node").first.click()
    expect(page.locator(".details h4")).to_contain_text("<b>NP</b><script>")
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 2
    assert page.locator("#model-0 option").all_text_contents() == ["true", MARKUP]
    assert page.evaluate("window.alerted") is None


def test_mistakes_are_reported(page):
    page.fill("#text", "   ")
    page.press("#text", "Enter")
    expect(page.get_by_role("alert")).to_have_text("There is no sentence; type one, or open a file.")
    page.fill("#text", "word " * 5000)
    page.press("#text", "Enter")
    expect(page.get_by_role("alert")).to_contain_text("has 5,000 words")
    type_in(page, "the dog slept")
    expect(page.locator("#problem")).to_be_hidden()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_accessibility(context, address, scheme):
    page = opened(context, address, single=False)
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    page.locator("svg.tree g.constituent-node").first.click()
    expect(page.locator(".details .rules")).to_be_visible()
    page.locator(".as-list summary").first.click()
    page.wait_for_timeout(200)  # colours fade
    assert page.evaluate(ACCESSIBILITY) == []
    page.locator("#gold-box summary").click()
    page.fill("#gold", GOLD)
    page.click("#score")
    expect(page.locator(".verdict").first).to_be_visible()
    page.fill("#text", " ")
    page.press("#text", "Enter")
    expect(page.locator("#problem")).to_be_visible()
    page.wait_for_timeout(200)
    assert page.evaluate(ACCESSIBILITY) == []


def test_the_check_of_accessibility_finds_mistakes(page):
    page.evaluate("document.querySelector('label[for=text]').remove()")
    page.evaluate("document.querySelector('#about').className = 'number'; document.querySelector('h2').id = 'text'")
    found = page.evaluate(ACCESSIBILITY)
    assert any("textarea#text" in each and "no name" in each for each in found)
    assert "id text twice" in found


@pytest.mark.parametrize("width", [320, 390, 820, 1280])
def test_no_page_is_wider_than_its_window(page, width):
    page.set_viewport_size({"width": width, "height": 800})
    page.locator("svg.tree g.constituent-node").nth(1).click()
    expect(page.locator(".details .rules")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_every_step_works_by_the_keyboard_alone(page):
    page.locator("#text").focus()
    seen = []
    for _ in range(30):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("document.activeElement.id || document.activeElement.getAttribute('class') || ''"))
    for part in ("go", "file", "example", "model-0", "decoder-0", "layout", "wide", "ramify chart"):
        assert part in seen, (part, seen)


def test_the_page_waits_for_the_models(browser, parser):
    gate = threading.Event()

    class Waiting(Parser):
        def _analyse_window(self, *arguments):
            gate.wait()
            return super()._analyse_window(*arguments)

    waiting = Waiting(parser.model, parser.vocabulary, parser.labels, parser.tags)
    server = make_server(ServedModels([ServedModel("slow", waiting)]), LOOPBACK, Limits())
    with closing(open_socket("127.0.0.1", 0)) as bound:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
        thread.start()
        page = browser.new_page()
        page.goto(f"http://127.0.0.1:{bound.getsockname()[1]}/")
        expect(page.locator("#about")).to_contain_text("being prepared")
        gate.set()
        expect(page.locator("svg.tree")).to_have_count(1)
        page.close()
        server.should_exit = True
        thread.join(60)


def test_a_stopped_server_is_reported(browser, parser):
    server = make_server(ServedModels([ServedModel("brief", parser)]), LOOPBACK, Limits())
    with closing(open_socket("127.0.0.1", 0)) as bound:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
        thread.start()
        page = browser.new_page()
        page.goto(f"http://127.0.0.1:{bound.getsockname()[1]}/")
        expect(page.locator("svg.tree")).to_have_count(1)
        server.should_exit = True
        thread.join(60)
    page.press("#text", "Enter")
    expect(page.get_by_role("alert")).to_contain_text("The server does not answer")
    assert page.locator("svg.tree").count() == 1
    page.close()

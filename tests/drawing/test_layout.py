"""Positions of nodes: properties that hold for every tree."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest
from hypothesis import given
from nltk import Tree

from ramify.drawing.layout import Box, Placed, place
from ramify.drawing.measure import is_right_to_left, runs_right_to_left, text_width
from ramify.drawing.nodes import tree_of_parse
from tests.drawing.trees import TREES, drawn, right_branching

LAYOUTS = pytest.mark.parametrize("layout", ["horizontal", "vertical"])
CLOSE = pytest.approx


def sides(box: Box) -> tuple[float, float, float, float]:
    """Left, right, top, bottom."""
    return box.x - box.width / 2, box.x + box.width / 2, box.y - box.height / 2, box.y + box.height / 2


def overlap(one: Box, other: Box) -> bool:
    left, right, top, bottom = sides(one)
    left_, right_, top_, bottom_ = sides(other)
    tiny = 1e-6  # a tag and its word may touch
    return left < right_ - tiny and left_ < right - tiny and top < bottom_ - tiny and top_ < bottom - tiny


def along(placed: Placed, box: Box) -> float:
    """The place of a node in reading order."""
    if placed.layout == "vertical":
        return box.y
    return -box.x if placed.tree.right_to_left else box.x


@LAYOUTS
@given(tree=TREES)
def test_no_two_nodes_overlap(layout, tree):
    placed = place(drawn(tree), layout)
    assert not any(overlap(one, other) for one, other in combinations(placed.boxes, 2))


@LAYOUTS
@given(tree=TREES)
def test_words_are_in_order_on_one_line(layout, tree):
    placed = place(drawn(tree), layout)
    words = [box for node, box in zip(placed.tree.nodes, placed.boxes, strict=True) if node.kind == "word"]
    places = [along(placed, box) for box in words]
    assert all(one < other for one, other in pairwise(places))
    if layout == "horizontal":
        assert len({box.y for box in words}) == 1
        assert words[0].y == max(box.y for box in placed.boxes)
    else:
        # They line up at the side of the tree.
        near = {round(sides(box)[0 if placed.tree.right_to_left else 1], 6) for box in words}
        assert len(near) == 1


@LAYOUTS
@given(tree=TREES)
def test_a_parent_is_centred_over_its_children(layout, tree):
    placed = place(drawn(tree), layout)
    for number, children in enumerate(placed.tree.children):
        if children:
            first, last = (along(placed, placed.boxes[child]) for child in (children[0], children[-1]))
            assert along(placed, placed.boxes[number]) == CLOSE((first + last) / 2, abs=1e-6)


@LAYOUTS
@given(tree=TREES)
def test_everything_is_inside_the_picture(layout, tree):
    placed = place(drawn(tree), layout)
    for left, right, top, bottom in map(sides, placed.boxes):
        assert left >= 0
        assert top >= 0
        assert right <= placed.width
        assert bottom <= placed.height
    for edge in placed.edges:
        assert all(0 <= x <= placed.width and 0 <= y <= placed.height for x, y in edge.points)


@LAYOUTS
@given(tree=TREES)
def test_lines_join_a_node_to_its_parent_and_cross_no_other(layout, tree):
    placed = place(drawn(tree), layout)
    for edge in placed.edges:
        parent = placed.tree.nodes[edge.child].parent
        for end, number in ((edge.points[0], parent), (edge.points[-1], edge.child)):
            left, right, top, bottom = sides(placed.boxes[number])
            assert left - 1e-6 <= end[0] <= right + 1e-6
            assert top - 1e-6 <= end[1] <= bottom + 1e-6
        for start, end in pairwise(edge.points):
            samples = [tuple(a + (b - a) * part / 8 for a, b in zip(start, end, strict=True)) for part in range(9)]
            for x, y in samples:
                dot = Box(x, y, 0, 0)
                assert not any(overlap(dot, box) for number, box in enumerate(placed.boxes))


@LAYOUTS
@given(tree=TREES)
def test_there_is_room_for_the_lines_below_constituents(layout, tree):
    placed = place(drawn(tree), layout)
    axis = 1 if layout == "horizontal" else 0
    for edge in placed.edges:
        if placed.tree.nodes[placed.tree.nodes[edge.child].parent].kind == "constituent":
            assert abs(edge.points[0][axis] - edge.points[-1][axis]) >= 15


@LAYOUTS
def test_a_right_to_left_sentence_is_the_mirror_image(layout):
    tree = tree_of_parse(right_branching(4))
    mirrored = place(drawn(Tree("S", ["אחת", Tree("NP", ["שתיים", "שלוש"])])), layout)
    assert mirrored.tree.right_to_left
    assert not tree.right_to_left
    words = [box for node, box in zip(mirrored.tree.nodes, mirrored.boxes, strict=True) if node.kind == "word"]
    if layout == "horizontal":
        assert words[0].x > words[1].x > words[2].x
    else:
        assert words[0].y < words[1].y < words[2].y
        assert all(word.x > mirrored.boxes[0].x for word in words)


def test_the_vertical_layout_has_a_line_for_each_word_and_its_width_follows_the_depth():
    short, long = (place(tree_of_parse(right_branching(n)), "vertical") for n in (30, 60))
    assert long.height - short.height == CLOSE(30 * (short.height - 20) / 30, rel=0.05)
    flat = place(drawn(Tree("S", [f"w{n}" for n in range(60)])), "vertical")
    assert flat.width < short.width


@LAYOUTS
def test_the_deepest_trees_are_laid_out(layout):
    placed = place(tree_of_parse(right_branching(3000)), layout)
    assert len(placed.boxes) == 2999 + 2 * 3000


def test_an_empty_tree_has_a_size():
    placed = place(tree_of_parse(right_branching(0)))
    assert placed.boxes == ()
    assert placed.width > 0


def test_widths_follow_the_kinds_of_characters():
    assert text_width("iiii") < text_width("aaaa") < text_width("wwww")
    assert text_width("犬犬") > 2
    assert text_width("e\u0301") == text_width("e")
    assert text_width("\u200d") == 0
    assert text_width("") == 0


def test_directions():
    assert runs_right_to_left("12 שלום abc") is True
    assert runs_right_to_left("abc שלום") is False
    assert runs_right_to_left("12 .") is None
    assert is_right_to_left(["iPhone", "של", "כלב", "12"])
    assert not is_right_to_left(["iPhone", "of", "כלב"])
    assert not is_right_to_left([".", "12"])

"""The nodes of a parse to draw: roots, tags, posteriors, heads."""

from __future__ import annotations

from nltk import Tree

from ramify.corpus.tree import make_parse, parse_of_words
from ramify.drawing.nodes import head_word_of, tree_of_nltk, tree_of_parse
from ramify.drawing.notebook import notebook_tree
from tests.drawing.trees import right_branching

PARSE = make_parse(["the", "dog", "saw", "it"], list("DNVP"), [(0, 4), (0, 2), (2, 4)], ["S", "NP", "VP"])


def texts(tree) -> list[str]:
    return [node.text for node in tree.nodes]


def test_a_tree_needs_no_other_root():
    assert texts(tree_of_parse(PARSE)) == "S NP D the N dog VP V saw P it".split()


def test_constituents_that_do_not_form_a_tree_get_a_root():
    forest = make_parse(["the", "dog", "."], ["D", "N", "PUNCT"], [(0, 2)], ["NP"])
    tree = tree_of_parse(forest)
    assert texts(tree) == "TOP NP D the N dog PUNCT .".split()
    assert tree.children[0] == (1, 6)
    assert tree.nodes[0].posterior is None


def test_tags_are_left_out_where_they_are_unknown_or_unwanted():
    assert texts(tree_of_parse(parse_of_words(["a", "b"]))) == ["TOP", "a", "b"]
    assert texts(tree_of_parse(PARSE, with_tags=False)) == "S NP the dog VP saw it".split()


def test_numbers_belong_to_their_nodes():
    tree = tree_of_parse(PARSE, [1.0, 0.9, 0.8], [0.7, 0.6, 0.5], [0.1, 0.2, 0.3, 0.4])
    found = {node.text: (node.posterior, node.symbol_posterior) for node in tree.nodes}
    assert (found["S"], found["NP"], found["VP"]) == ((1.0, 0.7), (0.9, 0.6), (0.8, 0.5))
    assert [found[tag] for tag in "DNVP"] == [(None, 0.1), (None, 0.2), (None, 0.3), (None, 0.4)]
    assert found["dog"] == (None, None)


def test_heads_mark_one_child_of_each_constituent_that_has_a_head():
    tree = tree_of_parse(PARSE, heads=(2, 3, 0, 3))
    assert {node.text for node in tree.nodes if node.is_head} == {"N", "VP", "V"}
    # Both words of NP depend on words outside it: it has no head word.
    assert not any(node.is_head for node in tree_of_parse(PARSE, heads=(3, 3, 0, 3)).nodes[2:6])
    assert head_word_of((2, 3, 0, 3), 0, 4) == 2
    assert head_word_of((3, 3, 0, 3), 0, 2) is None


def test_a_tree_of_nltk_has_the_nodes_of_its_parse():
    tree = tree_of_nltk(PARSE.to_nltk()[0])
    assert tree == tree_of_parse(PARSE)
    odd = tree_of_nltk(Tree(1, [Tree("A", []), "b", 3]))
    assert texts(odd) == ["1", "A", "b", "3"]
    assert [(node.start, node.end) for node in odd.nodes] == [(0, 3), (0, 1), (1, 2), (2, 3)]


def test_notebooks_get_trees_of_any_depth():
    assert notebook_tree(right_branching(1500))._repr_svg_().count("<text") == 1 + 1499 + 2 * 1500
    shown = notebook_tree(PARSE)
    assert shown == PARSE.to_nltk()
    assert ">NP</text>" not in shown[0][1]._repr_svg_()

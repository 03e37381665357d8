"""Traces are removed, corrupt trees are skipped, and every tree is counted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramify.corpus.prepare import prepare_treebank
from ramify.corpus.prepare.passages import count_tree_starts, cut_at_margin
from ramify.corpus.reading import read_sentences
from ramify.errors import RamifyError
from tests.corpus.prepare.common import manifest_of, tree, write


def test_traces_go_with_their_constituents_and_punctuation_stays(tmp_path):
    traced = "( (S (NP-SBJ (-NONE- *T*-1)) (VP (VBZ barks) (NP (-NONE- *)) (NP (NN it)))) (. .) )"
    lines = [traced, "( (S (NP (-NONE- *))) )", *(tree(f"w{i}") for i in range(18))]
    prepared = prepare_treebank("brackets", write(tmp_path / "some", "\n".join(lines)), tmp_path / "out")
    first = (tmp_path / "out" / "train.trees").read_text().splitlines()[0]
    assert first == "(TOP (S (VP (VBZ barks) (NP (NN it)))) (. .))"
    train = prepared.splits["train"]
    assert (train.trees_in, len(train.kept), dict(train.dropped)) == (16, 15, {"nothing but traces": 1})
    assert dict(train.removed) == {"traces": 2, "constituents of traces alone": 2}


BROKEN = {
    "is not closed": "(TOP (S (NN a)",
    "no matching": "(TOP (S (NN a))))",
    "contains no word": "(TOP (S (NP) (NN a)))",
    "is outside": "(TOP (S (NN a))) dog",
    "not UTF-8": b"(TOP (S (NN caf\xe9) (NN b)))",
}


@pytest.mark.parametrize("complaint", BROKEN)
def test_a_corrupt_tree_is_named_and_counted_and_the_rest_is_read(tmp_path, complaint):
    broken = BROKEN[complaint]
    broken = broken if isinstance(broken, bytes) else broken.encode()
    good = [tree(f"w{i}").encode() for i in range(19)]
    source = write(tmp_path / "some.trees", b"\n".join([*good[:4], broken, *good[4:]]))
    reported: list[str] = []
    prepared = prepare_treebank("brackets", source, tmp_path / "out", on_corrupt=reported.append)
    assert len(reported) == 1
    assert reported[0].startswith("some.trees, line 5: ")
    assert complaint in reported[0]
    assert manifest_of(tmp_path / "out")["corrupt"] == reported
    assert manifest_of(tmp_path / "out")["splits"]["train"] == {
        "trees_in": 16, "trees_out": 15, "dropped": {"corrupt": 1}, "removed_from_trees": {},
    }  # fmt: skip
    assert sum(len(split.kept) for split in prepared.splits.values()) == 19
    with pytest.raises(RamifyError, match="line 5"):
        prepare_treebank("brackets", source, tmp_path / "strict", strict=True)
    assert not (tmp_path / "strict").exists()


def test_every_tree_lost_with_a_corrupt_one_is_counted(tmp_path):
    lines = [tree("a") + tree("b") + ")" + tree("c"), *(tree(f"w{i}") for i in range(17))]
    prepared = prepare_treebank("brackets", write(tmp_path / "some", "\n".join(lines)), tmp_path / "out")
    train = prepared.splits["train"]
    assert (train.trees_in, len(train.kept), train.dropped["corrupt"]) == (16, 13, 3)
    assert count_tree_starts(b") (a (b) c) (d ()") == 2
    assert count_tree_starts(b"(a)) (b) (c)") == 3
    assert count_tree_starts(b"words alone") == 0


def test_trees_may_continue_without_indentation(tmp_path):
    source = write(tmp_path / "some", "\n".join(["(TOP", "(S (NN a)", "(NN b)))"] * 10))
    prepared = prepare_treebank("brackets", source, tmp_path / "out")
    assert sum(len(split.kept) for split in prepared.splits.values()) == 10


def test_passages_begin_at_the_margin():
    data = b"\xef\xbb\xbf(A\n b)\n\n(C d)\n x (E f)\n(G"
    assert list(cut_at_margin(data)) == [(1, b"\xef\xbb\xbf(A\n b)\n\n"), (4, b"(C d)\n x (E f)\n"), (6, b"(G")]
    assert list(cut_at_margin(b"\n\n(A b)")) == [(3, b"(A b)")]
    assert list(cut_at_margin(b" \n")) == []
    assert list(cut_at_margin(b"dog")) == [(1, b"dog")]


pieces = st.sampled_from(
    [tree("a"), "(S (-NONE- *))", "(TOP", "(NN b)", ")", "(", "x", "\n", "\n(S", " ", "\xff", "(S ())"]
)


@given(st.lists(pieces, max_size=20))
def test_nothing_disappears(tmp_path_factory, lines):
    folder = tmp_path_factory.mktemp("prepare")
    good = "".join(tree(f"w{i}") + "\n" for i in range(30))
    content = good.encode() + "".join(lines).encode("latin-1") + b"\n" + good.encode()
    prepared = prepare_treebank("brackets", write(folder / "some", content), folder / "out", split="2/1/1")
    splits = manifest_of(folder / "out")["splits"]
    for name, split in splits.items():
        assert split["trees_in"] == split["trees_out"] + sum(split["dropped"].values())
        assert len(read_sentences(folder / "out", split=name)) == split["trees_out"]
    assert 59 <= sum(len(split.kept) for split in prepared.splits.values()) <= 60 + 2 * len(lines)

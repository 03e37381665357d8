"""The Penn Treebank, in small files written by hand."""

from __future__ import annotations

import pytest

from ramify.corpus.cleaning import PTB_WORDS
from ramify.corpus.prepare import prepare_treebank
from ramify.corpus.prepare.wsj import SECTIONS
from ramify.errors import RamifyError
from tests.corpus.prepare.common import manifest_of, sentences_of, trees_of, words_of, write

# As in LDC99T42: a blank line, then trees whose lines after the first are indented.
WSJ = """
( (S
    (NP-SBJ-1 (NNP {section}) )
    (VP (VBD paid)
      (NP
        (QP ($ $) (CD 1.5) (CD billion) )
        (-NONE- *U*) )
      (, ,)
      (S
        (NP-SBJ (-NONE- *-1) )
        (VP (TO to)
          (VP (VB win) ))))
    (. .) ))
( (S
    (NP-SBJ (-NONE- *) )
    (VP (VB Stop) )
    (. !) ))
"""
LAYOUTS = {
    "as LDC ships it": ("parsed/mrg/wsj/{section}/wsj_{section}00.mrg", "."),
    "from the middle of it": ("parsed/mrg/wsj/{section}/wsj_{section}00.mrg", "parsed/mrg/wsj"),
    "flat": ("wsj_{section}00.mrg", "."),
    "in capitals": ("WSJ/{section}/WSJ_{section}00.MRG", "WSJ"),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_wsj(tmp_path, layout):
    name, start = LAYOUTS[layout]
    for section in range(25):
        write(tmp_path / "in" / name.format(section=f"{section:02}"), WSJ.format(section=f"{section:02}"))
    write(tmp_path / "in" / "parsed" / "prd" / "wsj" / "02" / "wsj_0200.prd", "( no tree")
    write(tmp_path / "in" / "parsed" / "mrg" / "brown" / "ca" / "ca01.mrg", "( no tree")
    prepared = prepare_treebank("wsj", tmp_path / "in" / start, tmp_path / "out", strict=True)
    assert {name: len(split.kept) for name, split in prepared.splits.items()} == {"train": 40, "dev": 2, "test": 2}
    assert len(prepared.source.unused) == 3
    assert trees_of(tmp_path / "out", "dev") == [
        "(TOP (S (NP-SBJ-1 (NNP 22)) (VP (VBD paid) (NP (QP ($ $) (CD 1.5) (CD billion))) (, ,) "
        "(S (VP (TO to) (VP (VB win))))) (. .)))",
        "(TOP (S (VP (VB Stop)) (. !)))",
    ]
    assert sentences_of(tmp_path / "out", "test", PTB_WORDS) == [
        ("23", "paid", "1.5", "billion", "to", "win"),
        ("Stop",),
    ]
    assert words_of(tmp_path / "out", "train")[::2] == [f"{section:02}" for section in range(2, 22)]
    manifest = manifest_of(tmp_path / "out")
    assert manifest["words"] == "ptb"
    assert manifest["splits"]["train"]["removed_from_trees"] == {"traces": 60, "constituents of traces alone": 40}


def test_wsj_with_sections_missing_says_so(tmp_path):
    for section in ("02", "22", "23"):
        write(tmp_path / f"wsj_{section}00.mrg", WSJ.format(section=section))
    assert "sections missing: 03 04" in prepare_treebank("wsj", tmp_path, tmp_path / "out").source.warnings[0]
    with pytest.raises(RamifyError, match="sections missing"):
        prepare_treebank("wsj", tmp_path, tmp_path / "strict", strict=True)
    (tmp_path / "wsj_2300.mrg").unlink()
    with pytest.raises(RamifyError, match=r"test\.trees would have no trees"):
        prepare_treebank("wsj", tmp_path, tmp_path / "none")
    write(tmp_path / "copy" / "wsj_0200.mrg", "")
    with pytest.raises(RamifyError, match="has the same name as"):
        prepare_treebank("wsj", tmp_path, tmp_path / "none")


def test_in_wsj_an_unclosed_tree_does_not_affect_others(tmp_path):
    for section in SECTIONS:
        write(tmp_path / f"wsj_{section}00.mrg", "( (S (NN a)\n    (NN b) )\n( (S (NN c) (NN d) )))\n( (S (NN e)) )\n")
    reported: list[str] = []
    prepared = prepare_treebank("wsj", tmp_path, tmp_path / "out", on_corrupt=reported.append)
    assert [message.partition(":")[0] for message in reported[:2]] == ["wsj_0200.mrg, line 1", "wsj_0200.mrg, line 3"]
    dev = prepared.splits["dev"]
    assert (dev.trees_in, len(dev.kept), dev.dropped["corrupt"]) == (3, 1, 2)

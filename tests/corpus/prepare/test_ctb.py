"""The Chinese Treebank, in small files written by hand."""

from __future__ import annotations

import pytest

from ramify.corpus.prepare import prepare_treebank
from ramify.corpus.prepare.ctb import ARTICLES, chinese_encoding, cut_at_mark_up, split_of_article
from ramify.corpus.reading import SPLITS
from tests.corpus.prepare.common import sentences_of, trees_of, write

# As in LDC2005T01U01.
CTB = """<DOC>
<DOCID> XIN{article}.0001 </DOCID>
<HEADER>
<DATE> 1994-01-01 (evening) </DATE>
</HEADER>
<BODY>
<HEADLINE>
<S ID=1>
( (IP-HLN (NP-SBJ (NP-PN (NR 上海)
\t\t\t (NR 浦东))
\t\t  (NP (NN 法制)
\t\t      (NN 建设)))
\t  (VP (VV 同步))) )
</S>
</HEADLINE>
<TEXT>
<P>
<S ID=2>
( (IP (NP-SBJ (-NONE- *pro*))
      (VP (VV 说)
          (PU ，)
(IP-OBJ (NP-SBJ (NN 条约))
        (VP (VA 好))))
      (PU 。)) )
</S>
</P>
</TEXT>
</BODY>
</DOC>
"""
CTB_TREES = [
    "(TOP (IP-HLN (NP-SBJ (NP-PN (NR 上海) (NR 浦东)) (NP (NN 法制) (NN 建设))) (VP (VV 同步))))",
    "(TOP (IP (VP (VV 说) (PU ，) (IP-OBJ (NP-SBJ (NN 条约)) (VP (VA 好)))) (PU 。)))",
]


@pytest.mark.parametrize("encoding", ["gb2312", "gb18030", "utf-8", "utf-8-sig"])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_ctb(tmp_path, encoding, ending):
    for article in (1, 270, 271, 300, 301, 325, 400, 1151, 1200):
        content = CTB.format(article=f"{article:03}").replace("\n", ending).encode(encoding)
        write(tmp_path / "in" / "data" / "bracketed" / f"chtb_{article:03}.fid", content)
    write(tmp_path / "in" / "data" / "segmented" / "chtb_001.fid", "上海 浦东")
    prepared = prepare_treebank("ctb", tmp_path / "in", tmp_path / "out")
    assert {name: len(split.kept) for name, split in prepared.splits.items()} == {"train": 8, "dev": 4, "test": 4}
    assert all(split.trees_in == len(split.kept) for split in prepared.splits.values())
    for name in SPLITS:
        assert trees_of(tmp_path / "out", name)[:2] == CTB_TREES
    assert sentences_of(tmp_path / "out", "dev", prepared.word_rule)[1] == ("说", "条约", "好")
    assert str(prepared.word_rule) == "-NONE- PU"
    assert list(prepared.source.unused) == ["data/bracketed/chtb_1200.fid"]
    assert "882 are missing" in prepared.source.warnings[0]


def test_ctb_articles_of_each_split():
    assert len(ARTICLES) == 890
    by_split = {split: {n for n in ARTICLES if split_of_article(n) == split} for split in SPLITS}
    assert (min(by_split["test"]), max(by_split["test"]), len(by_split["test"])) == (271, 300, 30)
    assert (min(by_split["dev"]), max(by_split["dev"]), len(by_split["dev"])) == (301, 325, 25)
    assert len(by_split["train"]) == 890 - 55
    assert [split_of_article(n) for n in (0, 326, 399, 1152)] == [None] * 4


def test_ctb_reading_continues_after_a_corrupt_tree(tmp_path):
    broken = CTB.replace("(NN 建设)))", "(NN 建设))")
    for article in (1, 271, 301):
        write(tmp_path / f"chtb_{article:03}.fid", broken.encode("gb18030"))
    reported: list[str] = []
    prepared = prepare_treebank("ctb", tmp_path, tmp_path / "out", on_corrupt=reported.append)
    assert reported[0].startswith("chtb_001.fid, line 9: ")
    assert trees_of(tmp_path / "out", "train") == CTB_TREES[1:]
    assert prepared.splits["dev"].dropped == {"corrupt": 1}


def test_one_bad_byte_does_not_change_the_encoding(tmp_path):
    content = CTB.encode().replace("浦东".encode(), b"\xff\xff")
    assert chinese_encoding(content) == "utf-8"
    assert chinese_encoding(CTB.encode("gb2312").replace("浦东".encode("gb2312"), b"\xff\xff")) == "gb18030"
    for article in (1, 271, 301):
        write(tmp_path / f"chtb_{article:03}.fid", content)
    reported: list[str] = []
    prepare_treebank("ctb", tmp_path, tmp_path / "out", on_corrupt=reported.append)
    assert reported[0].startswith("chtb_001.fid, line 10: this is not UTF-8")
    assert trees_of(tmp_path / "out", "test") == CTB_TREES[1:]


def test_ctb_mark_up_is_optional_and_may_share_a_line():
    def texts(data: bytes) -> list[tuple[int, bytes]]:
        return [(line, text.strip()) for line, text in cut_at_mark_up(data)]

    assert texts(b"<P>\n<S ID=1> ( (A b)) </S>\n<S ID=2>\n( (C\n(D e)))\n</S>") == [
        (2, b"( (A b))"),
        (3, b"( (C\n(D e)))"),
    ]
    assert texts(b"( (A b))\n( (C d))\n") == [(1, b"( (A b))"), (2, b"( (C d))")]
    assert texts(b"<P>\nheading\n</P>\n<P>\n( (A b))\n( (C d))\n</P>") == [(5, b"( (A b))"), (6, b"( (C d))")]
    assert texts(b"<S ID=1>\n( (PU <) (NN b))\n</S>") == [(1, b"( (PU <) (NN b))")]

"""The formats in which treebanks are distributed, in small files written by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ramify.corpus.cleaning import PTB_WORDS, WordRule
from ramify.corpus.prepare import prepare_treebank
from ramify.corpus.prepare.ctb import ARTICLES, at_mark_up, chinese_encoding, split_of_article
from ramify.corpus.prepare.spmrl import PUNCTUATION_TAGS, without_features
from ramify.corpus.prepare.wsj import SECTIONS
from ramify.corpus.reading import SPLITS, read_sentences
from ramify.errors import RamifyError


def write(path: Path, content: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def trees_of(out: Path, split: str) -> list[str]:
    return (out / f"{split}.trees").read_text(encoding="utf-8").splitlines()


def words_of(out: Path, split: str, rule: WordRule) -> list[tuple[str, ...]]:
    return [parse.words for parse in read_sentences(out, split=split).words_only(rule).parses]


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
    assert words_of(tmp_path / "out", "test", PTB_WORDS) == [("23", "paid", "1.5", "billion", "to", "win"), ("Stop",)]
    assert [parse.words[0] for parse in read_sentences(tmp_path / "out", split="train").parses[::2]] == [
        f"{section:02}" for section in range(2, 22)
    ]
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["words"] == "ptb"
    assert manifest["splits"]["train"]["removed_from_trees"] == {"traces": 60, "constituents of traces alone": 40}


def test_wsj_with_sections_missing_says_so(tmp_path):
    for section in ("02", "22", "23"):
        write(tmp_path / f"wsj_{section}00.mrg", WSJ.format(section=section))
    assert "sections missing: 03 04" in prepare_treebank("wsj", tmp_path, tmp_path / "out").source.warnings[0]
    with pytest.raises(RamifyError, match="sections missing"):
        prepare_treebank("wsj", tmp_path, tmp_path / "strict", strict=True)
    (tmp_path / "wsj_2300.mrg").unlink()
    with pytest.raises(RamifyError, match="no tree is left for test"):
        prepare_treebank("wsj", tmp_path, tmp_path / "none")
    write(tmp_path / "copy" / "wsj_0200.mrg", "")
    with pytest.raises(RamifyError, match="has the name of"):
        prepare_treebank("wsj", tmp_path, tmp_path / "none")


def test_in_wsj_an_unclosed_tree_costs_no_other(tmp_path):
    for section in SECTIONS:
        write(tmp_path / f"wsj_{section}00.mrg", "( (S (NN a)\n    (NN b) )\n( (S (NN c) (NN d) )))\n( (S (NN e)) )\n")
    told: list[str] = []
    prepared = prepare_treebank("wsj", tmp_path, tmp_path / "out", on_corrupt=told.append)
    assert [message.partition(":")[0] for message in told[:2]] == ["wsj_0200.mrg, line 1", "wsj_0200.mrg, line 3"]
    dev = prepared.splits["dev"]
    assert (dev.trees_in, len(dev.kept), dev.dropped["corrupt"]) == (3, 1, 2)


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
    assert words_of(tmp_path / "out", "dev", prepared.word_rule)[1] == ("说", "条约", "好")
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


def test_ctb_goes_on_behind_what_is_corrupt(tmp_path):
    broken = CTB.replace("(NN 建设)))", "(NN 建设))")
    for article in (1, 271, 301):
        write(tmp_path / f"chtb_{article:03}.fid", broken.encode("gb18030"))
    told: list[str] = []
    prepared = prepare_treebank("ctb", tmp_path, tmp_path / "out", on_corrupt=told.append)
    assert told[0] == "chtb_001.fid, line 9: the tree begun here is never closed; add the missing ')'."
    assert trees_of(tmp_path / "out", "train") == CTB_TREES[1:]
    assert prepared.splits["dev"].dropped == {"corrupt": 1}


def test_one_bad_byte_does_not_change_the_encoding(tmp_path):
    content = CTB.encode().replace("浦东".encode(), b"\xff\xff")
    assert chinese_encoding(content) == "utf-8"
    assert chinese_encoding(CTB.encode("gb2312").replace("浦东".encode("gb2312"), b"\xff\xff")) == "gb18030"
    for article in (1, 271, 301):
        write(tmp_path / f"chtb_{article:03}.fid", content)
    told: list[str] = []
    prepare_treebank("ctb", tmp_path, tmp_path / "out", on_corrupt=told.append)
    assert told[0].startswith("chtb_001.fid, line 10: this is not UTF-8")
    assert trees_of(tmp_path / "out", "test") == CTB_TREES[1:]


def test_ctb_mark_up_is_optional_and_may_share_a_line():
    def texts(data: bytes) -> list[tuple[int, bytes]]:
        return [(line, text.strip()) for line, text in at_mark_up(data)]

    assert texts(b"<P>\n<S ID=1> ( (A b)) </S>\n<S ID=2>\n( (C\n(D e)))\n</S>") == [
        (2, b"( (A b))"),
        (3, b"( (C\n(D e)))"),
    ]
    assert texts(b"( (A b))\n( (C d))\n") == [(1, b"( (A b))"), (2, b"( (C d))")]
    assert texts(b"<P>\nheading\n</P>\n<P>\n( (A b))\n( (C d))\n</P>") == [(5, b"( (A b))"), (6, b"( (C d))")]
    assert texts(b"<S ID=1>\n( (PU <) (NN b))\n</S>") == [(1, b"( (PU <) (NN b))")]


# One tree a line as in the shared task, two for each language; then what is left, and the words.
SPMRL = {
    "Basque": (
        "(TOP (S (SN (IZE##lem=etxe|AZP=ARR|KAS=ABS## Etxea)) (ADI##lem=joan|ASP=BURU## erori) (PUNT##lem=.## .)))",
        "(TOP (S (SN (IOR##lem=hura## hura)) (BEREIZ##lem=-## -) (ADI##lem=da## da)))",
        "(TOP (S (SN (IZE Etxea)) (ADI erori) (PUNT .)))",
        [("Etxea", "erori"), ("hura", "da")],
    ),
    "French": (
        "( (SENT (NP-SUJ (DET##g=m|s=def## Le) (NC##lem=chat## chat)) (VN (V##m=ind## dort)) (PONCT##s=s## .)))",
        "( (SENT (NP (NPP Paris)) (PONCT-PONCT##s=w## ,) (NP (7##x=y## 7) (NC jours))))",
        "(TOP (SENT (NP-SUJ (DET Le) (NC chat)) (VN (V dort)) (PONCT .)))",
        [("Le", "chat", "dort"), ("Paris", "jours")],
    ),
    "German": (
        "(VROOT (S (PPER-SB##lem=es|case=nom## Es) (VVFIN-HD##lem=gehen## geht)) ($.##lem=--## .))",
        "(VROOT ($LRB##lem=--## -LRB-) (NP (NN##lem=Haus## Haus) ($,##lem=--## ,) (NN Hof)) ($LRB -RRB-))",
        "(TOP (S (PPER-SB Es) (VVFIN-HD geht)) ($. .))",
        [("Es", "geht"), ("Haus", "Hof")],
    ),
    "Hebrew": (
        "(TOP (S (NP (H##_## H) (NN##gen=M|num=S## ILD)) (VP (VB##gen=M## HLK)) (yyDOT##_## yyDOT)))",
        "(TOP (FRAG (yyQUOT yyQUOT) (NP (NNP##gen=F## DNH)) (yyQUOT yyQUOT) (yyCM yyCM) (yyDASH yyDASH) (NN IM)))",
        "(TOP (S (NP (H H) (NN ILD)) (VP (VB HLK)) (yyDOT yyDOT)))",
        [("H", "ILD", "HLK"), ("DNH", "IM")],
    ),
    "Hungarian": (
        "(ROOT (CP (NP-SUBJ (T##SubPOS=f## A) (N##Num=s## kutya)) (V_ (V##lem=ugat## ugat)) (PUNC##lem=.## .)))",
        "(ROOT (CP (N##lem=Pál## Pál) (K##lem=,## ,) (N##lem=Éva## Éva)))",
        "(TOP (CP (NP-SUBJ (T A) (N kutya)) (V_ (V ugat)) (PUNC .)))",
        [("A", "kutya", "ugat"), ("Pál", "Éva")],
    ),
    "Korean": (
        "(TOP (S (NP-SBJ (ncn+jxt##lem=개+는## 개는)) (VP (pvg+ef##lem=짖+다## 짖다) (sf##lem=.## .))))",
        "(TOP (NP (sl##lem='## ') (nq##lem=서울## 서울) (sr##lem='## ') (sp ,) (nq+jcj##lem=부산## 부산과)))",
        "(TOP (S (NP-SBJ (ncn+jxt 개는)) (VP (pvg+ef 짖다) (sf .))))",
        [("개는", "짖다"), ("서울", "부산과")],
    ),
    "Polish": (
        "(wypowiedzenie (zdanie (fw (subst:sg:nom:m2## Pies)) (ff (fin:sg:ter##a=b## szczeka))) (znak (interp## .)))",
        "(wypowiedzenie (zdanie (fw (subst Ala)) (przec (interp:x ,)) (ff (fin ma))))",
        "(TOP (wypowiedzenie (zdanie (fw (subst:sg:nom:m2 Pies)) (ff (fin:sg:ter szczeka))) (znak (interp .))))",
        [("Pies", "szczeka"), ("Ala", "ma")],
    ),
    "Swedish": (
        "( (S (NP-SS (NN##case=nom## Hunden)) (VV##tense=pres## skäller) (IP##_## !) (MAD##_## .)))",
        "( (S (MID ,) (PO##_## Han) (PAD -RRB-) (VV går)))",
        "(TOP (S (NP-SS (NN Hunden)) (VV skäller) (IP !) (MAD .)))",
        [("Hunden", "skäller", "!"), ("Han", "går")],
    ),
}  # fmt: skip


def write_spmrl(folder: Path, language: str, train: str = "train") -> None:
    first, second, *_ = SPMRL[language]
    for split in (train, "dev", "test"):
        name = f"{split}/{split}.{language}.gold.ptb"
        write(folder / f"{language.upper()}_SPMRL" / "gold" / "ptb" / name, f"{first}\n{second}\n")
        pred = name.replace("gold", "pred")
        write(folder / f"{language.upper()}_SPMRL" / "pred" / "ptb" / pred, "( not for us")


@pytest.mark.parametrize("language", SPMRL)
def test_spmrl(tmp_path, language):
    write_spmrl(tmp_path, language, "train5k" if language in ("Hebrew", "Swedish") else "train")
    prepared = prepare_treebank("spmrl", tmp_path / f"{language.upper()}_SPMRL", tmp_path / "out", strict=True)
    _, _, tree, words = SPMRL[language]
    for split in SPLITS:
        assert trees_of(tmp_path / "out", split)[0] == tree
        assert words_of(tmp_path / "out", split, prepared.word_rule) == words
        assert "##" not in (tmp_path / "out" / f"{split}.trees").read_text(encoding="utf-8")
    assert prepared.word_rule == WordRule.from_name(PUNCTUATION_TAGS[language.lower()])
    assert json.loads((tmp_path / "out" / "manifest.json").read_text(encoding="utf-8"))["language"] == language.lower()


def test_spmrl_takes_the_whole_training_set_and_one_language(tmp_path):
    for language in ("French", "Polish"):
        write_spmrl(tmp_path, language)
    write(tmp_path / "FRENCH_SPMRL" / "gold" / "ptb" / "train5k" / "train5k.French.gold.ptb", "( (SENT (NC non)))")
    with pytest.raises(RamifyError, match=r"french, polish; say which with --language"):
        prepare_treebank("spmrl", tmp_path, tmp_path / "out")
    with pytest.raises(RamifyError, match="no german files"):
        prepare_treebank("spmrl", tmp_path, tmp_path / "out", language="German")
    prepared = prepare_treebank("spmrl", tmp_path, tmp_path / "out", language="FRENCH")
    assert len(prepared.splits["train"].kept) == 2
    assert prepared.source.unused[0].endswith("train5k.French.gold.ptb")
    write(tmp_path / "a" / "train.Arabic.gold.ptb", "(S (N a))")
    with pytest.raises(RamifyError, match="arabic is not one of basque"):
        prepare_treebank("spmrl", tmp_path / "a", tmp_path / "none")


def test_features_are_cut_from_tags_and_labels_but_not_from_words():
    line = "(NP-SUJ##x=1## (###a=b## #) (NC##lem=c##d|e## C##) (DET Le) (X ##))"
    assert without_features(line) == "(NP-SUJ (# #) (NC C##) (DET Le) (X ##))"

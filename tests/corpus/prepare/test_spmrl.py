"""The SPMRL shared task, in small files written by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from ramify.corpus.cleaning import WordRule
from ramify.corpus.prepare import prepare_treebank
from ramify.corpus.prepare.spmrl import PUNCTUATION_TAGS, without_features
from ramify.corpus.reading import SPLITS
from ramify.errors import RamifyError
from tests.corpus.prepare.common import manifest_of, sentences_of, trees_of, write

# One tree per line as in the shared task, two for each language; then the prepared trees and the words.
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
        assert sentences_of(tmp_path / "out", split, prepared.word_rule) == words
        assert "##" not in (tmp_path / "out" / f"{split}.trees").read_text(encoding="utf-8")
    assert prepared.word_rule == WordRule.from_name(PUNCTUATION_TAGS[language.lower()])
    assert manifest_of(tmp_path / "out")["language"] == language.lower()


def test_spmrl_takes_the_whole_training_set_and_one_language(tmp_path):
    for language in ("French", "Polish"):
        write_spmrl(tmp_path, language)
    write(tmp_path / "FRENCH_SPMRL" / "gold" / "ptb" / "train5k" / "train5k.French.gold.ptb", "( (SENT (NC non)))")
    with pytest.raises(RamifyError, match=r"french, polish; choose one with --language"):
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

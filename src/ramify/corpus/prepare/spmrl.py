"""The SPMRL shared task (2013, 2014): `.gold.ptb` files, one tree per line, features after `##`, a fixed split."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from ramify.corpus.cleaning import WordRule
from ramify.corpus.prepare.source import Source, file_on_disk, find_files
from ramify.corpus.tree import Parse
from ramify.errors import RamifyError

PUNCTUATION_TAGS = {
    "basque": "PUNT BEREIZ",
    "french": "PONCT 7",
    "german": "$. $, $LRB",
    "hebrew": "yyELPS yyEXCL yyQM yySCLN yyCLN yyLRB yyRRB yyDASH yyQUOT yyDOT yyCM",
    "hungarian": "PUNC K",
    "korean": "sl sr sp sf",
    "polish": "interp",
    "swedish": "MAD MID PAD",
}
"""Tags of leaves that the published results leave out, by language"""

_FILE = re.compile(r"(?P<split>train5k|train|dev|test)\.(?P<language>[a-z]+)\.gold\.ptb", re.IGNORECASE)
# In `(NC##g=m|n=s## chat)` and `(NP-SUJ##...##`: everything after the name of the tag or the label.
_FEATURES = re.compile(r"(\([^\s()]+?)##[^\s()]*", re.ASCII)
_BASE = re.compile(r"[^-:|=]+")


def find_spmrl(path: Path, out: Path, language: str | None) -> Source:
    """The gold files of one language below `path`: those of `language`, or of the only language found."""
    found = find_files(path, _FILE, without=out)
    if not found:
        raise RamifyError(
            f"{path}: contains no files such as train.French.gold.ptb; give the folder with the gold .ptb files."
        )
    languages = sorted({match["language"].lower() for match in found.values()})
    chosen = language.lower() if language else languages[0]
    if not language and len(languages) > 1:
        raise RamifyError(f"{path}: contains {', '.join(languages)}; choose one with --language.")
    if chosen not in languages:
        raise RamifyError(f"{path}: contains no {chosen} files; choose --language from {', '.join(languages)}.")
    if chosen not in PUNCTUATION_TAGS:
        raise RamifyError(
            f"{path}: {chosen} is not one of {', '.join(PUNCTUATION_TAGS)}; "
            "prepare its files as brackets, with --punctuation-tags and --split."
        )
    splits = {m["split"].lower(): file for file, m in found.items() if m["language"].lower() == chosen}
    # The small training set is part of the large one; Hebrew and Swedish have only the small one.
    train = "train" if "train" in splits else "train5k"
    names = {file: str(file.relative_to(path)) for file in splits.values()}
    rule = WordRule(removed=frozenset(PUNCTUATION_TAGS[chosen].split()))
    return Source(
        [
            file_on_disk(splits[split], names[splits[split]], "train" if split == train else split)
            for split in (train, "dev", "test")
            if split in splits
        ],
        word_rule=rule,
        line_filter=without_features,
        tidy=lambda parse: with_plain_punctuation(parse, rule.removed),
        facts={"language": chosen},
        unused=[names[splits["train5k"]]] if train == "train" and "train5k" in splits else [],
    )


def without_features(line: str) -> str:
    """`line` with every `TAG##features##` cut to `TAG`."""
    return _FEATURES.sub(r"\1", line)


def with_plain_punctuation(parse: Parse, punctuation: frozenset[str]) -> Parse:
    """Punctuation whose tag has features or a function (`interp:sg`, `PONCT-MOD`) keeps only the tag."""
    heads = [match.group() if (match := _BASE.match(tag)) else tag for tag in parse.tags]
    tags = tuple(head if head in punctuation else tag for head, tag in zip(heads, parse.tags, strict=True))
    return parse if tags == parse.tags else replace(parse, tags=tags)

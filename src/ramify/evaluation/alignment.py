"""Trees of any other system, or in the JSON or CoNLL-U of `ramify parse`, aligned with the gold sentences by words.

The trees may have labels or not, as in `((the dog) barks)`, may be binary or not, and may contain punctuation or not.
Words match regardless of case and of the spelling of brackets and quotes, `N` matches any number, and `<unk>` any word.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np

from ramify.corpus.brackets import read_brackets
from ramify.corpus.cleaning import has_no_letters, keep_leaves, normalise
from ramify.corpus.conllu import read_conllu
from ramify.corpus.lines import LineReader, open_input, read_text_lines
from ramify.corpus.tree import UNTAGGED, Parse, make_parse
from ramify.corpus.vocabulary import UNKNOWN
from ramify.errors import RamifyError
from ramify.evaluation.gold import SHORTEST, Gold, Prediction, unlabelled_parse

_SPELLINGS = {
    "-lrb-": "(", "-rrb-": ")", "-lsb-": "[", "-rsb-": "]", "-lcb-": "{", "-rcb-": "}",
    "``": '"', "''": '"', "“": '"', "”": '"', "\\/": "/", "\\*": "*",
}  # fmt: skip
_SPELLING = re.compile("|".join(map(re.escape, _SPELLINGS)))


class _MisfitError(Exception):
    """Trees that do not match the gold sentences.

    The number of matching trees, and of matching words in the next tree, show which way of reading is right.
    """

    def __init__(self, message: str, fitting: int, words: int = 0) -> None:
        super().__init__(message)
        self.fitting = fitting, words


@dataclass(frozen=True)
class ReadTree:
    """A tree of a file."""

    parse: Parse
    line: int
    """Its last line"""


def read_prediction(file: str | Path, gold: Gold, system: str | None = None) -> Prediction:
    """The trees of a file, one for each gold sentence, or for each with words, or with at least two words."""
    path = Path(file)
    misfits = []
    for trees in possible_readings(path):
        try:
            return _align(trees, gold, path, system or str(path))
        except _MisfitError as misfit:
            misfits.append(misfit)
    raise RamifyError(str(max(misfits, key=lambda misfit: misfit.fitting)))


def possible_readings(path: Path) -> list[Iterator[ReadTree]]:
    """The trees of a file, read in each possible way: with and without labels, as JSON, or from CoNLL-U."""
    with open_input(path) as raw:
        reader = LineReader(raw, str(path))
        kind = reader.guessed_kind()
        lines = list(read_text_lines(reader, str(path)))
    if kind == "conllu":
        return [_conllu_trees(lines, str(path))]
    if next((line for line in lines if not line.isspace()), "").lstrip().startswith("{"):
        return [_json_trees(lines, str(path))]
    # Without labels, `(the dog)` looks like a leaf, so only a comparison of words shows which reading is right.
    return [_trees(lines, str(path), labelled) for labelled in (True, False)]


def _trees(lines: Iterable[str], source: str, labelled: bool) -> Iterator[ReadTree]:
    line_number = 0

    def counted() -> Iterator[str]:
        nonlocal line_number
        for line in lines:
            line_number += 1
            yield line if labelled else line.replace("(", "(X ")

    # The reader does not read another line before it has yielded the tree.
    for parse in read_brackets(counted(), source):
        yield ReadTree(parse if labelled else _without_labels(parse), line_number)


def _json_trees(lines: Iterable[str], source: str) -> Iterator[ReadTree]:
    """Trees in the format of `ramify parse --format json`; a blank line of text has no tree."""
    for number, line in enumerate(lines, start=1):
        if line.isspace():
            continue
        try:
            parse = _parse_of(json.loads(line))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise RamifyError(
                f"{source}, line {number}: this line is not in the format of ramify parse --format json; check it."
            ) from error
        if len(parse):
            yield ReadTree(parse, number)


def _conllu_trees(lines: Iterable[str], source: str) -> Iterator[ReadTree]:
    """Trees from the comments that Stanza and `ramify parse --format conllu` write."""
    for sentence in read_conllu(lines, source):
        parse = sentence.constituency()
        if parse is None:
            raise RamifyError(
                f"{sentence.where}: the comment '# constituency = (ROOT ...)' with the tree is missing; add it."
            )
        yield ReadTree(parse, sentence.lines[-1])


def _parse_of(record: Any) -> Parse:
    """The tree of a record; raises ValueError, KeyError or TypeError if it is not a tree."""
    words, tags = record["tokens"], record.get("tags") or [UNTAGGED] * len(record["tokens"])
    if not all(isinstance(text, str) and text for text in (*words, *tags)) or len(words) != len(tags):
        raise ValueError("no tokens")
    # A sentence without a parse has no structure.
    found = [] if record.get("failure") else [(i, j, label) for i, j, label in record["constituents"]]
    for i, j, label in found:
        if not (type(i) is int and type(j) is int and 0 <= i < j <= len(words) and isinstance(label, str)):
            raise ValueError("no constituent")
    parse = make_parse(words, tags, [(i, j) for i, j, _ in found], [label for *_, label in found])
    ends = [len(words)]
    for start, end in parse.spans.tolist():
        while ends[-1] <= start:
            ends.pop()
        if end > ends[-1]:
            raise ValueError("crossing constituents")
        ends.append(end)
    return parse


def _without_labels(parse: Parse) -> Parse:
    """Unlabelled brackets; a bracket directly inside another, as in `((the dog))`, means nothing without a label."""
    spans = list(dict.fromkeys(map(tuple, parse.spans.tolist())))
    return unlabelled_parse(parse.words, np.array(spans, dtype=np.int32).reshape(-1, 2))


def _align(trees: Iterator[ReadTree], gold: Gold, path: Path, system: str) -> Prediction:
    try:
        found = list(trees)
    except RamifyError as error:
        raise _MisfitError(str(error), -1) from error
    places = predicted_sentences(len(found), gold)
    count = (
        f"the file has {len(found)} trees, but {gold.corpus.source} has {len(gold.corpus)}, "
        f"{len(gold.parses)} of them to be scored"
    )
    whole: dict[int, tuple[Parse, Parse]] = {}
    words: dict[int, Parse] = {}
    for number, (tree, place) in enumerate(zip(found, places, strict=False)):
        target = gold.corpus.parses[place]
        is_word = gold.rule.word_mask(target.tags)
        try:
            keep, present = align_tokens(tree.parse.words, target.words, is_word)
        except ValueError as error:
            also = "" if len(found) == len(places) else f", and {count}"
            raise _MisfitError(
                f"{path}, line {tree.line}: {error} (tree {place + 1} of {gold.corpus.source}){also}; "
                "give trees of the same sentences in the same order.",
                number,
                _words_in_common(tree.parse.words, target.words),
            ) from error
        predicted = keep_leaves(tree.parse, keep)
        whole[place] = keep_leaves(target, present), predicted
        words[place] = keep_leaves(predicted, list(compress(is_word, present)))
    if len(found) != len(places):
        raise _MisfitError(f"{path}: {count}; give one tree for each.", len(found))
    return Prediction(system, [words[place] for place in gold.places], whole=list(whole.values()))


def predicted_sentences(predicted: int, gold: Gold) -> Sequence[int]:
    """The sentences to which these predictions belong: all, those with words, with two words, or the scored ones."""
    words = [sum(gold.rule.word_mask(parse.tags)) for parse in gold.corpus.parses]
    # Each of these contains the next, so their sizes identify them.
    choices: list[Sequence[int]] = [
        range(len(words)),
        [place for place, length in enumerate(words) if length > 0],
        [place for place, length in enumerate(words) if length >= SHORTEST],
        gold.places,
    ]
    return min(choices, key=lambda places: abs(len(places) - predicted))


def align_tokens(
    predicted: Sequence[str], gold: Sequence[str], is_word: Sequence[bool]
) -> tuple[Sequence[bool], Sequence[bool]]:
    """The predicted and gold tokens that both sentences have, which must include every gold word.

    Raises ValueError with the first difference.
    """
    ours, theirs = [comparison_form(word) for word in gold], [comparison_form(word) for word in predicted]
    for present in (is_word, [True] * len(ours)):
        if _same_words(theirs, list(compress(ours, present))):
            return [True] * len(theirs), present
    keep: list[bool] = []
    found: list[bool] = []
    while len(found) < len(ours) or len(keep) < len(theirs):
        upcoming = theirs[len(keep)] if len(keep) < len(theirs) else None
        expected = ours[len(found)] if len(found) < len(ours) else None
        if upcoming is not None and expected is not None and _same(upcoming, expected):
            keep.append(True)
            found.append(True)
        elif expected is not None and not is_word[len(found)]:
            found.append(False)
        elif upcoming is not None and has_no_letters(upcoming):
            keep.append(False)
        elif upcoming is None:
            raise ValueError(f"it ends before the gold word {gold[len(found)]!r}")
        elif expected is None:
            raise ValueError(f"word {len(keep) + 1}, {predicted[len(keep)]!r}, is not in the gold sentence")
        else:
            raise ValueError(
                f"word {len(keep) + 1} is {predicted[len(keep)]!r}, but the gold sentence has {gold[len(found)]!r}"
            )
    return keep, found


def _words_in_common(predicted: Iterable[str], gold: Iterable[str]) -> int:
    ours, theirs = (Counter(map(comparison_form, words)) for words in (gold, predicted))
    return (ours & theirs).total()


def _same_words(predicted: Sequence[str], gold: Sequence[str]) -> bool:
    return len(predicted) == len(gold) and all(map(_same, predicted, gold))


def _same(predicted: str, gold: str) -> bool:
    return predicted in (gold, UNKNOWN)


def comparison_form(word: str) -> str:
    """`word` in the form used for comparison: lower case, numbers as `n`, brackets, quotes, slashes in one spelling."""
    return normalise(_SPELLING.sub(lambda found: _SPELLINGS[found.group()], word.lower())).lower()

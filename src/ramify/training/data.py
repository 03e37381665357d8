"""Training and dev data: read, cleaned, split."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from ramify.corpus.cleaning import NormalForm, WordRule, warn_about_absent_tags
from ramify.corpus.guessing import Kind
from ramify.corpus.prepare.manifest import word_rule_for
from ramify.corpus.punctuation import Punctuation
from ramify.corpus.reading import (
    TEXT_WORDS,
    Corpus,
    corpus_from_sentences,
    guess_file_kind,
    learn_splitter,
    read_sentences,
    split_paths,
)
from ramify.corpus.spelling import Spelling
from ramify.corpus.table_rows import TABLES
from ramify.corpus.text import TextRules
from ramify.corpus.tokenising import script_without_spaces
from ramify.corpus.vocabulary import UNKNOWN, UnknownCount, Vocabulary, count_words
from ramify.errors import RamifyError
from ramify.storage.model_files import LEARNT_FROM_TEXT
from ramify.training.settings import Settings

HELD_OUT_EVERY = 20
"""Without a dev set, every sentence with a number divisible by this is held out."""
_SAMPLED_SENTENCES = 1000
_UNSPACED_SHARE = 0.2


@dataclass(frozen=True)
class Data:
    """Sentences for training and for choosing the epoch, both as words."""

    train: Corpus
    dev: Corpus
    word_rule: WordRule | None
    """Which leaves of trees are words; None if there were no trees"""
    text_rules: TextRules
    vocabulary: Vocabulary
    held_out: bool
    """Whether the dev set was taken from the training data"""
    dropped: Mapping[str, int]
    """Number of sentences left out of the training data, by reason, including held-out sentences"""
    spelling: Spelling
    """Spelling model of all words of the training text, including those outside the vocabulary"""
    min_count: int

    @cached_property
    def unknown(self) -> dict[str, UnknownCount]:
        """Unknown words in the training and dev sentences."""
        return {
            name: self.vocabulary.count_unknown(parse.words for parse in corpus.parses)
            for name, corpus in (("train", self.train), ("dev", self.dev))
        }

    def describe(self) -> dict[str, Any]:
        """As JSON values, for the config of a model."""
        return {
            "words": LEARNT_FROM_TEXT if self.word_rule is None else str(self.word_rule),
            "text": self.text_rules.as_record(),
            "data": {
                name: {
                    "source": Path(corpus.source).name,
                    "sha256": corpus.checksum,
                    "sentences": len(corpus),
                    "dropped": dict(corpus.dropped),
                }
                for name, corpus in (("train", self.train), ("dev", self.dev))
            },
            "unknown_words": {
                "min_count": self.min_count,
                **{name: asdict(count) for name, count in self.unknown.items()},
            },
        }


def prepare(data: Any, dev: Any, settings: Settings) -> Data:
    """Read, clean and split the data; words are counted before sentences are dropped because of their length."""
    kind, normal_form = cast("Kind", settings.input), cast("NormalForm", settings.normal_form)
    rules = TextRules(settings.tokenise, Punctuation.named(settings.punctuation), normal_form)
    if not isinstance(data, str | Path | Corpus):
        if settings.split_sentences or settings.column or settings.input not in ("auto", "text"):
            raise RamifyError(
                "The data is a list of sentences, to which split_sentences, column and input do not apply; leave them "
                "out."
            )
        data = corpus_from_sentences(data, rules)
    if not isinstance(data, Corpus):
        folder = split_paths(data) if Path(data).is_dir() else {}
        if dev is None and "dev" in folder:
            dev = folder["dev"]
        split = "train" if "train" in folder else None
        if settings.split_sentences:
            if Path(data).exists() and not (Path(data).is_file() or Path(data).is_dir()):
                raise RamifyError(
                    f"{data}: --split-sentences must read the data twice, which needs a regular file; save it to "
                    "one first."
                )
            rules = replace(rules, splitter=learn_splitter(data, split, kind, settings.column))
        data = read_sentences(data, kind, split, rules, settings.column)
    word_rule: WordRule | None = None
    if data.has_trees:
        word_rule, punctuation = _rules_of_trees(data, settings)
        rules = replace(rules, punctuation=punctuation)
    else:
        _check_text(data, settings)
        if data.kind == "conllu" and not rules.punctuation.keep:
            rules = replace(rules, punctuation=Punctuation.from_trees(data.parses, TEXT_WORDS))
    train = data.words_only(word_rule or TEXT_WORDS)
    dropped_before = train.dropped
    held_out = dev is None
    if dev is None:
        every = max(1, min(HELD_OUT_EVERY, len(train)))  # if there are fewer sentences, the last one
        kept = [parse for i, parse in enumerate(train.parses, start=1) if i % every]
        dev_set, train = replace(train, parses=train.parses[every - 1 :: every]), replace(train, parses=kept)
    else:
        if not isinstance(dev, str | Path | Corpus):
            dev = corpus_from_sentences(dev, rules, "dev sentences")
        dev = dev if isinstance(dev, Corpus) else _read_dev(dev, kind, rules, settings.column)
        rule_of_dev = (word_rule or word_rule_for(dev)) if dev.has_trees else TEXT_WORDS
        dev_set = dev.words_only(rule_of_dev)
    counts = count_words((p.words for p in train.parses), normal_form)
    min_count = settings.min_count or _default_min_count(counts, settings.vocabulary, train.has_trees)
    vocabulary = Vocabulary.from_counts(counts, settings.vocabulary, normal_form, min_count)
    if len(vocabulary) == 1 and min_count > 1:
        raise RamifyError(f"{train.source}: no word occurs {min_count} times or more; lower min_count.")
    spelling = Spelling.learnt_from(word for word, _ in counts.most_common() if word != UNKNOWN)
    train, dev_set = train.of_lengths(2, settings.max_length), dev_set.of_lengths(2)
    _check_lengths(train, dev_set, held_out, settings.max_length)
    dropped = Counter(train.dropped)
    if held_out:
        dropped.update(dev_set.dropped)
        dropped.subtract(dropped_before)  # counted in both
    return Data(train, dev_set, word_rule, rules, vocabulary, held_out, +dropped, spelling, min_count)


def _check_lengths(train: Corpus, dev: Corpus, held_out: bool, longest: int) -> None:
    """Refuse data with too few sentences that have a tree."""
    if not train.parses and held_out and any(len(parse) <= longest for parse in dev.parses):
        raise RamifyError(
            f"{train.source}: all sentences of 2 to {longest} words are held out as the dev set, and none is "
            "left to train on; give more sentences, or a dev set."
        )
    if not train.parses:
        raise RamifyError(
            f"{train.source}: no training sentence has 2 to {longest} words; "
            "give more sentences, or another max_length."
        )
    if not dev.parses and held_out:
        raise RamifyError(
            f"{dev.source}: no sentence held out as the dev set has 2 words or more; give more sentences, or a dev set."
        )
    if not dev.parses:
        raise RamifyError(f"{dev.source}: no dev sentence has 2 words or more; give longer sentences.")


def _default_min_count(counts: Counter[str], vocabulary: int, has_trees: bool) -> int:
    """1, as published for treebanks; 2 for text in which `<unk>` would not occur otherwise and could not be learnt."""
    keeps_every_word = UNKNOWN not in counts and len(counts) <= vocabulary
    return 2 if not has_trees and keeps_every_word and max(counts.values(), default=0) > 1 else 1


def _rules_of_trees(data: Corpus, settings: Settings) -> tuple[WordRule, Punctuation]:
    if settings.split_sentences:
        raise RamifyError(f"{data.source}: contains trees, already split into sentences; leave out --split-sentences.")
    if settings.punctuation != "remove":
        raise RamifyError(
            f"{data.source}: contains trees, whose tags decide what is punctuation; leave out the setting punctuation, "
            "and choose the words with the setting words."
        )
    if settings.words == "auto":
        rule = word_rule_for(data)
    else:
        rule = WordRule.from_name(settings.words)
        warn_about_absent_tags(rule, data.parses, data.source)
    return rule, Punctuation.from_trees(data.parses, rule)


def _read_dev(dev: str | Path, kind: Kind, rules: TextRules, column: str | None) -> Corpus:
    """The dev set, which may have trees even if the training sentences are rows of a table."""
    is_table = guess_file_kind(Path(dev)) in TABLES if kind == "auto" and Path(dev).is_file() else True
    return read_sentences(dev, kind, text_rules=rules, column=column if is_table else None)


def _check_text(data: Corpus, settings: Settings) -> None:
    if settings.words != "auto":
        because = "CoNLL-U, where UPOS decides" if data.kind == "conllu" else "text, where no tags decide"
        raise RamifyError(f"{data.source}: contains {because} which tokens are words; leave out the setting words.")
    if data.kind == "conllu" and settings.split_sentences:
        raise RamifyError(
            f"{data.source}: contains CoNLL-U, already split into sentences; leave out --split-sentences."
        )
    seen = data.parses[:_SAMPLED_SENTENCES]
    scripts = [script for parse in seen if (script := script_without_spaces(parse.words))]
    if len(scripts) > _UNSPACED_SHARE * len(seen):
        raise RamifyError(
            f"{data.source}: this looks like {scripts[0]} without spaces between words; "
            "split it into words first, with a segmenter for that language."
        )

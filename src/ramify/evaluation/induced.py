"""Describes the nonterminals of a system by the words that they cover and the gold labels of their constituents.

It follows the analysis of induced labels in Yang et al. 2021 and the table in their appendix: nonterminals by use,
their constituents, the nonterminals of each gold label, and the subtypes into which they divide it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import log2

from ramify.corpus.cleaning import normalise, replace_numbers
from ramify.corpus.tree import UNTAGGED, Parse
from ramify.errors import RamifyError
from ramify.evaluation.labels import shared_constituents
from ramify.evaluation.subtypes import Subtype, subtypes_of

LONGEST_EXAMPLE = 8
"""Longer constituents are counted, but not shown as examples, because they rarely occur twice in a text."""

Counts = dict[str, int]


@dataclass
class Phrases:
    """The constituents of one nonterminal; first and last words are normalised, as a grammar sees them."""

    count: int = 0
    first_words: Counter[str] = field(default_factory=Counter)
    last_words: Counter[str] = field(default_factory=Counter)
    constituents: Counter[tuple[str, ...]] = field(default_factory=Counter)
    """Phrases of at most `LONGEST_EXAMPLE` words, as written"""

    def add(self, words: Sequence[str], normal: Sequence[str]) -> None:
        """Count a constituent, given as written and in normal form."""
        self.count += 1
        self.first_words[normal[0]] += 1
        self.last_words[normal[-1]] += 1
        if len(words) <= LONGEST_EXAMPLE:
            self.constituents[tuple(words)] += 1

    def typical(self, count: int = 10) -> list[tuple[str, int]]:
        """The most frequent constituents; among equally frequent ones, those with the most common first and last words.

        Numbers are `N`; capitals stay, because they show where a sentence begins.
        """
        found, typicality = Counter[str](), {}
        for words, times in self.constituents.items():
            shown = " ".join(map(replace_numbers, words))
            found[shown] += times
            typicality[shown] = self.first_words[normalise(words[0])] * self.last_words[normalise(words[-1])]
        order = sorted(found, key=lambda shown: (-found[shown], -typicality[shown], len(shown), shown))
        return [(shown, found[shown]) for shown in order[:count]]


@dataclass
class Induced:
    """The symbols of a system as they were predicted, counted over any number of sentences."""

    phrases: dict[str, Phrases] = field(default_factory=lambda: defaultdict(Phrases))
    """By nonterminal: spans of two words or more, including the whole sentence"""
    tags: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """By preterminal, its words in normal form"""
    tag_alignment: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """By preterminal the gold tags of its words"""
    first_words: dict[tuple[str, str], Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """By gold label and nonterminal the first words of correctly predicted constituents"""
    sentences: int = 0
    has_gold: bool = False

    def add(self, predicted: Parse, gold: Parse | None = None) -> None:
        """Count a sentence and compare it with its gold tree, if there is one, under the convention `tn`.

        Only spans of two words or more except the whole sentence are compared. In a unary chain, the topmost label
        counts, without function tags.
        """
        self.sentences += 1
        words = predicted.words
        normal = [normalise(word) for word in predicted.words]
        for (start, end), label in zip(predicted.spans.tolist(), predicted.labels, strict=True):
            if end - start > 1:
                self.phrases[label].add(words[start:end], normal[start:end])
        for tag, word in zip(predicted.tags, normal, strict=True):
            self.tags[tag][word] += 1
        if gold is None:
            return
        if len(gold) != len(predicted):
            raise RamifyError(
                f"Sentence {self.sentences} has {len(predicted)} words, but its gold tree has {len(gold)}; "
                "give trees of the same sentences."
            )
        self.has_gold = True
        for (start, _), truth, label in shared_constituents(gold, predicted):
            self.first_words[truth, label][normal[start]] += 1
        for tag, truth in zip(predicted.tags, gold.tags, strict=True):
            if truth != UNTAGGED:
                self.tag_alignment[tag][truth] += 1

    @property
    def usage(self) -> Counts:
        """The number of occurrences of each predicted nonterminal, the most frequent first."""
        return most_frequent({label: phrases.count for label, phrases in self.phrases.items()})

    @property
    def tag_usage(self) -> Counts:
        """The number of occurrences of each predicted preterminal, the most frequent first."""
        return most_frequent({tag: words.total() for tag, words in self.tags.items()})

    @property
    def alignment(self) -> dict[str, Counts]:
        """For each gold label its correctly predicted constituents by nonterminal, the most frequent first."""
        table: dict[str, Counts] = {}
        for (label, nonterminal), words in self.first_words.items():
            table.setdefault(label, {})[nonterminal] = words.total()
        sizes = {label: sum(row.values()) for label, row in table.items()}
        return {label: most_frequent(table[label]) for label in most_frequent(sizes)}

    @property
    def gold_labels(self) -> dict[str, Counts]:
        """The same table by nonterminal: for each the gold labels of its correctly predicted constituents."""
        return {nonterminal: most_frequent(row) for nonterminal, row in transpose_alignment(self.alignment).items()}

    @property
    def purity(self) -> float | None:
        """The purity of the alignment; None if nothing is aligned."""
        return purity(self.alignment) if self.first_words else None

    @property
    def entropy(self) -> float | None:
        """H(gold label | nonterminal) of the alignment; None if nothing is aligned."""
        return label_entropy(self.alignment) if self.first_words else None

    def subtypes(self, words: int = 5) -> dict[str, list[Subtype]]:
        """For each gold label that several nonterminals share: these, with the first words that distinguish them."""
        by_label: dict[str, dict[str, Counter[str]]] = {label: {} for label in self.alignment}
        for (label, nonterminal), found in self.first_words.items():
            by_label[label][nonterminal] = found
        divided = {label: subtypes_of(found, words) for label, found in by_label.items()}
        return {label: subtypes for label, subtypes in divided.items() if len(subtypes) > 1}

    def as_record(self) -> dict[str, object]:
        """As JSON values, the most frequent first everywhere."""
        return {
            "usage": self.usage,
            "alignment": self.alignment,
            "purity": self.purity,
            "entropy": self.entropy,
            "subtypes": {label: [each.as_record() for each in found] for label, found in self.subtypes().items()},
        }


def count_induced(predicted: Iterable[Parse], gold: Iterable[Parse] | None = None) -> Induced:
    """The symbols of predicted parses and, given gold parses of the same words, their alignment with gold labels.

    Both may be streams: memory grows with the number of different phrases, not with the number of sentences.
    """
    induced = Induced()
    if gold is None:
        for parse in predicted:
            induced.add(parse)
    else:
        for parse, truth in zip(predicted, gold, strict=True):
            induced.add(parse, truth)
    return induced


def transpose_alignment(alignment: Mapping[str, Mapping[str, int]]) -> dict[str, Counts]:
    """The table of an alignment, rows and columns exchanged."""
    table: dict[str, Counts] = {}
    for label, row in alignment.items():
        for nonterminal, count in row.items():
            table.setdefault(nonterminal, {})[label] = count
    return table


def purity(alignment: Mapping[str, Mapping[str, int]]) -> float:
    """The share, from 0 to 1, of correct constituents that have the most frequent label of their nonterminal."""
    rows = transpose_alignment(alignment).values()
    return sum(max(row.values()) for row in rows) / _total(rows)


def label_entropy(alignment: Mapping[str, Mapping[str, int]]) -> float:
    """H(gold label | nonterminal) of correctly predicted constituents, in bits: 0 if nonterminals determine labels."""
    rows = transpose_alignment(alignment).values()
    uncertainty = sum(-count * log2(count / sum(row.values())) for row in rows for count in row.values())
    return abs(uncertainty) / _total(rows)  # never -0.0


def most_frequent(counts: Mapping[str, int], count: int | None = None) -> Counts:
    """The largest counts first, equal ones by name, so that the same text gives the same order."""
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:count])


def _total(rows: Iterable[Counts]) -> int:
    return sum(sum(row.values()) for row in rows)

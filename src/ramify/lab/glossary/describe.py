"""A glossary from a parser and, if there is one, a text that it parses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

from ramify.corpus.cleaning import WordRule, keep_leaves
from ramify.corpus.guessing import Kind
from ramify.corpus.prepare.manifest import word_rule_for
from ramify.corpus.reading import guess_file_kind, read_sentences
from ramify.errors import RamifyError
from ramify.evaluation.induced import Induced, most_frequent
from ramify.lab.glossary.glossary import (
    Child,
    Counted,
    Glossary,
    Nonterminal,
    Order,
    Preterminal,
    Probable,
    RuleInWords,
    Text,
)
from ramify.models.delexicalised import delexicalise
from ramify.models.lexicalised import LexicalisedGrammar
from ramify.models.rule_lookup import RuleLookup, strongest_words
from ramify.parser import Analysis, Parser

WORDS_IN_RULES = 3
"""How many of its most probable words name a preterminal in a rule"""
NEGLIGIBLE = 0.01
"""A word with less than this share of the probability of a preterminal's best one says nothing about it."""

RULES_FOR_A_PAIR = (2, 32, 512)
"""How many rules are looked at for each pair of words, the next number where the one before was too small"""


@dataclass(frozen=True)
class Extent:
    """How much is shown."""

    symbols: int = 30
    """Of either kind"""
    examples: int = 10
    words: int = 8
    rules: int = 5


def rule_for_trees(parser: Parser, file: Path, kind: Kind) -> WordRule | None:
    """Which leaves of trees are words: as in the parser's training or, as when trees are scored, a guess from the file.

    None for text and CoNLL-U, and for a pipe, which cannot be read twice.
    """
    if parser.word_rule is not None or not file.is_file():
        return parser.word_rule
    found = guess_file_kind(file) if kind == "auto" else kind
    return word_rule_for(read_sentences(file, "brackets")) if found == "brackets" else None


def count_text(source: str, analyses: Iterable[Analysis]) -> Text:
    """The symbols of a text from its analyses, with gold labels where the sentences were read from trees.

    Sentences of one word have no constituents and are left out, as are those without a parse.
    """
    induced, not_derived = Induced(), 0
    for analysis in analyses:
        sentence = analysis.sentence
        words = sum(sentence.is_word)
        if analysis.failure is not None:
            not_derived += 1
        elif words > 1:
            gold = None if sentence.tree is None else keep_leaves(sentence.tree, sentence.is_word)
            induced.add(keep_leaves(analysis.parse, sentence.is_word), gold)
    if not induced.sentences:
        raise RamifyError(f"{source}: the grammar derives no sentence of two or more words; give another text.")
    return Text(source, induced, not_derived)


def describe(
    parser: Parser,
    model: str,
    text: Text | None = None,
    extent: Extent = Extent(),  # noqa: B008
    on_symbol: Callable[[], None] = lambda: None,
) -> Glossary:
    """What is known about the most used symbols."""
    writer = _Writer(parser, text, extent)
    order, use, tag_use, expected_words = _use(parser, writer.rules, text)
    nonterminals = []
    for name in _chosen(parser.labels, use, extent.symbols):
        nonterminals.append(writer.nonterminal(name, use.get(name)))
        on_symbol()
    return Glossary(
        model=model,
        order=order,
        sizes=(len(parser.labels), len(parser.tags)),
        nonterminals=nonterminals,
        preterminals=[
            writer.preterminal(name, tag_use.get(name)) for name in _chosen(parser.tags, tag_use, extent.symbols)
        ],
        subtypes={} if text is None else text.induced.subtypes(extent.words),
        text=text,
        expected_words=expected_words,
        compound=writer.grammar.latent > 0,
        lexicalised=writer.lexicalised is not None,
    )


Shares = dict[str, float]
"""Of each symbol among those of its kind; empty where that is not known"""


def _use(parser: Parser, rules: RuleLookup, text: Text | None) -> tuple[Order, Shares, Shares, float | None]:
    """Of nonterminals and preterminals, in the text or, without one, in a sentence drawn from the grammar.

    Last comes the expected number of words of such a sentence.
    """
    if text is not None:
        return "use", _shares(text.induced.usage), _shares(text.induced.tag_usage), None
    expected = rules.expected_uses()
    if expected is None:
        return "number", {}, {}, None
    nonterminals, preterminals = (
        _shares(dict(zip(names, uses.tolist(), strict=True)))
        for names, uses in zip((parser.labels, parser.tags), expected, strict=True)
    )
    return "expected use", nonterminals, preterminals, float(expected.preterminals.sum())


def _shares(usage: Mapping[str, float]) -> Shares:
    total = sum(usage.values())
    return {name: count / total for name, count in usage.items()}


def _chosen(names: Sequence[str], shares: Shares, count: int) -> list[str]:
    """The most used symbols; without shares the first ones."""
    if not shares:
        return list(names[:count])
    place = {name: number for number, name in enumerate(names)}
    return sorted(shares, key=lambda name: (-shares[name], place[name]))[:count]


class _Writer:
    """Describes one symbol at a time; what symbols have in common is computed once."""

    def __init__(self, parser: Parser, text: Text | None, extent: Extent) -> None:
        self._text, self._extent, self._vocabulary = text, extent, parser.vocabulary.words
        # The rules of a lexicalised grammar are described on average over head words.
        lexicalised = parser.generative if isinstance(parser.generative, LexicalisedGrammar) else None
        self.lexicalised = None if lexicalised is None else delexicalise(lexicalised)
        self.grammar = parser.grammar if self.lexicalised is None else self.lexicalised.grammar
        self.rules = parser.rules if self.lexicalised is None else RuleLookup(self.grammar)
        self._names = (*parser.labels, *parser.tags)
        self._number = {name: number for number, name in enumerate(self._names)}
        self._n = len(parser.labels)
        self._words: list[Probable] = [
            tuple((self._vocabulary[word], p) for word, p in pairs if p >= NEGLIGIBLE * pairs[0][1])
            for pairs in strongest_words(self.grammar, max(extent.words, WORDS_IN_RULES))
        ]
        best = [words[0][1] for words in self._words]
        self._best_word = torch.tensor([0.0] * self._n + best, device=parser.device)
        self._gold_labels = text.induced.gold_labels if text else {}
        self._child = cache(self._named_child)

    def nonterminal(self, name: str, share: float | None) -> Nonterminal:
        number, extent, lexicalised = self._number[name], self._extent, self.lexicalised
        found = self._text.induced.phrases.get(name) if self._text else None
        left, right = ((), ()) if lexicalised is None else map(self._likeliest, lexicalised.dependents[number])
        strongest = self.rules.strongest(number, extent.rules)
        return Nonterminal(
            name=name,
            number=number,
            share=share,
            count=found.count if found else None,
            gold=tuple(self._gold_labels.get(name, {}).items()),
            phrases=tuple(found.typical(extent.examples)) if found else (),
            pairs=() if found else self._pairs(number, extent.examples),
            first_words=_first(found.first_words, extent.words) if found else (),
            last_words=_first(found.last_words, extent.words) if found else (),
            rules=tuple(RuleInWords(self._child(r.left), self._child(r.right), r.probability) for r in strongest),
            heads=() if lexicalised is None else self._likeliest(lexicalised.heads[number]),
            dependents=(left, right),
        )

    def preterminal(self, name: str, share: float | None) -> Preterminal:
        number = self._number[name]
        induced = self._text.induced if self._text else None
        return Preterminal(
            name=name,
            number=number,
            share=share,
            count=induced.tags[name].total() if induced else None,
            gold=_first(induced.tag_alignment.get(name, {})) if induced else (),
            words=self._words[number - self._n][: self._extent.words],
        )

    def _likeliest(self, probabilities: Tensor) -> Probable:
        """The most probable words of a distribution (q,)."""
        top = probabilities.topk(min(self._extent.words, len(probabilities)))
        pairs = zip(top.indices.tolist(), top.values.tolist(), strict=True)
        best = float(top.values[0])
        return tuple((self._vocabulary[word], p) for word, p in pairs if p > 0 and p >= NEGLIGIBLE * best)

    def _named_child(self, number: int) -> Child:
        name = self._names[number]
        if number >= self._n:
            return Child(name, tuple(word for word, _ in self._words[number - self._n][:WORDS_IN_RULES]))
        found = self._text.induced.phrases.get(name) if self._text else None
        examples = (found.typical(1) if found else None) or self._pairs(number, 1)
        return Child(name, example=examples[0][0] if examples else None)

    def _pairs(self, number: int, count: int) -> Probable:
        """The most probable ways to be two words, each preterminal standing for its most probable word.

        Preterminals may share that word, and rules then a pair: more rules are looked at until there are enough pairs.
        """
        found: dict[str, float] = {}
        for most in (times * count for times in RULES_FOR_A_PAIR):
            rules = self.rules.strongest(number, most, self._best_word)
            for rule in rules:
                phrase = " ".join(self._words[child - self._n][0][0] for child in (rule.left, rule.right))
                found.setdefault(phrase, rule.probability)
            if len(found) >= count or len(rules) < most:
                break
        return tuple(found.items())[:count]


def _first(counts: Mapping[str, int], count: int | None = None) -> Counted:
    return tuple(most_frequent(counts, count).items())

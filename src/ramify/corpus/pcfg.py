"""A probabilistic context-free grammar in Chomsky normal form that can be sampled."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ramify.corpus.tree import Parse
from ramify.errors import RamifyError, shortened

if TYPE_CHECKING:
    import nltk

TOLERANCE = 1e-9
MAX_ATTEMPTS = 10_000
WORD_SUFFIX = "_word"


class _Choice(NamedTuple):
    """The right sides of one left side, with their cumulative probabilities."""

    options: Sequence[tuple[str, ...]]
    cumulative: Sequence[float]

    def draw(self, rng: np.random.Generator) -> tuple[str, ...]:
        index = bisect_right(self.cumulative, rng.random())
        return self.options[min(index, len(self.options) - 1)]  # the total may be slightly below one


@dataclass(frozen=True)
class BinaryGrammar:
    """Start rules `S -> A`, binary rules `A -> B C` and lexical rules `T -> word`, each with a probability.

    Nonterminals (left sides of binary rules) and preterminals (left sides of lexical rules) are disjoint, so
    every sentence has at least two words. A grammar that breaks these rules, or in which the probabilities of
    a left side do not sum to one, cannot be constructed.
    """

    start: dict[str, float]
    binary: tuple[tuple[str, str, str, float], ...]
    lexical: tuple[tuple[str, str, float], ...]

    def __post_init__(self) -> None:
        nonterminals, preterminals = set(self.nonterminals), set(self.preterminals)
        if both := sorted(nonterminals & preterminals):
            raise RamifyError(
                f"The symbol {shortened(both[0])} has both binary and lexical rules; give its words another symbol."
            )
        for symbol in self.start:
            if symbol not in nonterminals:
                raise RamifyError(f"The start rules use {shortened(symbol)}, which has no binary rule; add one.")
        for parent, left, right, _ in self.binary:
            for child in (left, right):
                if child not in nonterminals and child not in preterminals:
                    rule = shortened(f"{parent} -> {left} {right}")
                    raise RamifyError(f"The rule {rule} uses {shortened(child)}, which has no rule; add one.")
        _check_sums("the start rules", self.start.values())
        for symbol, choice in self._choices.items():
            if len(set(choice.options)) < len(choice.options):
                raise RamifyError(
                    f"One of the rules of {shortened(symbol)} is given twice; write it once, with the sum of the two "
                    "probabilities."
                )
        for symbol, probabilities in _by_left_side(self.binary, self.lexical).items():
            _check_sums(f"the rules of {shortened(symbol)}", probabilities)

    @classmethod
    def from_nltk(cls, grammar: nltk.PCFG) -> BinaryGrammar:
        """The same grammar with separate symbols for words and phrases; `grammar` must be in Chomsky normal form.

        A symbol `B` with binary and lexical rules becomes a nonterminal `B` and a preterminal `B_word`, each
        each with renormalised rules; a rule that has `B` as a child becomes one rule for each of the two,
        its probability multiplied by the mass of that part. Only the binary part of the start symbol starts a
        sentence, because these grammars have no one-word sentences: the probability of any longer sentence is that
        under `grammar` divided by the mass of the start symbol's binary rules. Rules of probability zero, and
        preterminals that no binary rule uses, are left out. If no rule uses the start symbol, all its rules may be
        unary; these are then the start rules.
        """
        import nltk

        phrases: dict[str, dict[tuple[str, str], float]] = defaultdict(lambda: defaultdict(float))
        words: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        start: dict[str, float] = defaultdict(float)
        for production in grammar.productions():
            parent, children, probability = str(production.lhs()), production.rhs(), production.prob()
            inner = [isinstance(child, nltk.Nonterminal) for child in children]
            if probability <= 0:
                continue
            if inner == [True, True]:
                phrases[parent][str(children[0]), str(children[1])] += probability
            elif inner == [False]:
                words[parent][str(children[0])] += probability
            elif inner == [True] and parent == str(grammar.start()):
                start[str(children[0])] += probability
            else:
                raise RamifyError(
                    f"The rule {shortened(str(production))} is not in Chomsky normal form; every rule must have "
                    "two symbols or one word on its right side."
                )
        phrase_mass = {symbol: math.fsum(rules.values()) for symbol, rules in phrases.items()}
        word_mass = {symbol: math.fsum(rules.values()) for symbol, rules in words.items()}
        names = {symbol: symbol + WORD_SUFFIX if symbol in phrases else symbol for symbol in words}
        for symbol, name in names.items():
            if name != symbol and (name in phrases or name in words):
                raise RamifyError(
                    f"The name {shortened(name)} is reserved for the words of {shortened(symbol)}; rename the "
                    "symbol that has it."
                )

        def parts(symbol: str) -> list[tuple[str, float]]:
            """The symbols that replace `symbol` on a right side, and the share of each."""
            total = phrase_mass.get(symbol, 0.0) + word_mass.get(symbol, 0.0)
            found = [(symbol, phrase_mass[symbol] / total)] if symbol in phrases else []
            return found + ([(names[symbol], word_mass[symbol] / total)] if symbol in words else [])

        binary = []
        for parent, rules in phrases.items():
            for (left, right), probability in rules.items():
                for missing in (child for child in (left, right) if not parts(child)):
                    rule = shortened(f"{parent} -> {left} {right}")
                    raise RamifyError(f"The rule {rule} uses {shortened(missing)}, which has no rule; add one.")
                for (left_part, left_share), (right_part, right_share) in product(parts(left), parts(right)):
                    share = probability / phrase_mass[parent] * left_share * right_share
                    binary.append((parent, left_part, right_part, share))
        used = {child for _, left, right, _ in binary for child in (left, right)}
        lexical = [
            (names[symbol], word, probability / word_mass[symbol])
            for symbol, rules in words.items()
            if names[symbol] in used
            for word, probability in rules.items()
        ]
        top = str(grammar.start())
        if not start:
            return cls({top: 1.0}, tuple(binary), tuple(lexical))
        if top in names or top in phrases or top in used or top in start:
            raise RamifyError(
                f"The start symbol {shortened(top)} has unary rules and other uses; use another symbol for the others."
            )
        shares = {child: p * share for child, p in start.items() for part, share in parts(child) if part in phrases}
        total = math.fsum(shares.values())
        if not total:
            raise RamifyError(
                f"The start symbol {shortened(top)} does not derive any sentence of two words; add a rule."
            )
        return cls({child: share / total for child, share in shares.items()}, tuple(binary), tuple(lexical))

    @property
    def nonterminals(self) -> tuple[str, ...]:
        """The left sides of binary rules, in order of appearance."""
        return tuple(dict.fromkeys(rule[0] for rule in self.binary))

    @property
    def preterminals(self) -> tuple[str, ...]:
        """The left sides of lexical rules, in order of appearance."""
        return tuple(dict.fromkeys(rule[0] for rule in self.lexical))

    @property
    def words(self) -> tuple[str, ...]:
        """The words, in order of appearance."""
        return tuple(dict.fromkeys(rule[1] for rule in self.lexical))

    @cached_property
    def _choices(self) -> dict[str, _Choice]:
        options: dict[str, list[tuple[str, ...]]] = defaultdict(list)
        for *symbols, _ in (*self.binary, *self.lexical):
            options[str(symbols[0])].append(tuple(map(str, symbols[1:])))
        weights = _by_left_side(self.binary, self.lexical)
        return {symbol: _Choice(options[symbol], list(accumulate(weights[symbol]))) for symbol in options}

    @cached_property
    def _start_choice(self) -> _Choice:
        return _Choice([(symbol,) for symbol in self.start], list(accumulate(self.start.values())))

    def sample(self, rng: np.random.Generator, max_length: int) -> Parse:
        """A sentence of 2 to `max_length` words with its tree; longer ones are drawn again.

        Labels are the nonterminals, tags the preterminals.
        """
        if max_length < 2:
            raise RamifyError(f"max_length is {max_length}, but a sentence has at least 2 words.")
        for _ in range(MAX_ATTEMPTS):
            if (parse := self._try_sample(rng, max_length)) is not None:
                return parse
        raise RamifyError(
            f"None of {MAX_ATTEMPTS} sentences drawn from the grammar has at most {max_length} words; raise "
            "max_length, or lower the probabilities of recursive rules."
        )

    def _try_sample(self, rng: np.random.Generator, max_length: int) -> Parse | None:
        """One top-down draw, or None as soon as it must exceed `max_length`."""
        preterminals = self._preterminal_set
        words: list[str] = []
        tags: list[str] = []
        labels: list[str] = []
        spans: list[tuple[int, int]] = []
        # Symbols still to expand, leftmost last; a number closes the constituent of that index.
        agenda: list[str | int] = [*self._start_choice.draw(rng)]
        pending = 1
        while agenda:
            item = agenda.pop()
            if isinstance(item, int):
                spans[item] = (spans[item][0], len(words))
            elif item in preterminals:
                words += self._choices[item].draw(rng)
                tags.append(item)
                pending -= 1
            else:
                left, right = self._choices[item].draw(rng)
                agenda += (len(labels), right, left)
                labels.append(item)
                spans.append((len(words), -1))
                pending += 1
                if len(words) + pending > max_length:  # every pending symbol yields at least one word
                    return None
        return Parse(tuple(words), tuple(tags), np.array(spans, dtype=np.int32), tuple(labels))

    @cached_property
    def _preterminal_set(self) -> frozenset[str]:
        return frozenset(self.preterminals)


def _by_left_side(
    binary: Iterable[tuple[str, str, str, float]], lexical: Iterable[tuple[str, str, float]]
) -> Mapping[str, list[float]]:
    """The probabilities of each left side."""
    found: dict[str, list[float]] = defaultdict(list)
    for parent, _, _, probability in binary:
        found[parent].append(probability)
    for tag, _, probability in lexical:
        found[tag].append(probability)
    return found


def _check_sums(what: str, probabilities: Iterable[float]) -> None:
    values = list(probabilities)
    for value in values:
        if not 0 <= value <= 1 + TOLERANCE:
            raise RamifyError(f"The probabilities of {what} must be between 0 and 1, not {value:g}; correct them.")
    total = math.fsum(values)
    if abs(total - 1) > TOLERANCE:
        raise RamifyError(f"The probabilities of {what} sum to {total:.9g}; they must sum to 1.")

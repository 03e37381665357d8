"""Grammars in NLTK's notation: `S -> NP VP [0.9]`, `N -> 'dog' [0.1]`, the start symbol first.

Several start symbols hang below a new one, `TOP -> NP [0.3]`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import nltk
from nltk.grammar import ProbabilisticProduction

from ramify.corpus.pcfg import BinaryGrammar
from ramify.corpus.tree import ROOT
from ramify.errors import RamifyError, shortened
from ramify.files import write_atomically

_SYMBOL = re.compile(r"[\w/][\w/^<>-]*")


def to_nltk(grammar: BinaryGrammar) -> nltk.PCFG:
    """The same grammar for NLTK's parsers."""
    productions = [
        ProbabilisticProduction(
            nltk.Nonterminal(parent),
            [nltk.Nonterminal(child) for child in children] if word is None else [word],
            prob=probability,
        )
        for parent, children, word, probability in _rules(grammar)
    ]
    return nltk.PCFG(productions[0].lhs(), productions)


def _rules(grammar: BinaryGrammar) -> Iterator[tuple[str, tuple[str, ...], str | None, float]]:
    """(parent, children, None, p) and (tag, (), word, p), rules of the start symbol first."""
    binary = list(grammar.binary)
    if len(grammar.start) > 1:
        if ROOT in (*grammar.nonterminals, *grammar.preterminals):
            raise RamifyError(f"The start symbol above all others is to be called {ROOT}; rename the symbol {ROOT}.")
        yield from ((ROOT, (symbol,), None, probability) for symbol, probability in grammar.start.items())
    else:
        binary.sort(key=lambda rule: rule[0] not in grammar.start)
    yield from ((parent, (left, right), None, probability) for parent, left, right, probability in binary)
    yield from ((tag, (), word, probability) for tag, word, probability in grammar.lexical)


def write_rules(path: Path, grammar: BinaryGrammar) -> None:
    """A text file of rules, one a line."""
    for symbol in (*grammar.nonterminals, *grammar.preterminals):
        if not _SYMBOL.fullmatch(symbol):
            raise RamifyError(f"The symbol {shortened(symbol)} cannot be written in NLTK's notation; rename it.")
    # NLTK reads no exponents; as many digits as the smallest probability of a float32 softmax asks for.
    lines = [
        f"{parent} -> {' '.join(children) if word is None else _quoted(word)} [{probability:.30f}]\n"
        for parent, children, word, probability in _rules(grammar)
    ]
    write_atomically(path, "".join(lines).encode())


def _quoted(word: str) -> str:
    quote = "'" if "'" not in word else '"'
    if quote in word or "\n" in word:
        raise RamifyError(f"The word {shortened(word)} has quotes of both kinds; NLTK's notation cannot hold it.")
    return f"{quote}{word}{quote}"


def read_rules(path: Path) -> BinaryGrammar:
    """A grammar in Chomsky normal form, but for rules from the start symbol to others, from a text file."""
    try:
        grammar = nltk.PCFG.fromstring(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise RamifyError(f"{path}: cannot be read as text ({error}).") from error
    except (ValueError, IndexError, AttributeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise RamifyError(f"{path}: is no grammar in NLTK's notation ({reason}).") from error
    try:
        return BinaryGrammar.from_nltk(grammar)
    except RamifyError as error:
        raise RamifyError(f"{path}: {error}") from error

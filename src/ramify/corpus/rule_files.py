"""Grammars in NLTK's notation: `S -> NP VP [0.9]`, `N -> 'dog' [0.1]`, the start symbol first.

If there are several start symbols, a new one has rules to each of them, `TOP -> NP [0.3]`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ramify.corpus.pcfg import BinaryGrammar
from ramify.corpus.tree import ROOT
from ramify.errors import RamifyError, shortened
from ramify.storage.files import write_atomically

if TYPE_CHECKING:
    import nltk

_HEADER = "# ramify: "
"""Beginning of a first line that describes how the grammar reads text; NLTK treats the line as a comment"""
LONGEST_HEADER = 1 << 24
_SYMBOL = re.compile(r"[\w/][\w/^<>-]*")


def to_nltk(grammar: BinaryGrammar) -> nltk.PCFG:
    """The same grammar for NLTK's parsers."""
    import nltk
    from nltk.grammar import ProbabilisticProduction

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
    """(parent, children, None, p) and (tag, (), word, p), beginning with the rules of the start symbol."""
    binary = list(grammar.binary)
    if len(grammar.start) > 1:
        if ROOT in (*grammar.nonterminals, *grammar.preterminals):
            raise RamifyError(f"The name {ROOT} is reserved for the start symbol; rename the symbol {ROOT}.")
        yield from ((ROOT, (symbol,), None, probability) for symbol, probability in grammar.start.items())
    else:
        binary.sort(key=lambda rule: rule[0] not in grammar.start)
    yield from ((parent, (left, right), None, probability) for parent, left, right, probability in binary)
    yield from ((tag, (), word, probability) for tag, word, probability in grammar.lexical)


def write_rules(path: Path, grammar: BinaryGrammar, about: Mapping[str, Any] | None = None) -> None:
    """A text file with one rule per line, after a comment with `about` in JSON."""
    for symbol in (*grammar.nonterminals, *grammar.preterminals):
        if not _SYMBOL.fullmatch(symbol):
            raise RamifyError(f"The symbol {shortened(symbol)} cannot be written in NLTK's notation; rename it.")
    lines = [] if about is None else [f"{_HEADER}{json.dumps(about)}\n"]
    lines += (
        f"{parent} -> {' '.join(children) if word is None else _quoted(word)} [{_decimal(probability)}]\n"
        for parent, children, word, probability in _rules(grammar)
    )
    write_atomically(path, "".join(lines).encode())


def _decimal(probability: float) -> str:
    """More digits than float32 has, without an exponent, because NLTK cannot read exponents."""
    return np.format_float_positional(probability, precision=10, unique=False, fractional=False, trim="0")


def _quoted(word: str) -> str:
    quote = "'" if "'" not in word else '"'
    if quote in word or "\n" in word:
        raise RamifyError(
            f"The word {shortened(word)} contains both kinds of quotes, which NLTK's notation does not allow; "
            "remove it."
        )
    return f"{quote}{word}{quote}"


def _unreadable(path: Path, error: Exception) -> RamifyError:
    return RamifyError(f"{path}: cannot be read as text ({error}); give a model folder, or a UTF-8 file of rules.")


def read_about(path: Path) -> dict[str, Any]:
    """The description that `write_rules` wrote; empty for a file from another source."""
    try:
        with path.open(encoding="utf-8") as handle:
            line = handle.readline(LONGEST_HEADER)
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(path, error) from error
    if not line.startswith(_HEADER):
        return {}
    try:
        about = json.loads(line.removeprefix(_HEADER))
    except (ValueError, RecursionError):
        about = None
    if not isinstance(about, dict):
        raise RamifyError(f"{path}: line 1 is not a description that this version can read; remove the line.")
    return about


def read_rules(path: Path) -> BinaryGrammar:
    """A grammar from a text file, in Chomsky normal form except for unary rules of the start symbol."""
    import nltk

    try:
        grammar = nltk.PCFG.fromstring(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(path, error) from error
    except (ValueError, IndexError, AttributeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise RamifyError(f"{path}: is not a grammar in NLTK's notation ({reason}); correct the rule.") from error
    try:
        return BinaryGrammar.from_nltk(grammar)
    except RamifyError as error:
        raise RamifyError(f"{path}: {error}") from error

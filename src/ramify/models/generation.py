"""Sentences with their trees, drawn from a grammar from the top down."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from ramify.errors import RamifyError
from ramify.models.generative import GenerativeModel
from ramify.models.grammar import Grammar, TableGrammar
from ramify.models.lexicalised import LexicalisedGrammar
from ramify.structures.lexicalised import RIGHT
from ramify.structures.pcfg import cumulative, draw


@dataclass(frozen=True)
class Generated:
    """A sentence of N words and its tree; words and symbols are numbers."""

    word_ids: NDArray[np.int64]
    tags: NDArray[np.int64]
    spans: NDArray[np.int32]
    """(N-1, 2) in preorder"""
    labels: NDArray[np.int64]


class Sampler:
    """Draws sentences from one grammar; for a compound grammar, z is drawn from its prior for every sentence."""

    def __init__(self, grammar: Grammar, rng: np.random.Generator) -> None:
        self._grammar, self._rng = grammar, rng
        self._tables = None if grammar.latent else _Tables(grammar.tabulated())

    def draw(self, max_length: int) -> Generated | None:
        """One sentence, or None as soon as it must have more words."""
        tables = self._tables or _Tables(self._with_drawn_z())
        n, rng = self._grammar.nonterminals, self._rng
        words: list[int] = []
        tags: list[int] = []
        labels: list[int] = []
        spans: list[tuple[int, int]] = []
        # Symbols still to expand, leftmost last; minus c - 1 closes constituent c.
        agenda = [draw(tables.root, rng)]
        pending = 1
        while agenda:
            symbol = agenda.pop()
            if symbol < 0:
                spans[-symbol - 1] = (spans[-symbol - 1][0], len(words))
            elif symbol >= n:
                tags.append(symbol - n)
                words.append(draw(tables.words[symbol - n], rng))
                pending -= 1
            else:
                left, right = tables.children(symbol, rng)
                agenda += (-len(labels) - 1, right, left)
                labels.append(symbol)
                spans.append((len(words), -1))
                pending += 1
                if len(words) + pending > max_length:  # every pending symbol yields at least one word
                    return None
        return Generated(np.array(words), np.array(tags), np.array(spans, np.int32), np.array(labels))

    @torch.no_grad()
    def _with_drawn_z(self) -> TableGrammar:
        device = next(self._grammar.parameters()).device
        z = torch.from_numpy(self._rng.standard_normal((1, self._grammar.latent))).float().to(device)
        return self._grammar.tabulated(z)


class _Tables:
    """Cumulative probabilities of a grammar."""

    def __init__(self, tables: TableGrammar) -> None:
        rules = tables.rules()
        self.root = cumulative(rules.root)
        self.words = cumulative(tables.emission_table.T)  # (p, q)
        self.children = rules.child_sampler()


class LexicalisedSampler:
    """Draws sentences from a lexicalised grammar: for each symbol first its head word, then the rules below it."""

    @torch.no_grad()
    def __init__(self, grammar: LexicalisedGrammar, rng: np.random.Generator) -> None:
        self._rng, self._n = rng, grammar.nonterminals
        root, words = grammar.start_log_probabilities()
        self._root, self._words, self._rule = cumulative(root), cumulative(words.T), grammar.rule_sampler()

    def draw(self, max_length: int) -> Generated | None:
        """One sentence, or None as soon as it must have more words."""
        n, rng = self._n, self._rng
        words: list[int] = []
        tags: list[int] = []
        labels: list[int] = []
        spans: list[tuple[int, int]] = []
        start = draw(self._root, rng)
        # Symbols still to expand with their head words, leftmost last; minus c - 1 closes constituent c.
        agenda = [(start, draw(self._words[start], rng))]
        pending = 1
        while agenda:
            symbol, word = agenda.pop()
            if symbol < 0:
                spans[-symbol - 1] = (spans[-symbol - 1][0], len(words))
            elif symbol >= n:
                tags.append(symbol - n)
                words.append(word)
                pending -= 1
            else:
                head, other, side, other_word = self._rule(symbol, word, rng)
                children = [(other, other_word), (head, word)] if side == RIGHT else [(head, word), (other, other_word)]
                agenda += ((-len(labels) - 1, 0), *children)
                labels.append(symbol)
                spans.append((len(words), -1))
                pending += 1
                if len(words) + pending > max_length:  # every pending symbol yields at least one word
                    return None
        return Generated(np.array(words), np.array(tags), np.array(spans, np.int32), np.array(labels))


def make_sampler(grammar: GenerativeModel, rng: np.random.Generator) -> Sampler | LexicalisedSampler:
    """The sampler of a grammar of either kind."""
    if isinstance(grammar, LexicalisedGrammar):
        return LexicalisedSampler(grammar, rng)
    if isinstance(grammar, Grammar):
        return Sampler(grammar, rng)
    raise RamifyError(f"Sentences cannot be drawn from {type(grammar).__name__}; use another family.")

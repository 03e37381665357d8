"""Vocabularies of small texts."""

from __future__ import annotations

from collections.abc import Iterable

from ramify.corpus.cleaning import NormalForm
from ramify.corpus.vocabulary import Vocabulary, count_words


def vocabulary_of(
    sentences: Iterable[Iterable[str]], size: int = 10_000, normal_form: NormalForm = "NFC"
) -> Vocabulary:
    """A vocabulary of the most frequent words of sentences."""
    return Vocabulary.from_counts(count_words(sentences, normal_form), size, normal_form)

"""The vocabulary of a grammar: numbered words; every other word is `<unk>`, number 0."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ramify.corpus.cleaning import NormalForm, normalise
from ramify.errors import RamifyError
from ramify.storage.files import write_atomically

UNKNOWN = "<unk>"
LONGEST_WORD = 1000
"""Length of the longest known word, in characters"""
LONGEST_LINE = 4 * LONGEST_WORD + 1
"""Maximum number of bytes of a word in a file, with its line end"""


@dataclass(frozen=True)
class UnknownCount:
    """The number of unknown words in a text."""

    words: int
    """Number of words of the text"""
    unknown: int

    def __add__(self, other: UnknownCount) -> UnknownCount:
        return UnknownCount(self.words + other.words, self.unknown + other.unknown)

    @property
    def known(self) -> int:
        """Number of words in the vocabulary."""
        return self.words - self.unknown

    @property
    def rate(self) -> float:
        """Unknown words in percent of all."""
        return 100 * self.unknown / self.words if self.words else 0.0

    def __str__(self) -> str:
        return f"{self.unknown:,} of {self.words:,} words ({self.rate:.1f} %)"


NO_WORDS = UnknownCount(0, 0)


def count_words(sentences: Iterable[Iterable[str]], normal_form: NormalForm = "NFC") -> Counter[str]:
    """The number of occurrences of each normalised word in sentences that are not normalised."""
    counts = Counter[str]()
    for form, count in Counter(chain.from_iterable(sentences)).items():
        counts[normalise(form, normal_form)] += count
    return counts


class Vocabulary:
    """Normalised words by number; `words[0]` is `<unk>`."""

    def __init__(self, words: Sequence[str], normal_form: NormalForm = "NFC") -> None:
        self.words = tuple(words)
        self.normal_form = normal_form
        self._numbers = {word: number for number, word in enumerate(self.words)}
        # Most words of a text were seen before, and normalising is the slowest step here.
        self._number = lru_cache(1 << 16)(lambda word: self._numbers.get(normalise(word, normal_form), 0))
        if not self.words or self.words[0] != UNKNOWN:
            raise RamifyError(f"The first word of the vocabulary must be {UNKNOWN}; add it.")
        if len(self._numbers) != len(self.words):
            word, count = Counter(self.words).most_common(1)[0]
            raise RamifyError(f"The vocabulary contains the word {word!r} {count} times; keep one.")
        for number, word in enumerate(self.words, start=1):
            if not word or "\n" in word:
                raise RamifyError(f"Word {number} of the vocabulary is empty or contains a line break; remove it.")

    @classmethod
    def from_counts(
        cls, counts: Mapping[str, int], size: int = 10_000, normal_form: NormalForm = "NFC", min_count: int = 1
    ) -> Vocabulary:
        """`<unk>` and the `size` most frequent normalised words, without those seen fewer than `min_count` times.

        Equally frequent words are in the order in which they were first seen.
        """
        known = Counter(
            {
                word: count
                for word, count in counts.items()
                if count >= min_count and word != UNKNOWN and len(word) <= LONGEST_WORD
            }
        )
        return cls([UNKNOWN, *(word for word, _ in known.most_common(size))], normal_form)

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self._numbers

    def __eq__(self, other: object) -> bool:
        return self.words == other.words if isinstance(other, Vocabulary) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.words)

    def encode(self, words: Iterable[str]) -> NDArray[np.int64]:
        """(length,) the numbers of `words`, which are normalised here."""
        return np.array([self._number(word) for word in words], dtype=np.int64)

    def unknown(self, words: Iterable[str]) -> list[str]:
        """The unknown words in normal form, including `<unk>` itself."""
        normal = (normalise(word, self.normal_form) for word in words)
        return [word for word in normal if not self._numbers.get(word)]

    def count_unknown(self, sentences: Iterable[Sequence[str]]) -> UnknownCount:
        """The number of unknown words among all words of the sentences."""
        counts = (UnknownCount(len(words), len(self.unknown(words))) for words in sentences)
        return sum(counts, NO_WORDS)

    @property
    def checksum(self) -> str:
        """sha256 of the words in their order."""
        return hashlib.sha256(self._as_bytes()).hexdigest()

    @cached_property
    def set_checksum(self) -> str:
        """sha256 of the words in sorted order: perplexities over the same set can be compared."""
        return hashlib.sha256("\n".join(sorted(self.words)).encode("utf-8", "backslashreplace")).hexdigest()

    def save(self, path: Path) -> None:
        """Write one word per line, in order."""
        write_atomically(path, self._as_bytes())

    def _as_bytes(self) -> bytes:
        return "".join(f"{word}\n" for word in self.words).encode("utf-8")

    @classmethod
    def load(cls, path: Path, normal_form: NormalForm = "NFC", size: int | None = None) -> Vocabulary:
        """Read a vocabulary that `save` wrote; more than `size` words, if given, are an error."""
        words: list[str] = []
        try:
            with path.open("rb") as handle:
                while line := handle.readline(LONGEST_LINE):
                    if not line.endswith(b"\n") and len(line) == LONGEST_LINE:
                        raise RamifyError(
                            f"word {len(words) + 1} is longer than {LONGEST_WORD:,} characters; remove it."
                        )
                    if len(words) == size:
                        raise RamifyError(
                            f"contains more than the {size:,} words of the model; use the files of one model."
                        )
                    words.append(line.removesuffix(b"\n").decode("utf-8"))
            return cls(words, normal_form)
        except OSError as error:
            raise RamifyError(f"{path}: the vocabulary cannot be read ({error.strerror}); check the file.") from error
        except UnicodeDecodeError as error:
            raise RamifyError(f"{path}: the vocabulary is not UTF-8; convert it to UTF-8.") from error
        except RamifyError as error:
            raise RamifyError(f"{path}: {error}") from error

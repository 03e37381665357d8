"""The rules by which a model reads text: sentences, tokens, words. They are saved with the model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, get_args

from ramify.corpus.cleaning import NormalForm
from ramify.corpus.guessing import warn_about_tree
from ramify.corpus.punctuation import Punctuation
from ramify.corpus.sentence import Sentence
from ramify.corpus.tokenising import WHITE_SPACE, check_code, tokeniser, warn_about_prose, warn_about_script
from ramify.errors import RamifyError

if TYPE_CHECKING:
    from ramify.corpus.sentence_splitting import Splitter

LONGEST_PARAGRAPH = 1 << 20
"""Characters of prose held in memory at once"""


@dataclass(frozen=True)
class TextRules:
    """From lines to sentences. The text is not changed: a sentence has its text and the offsets of its tokens."""

    tokenise: str = WHITE_SPACE
    """Code of a language, or `none` for text that has spaces between all tokens"""
    punctuation: Punctuation = field(default_factory=Punctuation)
    normal_form: NormalForm = "NFC"
    """Unicode normal form of the words as the grammar sees them; output tokens do not change"""
    splitter: Splitter | None = None
    """None if every line is one sentence"""

    def __post_init__(self) -> None:
        if self.normal_form not in get_args(NormalForm):
            known = ", ".join(get_args(NormalForm))
            raise RamifyError(f"normal_form {self.normal_form!r} is unknown; choose one of {known}.")

    def with_tokeniser(self, code: str) -> TextRules:
        """The same rules for text in another language; an unknown language is refused."""
        tokeniser(code)
        return replace(self, tokenise=code)

    def sentence(self, text: str, where: str = "") -> Sentence:
        """One sentence, given as a string."""
        return self._with_words(text, tuple(tokeniser(self.tokenise)(text)), where)

    def sentence_of(self, tokens: Iterable[str], where: str = "") -> Sentence:
        """One sentence, given as its tokens."""
        sentence = Sentence.from_tokens(tuple(tokens), where=where)
        return replace(sentence, is_word=tuple(token not in self.punctuation for token in sentence.tokens))

    def sentences(
        self, lines: Iterable[str], source: str, expects_no_tree: bool = False, first_line: int = 1
    ) -> Iterator[Sentence]:
        """All sentences: one per line, including blank lines, or those of each paragraph between blank lines.

        With `expects_no_tree` the first line that is a bracketed tree is reported. `first_line` is the number of the
        first of the lines in its file.
        """
        warned = False
        for text, where in self._texts(lines, source, first_line):
            sentence = self.sentence(text, where)
            warned = warned or warn_about_script(text, where)
            warned = warned or (self.tokenise == WHITE_SPACE and warn_about_prose(sentence.tokens, where))
            expects_no_tree = expects_no_tree and not warn_about_tree(text, where)
            yield sentence

    def _texts(self, lines: Iterable[str], source: str, first_line: int) -> Iterator[tuple[str, str]]:
        numbered: Iterator[tuple[str, int]]
        if self.splitter is None:
            numbered = ((line.removesuffix("\n"), number) for number, line in enumerate(lines, start=1))
        else:
            numbered = split_prose(lines, self.splitter)
        for text, number in numbered:
            yield text, f"{source}, line {first_line - 1 + number}"

    def _with_words(self, text: str, offsets: tuple[tuple[int, int], ...], where: str) -> Sentence:
        return Sentence(text, offsets, tuple([text[i:j] not in self.punctuation for i, j in offsets]), where)

    def as_record(self) -> dict[str, Any]:
        """As JSON values, without the splitter, which is large and has a separate file."""
        return {
            "tokenise": self.tokenise,
            "normal_form": self.normal_form,
            "punctuation": self.punctuation.as_record(),
            "split_sentences": self.splitter is not None,
        }

    @classmethod
    def from_record(cls, record: Any, splitter: Splitter | None) -> TextRules:
        """The rules that `as_record` returned."""
        if not isinstance(record, dict) or not all(
            isinstance(record.get(name), str) for name in ("tokenise", "normal_form")
        ):
            raise RamifyError("how text is read is unknown to this version; use the version of ramify that wrote it.")
        check_code(record["tokenise"])
        punctuation = Punctuation.from_record(record.get("punctuation"))
        return cls(record["tokenise"], punctuation, record["normal_form"], splitter)


@dataclass(frozen=True)
class CommonTextRules(TextRules):
    """The rules of several parsers for the same text; a sentence in which they find different words is refused."""

    others: tuple[TextRules, ...] = ()
    """The rules of the other parsers; this object has those of the first one"""

    @classmethod
    def of(cls, rules: Sequence[TextRules]) -> TextRules:
        """The rules of several parsers; if all are the same, plain `TextRules`."""
        first, *others = rules
        different = tuple(dict.fromkeys(replace(each, splitter=None) for each in others))
        different = tuple(each for each in different if each != replace(first, splitter=None))
        if not different:
            return first
        return cls(first.tokenise, first.punctuation, first.normal_form, first.splitter, different)

    def with_tokeniser(self, code: str) -> TextRules:
        """The same rules for text in another language, for all parsers."""
        changed = tuple(each.with_tokeniser(code) for each in self.others)
        return replace(self, tokenise=code, others=changed)

    def sentence(self, text: str, where: str = "") -> Sentence:
        """One sentence, given as a string."""
        return self._agreed(super().sentence(text, where), [each.sentence(text, where) for each in self.others])

    def sentence_of(self, tokens: Iterable[str], where: str = "") -> Sentence:
        """One sentence, given as its tokens."""
        words = tuple(tokens)
        others = [each.sentence_of(words, where) for each in self.others]
        return self._agreed(super().sentence_of(words, where), others)

    def _agreed(self, sentence: Sentence, others: Sequence[Sentence]) -> Sentence:
        for other in others:
            if other.words != sentence.words:
                pairs = zip_longest(sentence.words, other.words, fillvalue="")
                first = next(a or b for a, b in pairs if a != b)
                raise RamifyError(
                    f"{sentence.where or 'The sentence'}: the parsers find different words in {sentence.text[:80]!r}, "
                    f"first at {first!r}; average parsers with the same tokeniser."
                )
        return sentence


def split_prose(lines: Iterable[str], splitter: Splitter) -> Iterator[tuple[str, int]]:
    """Sentences and the numbers of their first lines; a blank line ends a sentence, the end of a line does not."""
    gathered, first, size = [], 1, 0
    for number, line in enumerate(lines, start=1):
        blank = not line.strip()
        gathered.append(line)
        size += len(line)
        if not blank and size < LONGEST_PARAGRAPH:
            continue
        text = "".join(gathered)
        spans = splitter.spans(text)
        # This is the end of the text in memory, not of a paragraph, so the last sentence may continue.
        rest = spans.pop()[0] if not blank and len(spans) > 1 else len(text)
        yield from _numbered(text, spans, first)
        gathered, size = [text[rest:]], len(text) - rest
        first = number + 1 - gathered[0].count("\n")
    text = "".join(gathered)
    yield from _numbered(text, splitter.spans(text), first)


def _numbered(text: str, spans: Iterable[tuple[int, int]], first: int) -> Iterator[tuple[str, int]]:
    for start, end in spans:
        yield text[start:end], first + text.count("\n", 0, start)

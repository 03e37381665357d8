"""Sentences of plain prose by Punkt (Kiss and Strunk 2006), which learns abbreviations from the text itself."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from nltk.tokenize.punkt import PunktLanguageVars, PunktParameters, PunktSentenceTokenizer, PunktTrainer

from ramify.errors import RamifyError


class _SentenceEnds(PunktLanguageVars):  # type: ignore[misc]
    # Latin; Arabic; Urdu; Devanagari; Armenian; Ethiopic; Burmese; Khmer; full-width.
    sent_end_chars = (".", "?", "!", "…", "؟", "۔", "।", "॥", "։", "።", "။", "។", "。", "！", "？")


class Splitter:
    """Splits text into sentences, with parameters learnt from a text."""

    def __init__(self, parameters: PunktParameters | None = None) -> None:
        self._parameters = parameters or PunktParameters()
        self._punkt = PunktSentenceTokenizer(self._parameters, lang_vars=_SentenceEnds())

    @classmethod
    def learnt_from(cls, texts: Iterable[str]) -> Splitter:
        """Learn abbreviations, frequent sentence starters and the use of capitals from raw text."""
        trainer = PunktTrainer(lang_vars=_SentenceEnds())
        for text in texts:
            trainer.train(text, finalize=False)
        trainer.finalize_training()
        return cls(trainer.get_params())

    def spans(self, paragraph: str) -> list[tuple[int, int]]:
        """Start and end of each sentence, without the white space between sentences."""
        return [(start, end) for start, end in self._punkt.span_tokenize(paragraph) if start < end]

    def as_record(self) -> dict[str, Any]:
        """As JSON values."""
        known = self._parameters
        return {
            "abbreviations": sorted(known.abbrev_types),
            "collocations": sorted(map(list, known.collocations)),
            "sentence_starters": sorted(known.sent_starters),
            "orthography": dict(sorted(known.ortho_context.items())),
        }

    @classmethod
    def from_record(cls, record: Any) -> Splitter:
        """The splitter that `as_record` returned."""
        try:
            parameters = PunktParameters()
            parameters.abbrev_types = {_string(form) for form in record["abbreviations"]}
            parameters.collocations = {(_string(a), _string(b)) for a, b in record["collocations"]}
            parameters.sent_starters = {_string(form) for form in record["sentence_starters"]}
            contexts = {_string(form): int(flags) for form, flags in record["orthography"].items()}
            parameters.ortho_context = defaultdict(int, contexts)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise RamifyError(
                "the sentence splitter is unknown to this version; use the version of ramify that wrote it."
            ) from error
        return cls(parameters)


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value

"""The reports of a training run before its first and after its last step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ramify.corpus.cleaning import ALL_WORDS
from ramify.corpus.sentence import Sentence
from ramify.corpus.vocabulary import UnknownCount
from ramify.evaluation.agreement import MIN_SENTENCES, MemberAgreement
from ramify.models import Model
from ramify.parser.ensemble_members import some_of
from ramify.parser.parser import Parser
from ramify.parser.predictions import evaluate
from ramify.training.data import Data
from ramify.training.settings import Settings
from ramify.training.text_sizes import FEW_SENTENCES, sizes_for_text

WORDS_PER_PRETERMINAL = 300
"""With fewer training words for each preterminal, more symbols seldom help; docs/usage.md gives the figures."""
MIN_PRETERMINALS = 30
"""Fewer preterminals are never recommended: then the text is too short."""


@dataclass(frozen=True)
class Summary:
    """The data and the model of a run; counts are numbers of sentences unless stated otherwise."""

    source: str
    used: int
    held_out: int
    """Taken from the training data to choose the epoch; 0 if there is a dev set"""
    dropped: Mapping[str, int]
    """Number by reason"""
    blank_lines: int
    dev_source: str
    dev: int
    dev_has_trees: bool
    words: int
    """Number of words of the used sentences, with repetition"""
    vocabulary: int
    """Number of different words that the model knows, including `<unk>`"""
    min_count: int
    """Words seen fewer times are `<unk>`"""
    unknown: UnknownCount
    """Words of the used sentences that are not in the vocabulary"""
    dev_unknown: UnknownCount
    model: str
    sizes: Mapping[str, int]
    """Sizes of the family, such as nonterminals"""
    parameters: int
    has_likelihood: bool
    """Whether the model has a perplexity"""
    epochs: int
    epochs_done: int
    """Number of epochs of the earlier run that this one resumes"""
    recommended: Mapping[str, Any] = field(default_factory=dict)
    """Settings with the values recommended for the amount of text"""
    breaks: int = 0
    """Number of places of punctuation that constituents should not cross; 0 if they may"""
    branching: float = 0.0
    """Bonus in parsing for spans at the right end of the sentence or, below 0, at the left end"""
    teachers: tuple[str, ...] = ()
    """The parsers that a focused run follows"""
    focus: float | None = None
    """Strength of the focus in the first epoch; None without teachers, or for models that learn only from teachers"""

    @property
    def read(self) -> int:
        """All sentences of the training data."""
        return self.used + self.held_out + sum(self.dropped.values())

    @property
    def notes(self) -> list[str]:
        """Possible problems of the text."""
        notes = [self._advice_on_symbols(), self._advice_on_text()]
        if self.dev_unknown.unknown and not self.unknown.unknown:
            notes.append(
                "no word of the training text is unknown, so the grammar cannot learn where unknown words occur; "
                "with --min-count 2, words seen once become unknown."
            )
        return [note for note in notes if note is not None]

    def _advice_on_text(self) -> str | None:
        """What to expect of one grammar trained on little text; None if there is enough text, or with teachers."""
        if self.used >= FEW_SENTENCES or self.teachers or not self.has_likelihood:
            return None
        return (
            f"trees learnt from {self.used:,} sentences are often wrong; `ramify focus` learns better ones from the "
            f"same text, and more text helps most (from about {FEW_SENTENCES:,} sentences on)."
        )

    def _advice_on_symbols(self) -> str | None:
        """Advice if there is too little text for the number of symbols; None if there is enough."""
        symbols = self.sizes.get("preterminals", 0)
        if self.words >= WORDS_PER_PRETERMINAL * symbols:
            return None
        enough = self.words // WORDS_PER_PRETERMINAL // 10 * 10
        fewer = f"give more text, or try --preterminals {enough}" if enough >= MIN_PRETERMINALS else "give more text"
        return (
            f"{self.words:,} training words are few for {symbols:,} preterminals: {self.words / symbols:,.0f} per "
            f"preterminal, but at least {WORDS_PER_PRETERMINAL} are recommended; {fewer}."
        )


@dataclass(frozen=True)
class Verdict:
    """The result of a run; scores against dev trees are reported, but do not choose the model."""

    best_epoch: int
    """The epoch that is kept"""
    epochs: int
    """Number of all trained epochs"""
    dev_perplexity: float | None
    """None for a model without a likelihood"""
    dev_f1: float | None
    """S-F1 of the kept epoch; None without trees"""
    branching: Mapping[str, float]
    """S-F1 of left and right branching on the same sentences"""
    wrong_side: Literal["left", "right"] | None = None
    """The side to which the trees branch, if the order of words in the text shows the other one"""

    @property
    def lost_to(self) -> str | None:
        """The better of left and right branching, if it is better than the model."""
        if self.dev_f1 is None:
            return None
        name = max(self.branching, key=lambda each: self.branching[each])
        return name if self.branching[name] > self.dev_f1 else None


def summarise(
    data: Data,
    settings: Settings,
    grammar: Model,
    epochs_done: int,
    teachers: tuple[str, ...] = (),
    branching: float = 0.0,
) -> Summary:
    """The summary before the first step."""
    dropped = dict(data.dropped)
    return Summary(
        source=data.train.source,
        used=len(data.train),
        held_out=len(data.dev) if data.held_out else 0,
        blank_lines=dropped.pop("blank lines", 0),
        dropped=dropped,
        dev_source=data.dev.source,
        dev=len(data.dev),
        dev_has_trees=data.dev.has_trees,
        words=sum(map(len, data.train.parses)),
        vocabulary=len(data.vocabulary),
        min_count=data.min_count,
        unknown=data.unknown["train"],
        dev_unknown=data.unknown["dev"],
        model=settings.model,
        sizes=grammar.sizes(),
        parameters=sum(parameter.numel() for parameter in grammar.parameters()),
        has_likelihood=grammar.has_likelihood,
        epochs=settings.epochs,
        epochs_done=epochs_done,
        recommended={
            name: value
            for name, value in sizes_for_text(settings.model, len(data.train)).items()
            if getattr(settings, name) == value
        },
        breaks=sum(len(parse.breaks) for parse in data.train.parses) if settings.crossing_penalty else 0,
        branching=branching,
        teachers=teachers,
        focus=settings.focus_in(1) if teachers and not grammar.needs_teachers else None,
    )


def summarise_result(data: Data, records: Sequence[Mapping[str, Any]], parser: Parser) -> Verdict:
    """The result of a run, from the records of all epochs and the model that was kept."""
    best_epoch = records[-1]["best_epoch"]
    best = next(record for record in records if record["epoch"] == best_epoch)
    branching = {}
    if data.dev.has_trees:
        branching = {
            # Rounded like the F1 in the records, so that equal scores are equal.
            name: round(evaluate(name, data.dev, word_rule=ALL_WORDS).scores.sentence_f1, 2)
            for name in ("left", "right")
        }
    side = _wrong_side(parser, data)
    return Verdict(best_epoch, records[-1]["epoch"], best["dev_perplexity"], best.get("dev_f1"), branching, side)


def _wrong_side(parser: Parser, data: Data) -> Literal["left", "right"] | None:
    """The side to which the trees branch without the bonus, unless the bonus is for this side or for none.

    On treebanks, the trees of such grammars are poor (docs/better-trees-results.md).
    """
    if not (parser.branching and parser.has_posteriors):
        return None
    sentences = some_of([Sentence.from_tokens(parse.words) for parse in data.dev.parses])
    agreement = MemberAgreement(["model"])
    for analysis in parser.analyse_many(sentences, branching=0.0):
        agreement.add([analysis.parse.spans], analysis.parse.spans, len(analysis.parse))
    left, right = agreement.table[0, -2:]
    if agreement.sentences < MIN_SENTENCES or (left - right) * parser.branching <= 0:
        return None
    return "left" if left > right else "right"

"""A trained model as users see it: words in, trees out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from ramify.corpus.cleaning import WordRule
from ramify.corpus.constraints import forbidden_spans
from ramify.corpus.pcfg import BinaryGrammar
from ramify.corpus.reading import AS_IS
from ramify.corpus.sentence import Sentence
from ramify.corpus.spelling import Spelling
from ramify.corpus.streaming import Pause
from ramify.corpus.text import TextRules
from ramify.corpus.tree import Parse
from ramify.corpus.vocabulary import UNKNOWN, UnknownCount, Vocabulary
from ramify.decoding.constrained import Forbidden
from ramify.decoding.decoders import Decoded, check_decoder, decode, labels_of_trees, log_probabilities
from ramify.drawing.notebook import notebook_tree
from ramify.errors import RamifyError
from ramify.evaluation.coverage import Coverage, Likelihood
from ramify.evaluation.failures import Failure
from ramify.evaluation.spans import Spans
from ramify.models import GenerativeModel, Grammar, Model, TableGrammar
from ramify.models.batches import CHART_BYTES, WordIds, check_fits, fits, max_batch_size, memory_batches, pad
from ramify.models.generation import Generated, make_sampler
from ramify.models.rule_lookup import RuleLookup, strongest_words
from ramify.parser.analysis import Analysis, Scored, with_punctuation
from ramify.parser.parallel_windows import Batch
from ramify.parser.tree_parser import Decoding, SentenceInput, TreeLabels, TreeParser, check_positive
from ramify.runtime.memory import Budget
from ramify.runtime.threads import on_one_core
from ramify.storage.model_files import BRANCHING
from ramify.storage.model_folder import StoredModel, save_model
from ramify.structures.distribution import Tree
from ramify.structures.lexicalised import LexicalisedPCFG
from ramify.structures.pcfg import PCFG, Rule

if TYPE_CHECKING:
    import nltk

MAX_TRIES = 10_000
"""Number of attempts to draw a sentence that is not too long."""
MAX_LISTED = 5
"""Maximum number of symbols that an error names"""
_charts = Budget()


class Parser(TreeParser):
    """Parses and scores sentences, and shows the rules of its grammar; `ramify.load` returns one."""

    def __init__(
        self,
        model: Model,
        vocabulary: Vocabulary,
        labels: Sequence[str] | None = None,
        tags: Sequence[str] | None = None,
        word_rule: WordRule | None = None,
        text_rules: TextRules = AS_IS,
        spelling: Spelling | None = None,
        branching: float = 0.0,
    ) -> None:
        self.model = model.eval()
        """The trained model, a `torch.nn.Module`; its probabilities were computed when the parser was created"""
        with on_one_core():  # then the last digits do not depend on the number of cores
            self._ready = model.for_parsing()
        self.works_ahead = model.device.type == "cpu"
        self.vocabulary = vocabulary
        self.word_rule = word_rule
        """Which leaves of trees are words; None for a grammar that was learnt from text"""
        self.text_rules = text_rules
        self.spelling = spelling
        """The spelling model of the training text; None if the model has none"""
        self.branching = branching
        self.labels = tuple(labels or model.label_names())
        self.tags = tuple(tags or model.tag_names())
        self.description: dict[str, Any] | None = None
        """The content of `config.json`; None for a model that was not trained"""
        if len(vocabulary) != model.words:
            raise RamifyError(
                f"The vocabulary has {len(vocabulary)} words, but the model has {model.words}; use those of one model."
            )

    def __repr__(self) -> str:
        return f"<Parser: {self.model.described()}, {len(self.vocabulary):,} words>"

    @classmethod
    def of_stored(cls, stored: StoredModel, description: dict[str, Any]) -> Parser:
        """A parser of a trained model, with everything that is saved with it."""
        parser = cls(
            stored.model,
            stored.vocabulary,
            word_rule=stored.word_rule,
            text_rules=stored.text_rules,
            spelling=stored.spelling,
            branching=stored.branching,
        )
        parser.description = description
        return parser

    @classmethod
    def from_binary_grammar(cls, grammar: BinaryGrammar) -> Parser:
        """A parser for any grammar in Chomsky normal form, such as that of a treebank or of the built-in corpus.

        Unless it has rules for <unk>, a sentence with an unknown word has no derivation.
        """
        vocabulary = Vocabulary([UNKNOWN, *(word for word in grammar.words if word != UNKNOWN)])
        symbol = {name: i for i, name in enumerate((*grammar.nonterminals, *grammar.preterminals))}
        n = len(grammar.nonterminals)
        word = {name: i for i, name in enumerate(vocabulary.words)}
        tables = TableGrammar.from_binary_rules(
            {symbol[a]: p for a, p in grammar.start.items()},
            [(symbol[a], symbol[b], symbol[c], p) for a, b, c, p in grammar.binary],
            [(symbol[t] - n, word[w], p) for t, w, p in grammar.lexical],
            nonterminals=n,
            preterminals=len(grammar.preterminals),
            words=len(vocabulary),
        )
        return cls(tables, vocabulary, grammar.nonterminals, grammar.preterminals)

    @property
    def generative(self) -> GenerativeModel:
        """The model, with its probabilities computed once if possible; an error for models that are not grammars."""
        if not isinstance(self._ready, GenerativeModel):
            raise RamifyError(
                f"This operation needs a grammar, but {type(self.model).__name__} has no rules; use a PCFG, such as a "
                "tn-pcfg."
            )
        return self._ready

    @property
    def grammar(self) -> Grammar:
        """The model as a PCFG; an error for grammars whose rules depend on head words."""
        if not isinstance(self.generative, Grammar):
            raise RamifyError(
                f"This operation does not work for {type(self.model).__name__}, whose rules depend on head words; use "
                "a model of another family."
            )
        return self.generative

    @cached_property
    def tables(self) -> TableGrammar:
        """The probabilities of all rules; for a compound grammar those at z = 0"""
        return self.grammar.tabulated()

    @cached_property
    def rules(self) -> RuleLookup:
        """Finds the most probable binary rules; for a compound grammar those at z = 0"""
        return RuleLookup(self.grammar)

    @property
    def device(self) -> torch.device:
        """The device of the model."""
        return self.model.device

    def save(self, folder: str | Path, overwrite: bool = False) -> None:
        """Save the model to a folder that `ramify.load` reads.

        With `overwrite` it replaces a model in that folder, including the checkpoint and metrics of its training.
        """
        if self.description is None:
            raise RamifyError(
                "Only a trained model can be saved as a folder; save a grammar read from rules with export."
            )
        stored = StoredModel(
            self.model, self.vocabulary, self.word_rule, self.text_rules, self.spelling, self.branching
        )
        save_model(Path(folder), self.description | {BRANCHING: self.branching}, stored, overwrite)

    @torch.no_grad()
    def distributions(self, sentences: Sequence[SentenceInput]) -> PCFG | LexicalisedPCFG:
        """The distribution over the trees of a batch of sentences, without punctuation.

        Its `marginals()` and `symbol_posteriors()` return batched tensors; `with_span_scores` forbids or favours spans.
        For a sentence with constraints it contains only the trees that meet them.
        """
        if not (read := [self._sentence(sentence) for sentence in sentences]):
            raise RamifyError("The list of sentences is empty; give at least one.")
        encoded = [self.vocabulary.encode(sentence.words) for sentence in read]
        for sentence, words in zip(read, encoded, strict=True):
            if not len(words):
                raise RamifyError(
                    f"{sentence.where or 'A sentence'}: has no words and therefore no trees; give one with words."
                )
        found: PCFG | LexicalisedPCFG = self.generative.forward(*pad(encoded, self.device))
        forbidden = Forbidden.of(list(map(forbidden_spans, read)), found.longest, self.device)
        return found if forbidden is None else found.forbid(forbidden.mask)

    @property
    def has_likelihood(self) -> bool:  # type: ignore[override]
        """Whether the log-probabilities of its analyses are log p(w), or a lower bound of it"""
        return self.model.has_likelihood

    @property
    def has_posteriors(self) -> bool:  # type: ignore[override]
        """Whether its posteriors are probabilities, rather than 1 for the spans of one tree and 0 for all others"""
        return self.model.has_posteriors

    def _check(self, how: Decoding) -> None:
        check_decoder(self._ready, how.decoder, how.seed, how.branching)

    def best_parses(self, sentence: SentenceInput, count: int = 10) -> list[tuple[nltk.Tree, float]]:
        """The most probable labelled trees, best first, including punctuation, each with its log-probability."""
        check_positive("count", count)
        check_decoder(self.generative, "viterbi")
        read = self._sentence(sentence)
        found = self._alone(read).top_k(count)[0]
        parses = (with_punctuation(read, self._parse(read.words, each)) for each in found)
        return [(notebook_tree(parse), each.log_weight) for parse, each in zip(parses, found, strict=True)]

    def entropy(self, sentence: SentenceInput) -> float:
        """The entropy, in nats, of the posterior over labelled trees.

        For a low-rank grammar, it is the entropy over trees with a rank component at every rule, an upper bound.
        """
        return float(self._alone(self._sentence(sentence)).to(torch.float64).entropy())

    def log_probabilities(self, sentences: Iterable[SentenceInput | Pause]) -> Iterator[float]:
        """The log-probability of each sentence in nats, in order; -inf if the grammar cannot derive it."""
        return (scored.log_probability for scored in self.score_many(sentences))

    def score_many(self, sentences: Iterable[SentenceInput | Pause], max_length: int | None = None) -> Iterator[Scored]:
        """log p(w) of each sentence, in order, and the reason if it is minus infinity; `max_length` as in parsing."""
        check_positive("max_length", max_length)
        if not self.has_likelihood:
            raise RamifyError(
                f"{type(self.model).__name__} does not compute probabilities of sentences; use a grammar, prpn or "
                "on-lstm."
            )
        for window, _ in self._windows(sentences):
            encoded, too_long = self._encoded(window, max_length)
            found, in_log_space = log_probabilities(self._ready, encoded, [sentence.where for sentence in window])
            likelihoods = self.likelihoods_given(window, found.tolist(), too_long)
            for place, (sentence, likelihood) in enumerate(zip(window, likelihoods, strict=True)):
                failure = "too long" if place in too_long else _failure(float(found[place]), len(encoded[place]))
                yield Scored(sentence, likelihood, failure, bool(in_log_space[place]))

    def likelihoods_given(
        self, sentences: Sequence[Sentence], log_p: Sequence[float], too_long: Collection[int] = ()
    ) -> list[Likelihood]:
        """The likelihoods of sentences whose log p(w) is given, with those that account for unknown words."""
        unknown = [self.vocabulary.unknown(sentence.words) for sentence in sentences]
        places = [place for place, words in enumerate(unknown) if words and place not in too_long]
        known: list[float | None] = list(log_p)
        opened: list[float | None] = [None] * len(places)
        if isinstance(self._ready, GenerativeModel):
            encoded = [self.vocabulary.encode(sentences[place].words) for place in places]
            opened = log_probabilities(self._ready, encoded, unknown_open=True)[0].tolist()
        for place, log_probability in zip(places, opened, strict=True):
            known[place] = log_probability
        return [
            Likelihood(
                1,
                UnknownCount(len(sentence.words), len(words)),
                whole,
                of_known,
                None if self.spelling is None else sum(map(self.spelling.log_probability, words)),
            )
            for sentence, words, whole, of_known in zip(sentences, unknown, log_p, known, strict=True)
        ]

    def coverage(
        self, sentences: Sequence[Sentence], log_p: Sequence[float], too_long: Collection[int] = ()
    ) -> Coverage | None:
        """The unknown words of sentences whose log p(w) is given, and perplexities that account for them.

        `too_long` are the places of sentences that were too long to parse. None without a likelihood.
        """
        if not self.has_likelihood:
            return None
        return Coverage.of(sum(self.likelihoods_given(sentences, log_p, too_long), Likelihood()), self.vocabulary)

    def generate(self, count: int, seed: int = 0, max_length: int = 40) -> Iterator[Parse]:
        """Sentences of at most `max_length` words with their trees, drawn from the grammar; longer ones are redrawn."""
        if max_length < 2:
            raise RamifyError(f"max_length is {max_length}, but a sentence has at least 2 words.")
        check_positive("count", count)
        if seed < 0:
            raise RamifyError(f"seed is {seed}, but must be at least 0.")
        sampler = make_sampler(self.generative, np.random.default_rng(seed))
        for _ in range(count):
            tries = (sampler.draw(max_length) for _ in range(MAX_TRIES))
            drawn = next((each for each in tries if each is not None), None)
            if drawn is None:
                raise RamifyError(
                    f"None of {MAX_TRIES:,} sentences drawn from the grammar has at most {max_length} words, because "
                    "its derivations rarely end; raise max_length, or export with a larger mass."
                )
            yield self._parse(tuple(self.vocabulary.words[word] for word in drawn.word_ids), drawn)

    def rule_cosine(self) -> float | None:
        """The mean cosine between the rules of two nonterminals; None for models that are not PCFGs."""
        return self.rules.cosine() if isinstance(self.model, Grammar) else None

    def strongest_rules(self, symbol: str | None = None, count: int = 10) -> list[tuple[str, str, str, float]]:
        """The most probable binary rules (A, B, C, p) of one nonterminal, or of each."""
        check_positive("count", count)
        if symbol is not None and symbol not in self.labels:
            raise RamifyError(
                f"{symbol!r} is not a nonterminal of this grammar; choose one of its {_listed(self.labels)}."
            )
        parents = range(len(self.labels)) if symbol is None else [self.labels.index(symbol)]
        found = [rule for parent in parents for rule in self.rules.strongest(parent, count)]
        return [self._named(rule) for rule in sorted(found, key=lambda rule: -rule.probability)]

    def strongest_words(self, tag: str, count: int = 10) -> list[tuple[str, float]]:
        """The most probable words of a preterminal."""
        check_positive("count", count)
        if tag not in self.tags and self.grammar:
            raise RamifyError(f"{tag!r} is not a preterminal of this grammar; choose one of its {_listed(self.tags)}.")
        found = strongest_words(self.grammar, count, [self.tags.index(tag)])[0]
        return [(self.vocabulary.words[word], probability) for word, probability in found]

    def label_trees(self, sentences: Sequence[Sentence], trees: Sequence[Spans]) -> list[TreeLabels]:
        """The most probable labels of given binary trees over the words of sentences, and tags of these words.

        A tree that the grammar cannot derive, and every tree of a model without rules, has the label `X` everywhere.
        """
        encoded = [self.vocabulary.encode(sentence.words) for sentence in sentences]
        found = {place: TreeLabels.without_labels(len(words), words == 0) for place, words in enumerate(encoded)}
        if not isinstance(self._ready, GenerativeModel):
            return list(found.values())
        for places in memory_batches(self._ready, list(map(len, encoded))):
            batch = pad([encoded[place] for place in places], self.device)
            labelled = labels_of_trees(self._ready, *batch, [trees[place] for place in places])
            for place, decoded in zip(places, labelled, strict=True):
                if decoded.log_probability > -np.inf:
                    found[place] = TreeLabels(
                        tuple(self.labels[a] for a in decoded.labels),
                        decoded.label_posteriors,
                        tuple(self.tags[t] for t in decoded.tags),
                        decoded.tag_posteriors,
                        encoded[place] == 0,
                    )
        return [found[place] for place in range(len(encoded))]

    def _named(self, rule: Rule) -> tuple[str, str, str, float]:
        names = (*self.labels, *self.tags)
        return names[rule.parent], names[rule.left], names[rule.right], rule.probability

    def _alone(self, sentence: Sentence) -> PCFG | LexicalisedPCFG:
        """The distribution over the trees of one sentence; refused if it has no words or does not fit into memory."""
        check_fits(self.generative, sum(sentence.is_word), sentence.where)
        return self.distributions([sentence])

    def _encoded(self, window: Sequence[Sentence], max_length: int | None) -> tuple[list[WordIds], set[int]]:
        """The words by their numbers, and the places of sentences beyond the limit or the free memory, left empty."""
        lengths = [sum(sentence.is_word) for sentence in window]
        too_long = {
            place
            for place, length in enumerate(lengths)
            if length > (max_length or length) or not fits(self._ready, length)
        }
        words = ([] if place in too_long else sentence.words for place, sentence in enumerate(window))
        return list(map(self.vocabulary.encode, words)), too_long

    def _analyse_window(self, window: list[Sentence], how: Decoding, done: int) -> list[Batch]:
        encoded, too_long = self._encoded(window, how.max_length)
        lengths, where = list(map(len, encoded)), [sentence.where for sentence in window]
        empty = [place for place, length in enumerate(lengths) if not length]
        flat = [(place, self._flat(window[place], "too long" if place in too_long else None)) for place in empty]

        def batch(places: list[int]) -> Batch:
            chosen = [window[place] for place in places], [encoded[place] for place in places]
            return lambda: self._analyse_batch(places, *chosen, how, done)

        return [
            lambda: flat,
            *map(batch, memory_batches(self._ready, lengths, where, max_batch_size(len(window)))),
        ]

    def _analyse_batch(
        self, places: list[int], sentences: list[Sentence], encoded: list[WordIds], how: Decoding, done: int
    ) -> list[tuple[int, Analysis]]:
        with _charts(self._ready.working_bytes(list(map(len, encoded))), CHART_BYTES):
            word_ids, lengths = pad(encoded, self.device)
            found = decode(
                self._ready,
                word_ids,
                lengths,
                how.decoder,
                [(how.seed, done + place) for place in places],
                how.branching,
                Forbidden.of(list(map(forbidden_spans, sentences)), word_ids.shape[1], self.device),
                how.heads,
            )
        results = zip(places, sentences, found, encoded, strict=True)
        return [(place, self._analysis(sentence, decoded, words == 0)) for place, sentence, decoded, words in results]

    def _parse(self, words: tuple[str, ...], found: Decoded | Tree | Generated) -> Parse:
        assert found.labels is not None
        assert found.tags is not None
        labels, tags = [self.labels[a] for a in found.labels.tolist()], [self.tags[t] for t in found.tags.tolist()]
        return Parse(words, tuple(tags), found.spans, tuple(labels))

    def _flat(self, sentence: Sentence, failure: Failure | None = None) -> Analysis:
        """A sentence that is not parsed."""
        return Analysis.flat(sentence, self.vocabulary.encode(sentence.words) == 0, failure)

    def _analysis(self, sentence: Sentence, found: Decoded, unknown: NDArray[np.bool_]) -> Analysis:
        failure = _failure(found.log_probability, len(found.tags))
        log_p = found.constraint_log_probability
        if log_p == -np.inf:
            failure = "constraints"
        if failure:
            flat = Analysis.flat(sentence, unknown, failure, [self.tags[t] for t in found.tags])
            return replace(flat, log_probability=found.log_probability, constraint_log_probability=log_p)
        analysis = Analysis.from_words(
            sentence,
            self._parse(sentence.words, found),
            found.log_probability,
            found.posteriors,
            found.label_posteriors,
            found.tag_posteriors,
            unknown,
            found.in_log_space,
            found.heads,
        )
        return analysis if log_p is None else replace(analysis, constraint_log_probability=log_p)


def _listed(symbols: Sequence[str]) -> str:
    """The number of symbols and some of their names, for errors; a large grammar has thousands."""
    names = ", ".join(symbols[:MAX_LISTED])
    return f"{len(symbols):,} names, {f'such as {names}' if len(symbols) > MAX_LISTED else names}"


def _failure(log_probability: float, words: int) -> Failure | None:
    """Whether the sentence is a single word, which needs no parse, because these grammars do not derive it."""
    return "no derivation" if words > 1 and log_probability == -np.inf else None

"""The k most probable labelled trees of a sentence, with their probabilities."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from ramify.corpus.brackets import write_brackets
from ramify.corpus.sentence import Sentence
from ramify.corpus.streaming import Pause
from ramify.corpus.tree import Parse
from ramify.corpus.vocabulary import UnknownCount
from ramify.decoding.decoders import check_decoder
from ramify.drawing.terminal import draw, with_head_words
from ramify.errors import RamifyError
from ramify.evaluation.failures import Failure
from ramify.models.batches import fits
from ramify.parser.analysis import Analysis, heads_with_punctuation, with_punctuation
from ramify.parser.kept_columns import with_columns
from ramify.parser.parser import Parser
from ramify.parser.tree_parser import SentenceInput, TreeParser, check_positive
from ramify.structures.fallback import reliable_log_partition

ALLOWED_DECODERS = ("mbr", "viterbi")
"""Values of `--decoder` that are allowed with the k best trees: the default, and the one that finds the best tree"""


@dataclass(frozen=True)
class RankedParse:
    """One of the k best trees, including punctuation."""

    parse: Parse
    log_probability: float
    """log p(tree, w) in nats, for a compound grammar at the mean of z; minus infinity for the flat tree of a sentence
    without a parse"""
    probability: float
    """p(tree | w), also conditioned on the constraints if there are any"""
    heads: tuple[int, ...] | None = None


@dataclass(frozen=True)
class BestParses:
    """A sentence with its best trees; a sentence without a parse has one flat tree of probability zero."""

    sentence: Sentence
    flat: Analysis
    """Unknown words, and a flat tree"""
    trees: tuple[RankedParse, ...]
    log_probability: float
    """log p(w) of the words in nats, ignoring constraints"""
    failure: Failure | None = None
    in_log_space: bool = False

    @property
    def count(self) -> UnknownCount:
        """Its words, and those that are unknown."""
        return self.flat.count

    def as_record(self) -> dict[str, object]:
        """As JSON values: text, tokens and so on as `Analysis.as_record`, and the trees under `best`."""
        record = self.flat.as_record()
        for name in ("tags", "constituents", "constraint_probability"):
            del record[name]
        record["log_probability"] = _finite(self.log_probability)
        record["failure"] = self.failure
        record["best"] = [_tree_record(tree) for tree in self.trees]
        return record


def best_many(
    parser: TreeParser,
    sentences: Iterable[SentenceInput | Pause],
    count: int,
    max_length: int | None = None,
    decoder: str = "viterbi",
) -> Iterator[BestParses]:
    """The `count` most probable trees of each sentence, best first, or all if it has fewer; one sentence at a time.

    `check_decoder` refuses grammars whose most probable tree cannot be found exactly.
    """
    check_positive("best", count)
    check_positive("max_length", max_length)
    if decoder not in ALLOWED_DECODERS:
        raise RamifyError(
            f"--best lists the most probable trees, which the decoder {decoder} does not find; leave out --decoder."
        )
    if not isinstance(parser, Parser):
        raise RamifyError("--best needs the probabilities of trees, which an average does not have; give one grammar.")
    check_decoder(parser.generative, "viterbi")
    for window, _ in parser._windows(sentences):
        for sentence in window:
            yield _best_of(parser, sentence, count, max_length)


def _best_of(parser: Parser, sentence: Sentence, count: int, max_length: int | None) -> BestParses:
    words = sum(sentence.is_word)
    flat = parser._flat(sentence)
    if words < 2:
        return BestParses(sentence, flat, (_flat_tree(flat.parse),), -math.inf)
    if words > (max_length or words) or not fits(parser.generative, words):
        return BestParses(sentence, flat, (_flat_tree(flat.parse),), -math.inf, "too long")
    alone = parser.distributions([sentence])
    total, in_log_space = reliable_log_partition(alone)
    log_z = float(total[0])
    trees = tuple(
        RankedParse(
            with_punctuation(sentence, parser._parse(sentence.words, found)),
            found.log_weight,
            min(math.exp(found.log_weight - log_z), 1.0),
            None if found.heads is None else heads_with_punctuation(found.heads.tolist(), sentence.is_word),
        )
        for found in alone.top_k(count)[0]
    )
    log_p = next(parser.log_probabilities([sentence]))  # without constraints
    if trees:
        return BestParses(sentence, flat, trees, log_p, None, bool(in_log_space[0]))
    failure: Failure = "constraints" if log_p > -math.inf else "no derivation"
    return BestParses(sentence, flat, (_flat_tree(flat.parse),), log_p, failure)


def _flat_tree(parse: Parse) -> RankedParse:
    return RankedParse(parse, -math.inf, 0.0)


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _tree_record(tree: RankedParse) -> dict[str, object]:
    spans = zip(tree.parse.spans.tolist(), tree.parse.labels, strict=True)
    record: dict[str, object] = {
        "probability": tree.probability,
        "log_probability": _finite(tree.log_probability),
        "tags": list(tree.parse.tags),
        "constituents": [[i, j, label] for (i, j), label in spans],
    }
    return record if tree.heads is None else {**record, "heads": list(tree.heads)}


def _numbers(tree: RankedParse) -> str:
    return f"{tree.probability:.6f}\t{tree.log_probability:.6f}"


def best_brackets(best: BestParses) -> str:
    """A line for each tree with p(tree | w), log p(tree, w) and the tree, separated by tabs; then a blank line."""
    if not best.sentence.offsets:
        return ""
    return "".join(f"{_numbers(tree)}\t{write_brackets(tree.parse)}\n" for tree in best.trees)


def best_spans(best: BestParses) -> str:
    """The same with constituents as `i-j:label`."""
    if not best.sentence.offsets:
        return ""
    lines = []
    for tree in best.trees:
        spans = zip(tree.parse.spans.tolist(), tree.parse.labels, strict=True)
        lines.append(f"{_numbers(tree)}\t{' '.join(f'{i}-{j}:{label}' for (i, j), label in spans)}\n")
    return "".join(lines)


def best_pretty(best: BestParses, with_ascii: bool = False) -> str:
    """Each tree drawn with lines, below its rank and its probabilities."""
    if not best.sentence.offsets:
        return ""
    return "\n".join(_drawn(number, tree, with_ascii) for number, tree in enumerate(best.trees, start=1))


def _drawn(number: int, tree: RankedParse, with_ascii: bool) -> str:
    parse = tree.parse if tree.heads is None else with_head_words(tree.parse, tree.heads)
    try:
        drawn = draw(parse.to_nltk(), with_ascii)
    except RecursionError:  # too deep to be drawn
        drawn = write_brackets(parse) + "\n"
    return f"{number}. p(tree | sentence) = {tree.probability:.4g}, log p = {tree.log_probability:.4f}\n{drawn}"


def best_json(best: BestParses) -> str:
    """One line of JSON for each sentence."""
    return json.dumps(with_columns(best.as_record(), best.sentence), ensure_ascii=False)


BEST_FORMATS: dict[str, Callable[[BestParses], str]] = {
    "brackets": best_brackets,
    "spans": best_spans,
    "pretty": best_pretty,
    "ascii": lambda best: best_pretty(best, with_ascii=True),
    "json": best_json,
}
"""Formats that can show several trees of one sentence."""

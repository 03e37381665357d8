"""A trained grammar as float16 tables, without the networks that computed them: a small model like any other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ramify.corpus.sentence import Sentence
from ramify.errors import RamifyError
from ramify.evaluation.agreement import MemberAgreement
from ramify.models.td_pcfg import TDPCFG
from ramify.parser.parser import Parser
from ramify.storage.model_card import write_card
from ramify.storage.model_files import COMPRESSED, checksum, read_config
from ramify.structures.low_rank import LowRankRules

SAMPLE_SIZE, LONGEST_SAMPLE = 200, 40
"""Number of sentences drawn from the grammar to compare two versions of it"""


@torch.no_grad()
def compress(parser: Parser) -> Parser:
    """The same grammar in float16, as a TD-PCFG, which normalises its probabilities when it is loaded.

    In each distribution the largest logit is 0, because float16 is most exact near 0: a probability within a factor of
    e^-8 of the largest one changes by at most 0.2 %.
    """
    grammar = parser.grammar
    if grammar.latent:
        raise RamifyError(
            "A compound grammar cannot be compressed, as every sentence has its own rules; give another model."
        )
    rules = grammar.tabulated().rules()
    if not isinstance(rules, LowRankRules):
        raise RamifyError(
            f"Only low-rank grammars can be compressed, and {type(parser.model).__name__} is dense; write its rules "
            "with export."
        )
    if parser.description is None:
        raise RamifyError("Only a trained model can be compressed, not a file of rules; give a model folder.")
    sizes = {"nonterminals": grammar.nonterminals, "preterminals": grammar.preterminals, "words": grammar.words}
    arguments = sizes if rules.head is None else sizes | {"rank": rules.rank}
    small = TDPCFG(**arguments)
    tables = {
        "root": _rounded(rules.root, -1),
        "left": _rounded(rules.left, -2),
        "right": _rounded(rules.right, -2),
        "word_logits": _rounded(grammar.tabulated().emission_table, -2),
    }
    tables |= {} if rules.head is None else {"head": _rounded(rules.head, -1)}
    small.load_state_dict(tables)
    found = Parser(
        small.to(parser.device), parser.vocabulary, parser.labels, parser.tags, parser.word_rule, parser.text_rules,
        parser.spelling, parser.branching,
    )  # fmt: skip
    found.description = parser.description | {"model": "td-pcfg", "grammar": arguments}
    return found


def _rounded(log_probabilities: Tensor, dim: int) -> Tensor:
    """Logits of the same distributions within the range of float16; the largest of each is 0."""
    least = float(torch.finfo(torch.float16).min)
    logits = log_probabilities.float() - log_probabilities.float().amax(dim, keepdim=True)
    return logits.clamp(min=least).half().float().cpu()


def save_compressed(source: Path, parser: Parser, folder: Path, overwrite: bool = False) -> None:
    """Save the compressed model of `source` to a folder, with a model card."""
    assert parser.description is not None
    first = {"model": str(read_config(source)["model"]), "sha256": checksum(source)}
    parser.description = {COMPRESSED: first, **parser.description}  # an already compressed model keeps its record
    parser.save(folder, overwrite)
    write_card(folder, {})


@dataclass(frozen=True)
class ParserComparison:
    """A comparison of two parsers on the same sentences."""

    sentences: int
    same_trees: int
    f1: float
    """S-F1 between their trees, in percent"""
    log_probability: float
    """The largest difference of log p(w) of a sentence, in nats per word"""


def compare_parsers(one: Parser, other: Parser, sentences: Sequence[Sentence]) -> ParserComparison:
    """Compare the trees and probabilities of two parsers for sentences, given as words."""
    agreement = MemberAgreement(["one", "other"])
    same, largest = 0, 0.0
    for a, b in zip(one.analyse_many(sentences), other.analyse_many(sentences), strict=True):
        agreement.add([a.parse.spans, b.parse.spans], a.parse.spans, len(a.parse))
        same += np.array_equal(a.parse.spans, b.parse.spans)
        if np.isfinite([a.log_probability, b.log_probability]).all():
            largest = max(largest, abs(a.log_probability - b.log_probability) / max(len(a.parse), 1))
    f1 = float(agreement.table[0, 1]) if agreement.sentences else 100.0
    return ParserComparison(len(sentences), same, f1, largest)


def sample_sentences(parser: Parser) -> list[Sentence]:
    """Sentences drawn from the grammar, to be used without a text."""
    return [Sentence.from_tokens(parse.words) for parse in parser.generate(SAMPLE_SIZE, max_length=LONGEST_SAMPLE)]

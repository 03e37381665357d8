"""A parser from a model folder, or from a file of rules."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ramify.corpus.cleaning import WordRule
from ramify.corpus.reading import AS_IS
from ramify.corpus.rule_files import read_about, read_rules
from ramify.corpus.text import TextRules
from ramify.corpus.vocabulary import Vocabulary
from ramify.errors import RamifyError
from ramify.model_names import resolve
from ramify.parser.parser import Parser
from ramify.runtime.devices import choose_device
from ramify.storage.ensemble_folder import checksum_of, is_ensemble, read_ensemble
from ramify.storage.model_files import LEARNT_FROM_TEXT, branching_in, read_config
from ramify.storage.model_folder import load_model

if TYPE_CHECKING:
    from ramify.parser.ensemble import Ensemble


def load(folder: str | Path, device: str = "auto") -> Parser | Ensemble:
    """Load a parser from a model folder, a file of rules or a saved ensemble, or by the name of a model.

    Names are those of bundled models, such as `en`, and `hf:owner/name@revision` for models of the Hugging Face Hub.
    """
    folder = resolve(folder)
    if not is_ensemble(folder):
        return load_single(folder, device)
    from ramify.parser.ensemble import Ensemble
    from ramify.parser.ensemble_members import ModelMember

    found = read_ensemble(folder)
    members = [
        ModelMember(load_single(each.folder, device), each.name, checksum_of(each.folder)) for each in found.members
    ]
    return Ensemble(members, [each.weight for each in found.members])


def load_single(folder: str | Path, device: str = "auto") -> Parser:
    """The parser of a single model; an ensemble is refused."""
    folder = resolve(folder)
    if is_ensemble(folder):
        raise RamifyError(
            f"{folder}: this is an ensemble, but a single model is needed; give one of its members, such as "
            f"{folder / 'member-1'}."
        )
    if folder.is_file():
        return _load_rules(folder, device)
    return Parser.of_stored(load_model(folder, choose_device(device)), read_config(folder))


def _load_rules(path: Path, device: str) -> Parser:
    """The parser of a file of rules, which reads text like the model from which they were exported."""
    word_rule, rules, branching = described(path)
    parser = Parser.from_binary_grammar(read_rules(path))
    vocabulary = Vocabulary(parser.vocabulary.words, rules.normal_form)
    tables = parser.tables.float().to(choose_device(device))
    return Parser(tables, vocabulary, parser.labels, parser.tags, word_rule, rules, branching=branching)


def described(path: Path) -> tuple[WordRule | None, TextRules, float]:
    """Which leaves of trees are words, how text is read, and the branching bonus, from the header of a file of rules.

    Without such a header, every token is a word.
    """
    about = read_about(path)
    if not about:
        return None, AS_IS, 0.0
    try:
        words = str(about.get("words"))
        word_rule = None if words == LEARNT_FROM_TEXT else WordRule.from_name(words)
        return word_rule, TextRules.from_record(about.get("text"), None), branching_in(about)
    except RamifyError as error:
        raise RamifyError(f"{path}, line 1: {error}") from error

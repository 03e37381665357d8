"""The models of a server, by the names in requests."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from ramify.errors import RamifyError
from ramify.model_names import split_name
from ramify.parser import Ensemble, Parser, load
from ramify.parser.tree_parser import TreeParser
from ramify.printing import printable
from ramify.serve.glossary import Glossary, Text
from ramify.serve.limits import RefusedError

EXAMPLES = (
    "the old woman watched the dog and the man in the garden",
    "the old man saw a dog in the park",
    "the little girl gave her brother a book about the sea",
)
"""The page parses one of these when it opens, if the model knows its words"""
_DRAWS = 200
_WORDS_OF_EXAMPLE = range(6, 15)


@dataclass(eq=False)
class ServedModel:
    """One model."""

    name: str
    parser: TreeParser
    text: Text | None = None
    """The text from which its glossary takes typical phrases"""
    own_example: str | None = None
    _describing: threading.Lock = field(default_factory=threading.Lock)

    @cached_property
    def description(self) -> str:
        """A short description of the model."""
        if isinstance(self.parser, Parser):
            return f"{self.parser.model.described()}, {len(self.parser.vocabulary):,} words"
        members = len(self.parser.members) if isinstance(self.parser, Ensemble) else 0
        return f"an average of {members} parsers"

    @cached_property
    def decoders(self) -> tuple[str, ...]:
        """The decoders that the model supports."""
        return self.parser.decoders()

    def glossary(self) -> Glossary:
        """The descriptions of its symbols, computed once, which takes seconds for large grammars."""
        with self._describing:
            return self._glossary

    @cached_property
    def _glossary(self) -> Glossary:
        if not isinstance(self.parser, Parser):
            raise RamifyError(f"{self.name}: is an average of several parsers and has no rules; choose a single model.")
        return Glossary.of(self.parser, self.name, self.text)

    @cached_property
    def example(self) -> str:
        """An example sentence: one whose words the model knows, else one drawn from the grammar."""
        if self.own_example is not None:
            return self.own_example
        for sentence in EXAMPLES:
            if not isinstance(self.parser, Parser):
                return sentence
            if not self.parser.vocabulary.unknown(self.parser.text_rules.sentence(sentence).words):
                return sentence
        return next(self._drawn(), EXAMPLES[0])

    def _drawn(self) -> Iterator[str]:
        assert isinstance(self.parser, Parser)
        try:
            for parse in self.parser.generate(_DRAWS, max_length=_WORDS_OF_EXAMPLE.stop):
                if len(parse) in _WORDS_OF_EXAMPLE:
                    yield " ".join(parse.words)
        except RamifyError:  # not all models can generate sentences
            return


class ServedModels:
    """All models of a server; requests that name no model use the first."""

    def __init__(self, models: Sequence[ServedModel]) -> None:
        if not models:
            raise RamifyError("A server needs a model; give at least one.")
        self.models = {model.name: model for model in models}
        if len(self.models) < len(models):
            names = [model.name for model in models]
            twice = next(name for name in names if names.count(name) > 1)
            raise RamifyError(f"Two models are named {twice!r}; give each a different name with -m NAME=FOLDER.")

    def __iter__(self) -> Iterator[ServedModel]:
        return iter(self.models.values())

    def find(self, name: str | None) -> ServedModel:
        """The model of this name; without a name, the first one."""
        if name is None:
            return next(iter(self))
        if name not in self.models:
            known = ", ".join(self.models)
            raise RefusedError(404, f"The model {printable(name)[:80]!r} is not served here; choose one of {known}.")
        return self.models[name]


def load_served_models(models: Sequence[str], device: str = "auto") -> ServedModels:
    """Models given by folder or NAME=FOLDER; the default name is that of the folder."""
    found: list[ServedModel] = []
    for text in models:
        name, path = split_name(text)
        name = printable(name or path.resolve().name)
        names = [each.name for each in found]
        if name in names:
            name = next(f"{name} #{number}" for number in range(2, len(names) + 3) if f"{name} #{number}" not in names)
        found.append(ServedModel(name, load(path, device)))
    return ServedModels(found)

"""`nlp.add_pipe("ramify")`: constituents in a pipeline of spaCy.

spaCy finds this module by its entry point and may import it whenever it lists its factories. Therefore nothing is
loaded or registered before a component is created, and the model is loaded when the first doc is parsed.
"""

from __future__ import annotations

import math
import multiprocessing
import shutil
import tempfile
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

import srsly
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import minibatch, raise_error

from ramify.errors import RamifyError, RamifyWarning
from ramify.model_names import CONFIG, check_model, resolve
from ramify.storage.model_files import CHECKPOINT, FOCUS

if TYPE_CHECKING:
    from ramify.integrations.spacy_spans import Record
    from ramify.parser import Analysis, Ensemble, Parser

MODEL = "model"
"""The folder or file of the model inside the folder of a saved component"""
RULES = ".pcfg"
NOT_PASSED_ON = frozenset([CHECKPOINT, FOCUS])
LONGEST_WITHOUT_SENTENCES = 80
"""A longer doc without sentence boundaries is parsed with a warning"""


@Language.factory(
    "ramify",
    assigns=["doc.spans", "doc._.ramify"],
    default_config={"model": "en", "decoder": "mbr", "batch_size": None, "max_length": None, "device": "auto"},
)
def make_component(
    nlp: Language,  # noqa: ARG001
    name: str,
    model: str,
    decoder: str,
    batch_size: Optional[int],  # noqa: UP045
    max_length: Optional[int],  # noqa: UP045
    device: str,
) -> RamifyComponent:
    """The component; `model` is anything that `ramify.load` accepts."""
    return RamifyComponent(name, model, decoder, batch_size, max_length, device)


class RamifyComponent:
    """Adds constituents to docs: `doc._.ramify`, `doc.spans["ramify"]`, and attributes of spans; nothing else changes.

    Sentences are those of the doc; a doc without boundaries is one sentence. White space is left out, and tokens are
    punctuation if the model's rule for text says so.
    """

    def __init__(
        self,
        name: str,
        model: str,
        decoder: str = "mbr",
        batch_size: int | None = None,
        max_length: int | None = None,
        device: str = "auto",
    ) -> None:
        self.name, self.model = name, model
        self._decoder, self._batch_size, self._max_length, self._device = decoder, batch_size, max_length, device
        self._parser: Parser | Ensemble | None = None
        self._error_handler: Callable[..., None] = raise_error
        self._warned = False
        _install()

    @property
    def parser(self) -> Parser | Ensemble:
        """The model, which is loaded on first use."""
        if multiprocessing.parent_process() is not None:
            # One of several workers: they share the cores, and waiting for threads from before a fork would never end.
            import torch

            torch.set_num_threads(1)
        if self._parser is None:
            from ramify.parser.loading import load

            self._parser = load(self.model, self._device)
        return self._parser

    def __call__(self, doc: Doc) -> Doc:
        """Parse one doc."""
        try:
            self._annotate([doc])
        except Exception as error:
            self._error_handler(self.name, self, [doc], error)
        return doc

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Parse many docs, a batch at a time; the batch size of the component takes precedence."""
        for docs in minibatch(stream, self._batch_size or batch_size):  # type: ignore[no-untyped-call]
            try:
                self._annotate(docs)
                yield from docs
            except Exception as error:
                self._error_handler(self.name, self, docs, error)

    def _annotate(self, docs: list[Doc]) -> None:
        from ramify.integrations.spacy_spans import store

        spans = [list(self._sentences(doc)) for doc in docs]
        places = [
            [place for place in range(start, end) if doc[place].text.strip()]
            for doc, of_doc in zip(docs, spans, strict=True)
            for start, end in of_doc
        ]
        owners = (doc for doc, of_doc in zip(docs, spans, strict=True) for _ in of_doc)
        sentences = [_sentence(self.parser, doc, each) for doc, each in zip(owners, places, strict=True)]
        analyses = self.parser.analyse_many(sentences, self._decoder, max_length=self._max_length)
        found = iter([_record(*each) for each in zip(analyses, places, strict=True)])
        for doc, of_doc in zip(docs, spans, strict=True):
            # A sentence that is only white space is not parsed.
            store(doc, [record for record in (next(found) for _ in of_doc) if record["tags"]])

    def _sentences(self, doc: Doc) -> Iterator[tuple[int, int]]:
        if doc.has_annotation("SENT_START"):
            yield from ((sentence.start, sentence.end) for sentence in doc.sents)
            return
        if len(doc) > LONGEST_WITHOUT_SENTENCES and not self._warned:
            self._warned = True
            warnings.warn(
                f"A doc of {len(doc):,} tokens has no sentence boundaries, so it is parsed as one sentence; add a "
                'component that sets them before "ramify", such as nlp.add_pipe("sentencizer").',
                RamifyWarning,
                stacklevel=4,
            )
        if len(doc):
            yield 0, len(doc)

    def set_error_handler(self, error_handler: Callable[..., None]) -> None:
        """Set the handler for docs that cannot be parsed; by default the error is raised."""
        self._error_handler = error_handler

    def get_error_handler(self) -> Callable[..., None]:
        """The handler for docs that cannot be parsed."""
        return self._error_handler

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:  # noqa: ARG002
        """Save a copy of the model, so that the pipeline can be moved."""
        path = Path(path)
        path.mkdir(parents=True, exist_ok=True)
        _save(self.model, path / MODEL)

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> RamifyComponent:  # noqa: ARG002
        """Use the model that was saved with the pipeline."""
        path = Path(path)
        if (path / MODEL).is_dir() or (path / f"{MODEL}{RULES}").is_file():
            rules = path / f"{MODEL}{RULES}"
            self.model, self._parser = str(rules if rules.is_file() else path / MODEL), None
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """The files of the model."""
        with tempfile.TemporaryDirectory() as folder:
            self.to_disk(folder, exclude=exclude)
            files = (file for file in sorted(Path(folder).rglob("*")) if file.is_file())
            packed: bytes = srsly.msgpack_dumps(
                {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}
            )
            return packed

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> RamifyComponent:
        """Use the model in these bytes, unpacked to a folder that exists as long as the component."""
        folder = Path(tempfile.mkdtemp(prefix="ramify-"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        for name, content in srsly.msgpack_loads(data).items():
            file = folder / name
            if not file.resolve().is_relative_to(folder.resolve()):
                raise RamifyError(
                    f"The saved component contains a file outside its folder, {name[:80]!r}; load one that you trust."
                )
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        return self.from_disk(folder, exclude=exclude)

    def __getstate__(self) -> dict[str, Any]:
        # Another process loads the model from its current place.
        return {**self.__dict__, "_parser": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        _install()


def _install() -> None:
    from ramify.integrations.spacy_spans import install_extensions

    install_extensions()


def _save(model: str, place: Path) -> None:
    """Copy a model folder or file of rules, replacing an existing one."""
    source = resolve(model)
    check_model(source)
    if source.is_file():
        place = place.with_suffix(RULES)
    if place.exists() and place.samefile(source):
        return  # it is already there
    if source.is_file():
        shutil.copyfile(source, place)
        return
    if place.exists() and not (place / CONFIG).is_file():
        raise RamifyError(f"{place}: already exists and is not a model; save the pipeline to another folder.")
    with tempfile.TemporaryDirectory(prefix=".ramify-", dir=place.parent) as folder:
        whole = Path(folder, MODEL)
        shutil.copytree(source, whole, ignore=_not_of_the_model)
        if place.exists():
            place.rename(Path(folder, "before"))  # removed with the folder when the new model is complete
        whole.rename(place)


def _not_of_the_model(folder: str, names: list[str]) -> set[str]:
    """Files that a copied model does not need: the state of its training, locks, links."""
    return {
        name
        for name in names
        if name in NOT_PASSED_ON or name.startswith(".") or Path(folder, name).is_symlink() or name.endswith(".partial")
    }


def _sentence(parser: Parser | Ensemble, doc: Doc, places: list[int]) -> Any:
    from ramify.integrations.spacy_spans import bracket_word

    return parser.text_rules.sentence_of([bracket_word(doc[place].text) for place in places])


def _record(analysis: Analysis, places: list[int]) -> Record:
    """An analysis as a record of doc tokens; those at `places` were parsed."""
    from ramify.integrations.spacy_spans import WHITE_SPACE_TAG, Record

    start, end = (places[0], places[-1] + 1) if places else (0, 0)
    tags = [WHITE_SPACE_TAG] * (end - start)
    for place, tag in zip(places, analysis.parse.tags, strict=True):
        tags[place - start] = tag
    return Record(
        start=start,
        end=end,
        constituents=[
            [places[i], places[j - 1] + 1, label, float(analysis.posteriors[i, j])]
            for (i, j), label in zip(analysis.parse.spans.tolist(), analysis.parse.labels, strict=True)
        ],
        tags=tags,
        log_probability=analysis.log_probability if math.isfinite(analysis.log_probability) else None,
        failure=analysis.failure,
    )
